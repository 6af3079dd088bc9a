/* What many ranks that save together ask of a store, by the code that real ones run, on a clock of its own. With
 * BENCH=FILE and WORLDS='1000 10000' it is counted for so many, and written there (make bench-ranks). */
#include "with_cmocka.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "commit/parts.h"
#include "crew.h"
#include "job/save/job.h"
#include "tmpdir.h"
#include "world.h"

#define SECOND INT64_C(1000000000)

#define FILES_NS (20 * SECOND)

typedef struct rank {
  job_env env;
  ranks ranks;
  char *root;
  runlog *log;
  job *j;
  int64_t ended;
} rank;

typedef struct team {
  crew *crew;
  world *w;
  rank *rank;
  uint32_t world;
} team;

static void open_rank(team *t, uint32_t i) {
  rank *r = &t->rank[i];
  char name[32];
  err e = {0};
  snprintf(name, sizeof name, "root-%u", i);
  r->root = strdup(tmpdir_path(t->w->dir, name));
  make_dir(r->root);
  r->ranks = (ranks){.rank = i, .world = t->world, .launch = "many", .wait_ns = 600 * SECOND};
  r->env = t->w->env;
  r->env.root = r->root;
  r->env.ranks = &r->ranks;
  r->env.store = world_store(t->w);
  r->env.pool = NULL;
  crew_count(t->crew, r->env.store);
  if (runlog_open(r->env.store, "", &r->log, &e) < 0) fail_msg("%s", e.text);
  runlog_writer who = {.launch = "many", .host = "here", .pid = 7, .world = t->world};
  if (i == 0 && runlog_begin(r->log, "run", &who, false, &e) < 0) fail_msg("%s", e.text);
  if (i > 0 && runlog_follow(r->log, "many", t->world, &e) < 0) fail_msg("%s", e.text);
}

static team *team_new(uint32_t count, int64_t send_ns) {
  team *t = calloc(1, sizeof *t);
  rank *all = calloc(count, sizeof *all);
  if (!t || !all) abort();
  *t = (team){.crew = crew_new(count + 1, SECOND / 50, send_ns), .rank = all, .world = count};
  t->w = world_new("mem", crew_io(t->crew));
  for (uint32_t i = 0; i < count; i++) open_rank(t, i);
  return t;
}

static void team_free(team *t) {
  for (uint32_t i = 0; i < t->world; i++) {
    if (t->rank[i].j) job_free(t->rank[i].j);
    runlog_close(t->rank[i].log);
    store_close(t->rank[i].env.store);
    free(t->rank[i].root);
  }
  world_free(t->w);
  crew_free(t->crew);
  free(t->rank);
  free(t);
}

static void make_job(const team *t, rank *r, const char *unit, int64_t step) {
  char name[100], text[40];
  world w = *t->w;
  uint64_t unspoken = r->j ? r->j->unspoken : runlog_view(r->log)->next;
  int at = 0;
  make_dir(tmpdir_path(r->root, unit));
  snprintf(name, sizeof name, "%s/rank-%u.bin", unit, r->ranks.rank);
  snprintf(text, sizeof text, "%u of %s", r->ranks.rank, unit);
  write_file(tmpdir_path(r->root, name), text);
  if (r->j) job_free(r->j);
  w.env = r->env;
  r->j = job_for(&w, r->log, unit, MATCH_DIR, step, 0);
  r->j->env = &r->env;
  r->j->unspoken = unspoken;
  plan *p = &r->j->plan;
  while (p->ops[at] != PLAN_MANIFEST) at++;
  memmove(p->ops + at + 1, p->ops + at, sizeof *p->ops * (size_t)(p->count - at));
  p->ops[at] = PLAN_GATHER;
  p->count++;
}

static team *playing;

static void run_rank(void *arg) {
  rank *r = arg;
  job_run(r->j);
  r->ended = crew_now(playing->crew);
}

/* All begin within two seconds, the last one so much later. */
static void save(team *t, const char *unit, int64_t step, int64_t late) {
  const int64_t now = crew_now(t->crew);
  crew_forget(t->crew);
  playing = t;
  for (uint32_t i = 0; i < t->world; i++) {
    int64_t at = now + (int64_t)(i * 2654435761u % 2000) * SECOND / 1000;
    make_job(t, &t->rank[i], unit, step);
    if (i + 1 == t->world) at += late;
    crew_start(t->crew, i, at, run_rank, &t->rank[i]);
  }
  crew_run(t->crew);
}

