/* gc removes a whole run: what stays of it, and who holds it back. */
#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "commit/lease.h"
#include "commit/pins.h"
#include "gc_scene.h"
#include "world.h"

static const int64_t second = 1000000000;
static const int64_t hour = (int64_t)3600 * 1000000000;

static void a_removed_run_leaves_its_log_and_what_is_not_its_own(void **state) {
  gc_scene *c = *state;
  err e = {0};
  gc_make_mess(c);
  assert_int_equal(gc_run_on(c, &c->gate.base, collect_run, &e), 0);
  assert_true(gc_holds(c, "notes", "mine.txt"));
  assert_false(gc_holds(c, "checkpoint-3", "model.pt") || gc_holds(c, "b", "model.pt"));
  runlog *log = NULL;
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  assert_true(runlog_view(log)->ended);
  assert_null(runlog_newest(runlog_view(log), NULL));
  runlog_close(log);
  /* The next run goes on in the log; no name comes back. */
  runlog_writer who = {.launch = "next"};
  assert_int_equal(runlog_open(c->s, "", &log, NULL), 0);
  assert_int_equal(runlog_begin(log, "another", &who, false, NULL), 0);
  uint64_t n = gc_announce(c, log, "checkpoint-3");
  assert_string_not_equal(runlog_find_attempt(runlog_view(log), n)->dir, "checkpoint-3");
  runlog_close(log);
}

static void a_run_that_is_alive_or_pinned_is_not_removed(void **state) {
  gc_scene *c = *state;
  char id[PINS_ID_MAX];
  err e = {0};
  runlog *log = gc_begin(c, "", "one");
  uint64_t n = gc_commit(c, log, "checkpoint-1");
  gc_lease(c, log);
  assert_int_equal(gc_run_on(c, c->s, collect_check_run, &e), ERR_HELD);
  assert_int_equal(gc_run_on(c, c->s, collect_run, &e), ERR_HELD);
  gc_ahead = hour;
  assert_int_equal(gc_run_on(c, c->s, collect_check_run, &e), 0);
  pin_request r = {.dir = "checkpoint-1", .by = "x", .commit = n};
  assert_int_equal(pins_put(c->s, "", &r, id, false, NULL), 0);
  assert_int_equal(gc_run_on(c, c->s, collect_check_run, &e), ERR_HELD);
  assert_int_equal(gc_run_on(c, c->s, collect_run, &e), ERR_HELD);
  assert_true(gc_holds(c, "checkpoint-1", "model.pt"));
  assert_int_equal(runlog_refresh(log, NULL), 0);
}

/* Its lease was removed by another's late release, or by hand. */
static void a_run_without_a_lease_is_alive_until_its_log_is_quiet(void **state) {
  gc_scene *c = *state;
  err e = {0};
  runlog *log = gc_begin(c, "", "one");
  gc_commit(c, log, "checkpoint-1");
  gc_ahead = 14 * 60 * second;
  assert_int_equal(gc_run_on(c, c->s, collect_check_run, &e), ERR_HELD);
  assert_int_equal(gc_run_on(c, c->s, collect_run, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "try again in"));
  assert_true(gc_holds(c, "checkpoint-1", "model.pt"));
  gc_commit(c, log, "checkpoint-2");
  gc_ahead = 30 * 60 * second;
  assert_int_equal(gc_run_on(c, c->s, collect_run, &e), 0);
  assert_int_equal(runlog_refresh(log, NULL), ERR_FENCED);
}

static void a_run_that_has_ended_well_may_be_removed_at_once(void **state) {
  gc_scene *c = *state;
  runlog *log = gc_begin(c, "", "one");
  gc_commit(c, log, "checkpoint-1");
  gc_lease(c, log);
  assert_int_equal(gc_run_on(c, c->s, collect_run, NULL), ERR_HELD);
  gc_release(c, log);
  assert_int_equal(gc_run_on(c, c->s, collect_run, NULL), 0);
}

/* A reader comes at any moment of the removal: it puts its pin, reads the log, and reads on if that
 * still has what it wants. */
