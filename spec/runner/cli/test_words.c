#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "runner/cli/words.h"

static const char *words(const char *text, const char *path) {
  static char joined[512];
  word_list list = {0};
  int rc = words_split(&list, text, path);
  *joined = 0;
  for (size_t i = 0; i < list.count; i++) {
    snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "<%s>", list.items[i]);
  }
  word_list_free(&list);
  return rc == 0 ? joined : rc == -1 ? "open quote" : "memory";
}

static void a_resume_argument_becomes_words(void **state) {
  assert_string_equal(words("--resume {}", "/a b/c"), "<--resume></a b/c>");
  assert_string_equal(words("  --resume={}\t-x ", "/p"), "<--resume=/p><-x>");
  assert_string_equal(words("'a b' \"c d\" e\\ f", "/p"), "<a b><c d><e f>");
  assert_string_equal(words("a'b'\"c\"", "/p"), "<abc>");
  assert_string_equal(words("'' \"\"", "/p"), "<><>");
  assert_string_equal(words("'a\\b' \"q\\\"\\\\ \\n\"", "/p"), "<a\\b><q\"\\ \\n>");
  assert_string_equal(words("\"ckpt='{}'\" {}{}", "/p"), "<ckpt='/p'></p/p>");
  assert_string_equal(words("", "/p"), "");
  assert_string_equal(words(" \t\n", "/p"), "");
  assert_string_equal(words("{ } {x}", "/p"), "<{><}><{x}>");
  assert_string_equal(words("end\\", "/p"), "<end\\>");
}

static void a_path_is_never_split_or_read_as_quotes(void **state) {
  assert_string_equal(words("{}", "/a 'b\" {} \\c"), "</a 'b\" {} \\c>");
}

static void an_open_quote_is_a_mistake(void **state) {
  assert_string_equal(words("a 'b", "/p"), "open quote");
  assert_string_equal(words("\"b'", "/p"), "open quote");
}

static void only_near_words_are_suggested(void **state) {
  static const char *const verbs[] = {"run", "watch", "restore", "ls"};
  assert_string_equal(words_nearest("wacth", verbs, 4), "watch");
  assert_string_equal(words_nearest("restor", verbs, 4), "restore");
  assert_null(words_nearest("frobnicate", verbs, 4));
  assert_null(words_nearest("xy", verbs, 4));
  char endless[4096];
  memset(endless, 'r', sizeof endless - 1);
  endless[sizeof endless - 1] = 0;
  assert_null(words_nearest(endless, verbs, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_resume_argument_becomes_words),
      cmocka_unit_test(a_path_is_never_split_or_read_as_quotes),
      cmocka_unit_test(an_open_quote_is_a_mistake),
      cmocka_unit_test(only_near_words_are_suggested),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
