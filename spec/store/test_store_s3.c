/* The S3 store against a real server, and against what lies between. spec/store/s3_spec.sh starts
 * both and runs this with the variables of spec/c/store/store_proxy.h. */
#include "with_cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store_proxy.h"
#include "store_replace.h"
#include "store_suite.h"
#include "tmpdir.h"

enum { MIB = 1 << 20, PART = 8 * MIB };

/* What the spec that runs this has set. */
static const char *env(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static store *direct(void **state) {
  return ((store_place *)*state)->s;
}

static int stream(store *s, const char *key, const char *data, size_t len, unsigned how,
                  atomic_int *cancel, err *e) {
  store_writer *w;
  int rc = s->ops->write_open(s, key, len, how, cancel, &w, e);
  if (rc < 0) return rc;
  for (size_t at = 0; at < len && rc == 0; at += PART)
    rc = s->ops->write(w, data + at, len - at < PART ? len - at : PART, e);
  if (rc == 0) return s->ops->write_close(w, e);
  s->ops->write_abort(w);
  return rc;
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- large objects and many ---- */

static void a_large_object_goes_in_parts_and_comes_back(void **state) {
  const size_t len = 100 * MIB + 12345;
  char *data = make_pattern(len, 1);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("");
  if (stream(s, "d/large", data, len, 0, NULL, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 13);
  store_must_be(direct(state), "d/large", data, len);
  assert_int_equal(stream(s, "d/large", data, len, 0, NULL, &e), ERR_EXISTS);
  store_close(s);
  free(data);
}

static void parts_of_the_exact_size_leave_no_empty_one(void **state) {
  char *data = make_pattern(3 * PART, 2);
  store_proxy_rules("");
  store *s = store_proxied(state);
  assert_int_equal(stream(s, "one", data, PART, 0, NULL, NULL), 0);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 0);
  assert_int_equal(stream(s, "three", data, 3 * PART, 0, NULL, NULL), 0);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 3);
  store_must_be(direct(state), "one", data, PART);
  store_must_be(direct(state), "three", data, 3 * PART);
  store_close(s);
  free(data);
}

/* More writers than there are buffers, all on one thread: none may wait for another. */
static void many_writers_of_one_thread_share_the_buffers(void **state) {
  enum { WRITERS = 12, LEN = 2 * PART + 7 };
  store *s = direct(state);
  store_writer *w[WRITERS];
  char *data = make_pattern(LEN, 3);
  for (int i = 0; i < WRITERS; i++) {
    char key[16];
    snprintf(key, sizeof key, "w/%d", i);
    assert_int_equal(s->ops->write_open(s, key, LEN, 0, NULL, &w[i], NULL), 0);
  }
  for (size_t at = 0; at < LEN; at += 1000003)
    for (int i = 0; i < WRITERS; i++)
      assert_int_equal(
          s->ops->write(w[i], data + at, LEN - at < 1000003 ? LEN - at : 1000003, NULL), 0);
  for (int i = 0; i < WRITERS; i++) assert_int_equal(s->ops->write_close(w[i], NULL), 0);
  store_must_be(s, "w/0", data, LEN);
  store_must_be(s, "w/11", data, LEN);
  free(data);
}

enum { MANY = 5000, HANDS = 16 };
typedef struct hand {
  pthread_t thread;
  store *s;
  int from, rc;
} hand;

static void *put_some(void *arg) {
  hand *h = arg;
  for (int i = h->from; i < MANY && h->rc == 0; i += HANDS) {
    char key[32];
    snprintf(key, sizeof key, "many/%d/%05d", i % 3, i);
    h->rc = store_put_text(h->s, key, "x", STORE_IF_ABSENT);
  }
  return NULL;
}

typedef struct walk {
  char last[STORE_KEY_MAX + 1];
  int count;
} walk;

static int in_order(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  walk *w = ctx;
  assert_true(strcmp(w->last, key) < 0);
  assert_false(is_prefix);
  assert_int_equal(object->size, 1);
  snprintf(w->last, sizeof w->last, "%s", key);
  w->count++;
  return 0;
}

static void five_thousand_keys_are_listed_over_pages_and_removed(void **state) {
  hand hands[HANDS];
  store *s = direct(state), *p = store_proxied(state);
  for (int i = 0; i < HANDS; i++) {
    hands[i] = (hand){.s = s, .from = i};
    assert_int_equal(pthread_create(&hands[i].thread, NULL, put_some, &hands[i]), 0);
  }
  for (int i = 0; i < HANDS; i++) {
    pthread_join(hands[i].thread, NULL);
    assert_int_equal(hands[i].rc, 0);
  }
  walk w = {.count = 0};
  store_proxy_rules("");
  assert_int_equal(p->ops->list(p, "many", false, in_order, &w, NULL), 0);
  assert_int_equal(w.count, MANY);
  assert_int_equal(store_proxy_asked("GET", "list-type=2"), 5);
  store_must_list(p, "many", true, "many/0/ many/1/ many/2/");
  assert_int_equal(p->ops->remove_prefix(p, "many", NULL), 0);
  assert_int_equal(store_proxy_asked("POST", "delete"), 5);
  store_must_list(s, "", false, "");
  store_close(p);
}

/* ---- answers that are lost, connections that break ---- */

static void a_put_whose_answer_was_lost_is_known_by_its_nonce(void **state) {
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("1 PUT /k lose\n");
  if (s->ops->put(s, "k", "mine", 4, STORE_IF_ABSENT, &e) < 0) fail_msg("%s", e.text);
  assert_true(store_proxy_asked("PUT", "/k") >= 2);
  store_must_hold(direct(state), "k", "mine");
  assert_int_equal(s->ops->put(s, "k", "mine", 4, STORE_IF_ABSENT, &e), ERR_EXISTS);
  store_close(s);
}

static void an_equal_object_of_somebody_else_is_not_ours(void **state) {
  store *s = store_proxied(state);
  assert_int_equal(store_put_text(direct(state), "k", "same", STORE_IF_ABSENT), 0);
  store_proxy_rules("1 PUT /k status 503/SlowDown\n");
  assert_int_equal(store_put_text(s, "k", "same", STORE_IF_ABSENT), ERR_EXISTS);
  store_close(s);
}

static void a_complete_whose_answer_was_lost_is_success(void **state) {
  char *data = make_pattern(2 * PART, 4);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("1 POST uploadId=  lose\n");
  if (stream(s, "k", data, 2 * PART, 0, NULL, &e) < 0) fail_msg("%s", e.text);
  store_must_be(direct(state), "k", data, 2 * PART);
  store_close(s);
  free(data);
}

static void parts_that_are_cut_are_sent_again(void **state) {
  char *data = make_pattern(3 * PART, 5);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules(
      "2 PUT partNumber cut 3000000\n1 PUT partNumber lose\n1 PUT partNumber status 500\n");
  if (stream(s, "k", data, 3 * PART, 0, NULL, &e) < 0) fail_msg("%s", e.text);
  assert_true(store_proxy_asked("PUT", "partNumber") >= 7);
  store_must_be(direct(state), "k", data, 3 * PART);
  store_close(s);
  free(data);
}

static void answers_that_are_cut_are_asked_for_again(void **state) {
  char *data = make_pattern(PART, 6), *got = malloc(PART);
  store *s = store_proxied(state);
  assert_int_equal(stream(direct(state), "k", data, PART, 0, NULL, NULL), 0);
  store_proxy_rules("2 GET /k short 1000000\n1 GET list-type short 60\n");
  assert_int_equal(s->ops->read(s, "k", 0, got, PART, NULL), PART);
  assert_memory_equal(got, data, PART);
  store_must_list(s, "", false, "k");
  store_close(s);
  free(data);
  free(got);
}

static void a_server_that_is_busy_is_asked_again(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules(
      "3 PUT /k status 503/SlowDown\n1 GET /k status 500/InternalError\n1 GET /k status 429\n");
  double begin = now_s();
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  assert_true(now_s() - begin > 0.6); /* half of 0.2 + 0.4 + 0.8 s */
  store_must_hold(s, "k", "x");
  store_close(s);
}

/* versitygw says so, too, when it removes a directory that became empty while it puts into it. */
static void a_directory_that_went_is_no_reason_to_give_up(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules("2 PUT /k status 409/ExistingObjectIsDirectory\n");
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(store_proxy_asked("PUT", "/k"), 3);
  store_must_hold(s, "k", "x");
  store_close(s);
}

static void one_that_stays_busy_is_given_up_and_says_why(void **state) {
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("99 PUT /k status 503/SlowDown\n");
  assert_int_equal(s->ops->put(s, "k", "x", 1, STORE_IF_ABSENT, &e), ERR_IO);
  assert_int_equal(store_proxy_asked("PUT", "/k"), 6);
  const char *parts[] = {"put s3://ckpt-test/", "/k", "503", "SlowDown", "PROXY", "try 6"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(e.text, parts[i])) fail_msg("no \"%s\" in: %s", parts[i], e.text);
  store_close(s);
}

static void what_is_refused_is_not_asked_twice(void **state) {
  static const struct {
    const char *action;
    int code;
  } cases[] = {{"status 403/AccessDenied", ERR_ACCESS},
               {"status 404/NoSuchBucket", ERR_NOSTORE},
               {"status 507", ERR_NOSPACE},
               {"status 403/QuotaExceeded", ERR_NOSPACE},
               {"status 400/InvalidPartOrder", ERR_INVAL},
               {"status 501/Other", ERR_UNSUPPORTED}};
  store *s = store_proxied(state);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[100];
    snprintf(text, sizeof text, "9 PUT /k %s\n", cases[i].action);
    store_proxy_rules(text);
    assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), cases[i].code);
    assert_int_equal(store_proxy_asked("PUT", "/k"), 1);
  }
  store_close(s);
}

