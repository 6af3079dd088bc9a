#include "with_cmocka.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ckpt.h"
#include "tmpdir.h"

typedef struct world {
  char *top;
  char dir[300], state[300], to[310];
  ckpt *engine;
  ckpt_run *run;
  atomic_int lines;
} world;

static void on_log(void *ctx, int level, const char *text) {
  world *w = ctx;
  atomic_fetch_add(&w->lines, 1);
  if (level < CKPT_LOG_DEBUG || level > CKPT_LOG_ERROR || strchr(text, '\n')) abort();
}

static int setup(void **state) {
  world *w = calloc(1, sizeof *w);
  assert_non_null(w);
  w->top =
      access("/dev/shm", W_OK) == 0 ? tmpdir_new_in("/dev/shm") : tmpdir_new(); /* no waiting */
  snprintf(w->dir, sizeof w->dir, "%s/dir", w->top);
  snprintf(w->state, sizeof w->state, "%s/state", w->top);
  snprintf(w->to, sizeof w->to, "file://%s/store", w->top);
  make_dir(w->dir);
  ckpt_options o = {.size = sizeof o, .log = on_log, .log_ctx = w};
  assert_int_equal(ckpt_open(&w->engine, &o), 0);
  *state = w;
  return 0;
}

static int teardown(void **state) {
  world *w = *state;
  ckpt_close(w->engine);
  tmpdir_remove(w->top);
  free(w);
  return 0;
}

static ckpt_run_options options_of(world *w) {
  return (ckpt_run_options){.size = sizeof(ckpt_run_options),
                            .dir = w->dir,
                            .to = w->to,
                            .state = w->state,
                            .run_id = "test",
                            .quiet_s = -1,
                            .in_place_every_s = -1};
}

static void must(world *w, int rc) {
  if (rc < 0) fail_msg("%s: %s", ckpt_status_name(rc), ckpt_error(w->engine));
}

static ckpt_run *open_run(world *w) {
  ckpt_run_options o = options_of(w);
  must(w, ckpt_run_open(w->engine, &w->run, &o));
  return w->run;
}

static ckpt_run *begin(world *w) {
  ckpt_prepare_options how = {.size = sizeof how};
  ckpt_prepared p = {.size = sizeof p};
  open_run(w);
  must(w, ckpt_run_prepare(w->run, &how, &p));
  must(w, ckpt_run_start(w->run));
  return w->run;
}

static void write_unit(world *w, const char *name, const char *text) {
  write_file(tmpdir_path(w->dir, name), text);
}

/* Dispatches until something of this kind is told, for 10 s. */
static ckpt_completion until(world *w, uint32_t kind) {
  ckpt_completion c = {.size = sizeof c};
  time_t end = time(NULL) + 10;
  while (time(NULL) < end) {
    must(w, ckpt_dispatch(w->engine, 100));
    while (ckpt_next(w->engine, &c) == 1)
      if (c.kind == kind) return c;
  }
  fail_msg("waited in vain for kind %u", kind);
  return c;
}

static ckpt_run_status status_of(world *w) {
  ckpt_run_status s = {.size = sizeof s};
  assert_int_equal(ckpt_run_get_status(w->run, &s), 0);
  return s;
}

/* ---- the engine ---- */

static void null_may_be_closed(void **state) {
  ckpt_close(NULL);
  ckpt_run_close(NULL);
  assert_string_equal(ckpt_error(NULL), "");
}

static void the_defaults_need_no_options(void **state) {
  ckpt *c;
  assert_int_equal(ckpt_open(&c, NULL), 0);
  assert_true(ckpt_fd(c) >= 0);
  assert_int_equal(ckpt_dispatch(c, 0), 0);
  ckpt_completion none = {.size = sizeof none};
  assert_int_equal(ckpt_next(c, &none), 0);
  ckpt_close(c);
}

static void an_open_that_fails_says_why_and_is_closed(void **state) {
  ckpt *c;
  ckpt_options many = {.size = sizeof many, .workers = 65};
  assert_int_equal(ckpt_open(&c, &many), CKPT_EINVAL);
  assert_non_null(c);
  assert_non_null(strstr(ckpt_error(c), "64"));
  ckpt_close(c);
  ckpt_options unset = {.workers = 1};
  assert_int_equal(ckpt_open(&c, &unset), CKPT_EINVAL);
  assert_non_null(strstr(ckpt_error(c), "size"));
  ckpt_close(c);
}

