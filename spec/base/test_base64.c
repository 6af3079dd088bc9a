#include "with_cmocka.h"

#include <string.h>

#include "base/base64.h"

static void encodes(const char *bytes, size_t len, bool url, const char *text) {
  buf b;
  buf_init(&b, 100);
  base64_encode(bytes, len, url, &b);
  assert_string_equal(b.data ? b.data : "", text);
  buf_free(&b);
}

static void bytes_become_text_as_the_rfc_has_it(void **state) {
  encodes("", 0, false, "");
  encodes("f", 1, false, "Zg==");
  encodes("fo", 2, false, "Zm8=");
  encodes("foobar", 6, false, "Zm9vYmFy");
  encodes("\xfb\xff\xbf", 3, false, "+/+/");
  encodes("\xfb\xff\xbf", 3, true, "-_-_");
  encodes("f", 1, true, "Zg");
  encodes("fo", 2, true, "Zm8");
}

static void text_becomes_bytes_and_what_is_none_is_refused(void **state) {
  uint8_t out[8];
  size_t len;
  assert_true(base64_decode("Zm9vYmFy\n", out, sizeof out, &len));
  assert_int_equal(len, 6);
  assert_memory_equal(out, "foobar", 6);
  assert_true(base64_decode("Zg==", out, sizeof out, &len));
  assert_int_equal(len, 1);
  assert_true(base64_decode("Zm9vYmFyZm8=", out, 8, &len));
  assert_int_equal(len, 8);
  static const char *const bad[] = {"",     "Zg",   "Zg=",  "Z===",         "Zm9v!mFy",
                                    "Zm=v", "=Zm9", "====", "Zm9vYmFyZm9v", "Zm9v\nZm9v"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (base64_decode(bad[i], out, sizeof out, &len)) fail_msg("\"%s\" was taken", bad[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_become_text_as_the_rfc_has_it),
      cmocka_unit_test(text_becomes_bytes_and_what_is_none_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