/* ---- who may ---- */

static void refused_with(const char *name, const char *value, void **state, const char *hint) {
  const store_place *p = *state;
  store *s;
  err e = {0};
  char *before = strdup(env(name));
  setenv(name, value, 1);
  assert_int_equal(store_open(&p->where, io_system(), NULL, &s, NULL), 0);
  setenv(name, before, 1);
  assert_int_equal(s->ops->put(s, "k", "x", 1, STORE_IF_ABSENT, &e), ERR_ACCESS);
  if (!strstr(e.text, hint)) fail_msg("no \"%s\" in: %s", hint, e.text);
  assert_null(strstr(e.text, value));
  assert_null(strstr(e.text, "Signature="));
  store_close(s);
  free(before);
}

static void wrong_keys_are_told_and_never_shown(void **state) {
  refused_with("AWS_SECRET_ACCESS_KEY", "not-the-secret", state, "AWS_SECRET_ACCESS_KEY");
  refused_with("AWS_ACCESS_KEY_ID", "nobody-knows-it", state, "AWS_ACCESS_KEY_ID");
}

static void a_bucket_that_is_not_there_is_no_store(void **state) {
  uri where;
  store *s;
  err e = {0};
  store_writer *w;
  assert_int_equal(uri_parse("s3://ckpt-none/a", &where, NULL), 0);
  assert_int_equal(store_open(&where, io_system(), NULL, &s, NULL), 0);
  assert_int_equal(s->ops->exists(s, &e), ERR_NOSTORE);
  assert_non_null(strstr(e.text, "make the bucket"));
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), ERR_NOSTORE);
  assert_int_equal(store_put_text(s, "k", "x", STORE_REPLACE), ERR_NOSTORE);
  assert_int_equal(s->ops->write_open(s, "k", 1, 0, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "x", 1, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), ERR_NOSTORE);
  store_must_list(s, "", false, "!NOSTORE");
  store_close(s);
}