static void codes_have_names_and_classes(void **state) {
  assert_string_equal(ckpt_status_name(CKPT_ENOENT), "NOENT");
  assert_int_equal(ckpt_class(CKPT_OK), CKPT_CLASS_NONE);
  assert_int_equal(ckpt_class(CKPT_EIO), CKPT_CLASS_RETRYABLE);
  assert_int_equal(ckpt_class(CKPT_EFENCED), CKPT_CLASS_FATAL);
  for (int code = -1; code >= CKPT_EINTERNAL; code--)
    assert_string_not_equal(ckpt_status_name(code), "UNKNOWN");
  assert_string_equal(ckpt_version(), "0.1.0");
}

/* ---- a run, end to end ---- */

static void a_checkpoint_goes_from_the_directory_to_the_listing_and_back(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-3.pt", "three");
  ckpt_completion c = until(w, CKPT_COMMITTED);
  assert_ptr_equal(c.run, w->run);
  assert_int_equal(c.size, sizeof c);
  assert_string_equal(c.unit, "ckpt-3.pt");
  assert_int_equal(c.step, 3);
  assert_int_equal(c.files, 1);
  assert_int_equal(c.bytes, 5);
  assert_int_equal(c.status, CKPT_OK);
  assert_int_equal(c.class_, CKPT_CLASS_NONE);
  ckpt_run_status s = status_of(w);
  assert_int_equal(s.committed, 1);
  assert_string_equal(s.newest_unit, "ckpt-3.pt");
  assert_true(s.newest_age_s >= 0 && s.newest_age_s < 60);
  char out[300];
  snprintf(out, sizeof out, "%s/out", w->top);
  ckpt_restore_options o = {.size = sizeof o, .uri = w->to, .dir = out};
  must(w, ckpt_restore(w->engine, &o, NULL, NULL));
  assert_true(file_is(tmpdir_path(out, "ckpt-3.pt"), "three"));
  must(w, ckpt_verify(w->engine, w->to, NULL, NULL, NULL));
  write_file(tmpdir_path(w->top, "store/ckpt-3.pt/ckpt-3.pt"), "THREE");
  assert_int_equal(ckpt_verify(w->engine, w->to, NULL, NULL, NULL), CKPT_ECORRUPT);
}

static void the_same_works_in_memory(void **state) {
  world *w = *state;
  snprintf(w->to, sizeof w->to, "mem://%s", "ckpt-test");
  begin(w);
  write_unit(w, "last.pt", "one");
  until(w, CKPT_COMMITTED);
  write_unit(w, "last.pt", "two");
  until(w, CKPT_COMMITTED);
  ckpt_restore_options o = {
      .size = sizeof o, .uri = w->to, .dir = tmpdir_path(w->top, "out"), .name = "last.pt"};
  must(w, ckpt_restore(w->engine, &o, NULL, NULL));
  assert_true(file_is(tmpdir_path(w->top, "out/last.pt"), "two"));
}

static void a_name_without_a_number_has_a_minute_unless_it_is_given_none(void **state) {
  world *w = *state;
  ckpt_run_options o = options_of(w);
  o.in_place_every_s = 0;
  ckpt_completion c = {.size = sizeof c};
  must(w, ckpt_run_open(w->engine, &w->run, &o));
  must(w, ckpt_run_start(w->run));
  write_unit(w, "last.pt", "one");
  until(w, CKPT_COMMITTED);
  write_unit(w, "last.pt", "two");
  for (int i = 0; i < 5; i++) must(w, ckpt_dispatch(w->engine, 100));
  while (ckpt_next(w->engine, &c) == 1) assert_int_not_equal(c.kind, CKPT_COMMITTED);
  assert_int_equal(status_of(w).pending, 1);
}

static int count_item(void *ctx, const ckpt_item *item) {
  assert_int_equal(item->size, sizeof *item);
  ++*(int *)ctx;
  return 0;
}