/* ---- what came of it ---- */

typedef struct figures {
  uint64_t all;
  uint32_t failed, commits, most, lists; /* `most`, `lists`: of those that do not commit */
  int64_t first, last;                   /* who knows first, and last, that it is committed */
} figures;

/* Who reads the parts of others commits. */
static bool commits(const team *t, uint32_t i) {
  return crew_asked_by(t->crew, i).of[CREW_READ] > 0;
}

static figures judge(const team *t) {
  figures f = {.first = INT64_MAX};
  for (uint32_t i = 0; i < t->world; i++) {
    const rank *r = &t->rank[i];
    uint32_t asked = crew_asked_beside(t->crew, i);
    uint32_t lists = crew_asked_by(t->crew, i).of[CREW_LIST];
    if (r->j->status != 0 && f.failed++ == 0) print_message("rank %u: %s\n", i, r->j->error.text);
    f.all += asked;
    f.commits += commits(t, i);
    if (r->ended < f.first) f.first = r->ended;
    if (r->ended > f.last) f.last = r->ended;
    if (i == 0 || commits(t, i)) continue;
    if (asked > f.most) f.most = asked;
    if (lists > f.lists) f.lists = lists;
  }
  return f;
}

static uint32_t pages_of(uint32_t keys) {
  return keys > 1000 ? (keys + 999) / 1000 : 1;
}

static void a_checkpoint_costs_each_rank_six_requests(void **state) {
  const uint32_t worlds[] = {2, 16, 64, 300};
  for (size_t k = 0; k < sizeof worlds / sizeof *worlds; k++) {
    team *t = team_new(worlds[k], FILES_NS);
    save(t, "checkpoint-1", 1, 0);
    figures f = judge(t);
    assert_int_equal(f.failed, 0);
    assert_true(f.commits >= 1 && f.commits <= 2);
    /* Files take 10 to 22 s: who is first looks after 5 and 12 s, too. */
    if (f.most > 8) fail_msg("%u ranks: %u requests", t->world, f.most);
    assert_true(f.lists <= pages_of(t->world));
    team_free(t);
  }
}

static void who_waits_for_a_late_rank_looks_at_one_key_more_and_more_seldom(void **state) {
  team *t = team_new(64, FILES_NS);
  save(t, "checkpoint-1", 1, 0);
  save(t, "checkpoint-2", 2, 300 * SECOND);
  figures f = judge(t);
  assert_int_equal(f.failed, 0);
  /* The first ranks list in turn, where 30 s nothing comes. The others look after 5, 12, 24, 41, 66, 104,
   * 161, 221, 281 and 341 s. */
  for (uint32_t i = 21; i < t->world; i++) {
    if (commits(t, i)) continue;
    assert_int_equal(crew_asked_by(t->crew, i).of[CREW_LIST], 1);
    assert_in_range(crew_asked_beside(t->crew, i), 6, 16);
  }
  team_free(t);
}

static void leave(void *arg) {
  rank *r = arg;
  atomic_store(&r->j->cancel, JOB_LEAVE);
}

/* All parts come within one second, and the highest rank, whose is taken for the newest, has looked before the
 * others came: nobody commits then but the one that lists for rank 0. */
static void what_all_have_sent_is_committed_though_rank_0_has_gone(void **state) {
  for (uint32_t count = 5; count < 100; count += 31) {
    team *t = team_new(count, SECOND / 10);
    const int64_t begun = (crew_now(t->crew) / SECOND + 1) * SECOND;
    playing = t;
    crew_forget(t->crew);
    for (uint32_t i = 0; i < count; i++) {
      int64_t later = i ? SECOND + (count - 1 - i) * (SECOND / 2) / count : 0;
      make_job(t, &t->rank[i], "checkpoint-1", 1);
      crew_start(t->crew, i, begun + later, run_rank, &t->rank[i]);
    }
    crew_start(t->crew, count, begun + SECOND * 9 / 10, leave, &t->rank[0]);
    crew_run(t->crew);
    assert_int_equal(t->rank[0].j->status, ERR_CANCELED);
    assert_int_equal(judge(t).failed, 1);
    assert_int_equal(judge(t).commits, 1);
    assert_in_range(t->rank[1].ended - begun, 30 * SECOND, 60 * SECOND);
    team_free(t);
  }
}