static void the_region_that_the_server_names_is_taken_once(void **state) {
  store *s = store_proxied(state);
  store_proxy_rules("1 GET list-type region us-west-7\n");
  setenv("AWS_REGION", "us-east-1", 1);
  char *listing = store_listing(s, "", false); /* our server is in no other region than its own */
  assert_int_equal(store_proxy_asked("GET", "list-type"), 2);
  free(listing);
  store_close(s);
}

/* The answer to a HEAD cannot say that the keys have run out. */
static void keys_that_ran_out_are_read_anew(void **state) {
  store_object o;
  setenv("AWS_SESSION_TOKEN", "old", 1);
  store *s = store_proxied(state);
  unsetenv("AWS_SESSION_TOKEN");
  store_proxy_rules("1 HEAD /k status 400\n");
  assert_int_equal(s->ops->head(s, "k", &o, NULL), ERR_NOENT);
  assert_int_equal(store_proxy_asked("HEAD", "/k"), 2);
  store_close(s);
}

/* ---- cancelling ---- */

typedef struct canceller {
  atomic_int flag;
  double at;
} canceller;

static void *cancel_soon(void *arg) {
  canceller *c = arg;
  usleep(300000);
  c->at = now_s();
  atomic_store(&c->flag, 1);
  return NULL;
}