static int stop_at_once(void *ctx, const ckpt_item *item) {
  ++*(int *)ctx;
  return 7;
}

static void a_listing_ends_when_its_callback_says_so(void **state) {
  world *w = *state;
  begin(w);
  for (int i = 0; i < 3; i++) {
    char name[20];
    snprintf(name, sizeof name, "ckpt-%d.pt", i);
    write_unit(w, name, name);
    until(w, CKPT_COMMITTED);
  }
  int seen = 0;
  must(w, ckpt_list(w->engine, w->to, count_item, &seen));
  assert_int_equal(seen, 3);
  seen = 0;
  assert_int_equal(ckpt_list(w->engine, w->to, stop_at_once, &seen), 7);
  assert_int_equal(seen, 1);
  assert_int_equal(ckpt_list(w->engine, tmpdir_path(w->top, "nowhere"), count_item, &seen),
                   CKPT_ENOSTORE);
  assert_non_null(strstr(ckpt_error(w->engine), "nowhere"));
}

static void the_places_of_a_run_are_told(void **state) {
  world *w = *state;
  open_run(w);
  assert_string_equal(ckpt_run_dir(w->run), w->dir);
  assert_string_equal(ckpt_run_state(w->run), w->state);
  assert_string_equal(ckpt_run_target(w->run), w->to);
  assert_string_equal(ckpt_run_id(w->run), "test");
  char socket[200];
  snprintf(socket, sizeof socket, "%s", ckpt_run_socket(w->run));
  assert_true(socket[0] == '/');
  ckpt_run_close(w->run);
  open_run(w);
  assert_string_equal(ckpt_run_socket(w->run), socket);
}

static void the_descriptor_is_readable_exactly_when_there_is_work(void **state) {
  world *w = *state;
  begin(w);
  while (ckpt_dispatch(w->engine, 50) > 0) {
    ckpt_completion c = {.size = sizeof c};
    ckpt_next(w->engine, &c);
  }
  struct pollfd fd = {.fd = ckpt_fd(w->engine), .events = POLLIN};
  assert_int_equal(poll(&fd, 1, 200), 0);
  write_unit(w, "ckpt-1.pt", "one");
  for (int i = 0; status_of(w).committed == 0 && i < 100; i++) {
    assert_int_equal(poll(&fd, 1, 5000), 1);
    must(w, ckpt_dispatch(w->engine, 0));
  }
  assert_int_equal(status_of(w).committed, 1);
}

static void waiting_ends_when_its_time_is_over_or_something_is_there(void **state) {
  world *w = *state;
  struct timespec a, b;
  begin(w);
  ckpt_dispatch(w->engine, 50);
  clock_gettime(CLOCK_MONOTONIC, &a);
  ckpt_dispatch(w->engine, 100);
  clock_gettime(CLOCK_MONOTONIC, &b);
  double took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
  assert_true(took > 0.09 && took < 3);
  write_unit(w, "ckpt-1.pt", "one");
  int ready = 0;
  for (int i = 0; ready == 0 && i < 100; i++) ready = ckpt_dispatch(w->engine, -1);
  assert_int_equal(ready, 1);
  assert_int_equal(ckpt_dispatch(w->engine, -1), 1); /* it is still there: no waiting */
}

/* ---- struct sizes ---- */

static void what_an_older_header_lacks_is_zero_on_the_way_in(void **state) {
  world *w = *state;
  /* All after `quiet_s` must not be looked at. */
  ckpt_run_options o = options_of(w);
  o.size = offsetof(ckpt_run_options, flags);
  o.flags = 0xffffffff;
  o.tries = 0xffffffff;
  must(w, ckpt_run_open(w->engine, &w->run, &o));
  must(w, ckpt_run_start(w->run));
  ckpt_event e = {.size = offsetof(ckpt_event, grace_s), .kind = CKPT_EVENT_PREEMPT};
  e.json = (const char *)1;
  must(w, ckpt_notify(w->run, &e, NULL));
}

