/* What stands in a bucket is known by our own digest, by the server's CRC64NVME, or by being read back;
 * never by an ETag. spec/store/sums_s3_spec.sh runs this against a server that looks like several, with
 * the variables of spec/c/store/store_proxy.h, where spec/servers/disguise.py is on the way, too, and
 *   CKPT_TEST_S3_SUMS  "yes": it keeps CRC64NVME */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_proxy.h"
#include "tmpdir.h"

enum { MIB = 1 << 20, PART = 8 * MIB };

static bool keeps_sums;

/* Writes block by block, as a transfer does: in lent memory, and with the digest at the end. */
static int send(store *s, const char *key, const char *data, size_t len, unsigned how,
                const char *mark, err *e) {
  store_writer *w;
  digest blocks[8] = {0}, whole;
  int rc = s->ops->write_open(s, key, len, how, NULL, &w, e);
  if (rc < 0) return rc;
  if (mark) store_write_mark(w, mark);
  for (size_t at = 0; rc == 0 && at < len; at += HASH_BLOCK) {
    size_t n = len - at < HASH_BLOCK ? len - at : HASH_BLOCK;
    uint64_t crc = 0;
    assert_int_equal(hash_block(HASH_XXH3_128, data + at, n, &blocks[at / HASH_BLOCK], &crc, NULL),
                     0);
    void *lent = s->ops->write_lend(w, n);
    if (lent) memcpy(lent, data + at, n);
    rc = lent ? s->ops->write_lent(w, n, crc, e) : s->ops->write(w, data + at, n, e);
  }
  assert_int_equal(hash_of_blocks(HASH_XXH3_128, blocks, hash_block_count(len), &whole, NULL), 0);
  store_write_digest(w, HASH_XXH3_128, &whole);
  if (rc == 0) return s->ops->write_close(w, e);
  s->ops->write_abort(w);
  return rc;
}

