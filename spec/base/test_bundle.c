#include "with_cmocka.h"

#include <string.h>

#include "base/bundle.h"

static void a_head_and_a_piece_come_back_as_they_were(void **unused) {
  unsigned char bytes[BUNDLE_HEAD], piece[BUNDLE_PIECE];
  const bundle_head head = {.kind = BUNDLE_LINK,
                            .mode = 0751,
                            .mtime_ns = -5,
                            .size = UINT64_MAX - 1,
                            .name = BUNDLE_NAME_MAX,
                            .target = 3};
  bundle_head back;
  bundle_put_head(bytes, &head);
  assert_int_equal(bundle_get_head(bytes, &back, NULL), 0);
  assert_int_equal(back.kind, head.kind);
  assert_int_equal(back.mode, head.mode);
  assert_int_equal(back.mtime_ns, head.mtime_ns);
  assert_true(back.size == head.size);
  assert_int_equal(back.name, head.name);
  assert_int_equal(back.target, head.target);
  bundle_put_piece(piece, (bundle_piece){.at = (uint64_t)1 << 40, .len = 0xfffffffe});
  assert_true(bundle_get_piece(piece).at == (uint64_t)1 << 40);
  assert_int_equal(bundle_get_piece(piece).len, 0xfffffffe);
}

static void numbers_have_their_least_significant_byte_first(void **unused) {
  unsigned char bytes[BUNDLE_COUNT];
  bundle_put_count(bytes, 0x01020304);
  assert_memory_equal(bytes, "\4\3\2\1", 4);
  assert_int_equal(bundle_get_count(bytes), 0x01020304);
}

static void what_is_no_head_is_refused_and_no_set_id_bit_passes(void **unused) {
  unsigned char bytes[BUNDLE_HEAD];
  bundle_head back;
  bundle_put_head(bytes, &(bundle_head){.mode = 07777});
  assert_int_equal(bundle_get_head(bytes, &back, NULL), 0);
  assert_int_equal(back.mode, 0777);
  bundle_put_head(bytes, &(bundle_head){.name = BUNDLE_NAME_MAX + 1});
  assert_int_equal(bundle_get_head(bytes, &back, NULL), ERR_FORMAT);
  bundle_put_head(bytes, &(bundle_head){.target = BUNDLE_NAME_MAX + 1});
  assert_int_equal(bundle_get_head(bytes, &back, NULL), ERR_FORMAT);
  bundle_put_head(bytes, &(bundle_head){0});
  bytes[0] = BUNDLE_END + 1;
  assert_int_equal(bundle_get_head(bytes, &back, NULL), ERR_FORMAT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_head_and_a_piece_come_back_as_they_were),
      cmocka_unit_test(numbers_have_their_least_significant_byte_first),
      cmocka_unit_test(what_is_no_head_is_refused_and_no_set_id_bit_passes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