static void nothing_is_written_beyond_what_an_older_header_has(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  until(w, CKPT_COMMITTED);
  union {
    ckpt_run_status status;
    unsigned char bytes[sizeof(ckpt_run_status) + 16];
  } s;
  size_t sizes[] = {offsetof(ckpt_run_status, retired), offsetof(ckpt_run_status, fenced),
                    sizeof(ckpt_run_status)};
  for (size_t i = 0; i < 3; i++) {
    memset(s.bytes, 0xaa, sizeof s.bytes);
    s.status.size = sizes[i];
    assert_int_equal(ckpt_run_get_status(w->run, &s.status), 0);
    assert_int_equal(s.status.size, sizes[i]);
    assert_int_equal(s.status.committed, 1);
    for (size_t k = sizes[i]; k < sizeof s.bytes; k++) assert_int_equal(s.bytes[k], 0xaa);
  }
  union {
    ckpt_completion completion;
    unsigned char bytes[sizeof(ckpt_completion)];
  } c;
  memset(c.bytes, 0xaa, sizeof c.bytes);
  c.completion.size = offsetof(ckpt_completion, status);
  write_unit(w, "ckpt-2.pt", "two");
  for (int i = 0; ckpt_dispatch(w->engine, 100) == 0 && i < 100;) i++;
  assert_int_equal(ckpt_next(w->engine, &c.completion), 1);
  assert_int_equal(c.completion.kind, CKPT_COMMITTED);
  assert_ptr_equal(c.completion.run, w->run);
  for (size_t k = offsetof(ckpt_completion, status); k < sizeof c.bytes; k++)
    assert_int_equal(c.bytes[k], 0xaa);
}

static void a_newer_headers_longer_struct_is_taken_and_its_tail_left(void **state) {
  world *w = *state;
  struct {
    ckpt_run_options known;
    uint64_t unknown;
  } in = {options_of(w), 0};
  in.known.size = sizeof in;
  must(w, ckpt_run_open(w->engine, &w->run, &in.known));
  struct {
    ckpt_run_status known;
    uint64_t unknown;
  } out;
  memset(&out, 0xaa, sizeof out);
  out.known.size = sizeof out;
  assert_int_equal(ckpt_run_get_status(w->run, &out.known), 0);
  assert_int_equal(out.known.size, sizeof out);
  assert_int_equal(out.known.committed, 0);
  assert_int_equal(out.unknown, 0xaaaaaaaaaaaaaaaa);
}

static void a_size_that_was_not_set_is_an_error(void **state) {
  world *w = *state;
  ckpt_run_options o = options_of(w);
  ckpt_run *run;
  o.size = 0;
  assert_int_equal(ckpt_run_open(w->engine, &run, &o), CKPT_EINVAL);
  assert_null(run);
  begin(w);
  ckpt_event e = {.kind = CKPT_EVENT_LIST};
  assert_int_equal(ckpt_notify(w->run, &e, NULL), CKPT_EINVAL);
  assert_non_null(strstr(ckpt_error(w->engine), "size"));
}

/* ---- events ---- */

static int notify(world *w, ckpt_event e) {
  uint64_t job = 99;
  e.size = sizeof e;
  int rc = ckpt_notify(w->run, &e, &job);
  assert_int_equal(job, 0);
  return rc;
}

static void events_before_the_start_and_unknown_ones_are_errors(void **state) {
  world *w = *state;
  open_run(w);
  for (uint32_t kind = CKPT_EVENT_CHILD; kind <= CKPT_EVENT_LIST; kind++)
    assert_int_equal(notify(w, (ckpt_event){.kind = kind, .pid = getpid(), .json = "{}"}),
                     CKPT_EINVAL);
  must(w, ckpt_run_start(w->run));
  for (uint32_t kind = CKPT_EVENT_CHILD; kind <= CKPT_EVENT_LIST; kind++)
    must(w, notify(w, (ckpt_event){.kind = kind, .pid = getpid(), .json = "{}"}));
  assert_int_equal(notify(w, (ckpt_event){.kind = 77}), CKPT_EINVAL);
  assert_non_null(strstr(ckpt_error(w->engine), "77"));
  assert_int_equal(notify(w, (ckpt_event){.kind = CKPT_EVENT_RESULT}), CKPT_EFORMAT);
}

