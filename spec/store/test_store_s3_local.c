/* What of the S3 store needs no server: names, times, buffers, what it refuses to open. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_s3.h"

static void keys_survive_the_way_into_a_bucket_and_back(void **state) {
  s3_store s = {.prefix = "team a/run"};
  char path[S3_PATH_MAX], back[STORE_KEY_MAX + 1];
  unsigned lot = 1;
  for (int round = 0; round < 20000; round++) {
    char key[40];
    size_t len = 1 + lot % 30;
    for (size_t i = 0; i < len; i++) {
      lot = lot * 1664525u + 1013904223u;
      key[i] =
          round % 2 ? "%25fF/a \xc3\xa9\xff\n.~+"[lot >> 24 & 15] : (char)(1 + (lot >> 24) % 255);
    }
    key[len] = 0;
    if (store_key_check(key, NULL) < 0) continue;
    assert_int_equal(s3_path(&s, key, path, NULL), 0);
    assert_true(strncmp(path, "team a/run/", 11) == 0);
    for (const char *at = path; *at; at++) assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
    assert_true(s3_key_of(&s, path, back));
    assert_string_equal(back, key);
  }
}

static void plain_names_stand_in_the_bucket_as_they_are(void **state) {
  s3_store s = {.prefix = ""};
  char path[S3_PATH_MAX];
  const char *plain[] = {"a/b c.pt", "epoch=1-step=2.ckpt", "\xc3\xa9/+(x)!'*", ".ckpt/log/0.json"};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(s3_path(&s, plain[i], path, NULL), 0);
    assert_string_equal(path, plain[i]);
  }
  assert_int_equal(s3_path(&s, "100%/\xff\n", path, NULL), 0);
  assert_string_equal(path, "100%25/%FF%0A");
}

static void keys_that_are_not_ours_are_no_keys(void **state) {
  s3_store s = {.prefix = "run"};
  char key[STORE_KEY_MAX + 1];
  const char *foreign[] = {"run",        "runs/a", "run/",   "run/a/",  "run/a//b", "run/%41",
                           "run/%c3%a9", "run/a%", "run/..", "run/%00", "other/a",  ""};
  for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
    assert_false(s3_key_of(&s, foreign[i], key));
  assert_true(s3_key_of(&s, "run/a", key));
}

static void told(s3_store *s, const char *prefix, store_spelling how) {
  assert_int_equal(s3_spell(&s->base, prefix, how, NULL), 0);
}

static void stands_at(s3_store *s, const char *key, const char *path) {
  char got[S3_PATH_MAX], back[STORE_KEY_MAX + 1];
  assert_int_equal(s3_path(s, key, got, NULL), 0);
  assert_string_equal(got, path);
  assert_true(s3_key_of(s, path, back));
  assert_string_equal(back, key);
}

static void names_stand_as_they_are_where_that_was_said(void **state) {
  s3_store s = {.prefix = "run"};
  told(&s, "a%/new", STORE_SPELT_PLAIN);
  told(&s, "theirs", STORE_SPELT_RAW);
  stands_at(&s, "a%/new/100%.txt", "run/a%25/new/100%.txt");
  stands_at(&s, "a%/new/a%20b/%41/low%2fcase", "run/a%25/new/a%20b/%41/low%2fcase");
  stands_at(&s, "a%/new/line\n", "run/a%25/new/%~line%0A");
  stands_at(&s, "a%/new/line%0A", "run/a%25/new/line%0A");
  stands_at(&s, "a%/new/%~line%0A", "run/a%25/new/%~%25~line%250A");
  stands_at(&s, "a%/new/caf\xe9%/x", "run/a%25/new/%~caf%E9%25/x");
  stands_at(&s, "a%/new", "run/a%25/new");
  stands_at(&s, "a%/newer/100%.txt", "run/a%25/newer/100%25.txt");
  stands_at(&s, "old/100%.txt", "run/old/100%25.txt");
  stands_at(&s, "theirs/caf%E9/%~/line\n", "run/theirs/caf%E9/%~/line\n");
  /* What lies within may be spelt otherwise again, and the last word counts. */
  told(&s, "a%/new/50%", STORE_SPELT_1);
  stands_at(&s, "a%/new/50%/100%.txt", "run/a%25/new/50%/100%25.txt");
  told(&s, "a%/new", STORE_SPELT_1);
  stands_at(&s, "a%/new/100%.txt", "run/a%25/new/100%25.txt");
  told(&s, "", STORE_SPELT_PLAIN);
  stands_at(&s, "100%.txt", "run/100%.txt");
  s3_forget_spelling(&s);
}

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Makes a name of what spellings are made of. */
static char *random_name(unsigned *lot) {
  static const char *const bits[] = {"%",  "~",    "%~",       "%2",  "5",   "%25", "A", "%0A",
                                     "\n", "\xff", "\xc3\xa9", "%C3", "%A9", "/x",  "a", "\x7f"};
  char name[80] = "";
  unsigned count = 1 + (*lot >> 20) % 6;
  for (unsigned i = 0; i < count; i++) {
    *lot = *lot * 1664525u + 1013904223u;
    const char *bit = bits[*lot >> 28];
    memcpy(name + strlen(name), bit, strlen(bit) + 1);
  }
  return strdup(name);
}