typedef struct reader {
  gc_scene *c;
  uint64_t commit;
  long at; /* before the call of that number */
  bool came, may_read;
} reader;

static void read_now(void *ctx) {
  reader *r = ctx;
  char id[PINS_ID_MAX];
  pin_request pin = {.dir = "checkpoint-1", .by = "restore", .commit = r->commit};
  if (r->c->gate.calls != r->at) return;
  runlog *log = NULL;
  assert_int_equal(pins_put(r->c->s, "", &pin, id, false, NULL), 0);
  assert_int_equal(runlog_open(r->c->s, "", &log, NULL), 0);
  r->came = true;
  r->may_read = runlog_find_commit(runlog_view(log), r->commit)->life == RUNLOG_LIVE;
  runlog_close(log);
}

static void who_pinned_before_the_end_reads_on(void **state) {
  long readers = 0, refused = 0;
  bool more = true;
  for (long at = 1; more; at++) {
    gc_scene *c = gc_scene_new("mem");
    runlog *log = world_begin(c->s, "", "one");
    reader r = {.c = c, .commit = gc_commit(c, log, "checkpoint-1"), .at = at};
    gc_release(c, log);
    runlog_close(log);
    c->gate.between = read_now;
    c->gate.ctx = &r;
    err e = {0};
    int rc = gc_run_on(c, &c->gate.base, collect_run, &e);
    assert_true(rc == 0 || rc == ERR_HELD);
    if (r.came && r.may_read && !gc_holds(c, "checkpoint-1", "model.pt"))
      fail_msg("a reader that came at call %ld lost what it had pinned", at);
    readers += r.came && r.may_read;
    refused += r.came && !r.may_read;
    more = r.came;
    gc_scene_free(c);
  }
  assert_true(readers > 3 && refused > 3);
}

/* The same place is used again while the old run is being removed. */
typedef struct successor {
  gc_scene *c;
  long at;
  bool came;
} successor;

static void begin_again(void *ctx) {
  successor *s = ctx;
  runlog *log = NULL;
  if (s->came || s->c->gate.calls < s->at) return;
  assert_int_equal(runlog_open(s->c->s, "", &log, NULL), 0);
  bool ended = runlog_view(log)->ended;
  runlog_close(log);
  if (!ended) return;
  s->came = true;
  log = world_begin(s->c->s, "", "two");
  gc_lease(s->c, log);
  runlog_close(log);
}

static void who_begins_after_the_end_keeps_its_lease(void **state) {
  long came = 0, lost = 0;
  bool more = true;
  for (long at = 1; more; at++) {
    gc_scene *c = gc_scene_new("mem");
    runlog *log = world_begin(c->s, "", "one");
    successor s = {.c = c, .at = at};
    gc_commit(c, log, "checkpoint-1");
    gc_release(c, log);
    runlog_close(log);
    c->gate.between = begin_again;
    c->gate.ctx = &s;
    assert_int_equal(gc_run_on(c, &c->gate.base, collect_run, NULL), 0);
    came += s.came;
    more = s.came;
    lost += s.came && !store_holds(c->s, ".ckpt/lease");
    gc_scene_free(c);
  }
  assert_true(came > 3);
  /* Between the last look at the log and the removal is one request: a lease is only a hint. */
  if (lost > 1) fail_msg("the lease was lost %ld times of %ld", lost, came);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_MEMORY(a_removed_run_leaves_its_log_and_what_is_not_its_own),
      IN_MEMORY(a_run_that_is_alive_or_pinned_is_not_removed),
      IN_MEMORY(a_run_without_a_lease_is_alive_until_its_log_is_quiet),
      IN_MEMORY(a_run_that_has_ended_well_may_be_removed_at_once),
      cmocka_unit_test(who_pinned_before_the_end_reads_on),
      cmocka_unit_test(who_begins_after_the_end_keeps_its_lease),
  };
  return cmocka_run_group_tests_name("collect a run", tests, NULL, NULL);
}