static void an_unknown_way_to_restore_is_an_error(void **state) {
  world *w = *state;
  ckpt_prepare_options how = {.size = sizeof how, .restore = 9};
  ckpt_prepared p = {.size = sizeof p};
  open_run(w);
  assert_int_equal(ckpt_run_prepare(w->run, &how, &p), CKPT_EINVAL);
}

static void a_job_that_is_over_or_never_was_cannot_be_cancelled(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  ckpt_completion c = until(w, CKPT_COMMITTED);
  assert_int_equal(ckpt_cancel(w->engine, c.job), CKPT_ENOENT);
  assert_int_equal(ckpt_cancel(w->engine, 1000), CKPT_ENOENT);
  assert_int_equal(ckpt_cancel(w->engine, 0), CKPT_ENOENT);
}

static void a_run_that_loses_its_directory_does_not_stop_the_others(void **state) {
  world *w = *state;
  begin(w);
  ckpt_run *second;
  ckpt_run_options o = options_of(w);
  char dir[320], state_dir[320], to[330], away[320];
  snprintf(dir, sizeof dir, "%s/dir2", w->top);
  snprintf(state_dir, sizeof state_dir, "%s/state2", w->top);
  snprintf(to, sizeof to, "%s/store2", w->top);
  snprintf(away, sizeof away, "%s/away", w->top);
  o.dir = dir, o.state = state_dir, o.to = to;
  must(w, ckpt_run_open(w->engine, &second, &o));
  must(w, ckpt_run_start(second));
  assert_int_equal(rename(dir, away), 0);
  int rc = 0;
  for (int i = 0; rc >= 0 && i < 20; i++) rc = ckpt_dispatch(w->engine, 50);
  assert_true(rc >= 0);
  must(w, notify(w, (ckpt_event){.kind = CKPT_EVENT_LIST}));
  write_unit(w, "ckpt-1.pt", "one");
  ckpt_completion c = {.size = sizeof c};
  for (int i = 0; c.kind == 0 && i < 200; i++) {
    usleep(10000);
    ckpt_dispatch(w->engine, 10);
    ckpt_next(w->engine, &c);
  }
  assert_int_equal(c.kind, CKPT_COMMITTED);
}

/* ---- threads and ends ---- */

static void the_log_comes_in_single_lines(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  until(w, CKPT_COMMITTED);
  assert_true(atomic_load(&w->lines) > 0);
}

/* A host's loop that ends when nothing is pending must not end before what was written a moment
 * ago. */
static void what_settles_is_pending(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  ckpt_event ended = {.size = sizeof ended, .kind = CKPT_EVENT_EXIT, .clean = 1};
  assert_int_equal(ckpt_notify(w->run, &ended, NULL), 0);
  must(w, ckpt_dispatch(w->engine, 0));
  assert_int_equal(status_of(w).committed, 0);
  assert_int_equal(status_of(w).pending, 1);
  for (int i = 0; status_of(w).pending > 0 && i < 100; i++) must(w, ckpt_dispatch(w->engine, 100));
  assert_int_equal(status_of(w).committed, 1);
}

static void *use_elsewhere(void *ctx) {
  world *w = ctx;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  until(w, CKPT_COMMITTED);
  ckpt_run_close(w->run);
  return NULL;
}

static void an_engine_may_be_opened_on_one_thread_and_used_on_another(void **state) {
  world *w = *state;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, w), 0);
  pthread_join(thread, NULL);
}

static void a_close_in_the_middle_ends_threads_and_descriptors(void **state) {
  int fds = count_fds(), threads = count_entries("/proc/self/task");
  world *w;
  assert_int_equal(setup((void **)&w), 0);
  begin(w);
  write_pattern(tmpdir_path(w->dir, "ckpt-1.pt"), 32 << 20, 7);
  for (int i = 0; status_of(w).bytes_left == 0 && i < 200; i++) ckpt_dispatch(w->engine, 10);
  ckpt_close(w->engine); /* closes the run, too */
  w->engine = NULL;
  /* Listed as a whole, or not at all. */
  ckpt *c;
  int seen = 0;
  assert_int_equal(ckpt_open(&c, NULL), 0);
  int rc = ckpt_list(c, w->to, count_item, &seen);
  assert_int_equal(rc, 0);
  if (seen) assert_int_equal(ckpt_verify(c, w->to, NULL, NULL, NULL), 0);
  ckpt_close(c);
  assert_int_equal(teardown((void **)&w), 0);
  assert_int_equal(count_fds(), fds);
  for (int i = 0; count_entries("/proc/self/task") != threads && i < 100; i++) usleep(1000);
  assert_int_equal(count_entries("/proc/self/task"), threads);
}