static void a_cancel_ends_what_hangs(void **state) {
  char *data = make_pattern(3 * PART, 7);
  store *s = store_proxied(state);
  for (int round = 0; round < 4; round++) {
    canceller c = {.flag = 0};
    pthread_t thread;
    int rc;
    store_proxy_rules(round == 3 ? "99 * * status 503\n" : "99 * * hang\n");
    pthread_create(&thread, NULL, cancel_soon, &c);
    s->cancel = round == 1 ? &c.flag : NULL;
    if (round == 1)
      rc = s->ops->put(s, "k", "x", 1, STORE_REPLACE, NULL);
    else
      rc = stream(s, "k", data, round == 0 ? 3 * PART : 10, 0, &c.flag, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(rc, ERR_CANCELED);
    assert_true(now_s() - c.at < 0.5);
  }
  s->cancel = NULL;
  store_close(s);
  free(data);
}

/* ---- what is counted ---- */

typedef struct counted {
  store *s;
  const char *data;
  size_t len;
  unsigned how;
  atomic_int cancel;
  _Atomic uint64_t stored, sent;
  int rc;
  err why;
} counted;

static void *stream_counted(void *arg) {
  counted *c = arg;
  store_writer *w;
  c->rc = c->s->ops->write_open(c->s, "k", c->len, c->how, &c->cancel, &w, NULL);
  if (c->rc < 0) return NULL;
  if (!store_write_tally(w, &(store_tally){.stored = &c->stored, .sent = &c->sent})) abort();
  c->rc = w->store->ops->write(w, c->data, c->len, NULL);
  if (c->rc == 0)
    c->rc = w->store->ops->write_close(w, &c->why);
  else
    w->store->ops->write_abort(w);
  return NULL;
}

static void await_stored(counted *c, uint64_t bytes) {
  for (int i = 0; i < 3000 && atomic_load(&c->stored) != bytes; i++) usleep(10000);
  assert_int_equal(atomic_load(&c->stored), bytes);
}

/* However much was handed over, and fits into buffers on the way. */
static void only_what_the_server_has_is_counted_as_stored(void **state) {
  const size_t len = 3 * PART + 5;
  char *data = make_pattern(len, 21);
  counted c = {.s = store_proxied(state), .data = data, .len = len, .how = STORE_RESUME};
  pthread_t thread;
  store_proxy_rules("9 PUT partNumber=3 hang\n9 PUT partNumber=4 hang\n");
  pthread_create(&thread, NULL, stream_counted, &c);
  await_stored(&c, 2 * PART);
  assert_true(atomic_load(&c.sent) >= 2 * PART);
  assert_int_equal(atomic_load(&c.stored), 2 * PART);
  atomic_store(&c.cancel, 1);
  pthread_join(thread, NULL);
  assert_int_equal(c.rc, ERR_CANCELED);
  assert_int_equal(atomic_load(&c.stored), 0); /* there is no object */
  store_proxy_rules("9 PUT partNumber=3 hang\n9 PUT partNumber=4 hang\n");
  atomic_store(&c.cancel, 0);
  pthread_create(&thread, NULL, stream_counted, &c);
  await_stored(&c, 2 * PART); /* those of the earlier try */
  assert_int_equal(
      store_proxy_asked("PUT", "partNumber=1&") + store_proxy_asked("PUT", "partNumber=2&"), 0);
  atomic_store(&c.cancel, 1);
  pthread_join(thread, NULL);
  store_proxy_rules("");
  atomic_store(&c.cancel, 0);
  stream_counted(&c);
  assert_int_equal(c.rc, 0);
  assert_int_equal(atomic_load(&c.stored), len);
  store_close(c.s);
  free(data);
}

static void an_object_of_one_part_is_stored_when_it_is_put(void **state) {
  char *data = make_pattern(PART, 22);
  counted c = {.s = store_proxied(state), .data = data, .len = PART};
  store_proxy_rules("1 PUT /k status 403/AccessDenied\n");
  stream_counted(&c);
  if (c.rc != ERR_ACCESS) fail_msg("%d %s", c.rc, c.why.text);
  assert_int_equal(atomic_load(&c.stored), 0);
  stream_counted(&c);
  assert_int_equal(c.rc, 0);
  assert_int_equal(atomic_load(&c.stored), PART);
  atomic_store(&c.stored, 0); /* it is there already: equal, and another */
  c.how = STORE_RESUME;
  stream_counted(&c);
  assert_int_equal(atomic_load(&c.stored), PART);
  data[7] ^= 1;
  stream_counted(&c);
  assert_int_equal(c.rc, ERR_EXISTS);
  assert_int_equal(atomic_load(&c.stored), PART); /* as before: nothing of that one */
  store_close(c.s);
  free(data);
}

/* ---- going on ---- */

static void a_resumed_upload_sends_what_is_missing_only(void **state) {
  const size_t len = 5 * PART - 1;
  char *data = make_pattern(len, 8);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("9 PUT partNumber=4 status 403/AccessDenied\n");
  assert_int_equal(stream(s, "k", data, len, STORE_RESUME, NULL, NULL), ERR_ACCESS);
  data[PART + 5] ^= 1; /* of part 2 */
  store_proxy_rules("");
  if (stream(s, "k", data, len, STORE_RESUME, NULL, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=1&"), 0);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=2&"), 1);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=3&"), 0);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=4&"), 1);
  assert_int_equal(store_proxy_asked("POST", "uploads="), 0);
  store_must_be(direct(state), "k", data, len);
  store_close(s);
  free(data);
}

