/* gc, while writers come back, die and are paused at any of its requests. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>

#include "gc_scene.h"
#include "manifest_make.h"
#include "world.h"

static const int64_t hour = (int64_t)3600 * 1000000000;

/* Before each request of the collector a writer may come back: it opens a term, goes on with what
 * was left, saves, drops, is paused, goes on. Late puts of dead writers arrive at any time. */
typedef struct meddler {
  gc_scene *c;
  uint64_t random;
  runlog *writer; /* NULL: none is alive */
  uint64_t attempt;
  int names;
  long begun, adopted, committed, late;
} meddler;

static unsigned pick(meddler *m, unsigned of) {
  return (unsigned)(next_random(&m->random) >> 20) % of;
}

static void come_back(meddler *m) {
  char launch[32];
  snprintf(launch, sizeof launch, "w%d", m->names++);
  m->writer = world_begin(m->c->s, "", launch);
  m->attempt = RUNLOG_NONE;
  if (pick(m, 4)) gc_lease(m->c, m->writer);
  m->begun++;
}

static void go_on(meddler *m) {
  const runlog_state *st = runlog_view(m->writer);
  for (size_t i = st->attempt_count; i-- > 0 && m->attempt == RUNLOG_NONE;)
    if (st->attempts[i].fate == RUNLOG_OPEN && st->attempts[i].owner < st->term.n) {
      uint64_t n = st->attempts[i].n;
      int rc = runlog_adopt(m->writer, n, NULL);
      assert_true(rc == 0 || rc == ERR_CONFLICT);
      if (rc < 0) return;
      m->attempt = n;
      m->adopted++;
      gc_put_in(m->c, runlog_find_attempt(runlog_view(m->writer), n)->dir, "model.pt");
    }
}

static void finish(meddler *m) {
  manifest sealed;
  gc_seal(m->c, m->writer, m->attempt, &sealed);
  err e = {0};
  int rc = runlog_commit_attempt(m->writer, m->attempt, &sealed, NULL, NULL, &e);
  if (rc < 0) fail_msg("a live writer's commit: %s", e.text);
  manifest_free(&sealed);
  m->attempt = RUNLOG_NONE;
  m->committed++;
}

static void drop_some(meddler *m) {
  const runlog_state *st = runlog_view(m->writer);
  size_t count = st->commit_count;
  if (count > 1)
    runlog_drop(m->writer, st->commits[pick(m, (unsigned)count - 1)].n, "p", "x", NULL, NULL, NULL);
}

static void late_put(meddler *m) {
  runlog *log = NULL;
  assert_int_equal(runlog_open(m->c->s, "", &log, NULL), 0);
  const runlog_state *st = runlog_view(log);
  if (st->attempt_count) {
    const runlog_attempt *a = &st->attempts[pick(m, (unsigned)st->attempt_count)];
    if (a->fate == RUNLOG_SWEPT) gc_put_in(m->c, a->dir, "late"), m->late++;
  }
  runlog_close(log);
}

static void meddle(void *ctx) {
  meddler *m = ctx;
  char name[32];
  if (pick(m, 5)) return;
  if (!m->writer) {
    if (pick(m, 6) == 0)
      come_back(m);
    else
      late_put(m);
    return;
  }
  switch (pick(m, 7)) {
  case 0: go_on(m); break;
  case 1:
  case 2:
    snprintf(name, sizeof name, "checkpoint-%d", m->names++);
    if (m->attempt == RUNLOG_NONE) m->attempt = gc_announce(m->c, m->writer, name);
    break;
  case 3:
  case 4:
    if (m->attempt != RUNLOG_NONE) finish(m);
    break;
  case 5: drop_some(m); break;
  default: late_put(m);
  }
}

/* It dies, with all that it was at. */
static void die(meddler *m) {
  runlog_close(m->writer);
  m->writer = NULL;
  m->attempt = RUNLOG_NONE;
}

static void check_world(meddler *m, unsigned seed) {
  gc_scene *c = m->c;
  runlog *log = NULL;
  err e = {0};
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  const runlog_state *st = runlog_view(log);
  for (size_t i = 0; i < st->commit_count; i++)
    if (st->commits[i].life == RUNLOG_LIVE && (!gc_holds(c, st->commits[i].dir, "model.pt") ||
                                               !gc_holds(c, st->commits[i].dir, MANIFEST_NAME)))
      fail_msg("seed %u: %s is live and not whole", seed, st->commits[i].dir);
  if (m->writer && runlog_refresh(m->writer, &e) < 0)
    fail_msg("seed %u: a live writer was fenced: %s", seed, e.text);
  if (m->attempt != RUNLOG_NONE) {
    const runlog_attempt *a = runlog_find_attempt(st, m->attempt);
    if (a->fate != RUNLOG_OPEN || !gc_holds(c, a->dir, "model.pt"))
      fail_msg("seed %u: a live writer's save was touched", seed);
  }
  if (!gc_holds(c, "notes", "mine.txt")) fail_msg("seed %u: foreign data is gone", seed);
  runlog_close(log);
}

static void nothing_live_is_ever_removed(void **state) {
  long begun = 0, adopted = 0, committed = 0, late = 0, told = 0;
  for (unsigned seed = 1; seed <= 400; seed++) {
    gc_scene *c = gc_scene_new("mem");
    meddler m = {.c = c, .random = seed, .attempt = RUNLOG_NONE};
    c->grace_ns = seed % 3 ? 0 : hour;
    gc_put_in(c, "notes", "mine.txt");
    come_back(&m);
    for (int i = 0; i < 30; i++) meddle(&m);
    c->gate.between = meddle;
    c->gate.ctx = &m;
    for (int round = 0; round < 5; round++) {
      err e = {0};
      if (m.writer && pick(&m, 2)) {
        die(&m);
        gc_ahead += (int64_t)pick(&m, 3) * hour;
      } else if (m.writer) {
        gc_lease(c, m.writer);
      }
      int rc = gc_run_on(c, &c->gate.base, collect_log, &e);
      /* Somebody else's entry came first, or a term: both are said, and harmless. */
      if (rc != 0 && rc != ERR_CONFLICT && rc != ERR_FENCED) fail_msg("seed %u: %s", seed, e.text);
      told += (long)c->told;
      check_world(&m, seed);
    }
    c->gate.between = NULL;
    if (m.writer) die(&m);
    gc_ahead += 48 * hour;
    gc_must_collect(c);
    gc_must_collect(c);
    check_world(&m, seed);
    begun += m.begun, adopted += m.adopted, committed += m.committed, late += m.late;
    gc_scene_free(c);
  }
  print_message("%ld writers, %ld adopted, %ld committed, %ld late puts, %ld collected\n", begun,
                adopted, committed, late, told);
  assert_true(begun > 500 && adopted > 50 && committed > 500 && late > 100 && told > 500);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nothing_live_is_ever_removed),
  };
  return cmocka_run_group_tests_name("collect at random", tests, NULL, NULL);
}