static void what_a_closed_run_told_is_forgotten(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  for (int i = 0; ckpt_dispatch(w->engine, 100) == 0 && i < 100;) i++;
  ckpt_run_close(w->run);
  ckpt_completion c = {.size = sizeof c};
  assert_int_equal(ckpt_dispatch(w->engine, 0), 0);
  assert_int_equal(ckpt_next(w->engine, &c), 0);
  begin(w);
  write_unit(w, "ckpt-2.pt", "two");
  assert_string_equal(until(w, CKPT_COMMITTED).unit, "ckpt-2.pt");
}

static void fencing_is_told_once(void **state) {
  world *w = *state;
  begin(w);
  write_unit(w, "ckpt-1.pt", "one");
  until(w, CKPT_COMMITTED);
  ckpt *second;
  ckpt_run *run;
  ckpt_run_options o = options_of(w);
  char state_dir[320], dir[320];
  snprintf(state_dir, sizeof state_dir, "%s/state2", w->top);
  snprintf(dir, sizeof dir, "%s/dir2", w->top);
  o.state = state_dir, o.dir = dir;
  assert_int_equal(ckpt_open(&second, NULL), 0);
  assert_int_equal(ckpt_run_open(second, &run, &o), CKPT_EHELD);
  o.flags = CKPT_TAKE_OVER;
  assert_int_equal(ckpt_run_open(second, &run, &o), 0);
  write_unit(w, "ckpt-2.pt", "two");
  ckpt_completion c = until(w, CKPT_FENCED);
  assert_int_equal(c.status, CKPT_EFENCED);
  assert_int_equal(c.class_, CKPT_CLASS_FATAL);
  write_unit(w, "ckpt-3.pt", "three");
  for (int i = 0; i < 10; i++) assert_int_equal(ckpt_dispatch(w->engine, 20), 0);
  assert_int_equal(status_of(w).fenced, 1);
  assert_int_equal(status_of(w).newest_status, CKPT_EFENCED);
  ckpt_close(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(null_may_be_closed),
      cmocka_unit_test(the_defaults_need_no_options),
      cmocka_unit_test(an_open_that_fails_says_why_and_is_closed),
      cmocka_unit_test(codes_have_names_and_classes),
      TEST(a_checkpoint_goes_from_the_directory_to_the_listing_and_back),
      TEST(the_same_works_in_memory),
      TEST(a_name_without_a_number_has_a_minute_unless_it_is_given_none),
      TEST(a_listing_ends_when_its_callback_says_so),
      TEST(the_places_of_a_run_are_told),
      TEST(the_descriptor_is_readable_exactly_when_there_is_work),
      TEST(waiting_ends_when_its_time_is_over_or_something_is_there),
      TEST(what_an_older_header_lacks_is_zero_on_the_way_in),
      TEST(nothing_is_written_beyond_what_an_older_header_has),
      TEST(a_newer_headers_longer_struct_is_taken_and_its_tail_left),
      TEST(a_size_that_was_not_set_is_an_error),
      TEST(events_before_the_start_and_unknown_ones_are_errors),
      TEST(an_unknown_way_to_restore_is_an_error),
      TEST(a_job_that_is_over_or_never_was_cannot_be_cancelled),
      TEST(a_run_that_loses_its_directory_does_not_stop_the_others),
      TEST(the_log_comes_in_single_lines),
      TEST(what_settles_is_pending),
      TEST(an_engine_may_be_opened_on_one_thread_and_used_on_another),
      cmocka_unit_test(a_close_in_the_middle_ends_threads_and_descriptors),
      TEST(what_a_closed_run_told_is_forgotten),
      TEST(fencing_is_told_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