static void an_upload_that_is_older_than_ours_is_left_alone(void **state) {
  char *data = make_pattern(3 * PART, 8);
  store *s = store_proxied(state);
  store_writer *w;
  store_proxy_rules("9 PUT partNumber=3 status 403/AccessDenied\n");
  assert_int_equal(stream(s, "k", data, 3 * PART, 0, NULL, NULL), ERR_ACCESS);
  store_proxy_rules("");
  assert_int_equal(s->ops->write_open(s, "k", 3 * PART, STORE_RESUME, NULL, &w, NULL), 0);
  store_write_since(w, INT64_MAX);
  assert_int_equal(s->ops->write(w, data, 3 * PART, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), 0);
  assert_int_equal(store_proxy_asked("POST", "uploads="), 1);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 3);
  store_must_be(direct(state), "k", data, 3 * PART);
  store_close(s);
  free(data);
}

static void what_is_there_already_is_compared_and_not_sent(void **state) {
  const size_t sizes[] = {0, 5, PART, 2 * PART + 1};
  store *s = store_proxied(state);
  for (size_t i = 0; i < 4; i++) {
    char key[16], *data = make_pattern(sizes[i], 9);
    snprintf(key, sizeof key, "k%zu", i);
    assert_int_equal(stream(direct(state), key, data, sizes[i], 0, NULL, NULL), 0);
    store_proxy_rules("");
    assert_int_equal(stream(s, key, data, sizes[i], STORE_RESUME, NULL, NULL), 0);
    assert_int_equal(store_proxy_asked("PUT", "") + store_proxy_asked("POST", ""), 0);
    if (sizes[i]) data[sizes[i] / 2] ^= 1;
    if (sizes[i])
      assert_int_equal(stream(s, key, data, sizes[i], STORE_RESUME, NULL, NULL), ERR_EXISTS);
    assert_int_equal(stream(s, key, data, sizes[i] / 2 + 9, STORE_RESUME, NULL, NULL), ERR_EXISTS);
    free(data);
  }
  store_close(s);
}

