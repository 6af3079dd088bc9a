/* What the library names, in the words of the command line. */
#include "with_cmocka.h"

#include <stdlib.h>

#include "runner/cli/flags_named.h"

static void must_become(const char *text, const char *expected) {
  char *said = flags_named(text);
  assert_string_equal(said, expected);
  free(said);
}

static void an_option_becomes_its_flag_and_a_call_its_verb(void **state) {
  must_become("push it aside with `take_over`", "push it aside with --take-over");
  must_become("(`list` shows what is)", "(ckpt-lua ls shows what is)");
  must_become("`rank` and `world`", "--rank and --world");
  must_become("`rank_wait`", "--rank-wait");
  must_become("to remove: `collect.remove`", "to remove: gc --remove");
}

static void what_is_no_name_stays(void **state) {
  must_become("", "");
  must_become("list", "list");
  must_become("`", "`");
  must_become("`list", "`list");
  must_become("`lists` ``", "`lists` ``");
  must_become("``list`", "``list`");
}

static void a_name_within_a_word_is_somebody_s_own(void **state) {
  must_become("committed checkpoint-2`to`", "committed checkpoint-2`to`");
  must_become("no directory /data/`to`", "no directory /data/`to`");
  must_become("cannot run './`all`'", "cannot run './`all`'");
  must_become("`list`s", "`list`s");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_option_becomes_its_flag_and_a_call_its_verb),
      cmocka_unit_test(what_is_no_name_stays),
      cmocka_unit_test(a_name_within_a_word_is_somebody_s_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
