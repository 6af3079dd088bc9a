#include "with_cmocka.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ckpt.h"
#include "tmpdir.h"

static char *dir;
static ckpt *engine;

static const char *in(const char *name) {
  return tmpdir_path(dir, name);
}

static int enter(void **unused) {
  dir = access("/dev/shm", W_OK) == 0 ? tmpdir_new_in("/dev/shm") : tmpdir_new();
  make_dir(in("src"));
  write_file(in("src/a"), "aaaa");
  write_file(in("src/rank_0"), "r");
  return ckpt_open(&engine, NULL);
}

static int leave(void **unused) {
  ckpt_close(engine);
  tmpdir_remove(dir);
  return 0;
}

static ckpt_tree_options upload(const char *to) {
  return (ckpt_tree_options){
      .size = sizeof(ckpt_tree_options), .kind = CKPT_TREE_UPLOAD, .dir = in("src"), .uri = to};
}

static uint64_t start(ckpt_tree_options o) {
  uint64_t job = 0;
  if (ckpt_tree(engine, &o, &job) != 0) fail_msg("%s", ckpt_error(engine));
  assert_true(job > 0);
  return job;
}

/* The next end; strings are valid until the one after it. */
static ckpt_completion next(void) {
  ckpt_completion c = {.size = sizeof c};
  while (ckpt_next(engine, &c) == 0) assert_true(ckpt_dispatch(engine, 10000) >= 0);
  assert_int_equal(c.kind, CKPT_TREE);
  assert_null(c.run);
  return c;
}

static void a_tree_goes_there_and_comes_back_and_each_end_is_told(void **unused) {
  const char *excludes[] = {"./rank_*", NULL};
  ckpt_tree_options o = upload(in("there"));
  o.excludes = excludes;
  uint64_t job = start(o);
  ckpt_completion c = next();
  assert_int_equal(c.job, job);
  assert_int_equal(c.status, CKPT_OK);
  assert_int_equal(c.files, 1);
  assert_int_equal(c.bytes, 4);
  assert_string_equal(c.unit, in("src"));
  assert_string_equal(c.reason, "");
  assert_true(c.seconds >= 0 && c.seconds < 60);

  ckpt_tree_options back = {
      .size = sizeof back, .kind = CKPT_TREE_DOWNLOAD, .dir = in("back"), .uri = in("there")};
  job = start(back);
  c = next();
  assert_int_equal(c.job, job);
  assert_int_equal(c.status, CKPT_OK);
  assert_true(file_is(in("back/a"), "aaaa"));
  assert_false(path_exists(in("back/rank_0")));

  start(back);
  c = next();
  assert_int_equal(c.status, CKPT_EEXISTS);
  assert_int_equal(c.class_, CKPT_CLASS_PERMANENT);
  assert_non_null(strstr(c.reason, "is there already"));
  back.flags = CKPT_TREE_MERGE;
  start(back);
  assert_int_equal(next().status, CKPT_OK);

  start((ckpt_tree_options){.size = sizeof o, .kind = CKPT_TREE_DELETE, .uri = in("there")});
  assert_int_equal(next().status, CKPT_OK);
  assert_false(path_exists(in("there")));
}

static void the_descriptor_tells_of_an_end(void **unused) {
  struct pollfd p = {.fd = ckpt_fd(engine), .events = POLLIN};
  start(upload(in("there")));
  assert_int_equal(poll(&p, 1, 10000), 1);
  assert_true(ckpt_dispatch(engine, 0) >= 0);
  next();
}

static void many_at_once_all_end_once(void **unused) {
  enum { MANY = 100 };
  bool seen[MANY + 1] = {0};
  char name[32];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "to%d", i);
    start((ckpt_tree_options){.size = sizeof(ckpt_tree_options),
                              .kind = CKPT_TREE_COPY,
                              .dir = in("src"),
                              .to = in(name)});
  }
  for (int i = 0; i < MANY; i++) {
    ckpt_completion c = next();
    assert_int_equal(c.status, CKPT_OK);
    assert_true(c.job <= MANY && !seen[c.job]);
    seen[c.job] = true;
  }
  ckpt_completion c = {.size = sizeof c};
  assert_int_equal(ckpt_dispatch(engine, 0), 0);
  assert_int_equal(ckpt_next(engine, &c), 0);
}

/* Copies of a large file: more of them than there are workers, so that what comes next waits. */
static void start_copies(int count) {
  write_pattern(in("src/large"), 50 << 20, 1);
  for (int i = 0; i < count; i++) {
    char name[32];
    snprintf(name, sizeof name, "to%d", i);
    start((ckpt_tree_options){.size = sizeof(ckpt_tree_options),
                              .kind = CKPT_TREE_COPY,
                              .dir = in("src"),
                              .to = in(name)});
  }
}

static void a_job_that_is_cancelled_ends_and_is_not_known_then(void **unused) {
  uint64_t moved, total;
  ckpt_completion c;
  start_copies(10);
  uint64_t job = start(upload(in("there")));
  assert_int_equal(ckpt_tree_progress(engine, job, &moved, &total), 0);
  assert_true(moved <= total || total == 0);
  assert_int_equal(ckpt_cancel(engine, job), 0);
  do c = next();
  while (c.job != job);
  assert_int_equal(c.status, CKPT_ECANCELED);
  assert_int_equal(ckpt_cancel(engine, job), CKPT_ENOENT);
  assert_int_equal(ckpt_tree_progress(engine, job, &moved, &total), CKPT_ENOENT);
}

static void closing_stops_what_runs(void **unused) {
  int made = 0;
  start_copies(10);
  ckpt_close(engine);
  engine = NULL;
  /* None of them is half there. */
  for (int i = 0; i < 10; i++) {
    char name[32], file[48];
    snprintf(name, sizeof name, "to%d", i);
    snprintf(file, sizeof file, "to%d/large", i);
    if (!path_exists(in(name))) continue;
    assert_true(files_equal(in(file), in("src/large")));
    made++;
  }
  assert_true(made < 10);
  assert_true(count_entries(dir) <= 11);
}

static void what_makes_no_sense_is_refused_at_once(void **unused) {
  uint64_t job = 7;
  ckpt_tree_options o = upload(NULL);
  assert_int_equal(ckpt_tree(engine, &o, &job), CKPT_EINVAL);
  assert_int_equal(job, 0);
  assert_non_null(strstr(ckpt_error(engine), "dir and uri"));
  o = upload(in("x"));
  o.kind = 9;
  assert_int_equal(ckpt_tree(engine, &o, &job), CKPT_EINVAL);
  o = upload(in("x"));
  o.size = 0;
  assert_int_equal(ckpt_tree(engine, &o, &job), CKPT_EINVAL);
  o = (ckpt_tree_options){.size = sizeof o, .kind = CKPT_TREE_COPY, .dir = in("src")};
  assert_int_equal(ckpt_tree(engine, &o, &job), CKPT_EINVAL);
}

int main(void) {
#define PROMISE(f) cmocka_unit_test_setup_teardown(f, enter, leave)
  const struct CMUnitTest tests[] = {
      PROMISE(a_tree_goes_there_and_comes_back_and_each_end_is_told),
      PROMISE(the_descriptor_tells_of_an_end),
      PROMISE(many_at_once_all_end_once),
      PROMISE(a_job_that_is_cancelled_ends_and_is_not_known_then),
      PROMISE(closing_stops_what_runs),
      PROMISE(what_makes_no_sense_is_refused_at_once),
  };
  return cmocka_run_group_tests_name("ckpt_tree", tests, NULL, NULL);
}