static void a_removal_takes_unfinished_uploads_away(void **state) {
  char *data = make_pattern(3 * PART, 10);
  store *s = store_proxied(state);
  store_proxy_rules("9 PUT partNumber=3 status 403/AccessDenied\n");
  assert_int_equal(stream(s, "d/k", data, 3 * PART, 0, NULL, NULL), ERR_ACCESS);
  assert_int_equal(stream(s, "dd/k", data, 3 * PART, 0, NULL, NULL), ERR_ACCESS);
  store_proxy_rules("");
  assert_int_equal(s->ops->remove_prefix(s, "d", NULL), 0);
  assert_int_equal(store_proxy_asked("DELETE", "uploadId="), 1);
  assert_int_equal(stream(s, "d/k", data, 3 * PART, STORE_RESUME, NULL, NULL), 0);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 3);
  store_proxy_rules("");
  assert_int_equal(stream(s, "dd/k", data, 3 * PART, STORE_RESUME, NULL, NULL), 0);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 1);
  store_close(s);
  free(data);
}

/* What is replaced is sent anew each time: a bucket would keep the parts of every failure. */
static void what_is_not_resumed_leaves_no_unfinished_upload(void **state) {
  char *data = make_pattern(3 * PART, 11);
  store *s = store_proxied(state);
  atomic_int cancel = 0;
  store_writer *w;
  store_proxy_rules("9 PUT partNumber=3 status 403/AccessDenied\n");
  assert_int_equal(stream(s, "k", data, 3 * PART, STORE_OVER, NULL, NULL), ERR_ACCESS);
  assert_int_equal(store_proxy_asked("POST", "uploads="), 1);
  assert_int_equal(store_proxy_asked("DELETE", "uploadId="), 1);
  store_proxy_rules("");
  assert_int_equal(s->ops->write_open(s, "k", 3 * PART, STORE_OVER, &cancel, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, data, 2 * PART, NULL), 0);
  cancel = 1;
  s->ops->write_abort(w);
  assert_int_equal(store_proxy_asked("POST", "uploads="), 1);
  assert_int_equal(store_proxy_asked("DELETE", "uploadId="), 1);
  store_proxy_rules("");
  assert_int_equal(stream(s, "k", data, 3 * PART, STORE_OVER, NULL, NULL), 0);
  assert_int_equal(store_proxy_asked("DELETE", "uploadId="), 0);
  store_close(s);
  free(data);
}

typedef struct told_uploads {
  char ids[8][256], keys[8][64];
  int64_t begun[8];
  int count;
} told_uploads;

static int on_unfinished(void *ctx, const store_unfinished *what) {
  told_uploads *t = ctx;
  assert_true(t->count < 8);
  snprintf(t->keys[t->count], sizeof *t->keys, "%s", what->key);
  snprintf(t->ids[t->count], sizeof *t->ids, "%s", what->id);
  t->begun[t->count++] = what->begun_ns;
  return 0;
}

static void unfinished_uploads_are_told_and_one_of_them_can_go(void **state) {
  char *data = make_pattern(3 * PART, 11);
  store *s = store_proxied(state);
  told_uploads t = {.count = 0};
  struct timespec now;
  store_proxy_rules("99 PUT partNumber=3 status 403/AccessDenied\n");
  assert_int_equal(stream(s, "u/one", data, 3 * PART, 0, NULL, NULL), ERR_ACCESS);
  assert_int_equal(stream(s, "u/two%41", data, 3 * PART, 0, NULL, NULL), ERR_ACCESS);
  assert_int_equal(stream(s, "uu/x", data, 3 * PART, 0, NULL, NULL), ERR_ACCESS);
  store_proxy_rules("");
  assert_int_equal(s->ops->unfinished(s, "u", on_unfinished, &t, NULL), 0);
  assert_int_equal(t.count, 2);
  assert_string_equal(t.keys[0], "u/one");
  assert_string_equal(t.keys[1], "u/two%41");
  clock_gettime(CLOCK_REALTIME, &now);
  assert_true(llabs(t.begun[0] / 1000000000 - (int64_t)now.tv_sec) < 60);
  store_unfinished one = {.key = t.keys[0], .id = t.ids[0]};
  assert_int_equal(s->ops->discard(s, &one, NULL), 0);
  assert_int_equal(s->ops->discard(s, &one, NULL), 0); /* gone already */
  t.count = 0;
  assert_int_equal(s->ops->unfinished(s, "", on_unfinished, &t, NULL), 0);
  assert_int_equal(t.count, 2);
  assert_int_equal(s->ops->remove_prefix(s, "u", NULL), 0);
  assert_int_equal(s->ops->remove_prefix(s, "uu", NULL), 0);
  store_close(s);
  free(data);
}

