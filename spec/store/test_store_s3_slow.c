/* The S3 store against a server that is slow, wrong for once, or of another time.
 * spec/store/slow_s3_spec.sh starts the server and a proxy, and runs this with the variables of
 * spec/c/store/store_proxy.h. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_proxy.h"

enum { MIB = 1 << 20, PART = 8 * MIB };

/* ---- a refusal that is wrong ---- */

static void a_small_object_that_is_refused_and_absent_is_put_again(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules("1 PUT /k status 412/PreconditionFailed\n");
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(store_proxy_asked("PUT", "/k"), 2);
  store_must_hold(s, "k", "x");
  store_close(s);
}

static void a_large_object_that_is_refused_and_absent_is_completed_again(void **state) {
  char *data = calloc(1, 2 * PART);
  assert_non_null(data);
  store *s = store_proxied(state);
  store_proxy_rules("1 POST uploadId= status 412/PreconditionFailed\n");
  assert_int_equal(store_stream(s, "l", data, 2 * PART, PART, false), 0);
  assert_int_equal(store_proxy_asked("POST", "uploadId="), 2);
  assert_true(store_holds(s, "l"));
  store_close(s);
  free(data);
}

static void an_object_that_stands_there_is_put_once(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules("");
  assert_int_equal(store_put_text(s, "k", "first", STORE_IF_ABSENT), 0);
  store_proxy_rules("");
  assert_int_equal(store_put_text(s, "k", "other", STORE_IF_ABSENT), ERR_EXISTS);
  assert_int_equal(store_proxy_asked("PUT", "/k"), 1);
  store_must_hold(s, "k", "first");
  store_close(s);
}

static void a_server_that_always_refuses_is_believed_in_the_end(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules("99 PUT /k status 412/PreconditionFailed\n");
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), ERR_EXISTS);
  assert_int_equal(store_proxy_asked("PUT", "/k"), 3);
  store_close(s);
}

/* ---- a clock that is off ---- */

struct off {
  io io;
  int64_t by_ns;
};

static int64_t off_now(const io *self, io_clock clock) {
  const struct off *o = (const struct off *)self; /* the io is its first member */
  return io_system()->now(io_system(), clock) + (clock == IO_WALL ? o->by_ns : 0);
}

static int warnings;
static void count_warnings(void *ctx, log_level level, const char *text) {
  warnings += level == LOG_WARN && strstr(text, "the clock of this machine") != NULL;
}

static void works_though_off_by(void **state, int64_t seconds) {
  struct off off = {*io_system(), seconds * 1000000000};
  const log_sink log = {.fn = count_warnings, .min = LOG_WARN};
  store_object o;
  err e = {0};
  off.io.now = off_now;
  warnings = 0;
  store *s = store_proxy_open(state, getenv("CKPT_TEST_S3"), &off.io, &log);
  char key[32];
  snprintf(key, sizeof key, "k%d", (int)seconds);
  if (s->ops->head(s, key, &o, &e) != ERR_NOENT) fail_msg("head: %s", e.text);
  assert_int_equal(store_put_text(s, key, "x", STORE_IF_ABSENT), 0);
  store_must_hold(s, key, "x");
  assert_int_equal(warnings, 1);
  store_close(s);
}

static void a_clock_that_is_off_is_corrected_by_the_servers_and_told_once(void **state) {
  works_though_off_by(state, 3600);
  works_though_off_by(state, -3 * 24 * 3600);
}

/* ---- patience ---- */

static void with_patience_an_outage_is_waited_out(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules("");
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  atomic_store(&s->patience_ns, (int64_t)60 * 1000000000);
  store_proxy_rules("8 GET /k status 503/SlowDown\n"); /* more than a call tries by itself */
  store_must_hold(s, "k", "x");
  assert_int_equal(store_proxy_asked("GET", "/k"), 9);
  assert_int_equal(atomic_load(&s->silent_ns), 0);
  store_close(s);
}

static void patience_has_an_end(void **state) {
  store *s = store_proxy_open(state, "http://127.0.0.1:9", io_system(), NULL);
  store_object o;
  err e = {0};
  atomic_store(&s->patience_ns, (int64_t)1000000000);
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_IO);
  assert_true(atomic_load(&s->silent_ns) > 0);
  store_close(s);
}

static void a_server_that_says_nothing_takes_no_longer_than_the_patience(void **state) {
  store *s = store_proxied(state);
  store_object o;
  err e = {0};
  atomic_store(&s->patience_ns, (int64_t)2000000000);
  store_proxy_rules("99 HEAD /k hang\n");
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_TIMEOUT);
  store_close(s);
}

static void with_patience_what_is_refused_is_told_at_once(void **state) {
  store *s = store_proxied(state);
  store_object o;
  err e = {0};
  atomic_store(&s->patience_ns, (int64_t)600 * 1000000000);
  store_proxy_rules("99 HEAD /k status 403\n");
  assert_int_equal(s->ops->head(s, "k", &o, &e), ERR_ACCESS);
  store_close(s);
}

static int note_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)is_prefix, (void)object;
  snprintf(ctx, 64, "%.63s", key);
  return 0;
}

static void a_listing_of_what_lies_elsewhere_is_not_believed(void **state) {
  store *s = store_proxied(state);
  char key[64] = "";
  err e = {0};
  assert_int_equal(store_put_text(s, "asked/k", "x", STORE_IF_ABSENT), 0);
  store_proxy_rules("1 GET list-type swap asked other\n");
  assert_int_equal(s->ops->list(s, "asked", false, note_key, key, &e), ERR_FORMAT);
  assert_string_equal(key, "");
  assert_non_null(strstr(e.text, "other/k"));
  assert_int_equal(s->ops->list(s, "asked", false, note_key, key, &e), 0);
  assert_string_equal(key, "asked/k");
  store_close(s);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest promises[] = {
      PROMISE(a_small_object_that_is_refused_and_absent_is_put_again),
      PROMISE(a_large_object_that_is_refused_and_absent_is_completed_again),
      PROMISE(an_object_that_stands_there_is_put_once),
      PROMISE(a_server_that_always_refuses_is_believed_in_the_end),
      PROMISE(a_clock_that_is_off_is_corrected_by_the_servers_and_told_once),
      PROMISE(with_patience_an_outage_is_waited_out),
      PROMISE(patience_has_an_end),
      PROMISE(a_server_that_says_nothing_takes_no_longer_than_the_patience),
      PROMISE(with_patience_what_is_refused_is_told_at_once),
      PROMISE(a_listing_of_what_lies_elsewhere_is_not_believed),
  };
  if (!store_proxy_begin()) {
    puts("1..0 # SKIP spec/store/slow_s3_spec.sh runs it, against a server");
    return 0;
  }
  store_place_scheme = "s3";
  return cmocka_run_group_tests_name("s3, slow", promises, NULL, NULL);
}
