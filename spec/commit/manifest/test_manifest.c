#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/manifest/manifest.h"
#include "manifest_make.h"

static void start(manifest *m, const char *unit) {
  manifest_init(m);
  m->unit = strdup(unit);
  assert_non_null(m->unit);
}

/* What sealing says to a directory unit with these files. */
static int seal_names(const char *const *names, size_t count) {
  manifest m;
  err e = {0};
  start(&m, "checkpoint-1");
  for (size_t i = 0; i < count; i++) add_file(&m, names[i], 1, i);
  int rc = manifest_seal(&m, &e);
  if (rc < 0) {
    assert_true(e.text[0] != 0);
    assert_int_equal(m.root.len, 0);
  }
  manifest_free(&m);
  return rc;
}

static int seal_name(const char *name) {
  return seal_names(&name, 1);
}

static void a_hostile_name_is_refused(void **state) {
  static const char *const names[] = {
      "",        "/",         "/etc/passwd", ".",
      "..",      "../x",      "a/../b",      "a/..",
      "a/.",     "./a",       "a//b",        "a/",
      "//a",     "a/./b",     "..//a",       "../../../../root/x",
      "a/b/../", "\xff/../x", MANIFEST_NAME, (MANIFEST_NAME "/x"),
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (seal_name(names[i]) != ERR_FORMAT) fail_msg("\"%s\" was not refused", names[i]);
  char *longer = malloc(4097);
  memset(longer, 'x', 4096);
  longer[4096] = 0;
  assert_int_equal(seal_name(longer), ERR_FORMAT);
  longer[4095] = 0;
  assert_int_equal(seal_name(longer), 0);
  free(longer);
}

static void an_odd_but_safe_name_is_taken(void **state) {
  static const char *const names[] = {
      "...",
      "..a",
      ".a",
      "a..",
      "a/...",
      "\xff\xfe",
      "a\nb",
      " ",
      "%",
      "%2F",
      "\\..\\x",
      "-rf",
      ("sub/" MANIFEST_NAME),
      ".ckpt",
      (MANIFEST_NAME "x"),
      "a/b/c/d/e/f/g/h",
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (seal_name(names[i]) != 0) fail_msg("\"%s\" was refused", names[i]);
}

static void nothing_lies_below_a_file_or_a_link(void **state) {
  assert_int_equal(seal_names((const char *const[]){"a", "a/b"}, 2), ERR_FORMAT);
  assert_int_equal(seal_names((const char *const[]){"a/b/c", "a!", "a-", "a", "a.", "a0"}, 6),
                   ERR_FORMAT);
  assert_int_equal(seal_names((const char *const[]){"a/b", "a/b/c/d", "z"}, 3), ERR_FORMAT);
  assert_int_equal(seal_names((const char *const[]){"a", "a!/b", "a0/b", "ab/c", "a-"}, 5), 0);
  manifest m;
  start(&m, "u");
  assert_non_null(manifest_add(&m, MANIFEST_LINK, "a", "/etc"));
  add_file(&m, "a/passwd", 1, 1);
  assert_int_equal(manifest_seal(&m, NULL), ERR_FORMAT);
  m.entries[0].type = MANIFEST_DIR; /* a directory with a target is nothing either */
  assert_int_equal(manifest_seal(&m, NULL), ERR_FORMAT);
  free(m.entries[0].target);
  m.entries[0].target = NULL;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  manifest_free(&m);
}

static void a_name_that_is_there_twice_is_refused(void **state) {
  assert_int_equal(seal_names((const char *const[]){"b", "a", "b"}, 3), ERR_FORMAT);
}

static void a_units_name_is_one_safe_component(void **state) {
  static const char *const names[] = {"", ".", "..", "a/b", "/a", "a/", "../a", MANIFEST_NAME};
  manifest m;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    start(&m, names[i]);
    assert_int_equal(manifest_seal(&m, NULL), ERR_FORMAT);
    manifest_free(&m);
  }
  char longer[257] = {0};
  memset(longer, 'u', 256);
  start(&m, longer);
  assert_int_equal(manifest_seal(&m, NULL), ERR_FORMAT);
  m.unit[255] = 0;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  manifest_free(&m);
  manifest_init(&m);
  assert_int_equal(manifest_seal(&m, NULL), ERR_INVAL);
  manifest_free(&m);
}

static int seal_kind(match_kind kind, const char *unit, const char *a, const char *b) {
  manifest m;
  start(&m, unit);
  m.kind = kind;
  if (a) add_file(&m, a, 1, 1);
  if (b) add_file(&m, b, 1, 2);
  int rc = manifest_seal(&m, NULL);
  manifest_free(&m);
  return rc;
}

static void a_file_or_a_group_names_nothing_beside_itself(void **state) {
  assert_int_equal(seal_kind(MATCH_FILE, "a.pt", "a.pt", NULL), 0);
  assert_int_equal(seal_kind(MATCH_FILE, "a.pt", NULL, NULL), ERR_FORMAT);
  assert_int_equal(seal_kind(MATCH_FILE, "a.pt", "b.pt", NULL), ERR_FORMAT);
  assert_int_equal(seal_kind(MATCH_FILE, "a.pt", "a.pt", "b.pt"), ERR_FORMAT);
  assert_int_equal(seal_kind(MATCH_GROUP, "ckpt-3", "ckpt-3.index", "ckpt-3.data-0"), 0);
  assert_int_equal(seal_kind(MATCH_GROUP, "ckpt-3", "ckpt-3.index", "ckpt-30.index"), ERR_FORMAT);
  assert_int_equal(seal_kind(MATCH_GROUP, "ckpt-3", "ckpt-3", NULL), ERR_FORMAT);
  assert_int_equal(seal_kind(MATCH_GROUP, "ckpt-3", "ckpt-3./x", NULL), ERR_FORMAT);
}

static void sizes_beyond_63_bits_are_refused(void **state) {
  manifest m;
  start(&m, "u");
  manifest_entry *at = add_file(&m, "a", 1, 1);
  at->size = (uint64_t)INT64_MAX + 1;
  assert_int_equal(manifest_seal(&m, NULL), ERR_LIMIT);
  m.entries[0].size = INT64_MAX;
  add_file(&m, "b", 1, 1);
  assert_int_equal(manifest_seal(&m, NULL), ERR_LIMIT);
  manifest_free(&m);
}

static void only_permission_bits_are_a_mode(void **state) {
  manifest m;
  make_small(&m, "u", 1);
  m.entries[0].mode = 0100644;
  assert_int_equal(manifest_seal(&m, NULL), ERR_INVAL);
  m.entries[0].mode = 07777;
  m.mode = 040755;
  assert_int_equal(manifest_seal(&m, NULL), ERR_INVAL);
  m.mode = 0755;
  m.step = -2;
  assert_int_equal(manifest_seal(&m, NULL), ERR_INVAL);
  m.step = INT64_MAX;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  manifest_free(&m);
}

static void blocks_that_do_not_make_the_files_digest_are_refused(void **state) {
  manifest m;
  start(&m, "u");
  add_file(&m, "a", 3 * (uint64_t)HASH_BLOCK, 1);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  m.entries[0].blocks[1].bytes[0] ^= 1;
  assert_int_equal(manifest_seal(&m, NULL), ERR_CORRUPT);
  free(m.entries[0].blocks);
  m.entries[0].blocks = NULL;
  assert_int_equal(manifest_seal(&m, NULL), ERR_INVAL);
  manifest_free(&m);
}

/* Changes one thing at a time; each must change the root. */
static void everything_in_the_table_changes_the_root(void **state) {
  enum { CASES = 12 };
  digest roots[CASES];
  for (int i = 0; i < CASES; i++) {
    manifest m;
    start(&m, i == 1 ? "v" : "u");
    if (i == 2) m.kind = MATCH_GROUP;
    m.step = i == 3 ? 5 : i == 4 ? 0 : MATCH_NO_STEP;
    manifest_entry *at = add_file(&m, i == 5 ? "u.b" : "u.a", i == 6 ? 2 : 1, i == 7 ? 2 : 1);
    at->mode = i == 8 ? 0600 : 0644;
    at->mtime_ns = i == 9 ? 1 : 0;
    assert_non_null(manifest_add(&m, MANIFEST_LINK, "u.l", i == 10 ? "y" : "x"));
    if (i == 11) {
      free(m.entries[1].target);
      m.entries[1].target = NULL;
      m.entries[1].type = MANIFEST_DIR;
    }
    assert_int_equal(manifest_seal(&m, NULL), 0);
    roots[i] = m.root;
    for (int k = 0; k < i; k++)
      if (digest_equal(&roots[k], &roots[i])) fail_msg("cases %d and %d have one root", k, i);
    manifest_free(&m);
  }
}

static void what_says_when_it_was_saved_does_not_change_the_root(void **state) {
  manifest a, b;
  make_small(&a, "u", 1);
  make_small(&b, "u", 1);
  b.created_ns = 5;
  b.mtime_ns = 6;
  b.mode = 0700;
  b.policy = strdup("other");
  assert_int_equal(manifest_seal(&b, NULL), 0);
  assert_true(digest_equal(&a.root, &b.root));
  manifest_free(&a);
  manifest_free(&b);
}

static void the_order_of_adding_does_not_matter(void **state) {
  manifest a, b;
  start(&a, "u");
  start(&b, "u");
  static const char *const names[] = {"z", "a/b", "a!", "\xff", "m"};
  for (size_t i = 0; i < 5; i++) add_file(&a, names[i], i, i);
  for (size_t i = 5; i-- > 0;) add_file(&b, names[i], i, i);
  assert_int_equal(manifest_seal(&a, NULL), 0);
  assert_int_equal(manifest_seal(&b, NULL), 0);
  assert_true(digest_equal(&a.root, &b.root));
  for (size_t i = 0; i < 5; i++) {
    const manifest_entry *at = manifest_find(&a, names[i]);
    assert_non_null(at);
    assert_string_equal(at->name, names[i]);
  }
  assert_null(manifest_find(&a, "a"));
  assert_null(manifest_find(&a, ""));
  assert_int_equal(manifest_bytes(&a), 0 + 1 + 2 + 3 + 4);
  assert_int_equal(manifest_files(&a), 5);
  manifest_free(&a);
  manifest_free(&b);
}

static void a_change_after_the_seal_breaks_it(void **state) {
  manifest m;
  make_small(&m, "u", 1);
  assert_int_equal(m.root.len, 16);
  assert_non_null(manifest_add(&m, MANIFEST_DIR, "d", NULL));
  assert_int_equal(m.root.len, 0);
  manifest_free(&m);
}

static void a_zeroed_manifest_can_be_freed(void **state) {
  manifest m = {0};
  manifest_free(&m);
  manifest_free(&m);
  assert_null(manifest_find(&m, "x"));
}

static void many_files_below_one_directory_are_checked_quickly(void **state) {
  manifest m;
  char name[64];
  start(&m, "u");
  for (int i = 0; i < 100000; i++) {
    snprintf(name, sizeof name, "d/%d", i);
    assert_non_null(manifest_add(&m, MANIFEST_LINK, name, "t"));
  }
  assert_int_equal(manifest_seal(&m, NULL), 0);
  manifest_free(&m);
}

static void must_lead(const char *name, const char *target, match_kind kind, manifest_lead lead) {
  manifest m;
  start(&m, "u");
  m.kind = kind;
  if (kind == MATCH_DIR) {
    add_file(&m, "a", 1, 1);
    add_file(&m, "d/b", 1, 1);
    add_file(&m, "d!", 1, 1);
    assert_non_null(manifest_add(&m, MANIFEST_LINK, "to-d", "d"));
    assert_non_null(manifest_add(&m, MANIFEST_LINK, "out", "/data"));
    assert_non_null(manifest_add(&m, MANIFEST_LINK, "again", name));
  } else {
    add_file(&m, "u.a", 1, 1);
  }
  assert_non_null(manifest_add(&m, MANIFEST_LINK, name, target));
  assert_int_equal(manifest_seal(&m, NULL), 0);
  manifest_lead found = manifest_link_leads(&m, manifest_find(&m, name));
  if (found != lead) fail_msg("%s -> %s: %d, not %d", name, target, found, lead);
  manifest_free(&m);
}

static void a_link_leads_where_the_names_of_the_manifest_say(void **state) {
  static const char *const within[] = {"a",   "d",         "d/b",       "to-d/b", "./d/../a",
                                       "out", "to-d/../a", "d/../to-d", ".",      "d//b"};
  static const char *const outside[] = {"/a", "..", "../u/a", "d/../..", "to-d/../../x", "out/x"};
  static const char *const nowhere[] = {"none", "d/none", "a/b", "l", "again", "to-d/none"};
  for (size_t i = 0; i < sizeof within / sizeof *within; i++)
    must_lead("l", within[i], MATCH_DIR, MANIFEST_LEADS_WITHIN);
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
    must_lead("l", outside[i], MATCH_DIR, MANIFEST_LEADS_OUT);
  for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
    must_lead("l", nowhere[i], MATCH_DIR, MANIFEST_LEADS_NOWHERE);
  must_lead("d/l", "../a", MATCH_DIR, MANIFEST_LEADS_WITHIN);
  must_lead("d/l", "../../a", MATCH_DIR, MANIFEST_LEADS_OUT);
  must_lead("u.l", "u.a", MATCH_GROUP, MANIFEST_LEADS_WITHIN);
  must_lead("u.l", "other", MATCH_GROUP, MANIFEST_LEADS_OUT);
}

/* Of three ranks: each a file of its own, and one of two of them, as far as that is told. */
static void make_ranked(manifest *m, match_kind kind, bool shared) {
  char name[] = "u.own-0";
  start(m, "u");
  m->kind = kind;
  m->world = 3;
  for (uint32_t i = 0; i < 3; i++) {
    name[6] = (char)('0' + i);
    manifest_entry *at = add_file(m, name, 10, i);
    at->alone = true;
    at->rank = i;
  }
  if (shared) assert_non_null(add_file(m, "u.shared", 10, 7));
  assert_int_equal(manifest_seal(m, NULL), 0);
}

static void a_part_is_what_the_rank_alone_had_and_what_several_had(void **state) {
  manifest m, part;
  make_ranked(&m, MATCH_DIR, true);
  for (uint32_t i = 0; i < 3; i++) {
    char own[] = "u.own-0";
    own[6] = (char)('0' + i);
    assert_int_equal(manifest_part(&m, i, &part, NULL), 0);
    assert_int_equal(part.count, 2);
    assert_non_null(manifest_find(&part, own));
    assert_non_null(manifest_find(&part, "u.shared"));
    assert_true(digest_equal(&part.root, &m.root));
    free(part.entries);
  }
  manifest_free(&m);
}

static void a_rank_that_is_told_no_file_gets_the_whole(void **state) {
  static const match_kind kinds[] = {MATCH_DIR, MATCH_GROUP};
  for (int i = 0; i < 2; i++) {
    manifest m, part;
    make_ranked(&m, kinds[i], false);
    m.entries[2].rank = 0; /* rank 2 had nothing of it, but a directory at most */
    if (kinds[i] == MATCH_DIR) assert_non_null(manifest_add(&m, MANIFEST_DIR, "v", NULL));
    assert_int_equal(manifest_seal(&m, NULL), 0);
    assert_int_equal(manifest_part(&m, 2, &part, NULL), 0);
    assert_int_equal(part.count, m.count);
    free(part.entries);
    assert_int_equal(manifest_part(&m, 0, &part, NULL), 0);
    assert_int_equal(part.count, kinds[i] == MATCH_DIR ? 3 : 2);
    free(part.entries);
    manifest_free(&m);
  }
}

static void parts_are_told_to_as_many_ranks_as_saved_it_alone(void **state) {
  manifest m;
  make_ranked(&m, MATCH_DIR, true);
  for (uint32_t world = 0; world < 6; world++)
    assert_int_equal(manifest_tells_parts(&m, world), world == 3);
  m.world = 0; /* of a version that did not tell it */
  for (uint32_t world = 0; world < 6; world++) assert_false(manifest_tells_parts(&m, world));
  manifest_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_hostile_name_is_refused),
      cmocka_unit_test(an_odd_but_safe_name_is_taken),
      cmocka_unit_test(nothing_lies_below_a_file_or_a_link),
      cmocka_unit_test(a_name_that_is_there_twice_is_refused),
      cmocka_unit_test(a_units_name_is_one_safe_component),
      cmocka_unit_test(a_file_or_a_group_names_nothing_beside_itself),
      cmocka_unit_test(sizes_beyond_63_bits_are_refused),
      cmocka_unit_test(only_permission_bits_are_a_mode),
      cmocka_unit_test(blocks_that_do_not_make_the_files_digest_are_refused),
      cmocka_unit_test(everything_in_the_table_changes_the_root),
      cmocka_unit_test(what_says_when_it_was_saved_does_not_change_the_root),
      cmocka_unit_test(the_order_of_adding_does_not_matter),
      cmocka_unit_test(a_change_after_the_seal_breaks_it),
      cmocka_unit_test(a_zeroed_manifest_can_be_freed),
      cmocka_unit_test(many_files_below_one_directory_are_checked_quickly),
      cmocka_unit_test(a_part_is_what_the_rank_alone_had_and_what_several_had),
      cmocka_unit_test(a_rank_that_is_told_no_file_gets_the_whole),
      cmocka_unit_test(parts_are_told_to_as_many_ranks_as_saved_it_alone),
      cmocka_unit_test(a_link_leads_where_the_names_of_the_manifest_say),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