/* ---- the race ---- */

static void the_race_has_one_winner_and_leaves_nothing(void **state) {
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("5 PUT race status 503\n5 PUT race lose\n");
  if (s->ops->race(s, &e) < 0) fail_msg("%s", e.text);
  assert_true(store_proxy_asked("PUT", "race") >= 80);
  store_must_list(s, "", false, "");
  store_close(s);
}

static void a_server_where_all_win_is_found_out(void **state) {
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("99 PUT race status 200\n");
  assert_int_equal(s->ops->race(s, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "`single_writer`"));
  assert_non_null(strstr(e.text, "16 were told"));
  store_proxy_rules("99 PUT race status 501/NotImplemented\n");
  assert_int_equal(s->ops->race(s, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "`single_writer`"));
  store_must_list(s, "", false, "");
  store_close(s);
}

static void a_single_writer_looks_before_it_puts(void **state) {
  char *data = make_pattern(2 * PART, 11);
  store *s = store_proxied(state);
  s->single_writer = true;
  store_proxy_rules("");
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  assert_int_equal(store_proxy_asked("HEAD", "/k"), 1);
  assert_int_equal(store_put_text(s, "k", "y", STORE_IF_ABSENT), ERR_EXISTS);
  assert_int_equal(store_proxy_asked("PUT", "/k"), 1);
  assert_int_equal(stream(s, "l", data, 2 * PART, 0, NULL, NULL), 0);
  assert_int_equal(stream(s, "l", data, 2 * PART, 0, NULL, NULL), ERR_EXISTS);
  store_must_hold(s, "k", "x");
  store_close(s);
  free(data);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest promises[] = {
      PROMISE(a_large_object_goes_in_parts_and_comes_back),
      PROMISE(parts_of_the_exact_size_leave_no_empty_one),
      PROMISE(many_writers_of_one_thread_share_the_buffers),
      PROMISE(five_thousand_keys_are_listed_over_pages_and_removed),
      PROMISE(a_put_whose_answer_was_lost_is_known_by_its_nonce),
      PROMISE(an_equal_object_of_somebody_else_is_not_ours),
      PROMISE(a_complete_whose_answer_was_lost_is_success),
      PROMISE(parts_that_are_cut_are_sent_again),
      PROMISE(answers_that_are_cut_are_asked_for_again),
      PROMISE(a_server_that_is_busy_is_asked_again),
      PROMISE(a_directory_that_went_is_no_reason_to_give_up),
      PROMISE(one_that_stays_busy_is_given_up_and_says_why),
      PROMISE(what_is_refused_is_not_asked_twice),
      PROMISE(wrong_keys_are_told_and_never_shown),
      PROMISE(a_bucket_that_is_not_there_is_no_store),
      PROMISE(the_region_that_the_server_names_is_taken_once),
      PROMISE(keys_that_ran_out_are_read_anew),
      PROMISE(a_cancel_ends_what_hangs),
      PROMISE(only_what_the_server_has_is_counted_as_stored),
      PROMISE(an_object_of_one_part_is_stored_when_it_is_put),
      PROMISE(a_resumed_upload_sends_what_is_missing_only),
      PROMISE(an_upload_that_is_older_than_ours_is_left_alone),
      PROMISE(what_is_there_already_is_compared_and_not_sent),
      PROMISE(a_removal_takes_unfinished_uploads_away),
      PROMISE(what_is_not_resumed_leaves_no_unfinished_upload),
      PROMISE(unfinished_uploads_are_told_and_one_of_them_can_go),
      PROMISE(the_race_has_one_winner_and_leaves_nothing),
      PROMISE(a_server_where_all_win_is_found_out),
      PROMISE(a_single_writer_looks_before_it_puts),
  };
  if (!store_proxy_begin()) {
    puts("1..0 # SKIP spec/store/s3_spec.sh runs it, against a server");
    return 0;
  }
  int failed = store_suite("s3") + store_replace_suite("s3");
  return failed + cmocka_run_group_tests_name("s3", promises, NULL, NULL);
}
