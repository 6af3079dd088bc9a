#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "commit/metadata.h"
#include "store_place.h"

static const char saved[] = "{\"note\":\"as saved\"}";

static void make_record(manifest *m, const char *text) {
  manifest_init(m);
  m->unit = strdup("u");
  manifest_entry *at = manifest_add(m, MANIFEST_FILE, MANIFEST_METADATA, NULL);
  assert_non_null(at);
  at->size = strlen(text);
  at->mtime_ns = 1234567;
  at->blocks = calloc(1, sizeof *at->blocks);
  if (*text) assert_int_equal(hash_bytes(m->hash, text, strlen(text), at->blocks, NULL), 0);
  assert_int_equal(hash_of_blocks(m->hash, at->blocks, *text ? 1 : 0, &at->file, NULL), 0);
  assert_int_equal(manifest_seal(m, NULL), 0);
  assert_true(m->entries[0].outside);
}

/* Saves `first`, replaces it by `then` (NULL: not), and reads what is there. */
static int read_after(store_place *p, const char *first, const char *then, buf *out,
                      int64_t *mtime_ns, err *e) {
  manifest m;
  make_record(&m, first);
  assert_int_equal(store_put_text(p->s, "u/.metadata.json", first, STORE_IF_ABSENT), 0);
  if (then) assert_int_equal(store_put_text(p->s, "u/.metadata.json", then, STORE_REPLACE), 0);
  buf_init(out, MANIFEST_METADATA_MAX);
  int rc = metadata_read(p->s, "u/.metadata.json", m.hash, &m.entries[0], out, mtime_ns, e);
  manifest_free(&m);
  return rc;
}

static void what_was_saved_comes_back_with_its_time(void **state) {
  buf text;
  int64_t when = 0;
  assert_int_equal(read_after(*state, saved, NULL, &text, &when, NULL), 0);
  assert_string_equal(text.data, saved);
  assert_int_equal(when, 1234567);
  buf_free(&text);
}

static void an_empty_one_comes_back(void **state) {
  buf text;
  int64_t when = 0;
  assert_int_equal(read_after(*state, "", NULL, &text, &when, NULL), 0);
  assert_int_equal(text.len, 0);
  assert_int_equal(when, 1234567);
  buf_free(&text);
}

static void what_was_replaced_comes_as_it_is_now_and_is_no_damage(void **state) {
  buf text;
  store_place *p = *state;
  store_object object;
  int64_t when = 0;
  assert_int_equal(read_after(p, saved, "{\"note\":\"later\"}", &text, &when, NULL), 0);
  assert_string_equal(text.data, "{\"note\":\"later\"}");
  assert_int_equal(p->s->ops->head(p->s, "u/.metadata.json", &object, NULL), 0);
  assert_int_equal(when, object.mtime_ns);
  buf_free(&text);
}

static void one_that_is_missing_or_too_large_is_damage(void **state) {
  store_place *p = *state;
  buf text;
  int64_t when = 0;
  err e = {0};
  char *large = malloc(MANIFEST_METADATA_MAX + 2);
  memset(large, ' ', MANIFEST_METADATA_MAX + 1);
  large[MANIFEST_METADATA_MAX + 1] = 0;
  assert_int_equal(read_after(p, saved, large, &text, &when, &e), ERR_CORRUPT);
  assert_int_equal(text.len, 0);
  buf_free(&text);
  assert_int_equal(p->s->ops->remove(p->s, "u/.metadata.json", NULL), 0);
  manifest m;
  make_record(&m, saved);
  buf_init(&text, 100);
  assert_int_equal(metadata_read(p->s, "u/.metadata.json", m.hash, &m.entries[0], &text, &when, &e),
                   ERR_CORRUPT);
  assert_non_null(strstr(e.text, "missing"));
  manifest_free(&m);
  buf_free(&text);
  free(large);
}

#define IN_A_STORE(f) cmocka_unit_test_setup_teardown(f, store_place_setup, store_place_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_STORE(what_was_saved_comes_back_with_its_time),
      IN_A_STORE(an_empty_one_comes_back),
      IN_A_STORE(what_was_replaced_comes_as_it_is_now_and_is_no_damage),
      IN_A_STORE(one_that_is_missing_or_too_large_is_damage),
  };
  int failed = 0;
  static const char *const schemes[] = {"mem", "file"};
  for (size_t i = 0; i < 2; i++) {
    store_place_scheme = schemes[i];
    failed += cmocka_run_group_tests(tests, NULL, NULL);
  }
  return failed;
}