static const size_t sizes[] = {0, 5, PART, 2 * PART + 1, 5 * PART - 7};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void equal_bytes_of_the_same_save_are_done(void **state) {
  store *s = store_proxied(state);
  err e = {0};
  for (size_t i = 0; i < SIZES; i++) {
    char *data = make_pattern(sizes[i], 1);
    store_proxy_rules("");
    if (send(s, "k", data, sizes[i], 0, "one", &e) < 0) fail_msg("%s", e.text);
    store_must_be(s, "k", data, sizes[i]);
    store_proxy_rules("");
    if (send(s, "k", data, sizes[i], STORE_RESUME, "one", &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(store_proxy_asked("PUT", "") + store_proxy_asked("POST", ""), 0);
    /* Of one put our digest tells it; of parts their sum, or all of it is read. */
    bool told = sizes[i] <= PART || keeps_sums;
    assert_int_equal(store_proxy_asked("GET", "/k") > 0, !told);
    assert_int_equal(s->ops->remove(s, "k", NULL), 0);
    free(data);
  }
  store_close(s);
}

static void other_bytes_or_another_save_are_not(void **state) {
  store *s = store_proxied(state);
  for (size_t i = 1; i < SIZES; i++) {
    char *data = make_pattern(sizes[i], 2);
    assert_int_equal(send(s, "k", data, sizes[i], 0, "one", NULL), 0);
    assert_int_equal(send(s, "k", data, sizes[i], STORE_RESUME, "two", NULL), ERR_EXISTS);
    data[sizes[i] / 2] ^= 1;
    assert_int_equal(send(s, "k", data, sizes[i], STORE_RESUME, "one", NULL), ERR_EXISTS);
    assert_int_equal(send(s, "k", data, sizes[i] + 1, STORE_RESUME, "one", NULL), ERR_EXISTS);
    assert_int_equal(s->ops->remove(s, "k", NULL), 0);
    free(data);
  }
  store_close(s);
}

/* 1.0 gave no mark and no digest, and asked for no sum. What it has put is read. */
static void what_1_0_has_put_is_read_back(void **state) {
  store *s = store_proxied(state);
  char *data = make_pattern(PART, 3);
  err e = {0};
  assert_int_equal(s->ops->put(s, "k", data, PART, STORE_IF_ABSENT, NULL), 0);
  store_proxy_rules("");
  if (send(s, "k", data, PART, STORE_RESUME, "one", &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("PUT", ""), 0);
  data[7] ^= 1;
  assert_int_equal(send(s, "k", data, PART, STORE_RESUME, "one", &e), ERR_EXISTS);
  assert_true(store_proxy_asked("GET", "/k") >= 1);
  store_close(s);
  free(data);
}

static void parts_are_gone_on_with_by_their_sums(void **state) {
  const size_t len = 5 * PART - 1;
  char *data = make_pattern(len, 4);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("9 PUT partNumber=4 status 403/AccessDenied\n");
  assert_int_equal(send(s, "k", data, len, STORE_RESUME, "one", NULL), ERR_ACCESS);
  data[PART + 5] ^= 1; /* of part 2 */
  store_proxy_rules("");
  if (send(s, "k", data, len, STORE_RESUME, "one", &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=1&"), keeps_sums ? 0 : 1);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=2&"), 1);
  assert_int_equal(store_proxy_asked("PUT", "partNumber=4&"), 1);
  assert_int_equal(store_proxy_asked("POST", "uploads="), keeps_sums ? 0 : 1);
  store_must_be(s, "k", data, len);
  store_close(s);
  free(data);
}

/* What the parts of an upload hold that was begun without sums, nobody can tell. */
static void an_upload_that_1_0_began_is_not_gone_on_with(void **state) {
  char *data = make_pattern(3 * PART, 5);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("9 PUT partNumber=3 status 403/AccessDenied\n");
  assert_int_equal(send(s, "k", data, 3 * PART, STORE_RESUME, "one", NULL), ERR_ACCESS);
  store_proxy_rules("9 GET uploadId swap ChecksumCRC64NVME ChecksumXXXXXXXXX\n");
  if (send(s, "k", data, 3 * PART, STORE_RESUME, "one", &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("PUT", "partNumber="), 3);
  assert_int_equal(store_proxy_asked("POST", "uploads="), 1);
  store_must_be(s, "k", data, 3 * PART);
  store_close(s);
  free(data);
}

/* The parts were another save's: the object that they made has its mark. */
static void an_upload_of_another_save_makes_no_object_of_ours(void **state) {
  if (!keeps_sums) skip();
  char *data = make_pattern(3 * PART, 6);
  store *s = store_proxied(state);
  store_proxy_rules("9 PUT partNumber=3 status 403/AccessDenied\n");
  assert_int_equal(send(s, "k", data, 3 * PART, STORE_RESUME, "one", NULL), ERR_ACCESS);
  store_proxy_rules("");
  assert_int_equal(send(s, "k", data, 3 * PART, STORE_RESUME, "two", NULL), ERR_EXISTS);
  store_close(s);
  free(data);
}

static void a_sum_that_the_answer_leaves_out_is_asked_for(void **state) {
  if (!keeps_sums) skip();
  char *data = make_pattern(2 * PART, 7);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("1 POST uploadId= swap ChecksumCRC64NVME ChecksumXXXXXXXXX\n");
  if (send(s, "k", data, 2 * PART, 0, "one", &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("HEAD", "/k"), 1);
  store_proxy_rules("");
  if (send(s, "l", data, 2 * PART, 0, "one", &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("HEAD", "/l"), 0);
  store_close(s);
  free(data);
}

static void an_end_whose_answer_was_lost_is_success(void **state) {
  char *data = make_pattern(2 * PART, 8);
  store *s = store_proxied(state);
  err e = {0};
  store_proxy_rules("1 POST uploadId= lose\n");
  if (send(s, "k", data, 2 * PART, 0, "one", &e) < 0) fail_msg("%s", e.text);
  store_must_be(s, "k", data, 2 * PART);
  store_close(s);
  free(data);
}

/* Signed or not: what changed on its way is sent again. */
static void bytes_that_change_on_their_way_are_sent_again(void **state) {
  char *data = make_pattern(2 * PART, 9);
  err e = {0};
  for (int sign = 0; sign < 2; sign++) {
    if (!sign && !keeps_sums) continue; /* nobody could tell */
    setenv("CKPT_S3_SIGN_BODY", sign ? "yes" : "no", 1);
    store *s = store_proxied(state);
    unsetenv("CKPT_S3_SIGN_BODY");
    store_proxy_rules("2 PUT partNumber=2 spoil 4000000\n1 PUT /small spoil 3\n");
    if (send(s, "k", data, 2 * PART, 0, "one", &e) < 0) fail_msg("%s", e.text);
    if (send(s, "small", data, 9, 0, "one", &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(store_proxy_asked("PUT", "partNumber=2&"), 3);
    assert_int_equal(store_proxy_asked("PUT", "/small"), 2);
    store_must_be(s, "k", data, 2 * PART);
    store_must_be(s, "small", data, 9);
    assert_int_equal(s->ops->remove(s, "k", NULL), 0);
    assert_int_equal(s->ops->remove(s, "small", NULL), 0);
    store_close(s);
  }
  free(data);
}

static void a_body_is_signed_or_not_and_nothing_else(void **state) {
  const store_place *p = *state;
  store *s;
  err e = {0};
  setenv("CKPT_S3_SIGN_BODY", "maybe", 1);
  assert_int_equal(store_open(&p->where, io_system(), NULL, &s, &e), ERR_INVAL);
  unsetenv("CKPT_S3_SIGN_BODY");
  assert_non_null(strstr(e.text, "CKPT_S3_SIGN_BODY"));
}

static void many_are_removed_at_once(void **state) {
  store *s = store_proxied(state);
  err e = {0};
  for (int i = 0; i < 20; i++) {
    char key[16];
    snprintf(key, sizeof key, "d/%d", i);
    assert_int_equal(s->ops->put(s, key, "x", 1, STORE_IF_ABSENT, NULL), 0);
  }
  store_proxy_rules("");
  if (s->ops->remove_prefix(s, "d", &e) < 0) fail_msg("%s", e.text);
  int first = store_proxy_asked("POST", "delete");
  assert_in_range(first, 1, 2); /* refused once, where it is */
  assert_int_equal(s->ops->put(s, "d/x", "x", 1, STORE_IF_ABSENT, NULL), 0);
  store_proxy_rules("");
  if (s->ops->remove_prefix(s, "d", &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(store_proxy_asked("POST", "delete"), 1); /* that is remembered */
  store_close(s);
}

static void a_document_is_replaced_by_its_tag(void **state) {
  store *s = store_proxied(state);
  char tag[STORE_TAG_MAX], later[STORE_TAG_MAX];
  buf text;
  err e = {0};
  buf_init(&text, 100);
  assert_int_equal(s->ops->put(s, "k", "one", 3, STORE_IF_ABSENT, NULL), 0);
  assert_int_equal(s->ops->get_tagged(s, "k", &text, tag, NULL), 0);
  if (s->ops->replace_if(s, "k", "two", 3, tag, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(s->ops->replace_if(s, "k", "three", 5, tag, NULL), ERR_CONFLICT);
  buf_clear(&text);
  assert_int_equal(s->ops->get_tagged(s, "k", &text, later, NULL), 0);
  assert_string_not_equal(tag, later);
  buf_free(&text);
  store_close(s);
}

#define PROMISE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest promises[] = {
      PROMISE(equal_bytes_of_the_same_save_are_done),
      PROMISE(other_bytes_or_another_save_are_not),
      PROMISE(what_1_0_has_put_is_read_back),
      PROMISE(parts_are_gone_on_with_by_their_sums),
      PROMISE(an_upload_that_1_0_began_is_not_gone_on_with),
      PROMISE(an_upload_of_another_save_makes_no_object_of_ours),
      PROMISE(a_sum_that_the_answer_leaves_out_is_asked_for),
      PROMISE(an_end_whose_answer_was_lost_is_success),
      PROMISE(bytes_that_change_on_their_way_are_sent_again),
      PROMISE(a_body_is_signed_or_not_and_nothing_else),
      PROMISE(many_are_removed_at_once),
      PROMISE(a_document_is_replaced_by_its_tag),
  };
  const char *sums = getenv("CKPT_TEST_S3_SUMS");
  if (!store_proxy_begin() || !sums) {
    puts("1..0 # SKIP spec/store/sums_s3_spec.sh runs it, against a server");
    return 0;
  }
  store_place_scheme = "s3";
  keeps_sums = strcmp(sums, "yes") == 0;
  return cmocka_run_group_tests_name(getenv("CKPT_TEST_S3_AS"), promises, NULL, NULL);
}
