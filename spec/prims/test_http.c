/* The transfer thread: many callers, the queue, cancels, its beginning and its end. */
#include "with_cmocka.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prims/http.h"
#include "server.h"
#include "tmpdir.h"

static server odd;

static void pause_ms(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int start(void **unused) {
  unsetenv("http_proxy");
  unsetenv("all_proxy");
  unsetenv("ALL_PROXY");
  odd = server_start("odd.py", NULL);
  return 0;
}

static int stop(void **unused) {
  server_stop(&odd);
  return 0;
}

/* One request, and all that has to live as long as it does. */
typedef struct trip {
  char url[128];
  atomic_int cancel;
  http_request q;
  http_response r;
  http_call *call;
} trip;

static void trip_free(trip *t) {
  buf_free(&t->r.headers);
  buf_free(&t->r.body);
}

static void trip_start(http *h, trip *t, const char *method, const char *path) {
  *t = (trip){.q = {.method = method, .stall_s = 30}};
  snprintf(t->url, sizeof t->url, "http://127.0.0.1:%d%s", odd.port, path);
  t->q.url = t->url;
  t->q.cancel = &t->cancel;
  buf_init(&t->r.headers, 4096);
  buf_init(&t->r.body, 1 << 20);
  assert_int_equal(http_start(h, &t->q, &t->r, &t->call, NULL), 0);
}

static int get(http *h, const char *path) {
  trip t;
  trip_start(h, &t, "GET", path);
  int rc = http_wait(t.call, NULL);
  if (rc == 0) rc = t.r.status;
  trip_free(&t);
  return rc;
}

/* A file of /proc, which has no size; false if the thread is gone. */
static bool read_proc(const char *path, char *to, size_t room) {
  FILE *file = fopen(path, "r");
  size_t len = file ? fread(to, 1, room - 1, file) : 0;
  if (file) fclose(file);
  to[len] = 0;
  return len > 0;
}

/* The id of the transfer thread, or 0. */
static int transfer_thread(void) {
  DIR *tasks = opendir("/proc/self/task");
  assert_non_null(tasks);
  int found = 0;
  for (struct dirent *d; (d = readdir(tasks));) {
    char path[300];
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
    char name[32];
    if (read_proc(path, name, sizeof name) && strcmp(name, "ckpt-transfer\n") == 0)
      found = atoi(d->d_name);
  }
  closedir(tasks);
  return found;
}

/* A line of the transfer thread's status: "SigBlk", "voluntary_ctxt_switches". */
static void status_line(const char *name, char out[64]) {
  char path[64], pattern[64], text[8192];
  snprintf(path, sizeof path, "/proc/self/task/%d/status", transfer_thread());
  snprintf(pattern, sizeof pattern, "\n%s:\t", name);
  assert_true(read_proc(path, text, sizeof text));
  const char *at = strstr(text, pattern);
  assert_non_null(at);
  snprintf(out, 64, "%.*s", (int)strcspn(at + strlen(pattern), "\n"), at + strlen(pattern));
}

/* ---- many ---- */

enum { THREADS = 16, EACH = 40 };

typedef struct caller {
  pthread_t thread;
  int seed, failed;
} caller;

static void *call_often(void *arg) {
  caller *c = arg;
  http *h = NULL;
  if (http_open(&h, NULL) < 0) c->failed++;
  for (int i = 0; h && i < EACH; i++) {
    char path[64];
    int size = (c->seed * 7919 + i * 104729) % 200000;
    snprintf(path, sizeof path, "/bytes/%d", size);
    trip t;
    trip_start(h, &t, "GET", path);
    if (http_wait(t.call, NULL) != 0 || t.r.body.len != (size_t)size) c->failed++;
    trip_free(&t);
  }
  http_close(h);
  return NULL;
}

static void many_threads_get_their_own_answers(void **unused) {
  caller callers[THREADS] = {0};
  for (int i = 0; i < THREADS; i++) {
    callers[i].seed = i;
    assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_int_equal(callers[i].failed, 0);
  }
  assert_int_equal(transfer_thread(), 0);
}

static void more_than_may_run_wait_for_their_turn(void **unused) {
  enum { MANY = 3 * HTTP_TRANSFERS_MAX };
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  trip *trips = calloc(MANY, sizeof *trips);
  assert_non_null(trips);
  double begin = now_s();
  for (int i = 0; i < MANY; i++) trip_start(h, &trips[i], "GET", "/slow/200");
  for (int i = 0; i < MANY; i++) {
    assert_int_equal(http_wait(trips[i].call, NULL), 0);
    assert_int_equal(trips[i].r.status, 200);
    trip_free(&trips[i]);
  }
  assert_true(now_s() - begin >= 0.6); /* three at a time, one after the other */
  free(trips);
  http_close(h);
}

static void a_share_does_not_end_the_requests_of_others(void **unused) {
  http *a, *b;
  assert_int_equal(http_open(&a, NULL), 0);
  assert_int_equal(http_open(&b, NULL), 0);
  trip t;
  trip_start(a, &t, "GET", "/slow/300");
  assert_int_equal(get(b, "/bytes/1"), 200);
  http_close(b);
  assert_false(http_done(t.call));
  assert_int_equal(http_wait(t.call, NULL), 0);
  assert_int_equal(t.r.status, 200);
  trip_free(&t);
  http_close(a);
}

static void done_is_seen_without_waiting(void **unused) {
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  trip t;
  trip_start(h, &t, "GET", "/bytes/9");
  for (int i = 0; i < 1000 && !http_done(t.call); i++) pause_ms(5);
  assert_true(http_done(t.call));
  assert_int_equal(http_wait(t.call, NULL), 0);
  assert_int_equal(t.r.body.len, 9);
  trip_free(&t);
  http_close(h);
}

/* ---- cancels ---- */

/* ASan and TSan slow the machine down, not the promise. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double soon = 0.8;
#else
static const double soon = 0.2;
#endif

/* How many seconds a cancel took. */
static double cancel_took(const char *method, const char *path, void *body, size_t len) {
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  trip t;
  trip_start(h, &t, method, "/bytes/1"); /* the thread runs, a connection stands */
  assert_int_equal(http_wait(t.call, NULL), 0);
  trip_free(&t);
  t = (trip){.q = {.method = method, .body = body, .len = len, .stall_s = 30}};
  snprintf(t.url, sizeof t.url, "http://127.0.0.1:%d%s", odd.port, path);
  t.q.url = t.url;
  t.q.stop = &t.cancel;
  buf_init(&t.r.headers, 4096);
  buf_init(&t.r.body, (size_t)1 << 32); /* what never ends must not end by itself */
  assert_int_equal(http_start(h, &t.q, &t.r, &t.call, NULL), 0);
  pause_ms(100);
  assert_false(http_done(t.call));
  double begin = now_s();
  atomic_store(&t.cancel, 1);
  err e = {0};
  assert_int_equal(http_wait(t.call, &e), ERR_CANCELED);
  double took = now_s() - begin;
  assert_non_null(strstr(e.text, "127.0.0.1"));
  trip_free(&t);
  assert_int_equal(get(h, "/bytes/1"), 200); /* and the others go on */
  http_close(h);
  return took;
}

/* A machine that is busy with other things may hold one of them up, not all. */
static void cancel_ends(const char *method, const char *path, void *body, size_t len) {
  double best = 1e9;
  for (int i = 0; i < 3 && best >= soon; i++) {
    double took = cancel_took(method, path, body, len);
    if (took < best) best = took;
  }
  assert_true(best < soon);
}

static void a_cancel_ends_whatever_goes_on(void **unused) {
  enum { SIZE = 32 << 20 };
  char *body = calloc(1, SIZE);
  assert_non_null(body);
  cancel_ends("GET", "/never", NULL, 0);
  cancel_ends("GET", "/trickle/20", NULL, 0);
  cancel_ends("PUT", "/noread", body, SIZE);
  free(body);
}

static void a_cancel_ends_what_waits_for_its_turn(void **unused) {
  enum { MANY = HTTP_TRANSFERS_MAX + 20 };
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  trip *trips = calloc(MANY, sizeof *trips);
  assert_non_null(trips);
  for (int i = 0; i < MANY; i++) trip_start(h, &trips[i], "GET", "/never");
  pause_ms(200);
  for (int i = HTTP_TRANSFERS_MAX; i < MANY; i++) atomic_store(&trips[i].cancel, 1);
  for (int i = HTTP_TRANSFERS_MAX; i < MANY; i++)
    assert_int_equal(http_wait(trips[i].call, NULL), ERR_CANCELED);
  for (int i = 0; i < HTTP_TRANSFERS_MAX; i++) assert_false(http_done(trips[i].call));
  for (int i = 0; i < HTTP_TRANSFERS_MAX; i++) atomic_store(&trips[i].cancel, 1);
  for (int i = 0; i < HTTP_TRANSFERS_MAX; i++)
    assert_int_equal(http_wait(trips[i].call, NULL), ERR_CANCELED);
  for (int i = 0; i < MANY; i++) trip_free(&trips[i]);
  free(trips);
  http_close(h);
}

static void what_is_cancelled_before_never_goes_out(void **unused) {
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  atomic_int cancel = 1;
  http_response r = {0};
  http_request q = {.method = "GET", .url = "http://127.0.0.1:1/", .cancel = &cancel};
  http_call *call;
  assert_int_equal(http_start(h, &q, &r, &call, NULL), 0);
  assert_int_equal(http_wait(call, NULL), ERR_CANCELED);
  assert_int_equal(r.status, 0);
  http_close(h);
}

/* ---- the thread's life ---- */

static void nothing_runs_before_the_first_request_and_after_the_last_share(void **unused) {
  int fds = count_fds();
  http *a, *b;
  assert_int_equal(http_open(&a, NULL), 0);
  assert_int_equal(http_open(&b, NULL), 0);
  assert_int_equal(transfer_thread(), 0);
  assert_int_equal(get(a, "/bytes/1"), 200);
  assert_int_not_equal(transfer_thread(), 0);
  http_close(a);
  assert_int_not_equal(transfer_thread(), 0);
  assert_int_equal(get(b, "/bytes/1"), 200);
  http_close(b);
  assert_int_equal(transfer_thread(), 0);
  assert_int_equal(count_fds(), fds);
  http_close(NULL);
}

static void opening_and_closing_at_once_loses_nothing(void **unused) {
  for (int round = 0; round < 3; round++) many_threads_get_their_own_answers(NULL);
}

static void without_work_it_sleeps_and_then_gives_all_back(void **unused) {
  int fds = count_fds();
  http *h;
  http_idle_after(2000);
  assert_int_equal(http_open(&h, NULL), 0);
  for (int round = 0; round < 2; round++) { /* the second one starts it again */
    assert_int_equal(get(h, "/bytes/1"), 200);
    pause_ms(200);
    char before[64], after[64];
    status_line("voluntary_ctxt_switches", before);
    pause_ms(400);
    status_line("voluntary_ctxt_switches", after);
    assert_string_equal(before, after);
    for (int i = 0; i < 100 && transfer_thread(); i++) pause_ms(50);
    assert_int_equal(transfer_thread(), 0);
    for (int i = 0; i < 100 && count_fds() != fds; i++) pause_ms(10);
    assert_int_equal(count_fds(), fds);
  }
  http_idle_after(HTTP_IDLE_MS);
  http_close(h);
}

static void the_hosts_signals_never_run_on_it(void **unused) {
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  assert_int_equal(get(h, "/bytes/1"), 200);
  char blocked[64];
  status_line("SigBlk", blocked);
  /* All but KILL and STOP, which cannot be, and the two that the C library keeps for itself. */
  assert_int_equal(strtoull(blocked, NULL, 16) & 0x7ffbfeff, 0x7ffbfeff);
  http_close(h);
}

static void a_forked_child_is_told_and_never_hangs(void **unused) {
  http *h;
  assert_int_equal(http_open(&h, NULL), 0);
  trip t;
  trip_start(h, &t, "GET", "/slow/500");
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(5);
    err e = {0};
    http *mine;
    http_response r = {0};
    http_call *call;
    bool told = http_wait(t.call, &e) == ERR_UNSUPPORTED && strstr(e.text, "fork") &&
                http_start(h, &t.q, &r, &call, NULL) == ERR_UNSUPPORTED &&
                http_open(&mine, NULL) == ERR_UNSUPPORTED;
    http_close(h);
    _exit(told ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(http_wait(t.call, NULL), 0); /* the parent's goes on */
  assert_int_equal(t.r.status, 200);
  trip_free(&t);
  http_close(h);
}

static void a_child_of_a_process_without_shares_has_its_own(void **unused) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(5);
    http *h;
    int rc = http_open(&h, NULL);
    if (rc == 0) rc = get(h, "/bytes/1") == 200 ? 0 : 1;
    if (rc == 0) http_close(h);
    _exit(rc == 0 ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(many_threads_get_their_own_answers),
      cmocka_unit_test(more_than_may_run_wait_for_their_turn),
      cmocka_unit_test(a_share_does_not_end_the_requests_of_others),
      cmocka_unit_test(done_is_seen_without_waiting),
      cmocka_unit_test(a_cancel_ends_whatever_goes_on),
      cmocka_unit_test(a_cancel_ends_what_waits_for_its_turn),
      cmocka_unit_test(what_is_cancelled_before_never_goes_out),
      cmocka_unit_test(nothing_runs_before_the_first_request_and_after_the_last_share),
      cmocka_unit_test(opening_and_closing_at_once_loses_nothing),
      cmocka_unit_test(without_work_it_sleeps_and_then_gives_all_back),
      cmocka_unit_test(the_hosts_signals_never_run_on_it),
      cmocka_unit_test(a_forked_child_is_told_and_never_hangs),
      cmocka_unit_test(a_child_of_a_process_without_shares_has_its_own),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