/* ---- figures ---- */

static uint64_t size_of(const team *t, const char *key) {
  store *s = world_store(t->w);
  store_object object = {0};
  if (s->ops->head(s, key, &object, NULL) < 0) object.size = 0;
  store_close(s);
  return object.size;
}

/* KiB of a line of /proc/self/status. */
static long status_of(const char *name) {
  char line[200];
  long n = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, name, strlen(name)) == 0) n = strtol(line + strlen(name) + 1, NULL, 10);
  if (file) fclose(file);
  return n;
}

static void gather(const team *t) {
  store *s = world_store(t->w);
  runlog *log = NULL;
  manifest m;
  buf text;
  if (runlog_open(s, "", &log, NULL) < 0) _exit(1);
  const runlog_state *state = runlog_view(log);
  const part p = {.attempt = state->commits[state->commit_count - 1].attempt,
                  .term = state->term.n,
                  .ranks = &t->rank[0].ranks};
  buf_init(&text, MANIFEST_BYTES_MAX);
  if (parts_gather(s, log, &p, &m, NULL) < 0 || manifest_print(&m, &text, NULL) < 0) _exit(1);
}

/* MiB that the making of the manifest takes, in a process of its own, whose peak begins anew. */
static double memory_to_gather(const team *t) {
  int ends[2];
  long used = -1;
  if (pipe(ends) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) fputs("5", file), fclose(file);
    malloc_trim(0);
    long before = status_of("VmRSS:");
    gather(t);
    used = status_of("VmHWM:") - before;
    if (write(ends[1], &used, sizeof used) != sizeof used) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  if (read(ends[0], &used, sizeof used) != sizeof used) used = -1;
  close(ends[0]);
  waitpid(child, NULL, 0);
  return (double)used / 1024;
}

static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_row(FILE *out, const team *t, const char *what, const char *manifest) {
  figures f = judge(t);
  const crew_asked zero = crew_asked_by(t->crew, 0);
  assert_int_equal(f.failed, 0);
  fprintf(out, "%6u %-17s %8llu %6.1f %6u %5u %6u %6u %6u %7.1f %6.1f %9.1f %7.1f\n", t->world,
          what, (unsigned long long)f.all, (double)f.all / t->world, f.most,
          crew_asked_beside(t->crew, 0), zero.of[CREW_LIST], crew_busiest(t->crew, false),
          crew_busiest(t->crew, true), (double)(f.first - crew_last_part(t->crew)) / 1e9,
          (double)(f.last - f.first) / 1e9, (double)size_of(t, manifest) / 1048576,
          memory_to_gather(t));
  fflush(out);
}

static void figures_of(FILE *out, uint32_t count) {
  team *t = team_new(count, FILES_NS);
  save(t, "checkpoint-1", 1, 0);
  write_row(out, t, "a checkpoint", "checkpoint-1/" MANIFEST_NAME);
  save(t, "checkpoint-2", 2, 60 * SECOND);
  write_row(out, t, "one is 60 s late", "checkpoint-2/" MANIFEST_NAME);
  print_message("%u ranks: %.0f s of CPU\n", count, cpu_s());
  team_free(t);
}

static void what_so_many_ask_can_be_written_down(void **state) {
  const char *file = getenv("BENCH"), *worlds = getenv("WORLDS");
  FILE *out = fopen(file ? file : "/dev/null", "w");
  assert_non_null(out);
  fprintf(out, "%6s %-17s %8s %6s %6s %5s %6s %6s %6s %7s %6s %9s %7s\n", "ranks", "what",
          "requests", "a_rank", "most", "rank0", "pages0", "gets/s", "puts/s", "saved_s", "last_s",
          "man_MiB", "mem_MiB");
  if (!worlds) worlds = "4";
  for (char *end; *worlds; worlds = end) {
    unsigned long count = strtoul(worlds, &end, 10);
    if (end == worlds) break;
    figures_of(out, (uint32_t)count);
  }
  fclose(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_checkpoint_costs_each_rank_six_requests),
      cmocka_unit_test(who_waits_for_a_late_rank_looks_at_one_key_more_and_more_seldom),
      cmocka_unit_test(what_all_have_sent_is_committed_though_rank_0_has_gone),
      cmocka_unit_test(what_so_many_ask_can_be_written_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