static void no_two_names_are_spelt_alike_and_each_comes_back(void **state) {
  enum { NAMES = 20000 };
  static const store_spelling all[] = {STORE_SPELT_1, STORE_SPELT_PLAIN};
  char **names = calloc(NAMES, sizeof *names), **paths = calloc(NAMES, sizeof *paths);
  unsigned lot = 7;
  size_t count = 0, kept = 0;
  while (count < NAMES) {
    names[count] = random_name(&lot);
    if (store_key_check(names[count], NULL) == 0)
      count++;
    else
      free(names[count]);
  }
  qsort((void *)names, NAMES, sizeof *names, by_bytes);
  for (size_t i = 0; i < NAMES; i++) {
    if (kept && strcmp(names[kept - 1], names[i]) == 0)
      free(names[i]);
    else
      names[kept++] = names[i];
  }
  assert_true(kept > 5000);
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    s3_store s = {.prefix = "p"};
    told(&s, "dir", all[k]);
    for (size_t i = 0; i < kept; i++) {
      char key[STORE_KEY_MAX], path[S3_PATH_MAX], back[STORE_KEY_MAX + 1];
      snprintf(key, sizeof key, "dir/%s", names[i]);
      assert_int_equal(s3_path(&s, key, path, NULL), 0);
      for (const char *at = path; *at; at++) assert_true((unsigned char)*at >= 0x20);
      assert_true(s3_key_of(&s, path, back));
      assert_string_equal(back, key);
      paths[i] = strdup(path);
    }
    qsort((void *)paths, kept, sizeof *paths, by_bytes);
    for (size_t i = 1; i < kept; i++) assert_string_not_equal(paths[i - 1], paths[i]);
    for (size_t i = 0; i < kept; i++) free(paths[i]);
    s3_forget_spelling(&s);
  }
  for (size_t i = 0; i < kept; i++) free(names[i]);
  free((void *)names);
  free((void *)paths);
}

