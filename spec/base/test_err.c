#include "with_cmocka.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void every_code_is_negative_and_has_a_name_a_text_and_a_class(void **state) {
#define X(name, number, class, text)                                                               \
  assert_true(ERR_##name == (number) && (number) < 0);                                             \
  assert_string_equal(err_name(ERR_##name), #name);                                                \
  assert_string_equal(err_text(ERR_##name), text);                                                 \
  assert_int_equal(err_class_of(ERR_##name), ERR_CLASS_##class);
  ERR_MAP(X)
#undef X
}

static void no_two_codes_share_a_number(void **state) {
  static const int codes[] = {
#define X(name, number, class, text) number,
      ERR_MAP(X)
#undef X
  };
  for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
    for (size_t j = 0; j < i; j++) assert_int_not_equal(codes[i], codes[j]);
}

static void success_and_unknown_codes_have_names_too(void **state) {
  assert_string_equal(err_name(0), "OK");
  assert_int_equal(err_class_of(0), ERR_CLASS_NONE);
  assert_string_equal(err_name(-999), "UNKNOWN");
  assert_string_equal(err_name(7), "UNKNOWN");
  assert_int_equal(err_class_of(-999), ERR_CLASS_PERMANENT);
  assert_string_equal(err_class_name(ERR_CLASS_NONE), "none");
  assert_string_equal(err_class_name(ERR_CLASS_RETRYABLE), "retryable");
  assert_string_equal(err_class_name(ERR_CLASS_PERMANENT), "permanent");
  assert_string_equal(err_class_name(ERR_CLASS_FATAL), "fatal");
}

static void set_returns_the_code_with_and_without_a_place_for_the_text(void **state) {
  err e = {.sys = 5};
  assert_int_equal(err_set(&e, ERR_HELD, "%s is held by %d", "/x", 7), ERR_HELD);
  assert_int_equal(e.code, ERR_HELD);
  assert_int_equal(e.sys, 0);
  assert_string_equal(e.text, "/x is held by 7");
  assert_int_equal(err_set(NULL, ERR_HELD, "x"), ERR_HELD);
  assert_int_equal(err_sys(NULL, ENOENT, "x"), ERR_NOENT);
}

static void a_system_error_keeps_its_errno_whatever_its_sign(void **state) {
  err a = {0}, b = {0};
  assert_int_equal(err_sys(&a, ENOSPC, "write %s", "/x"), ERR_NOSPACE);
  assert_int_equal(err_sys(&b, -ENOSPC, "write %s", "/x"), ERR_NOSPACE);
  assert_string_equal(a.text, "write /x: No space left on device; free space or inodes there");
  assert_string_equal(a.text, b.text);
  assert_int_equal(a.sys, ENOSPC);
  assert_int_equal(b.sys, ENOSPC);
}

static void a_failure_without_an_errno_is_never_success(void **state) {
  err e = {0};
  assert_int_equal(err_sys(&e, 0, "read"), ERR_INTERNAL);
  assert_int_equal(err_sys(NULL, 0, "read"), ERR_INTERNAL);
}

static void errnos_become_the_codes_that_say_what_to_do(void **state) {
  static const struct {
    int sys, code;
  } rows[] = {
      {ENOENT, ERR_NOENT},      {ENOTDIR, ERR_NOENT},
      {EEXIST, ERR_EXISTS},     {ENOTEMPTY, ERR_EXISTS},
      {EACCES, ERR_ACCESS},     {EPERM, ERR_ACCESS},
      {EROFS, ERR_ACCESS},      {ENOSPC, ERR_NOSPACE},
      {EDQUOT, ERR_NOSPACE},    {ENOMEM, ERR_NOMEM},
      {EINVAL, ERR_INVAL},      {ENAMETOOLONG, ERR_INVAL},
      {EXDEV, ERR_UNSUPPORTED}, {ENOSYS, ERR_UNSUPPORTED},
      {EMFILE, ERR_IO},         {ESTALE, ERR_IO},
      {ETIMEDOUT, ERR_TIMEOUT}, {EIO, ERR_IO},
      {12345, ERR_IO},          {0, ERR_OK},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(err_code_of_errno(rows[i].sys), rows[i].code);
    assert_int_equal(err_code_of_errno(-rows[i].sys), rows[i].code);
  }
}

static void a_text_that_is_too_long_is_cut(void **state) {
  struct {
    err e;
    char after[8];
  } guarded = {.after = "intact"};
  char path[3 * ERR_TEXT_MAX];
  memset(path, 'p', sizeof path - 1);
  path[sizeof path - 1] = 0;
  err_set(&guarded.e, ERR_IO, "%s", path);
  assert_int_equal(strlen(guarded.e.text), ERR_TEXT_MAX - 1);
  assert_string_equal(guarded.after, "intact");
}

static void the_reason_survives_a_path_that_is_too_long(void **state) {
  err e = {0};
  char path[3 * ERR_TEXT_MAX];
  memset(path, 'p', sizeof path - 1);
  path[sizeof path - 1] = 0;
  err_sys(&e, EACCES, "open %s", path);
  assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
  assert_non_null(strstr(e.text, "p: Permission denied"));
  err_wrap(&e, "%s", path);
  assert_int_equal(strlen(e.text), ERR_TEXT_MAX - 1);
  assert_non_null(strstr(e.text, "p: open ppp"));
}

static void wrap_puts_the_place_in_front_and_keeps_code_and_errno(void **state) {
  err e = {0};
  err_sys(&e, ENOENT, "open x");
  assert_int_equal(err_wrap(&e, "restore %d", 7), ERR_NOENT);
  assert_string_equal(e.text, "restore 7: open x: No such file or directory");
  assert_int_equal(e.code, ERR_NOENT);
  assert_int_equal(e.sys, ENOENT);
  assert_int_equal(err_wrap(NULL, "x"), ERR_INTERNAL);
}

static void the_old_text_may_be_an_argument_of_the_new_one(void **state) {
  err e = {0};
  err_set(&e, ERR_IO, "inner");
  err_set(&e, ERR_FORMAT, "outer (%s)", e.text);
  assert_string_equal(e.text, "outer (inner)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_code_is_negative_and_has_a_name_a_text_and_a_class),
      cmocka_unit_test(no_two_codes_share_a_number),
      cmocka_unit_test(success_and_unknown_codes_have_names_too),
      cmocka_unit_test(set_returns_the_code_with_and_without_a_place_for_the_text),
      cmocka_unit_test(a_system_error_keeps_its_errno_whatever_its_sign),
      cmocka_unit_test(a_failure_without_an_errno_is_never_success),
      cmocka_unit_test(errnos_become_the_codes_that_say_what_to_do),
      cmocka_unit_test(a_text_that_is_too_long_is_cut),
      cmocka_unit_test(the_reason_survives_a_path_that_is_too_long),
      cmocka_unit_test(wrap_puts_the_place_in_front_and_keeps_code_and_errno),
      cmocka_unit_test(the_old_text_may_be_an_argument_of_the_new_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
