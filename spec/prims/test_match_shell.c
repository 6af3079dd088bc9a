#include "with_cmocka.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/json.h"
#include "prims/fs.h"
#include "prims/match.h"

static void a_star_and_a_question_mark_cross_slashes(void **state) {
  assert_true(match_shell("*.png", "a/b/c.png"));
  assert_true(match_shell("a?b", "a/b"));
  assert_true(match_shell("a[!x]b", "a/b"));
  assert_true(match_shell("*", ""));
  assert_true(match_shell("*", "new\nline"));
  assert_true(match_shell("**/x", "a/b/x"));
  assert_false(match_shell("**/x", "x"));
  assert_false(match_shell("", "a"));
  assert_true(match_shell("", ""));
  assert_false(match_shell("*.PNG", "a.png"));
  assert_false(match_shell("\\*", "*")); /* there is no escape */
  assert_false(match_shell("?", ""));
}

/* Answers of CPython 3.11's fnmatch.fnmatchcase: which of `texts` each pattern fits. */
static void sets_are_read_as_python_reads_them(void **state) {
  static const char *const texts[] = {"a", "b", "c", "d",    "z", "-", "]", "[", "!", "^", "\\",
                                      "é", "ü", "ö", "\x80", "&", "|", "~", "?", ".", "e"};
  enum { TEXTS = sizeof texts / sizeof texts[0] };
  static const char all[] = "abcdz-][!^\\éüö\x80&|~?.e";
  static const struct {
    const char *pattern, *fits;
  } rows[] = {
      {"[z-a]", ""},
      {"[!z-a]", all},
      {"[a-]", "a-"},
      {"[-a]", "a-"},
      {"[]", ""},
      {"[!]", ""},
      {"[]a]", "a]"},
      {"[!]a]", "bcdz-[!^\\éüö\x80&|~?.e"},
      {"[]-a]", "a]^"},
      {"[--a]", "a-][^\\?."},
      {"[a-b-c]", "abc-"},
      {"[a--c]", "c"},
      {"[^a]", "a^"},
      {"[\\]", "\\"},
      {"[a", ""},
      {"[[]", "["},
      {"[[a]", "a["},
      {"[?]", "?"},
      {"[é-ü]", "éüö"},
      {"[!é]", "abcdz-][!^\\üö\x80&|~?.e"},
      {"?", all},
      {"??", ""},
      {"[&&]", "&"},
      {"[a||b]", "ab|"},
      {"[!!]", "abcdz-][^\\éüö\x80&|~?.e"},
      {"[!-a]", "bcdz][!^\\éüö\x80&|~?.e"},
      {"[a-c-e]", "abc-e"},
      {"[---]", "-"},
      {"[--]", "-"},
      {"[-]", "-"},
      {"[a-b--]", "ab-"},
      {"[b--a]", "a"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    for (int t = 0; t < TEXTS; t++)
      if (match_shell(rows[i].pattern, texts[t]) != (strstr(rows[i].fits, texts[t]) != NULL))
        fail_msg("%s against %s: Python thinks otherwise", rows[i].pattern, texts[t]);
  assert_true(match_shell("[]", "[]"));
  assert_true(match_shell("[!]", "[!]"));
  assert_true(match_shell("[a", "[a"));
}

static void a_character_may_have_many_bytes_and_a_stray_byte_is_one(void **state) {
  assert_true(match_shell("caf?", "café"));
  assert_false(match_shell("caf??", "café"));
  assert_true(match_shell("?", "\xf0\x9f\x98\x80"));
  assert_true(match_shell("??", "\xf0\x9f"));           /* cut off */
  assert_true(match_shell("??", "\xc0\xaf"));           /* a slash, spelled too long */
  assert_true(match_shell("???", "\xed\xa0\x80"));      /* half of a pair */
  assert_true(match_shell("????", "\xf4\x90\x80\x80")); /* beyond the last code point */
  assert_true(match_shell("a\xff*", "a\xff"
                                    "b"));
  assert_true(match_shell("[\xff]", "\xff"));
  assert_false(match_shell("[ÿ]", "\xff")); /* U+00FF is not the byte */
  assert_true(match_shell("[!a]", "\xff"));
}

/* The system's, in the C locale, over characters of which both think the same. */
static void random_patterns_match_as_the_systems_fnmatch(void **state) {
  static const char letters[] = "ab/*?[]!-", texts[] = "ab/-";
  unsigned seed = 7, hits = 0;
  for (int i = 0; i < 200000; i++) {
    char pattern[10] = "", text[10] = "";
    int n = rand_r(&seed) % 9, m = rand_r(&seed) % 7;
    for (int k = 0; k < n; k++) pattern[k] = letters[(size_t)rand_r(&seed) % (sizeof letters - 1)];
    for (int k = 0; k < m; k++) text[k] = texts[(size_t)rand_r(&seed) % (sizeof texts - 1)];
    /* A '-' behind a range is where they part: the table above has those. */
    if (strchr(pattern, '[') && strstr(pattern, "-")) {
      char *dash = strchr(pattern, '-');
      if (strchr(dash + 1, '-')) continue;
    }
    bool want = fnmatch(pattern, text, FNM_NOESCAPE) == 0;
    hits += want;
    if (match_shell(pattern, text) != want)
      fail_msg("\"%s\" against \"%s\": the system says %d", pattern, text, want);
  }
  assert_true(hits > 1000);
}

static json_t *recorded(void) {
  buf text;
  buf_init(&text, 16 << 20);
  err e = {0};
  json_t *root = NULL;
  int rc = fs_read(io_system(), "spec/data/oracle/exclude_ray24.json", 16 << 20, &text, &e);
  if (rc == 0) root = json_loadb(text.data, text.len, 0, NULL);
  buf_free(&text);
  if (!root) fail_msg("the recording cannot be read: %s", e.text);
  return root;
}

/* pattern -> numbers of the candidates that it fits, as recorded from Python */
static void all_of_the_recorded_matrix_is_answered_alike(void **state) {
  json_t *root = recorded();
  json_t *candidates = json_object_get(root, "fnmatch_candidates");
  json_t *matches = json_object_get(root, "fnmatch_matches"), *row, *number;
  const char *pattern;
  size_t i, compared = 0;
  json_object_foreach(matches, pattern, row) {
    bool *want = calloc(json_array_size(candidates), sizeof *want);
    json_array_foreach(row, i, number) want[json_integer_value(number)] = true;
    for (i = 0; i < json_array_size(candidates); i++, compared++) {
      const char *text = json_string_value(json_array_get(candidates, i));
      if (match_shell(pattern, text) != want[i])
        fail_msg("\"%s\" against \"%s\" should be %d", pattern, text, want[i]);
    }
    free(want);
  }
  assert_int_equal(compared, 12 * json_array_size(candidates));
  assert_true(compared > 3000);
  json_decref(root);
}

static void no_pattern_can_hang_it(void **state) {
  static char pattern[4096], text[8192];
  for (size_t i = 0; i + 2 < sizeof pattern; i += 2) memcpy(pattern + i, "*a", 2);
  pattern[sizeof pattern - 2] = 'b';
  memset(text, 'a', sizeof text - 1);
  assert_false(match_shell(pattern, text));
  memset(pattern, '[', sizeof pattern - 1);
  assert_false(match_shell(pattern, text));
  pattern[0] = '*';
  memset(text, '[', sizeof text - 1);
  assert_true(match_shell(pattern, text));
}

static bool excluded(const char *pattern, const char *path) {
  const char *const patterns[] = {"none of all", pattern, NULL};
  return match_excluded(patterns, path);
}

static void an_excluded_directory_goes_with_all_below_it(void **state) {
  assert_true(excluded("./rank_*", "rank_0"));
  assert_true(excluded("./rank_*", "rank_0/f"));
  assert_true(excluded("./rank_*", "./rank_0/deep/f"));
  assert_true(excluded("rank_*", "rank_0/f"));
  assert_false(excluded("./rank_*", "a/rank_0/f"));
  assert_false(excluded("rank_*", "a/rank_0"));
  assert_true(excluded("*/rank_*", "a/rank_0/f"));
  assert_true(excluded("*/rank_*", "rank_0")); /* as "./rank_0" */
  assert_true(excluded("a/b", "a/b/c"));
  assert_true(excluded("./a/b", "a/b/c"));
  assert_false(excluded("a/b", "x/a/b"));
  assert_false(excluded("a/b", "a/bc"));
  assert_true(excluded("*.png", "deep/er/a.png"));
  assert_true(excluded("*.d", "x.d/f"));
}

static void nothing_is_excluded_by_no_pattern_or_the_empty_one(void **state) {
  const char *const none[] = {NULL};
  assert_false(match_excluded(NULL, "a"));
  assert_false(match_excluded(none, "a"));
  assert_false(excluded("", "a"));
  assert_false(excluded("*", ""));
  assert_true(excluded("*", "a"));
  assert_true(excluded("./*", ".hidden/x"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_star_and_a_question_mark_cross_slashes),
      cmocka_unit_test(sets_are_read_as_python_reads_them),
      cmocka_unit_test(a_character_may_have_many_bytes_and_a_stray_byte_is_one),
      cmocka_unit_test(random_patterns_match_as_the_systems_fnmatch),
      cmocka_unit_test(all_of_the_recorded_matrix_is_answered_alike),
      cmocka_unit_test(no_pattern_can_hang_it),
      cmocka_unit_test(an_excluded_directory_goes_with_all_below_it),
      cmocka_unit_test(nothing_is_excluded_by_no_pattern_or_the_empty_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