static void times_of_listings_and_headers_are_read(void **state) {
  const int64_t s = 1000000000;
  assert_int_equal(s3_time("1970-01-01T00:00:00.000Z"), 0);
  assert_int_equal(s3_time("2009-10-12T17:50:30.000Z"), 1255369830 * s);
  assert_int_equal(s3_time("Mon, 12 Oct 2009 17:50:30 GMT"), 1255369830 * s);
  assert_int_equal(s3_time("2024-02-29T23:59:59Z"), 1709251199 * s);
  assert_int_equal(s3_time("Fri, 01 Mar 2024 00:00:00 GMT"), 1709251200 * s);
  assert_int_equal(s3_time("2100-03-01T00:00:00Z"), INT64_C(4107542400) * s);
  const char *bad[] = {"", "yesterday", "2024-13-01T00:00:00Z", "Fri, 01 Mai 2024 00:00:00 GMT",
                       "99999-01-01T00:00:00Z"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(s3_time(bad[i]), 0);
}

static void an_etag_loses_its_quotes_and_a_monster_is_none(void **state) {
  char out[S3_ETAG_MAX], monster[S3_ETAG_MAX + 10];
  s3_etag("\"abc-2\"", out);
  assert_string_equal(out, "abc-2");
  s3_etag("abc", out);
  assert_string_equal(out, "abc");
  s3_etag("\"", out);
  assert_string_equal(out, "\"");
  memset(monster, 'a', sizeof monster);
  monster[sizeof monster - 1] = 0;
  s3_etag(monster, out);
  assert_string_equal(out, "");
}

static void buffers_are_bounded_but_for_the_first_of_a_writer(void **state) {
  void *held[S3_BUFFERS + 1];
  s3_buffers_join();
  for (int i = 0; i < S3_BUFFERS; i++) assert_non_null(held[i] = s3_buffer_take(S3_PART, false));
  assert_null(s3_buffer_take(S3_PART, false));
  assert_non_null(held[S3_BUFFERS] = s3_buffer_take(S3_PART, true));
  memset(held[S3_BUFFERS], 1, S3_PART);
  s3_buffer_give(held[0], S3_PART);
  assert_null(s3_buffer_take(S3_PART, false)); /* still one more than there are */
  for (int i = 1; i <= S3_BUFFERS; i++) s3_buffer_give(held[i], S3_PART);
  held[0] = s3_buffer_take(S3_PART, false);
  assert_non_null(held[0]);
  s3_buffer_give(held[0], S3_PART);
  s3_buffers_leave();
}

static void a_part_larger_than_all_buffers_counts_as_all(void **state) {
  const size_t huge = (size_t)(S3_BUFFERS + 4) * S3_PART;
  s3_buffers_join();
  void *one = s3_buffer_take(huge, false);
  assert_non_null(one);
  assert_null(s3_buffer_take(S3_PART, false));
  s3_buffer_give(one, huge);
  void *next = s3_buffer_take(S3_PART, false);
  assert_non_null(next);
  s3_buffer_give(next, S3_PART);
  s3_buffers_leave();
}

static int open_at(const char *text, err *e) {
  uri where;
  store *s = NULL;
  int rc = uri_parse(text, &where, e);
  if (rc == 0) rc = store_open(&where, io_system(), NULL, &s, e);
  store_close(s);
  return rc;
}

static void what_is_no_bucket_is_refused_with_its_name(void **state) {
  const char *bad[] = {"s3://ab/x",      "s3://-bucket/x",  "s3://bucket-/x",
                       "s3://buc ket/x", "s3://bucket?1/y", "s3://b%41cket/x"};
  setenv("AWS_ACCESS_KEY_ID", "key", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    err e = {0};
    assert_int_equal(open_at(bad[i], &e), ERR_INVAL);
    assert_non_null(strstr(e.text, "bucket's name"));
  }
  assert_int_equal(open_at("s3://bucket.with-dots.1/a/b", NULL), 0);
}

static void an_endpoint_that_is_none_is_told(void **state) {
  uri where;
  store *s;
  err e = {0};
  setenv("AWS_ENDPOINT_URL", "ftp://host", 1);
  assert_int_equal(uri_parse("s3://bucket/a", &where, NULL), 0);
  int rc = store_open(&where, io_system(), NULL, &s, &e);
  if (rc == 0) rc = s->ops->exists(s, &e);
  assert_true(rc < 0 && rc != ERR_NOSTORE);
  assert_non_null(strstr(e.text, "http"));
  store_close(s);
  unsetenv("AWS_ENDPOINT_URL");
}

/* ---- what an earlier try left ---- */

static size_t part_size_of(const uint64_t *sizes, size_t count, uint64_t whole) {
  s3_left left = {.count = count, .parts = calloc(count + 1, sizeof *left.parts)};
  assert_non_null(left.parts);
  for (size_t i = 0; i < count; i++) {
    left.parts[i].size = sizes[i];
    if (sizes[i]) memcpy(left.parts[i].etag, "e", 2); /* 0: that one is missing */
  }
  size_t part = s3_left_part_size(&left, whole);
  s3_left_free(&left);
  return part;
}

static void an_upload_is_gone_on_with_in_parts_of_its_own_size(void **state) {
  enum { M = 1 << 20 };
  const uint64_t even[] = {6 * M, 6 * M, 0, 6 * M}, last[] = {6 * M, 6 * M, 3 * M};
  const uint64_t uneven[] = {6 * M, 7 * M}, small[] = {M, M}, huge[] = {65 * M};
  assert_int_equal(part_size_of(even, 4, 40 * M), 6 * M);
  assert_int_equal(part_size_of(last, 3, 15 * M), 6 * M);
  assert_int_equal(part_size_of(uneven, 2, 40 * M), 0);
  assert_int_equal(part_size_of(small, 2, 40 * M), 0);
  assert_int_equal(part_size_of(huge, 1, 200 * M), 0);
  assert_int_equal(part_size_of(even, 1, (uint64_t)6 * M * 10001), 0);
  assert_int_equal(part_size_of(NULL, 0, 40 * M), 0);
}

int main(void) {
  const struct CMUnitTest promises[] = {
      cmocka_unit_test(keys_survive_the_way_into_a_bucket_and_back),
      cmocka_unit_test(plain_names_stand_in_the_bucket_as_they_are),
      cmocka_unit_test(keys_that_are_not_ours_are_no_keys),
      cmocka_unit_test(names_stand_as_they_are_where_that_was_said),
      cmocka_unit_test(no_two_names_are_spelt_alike_and_each_comes_back),
      cmocka_unit_test(times_of_listings_and_headers_are_read),
      cmocka_unit_test(an_upload_is_gone_on_with_in_parts_of_its_own_size),
      cmocka_unit_test(an_etag_loses_its_quotes_and_a_monster_is_none),
      cmocka_unit_test(buffers_are_bounded_but_for_the_first_of_a_writer),
      cmocka_unit_test(a_part_larger_than_all_buffers_counts_as_all),
      cmocka_unit_test(what_is_no_bucket_is_refused_with_its_name),
      cmocka_unit_test(an_endpoint_that_is_none_is_told),
  };
  return cmocka_run_group_tests(promises, NULL, NULL);
}
