#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/parts.h"
#include "manifest_make.h"
#include "world.h"

enum { WORLD = 3 };

typedef struct scene {
  world *w;
  store *s;
  runlog *log;
  ranks ranks[WORLD];
  part part[WORLD];
} scene;

static scene scene_new(const char *scheme) {
  scene c = {.w = world_new(scheme, world_io())};
  c.s = c.w->env.store;
  c.log = world_begin(c.s, "", "launch-1");
  return c;
}

/* The parts point into the scene: it does not move any more. */
static void open_attempt(scene *c, const char *unit) {
  uint64_t n;
  assert_int_equal(runlog_attempt_begin(c->log, unit, &n, NULL), 0);
  for (uint32_t i = 0; i < WORLD; i++) {
    c->ranks[i] = (ranks){.rank = i, .world = WORLD, .launch = "launch-1"};
    c->part[i] = (part){.attempt = n, .term = runlog_view(c->log)->term.n, .ranks = &c->ranks[i]};
  }
}

static void scene_free(scene *c) {
  runlog_close(c->log);
  world_free(c->w);
}

/* A table of one's own file and one that all have. */
static void make_table(manifest *m, uint32_t rank, uint64_t shared_seed) {
  char name[32];
  manifest_init(m);
  m->unit = strdup("u");
  m->created_ns = 1000 + rank;
  m->step = 5;
  m->policy = strdup(rank ? "another" : "first");
  m->left_out = rank;
  m->left_here = rank / 2;
  assert_true(manifest_left_note(&m->left_names, rank % 2 ? "odd" : "even"));
  snprintf(name, sizeof name, "own-%u", rank);
  assert_non_null(add_file(m, name, 100 + rank, rank + 1));
  assert_non_null(add_file(m, "sub/shared", 7, shared_seed));
  assert_non_null(manifest_add(m, MANIFEST_DIR, "empty", NULL));
  assert_non_null(manifest_add(m, MANIFEST_LINK, "link", "own-0"));
  for (size_t i = 0; i < m->count; i++) m->entries[i].mtime_ns = rank; /* may differ */
  assert_int_equal(manifest_seal(m, NULL), 0);
}

static void put_all(scene *c) {
  for (uint32_t i = 0; i < WORLD; i++) {
    manifest m;
    err e = {0};
    make_table(&m, i, 42);
    if (parts_put(c->s, c->log, &c->part[i], &m, &e) < 0) fail_msg("%s", e.text);
    manifest_free(&m);
  }
}

/* The records of so many ranks, but of one. */
static void put_many(const scene *c, uint32_t world, uint32_t but) {
  char place[STORE_KEY_MAX], key[STORE_KEY_MAX + 16];
  assert_int_equal(runlog_key_parts(c->log, c->part[0].attempt, c->part[0].term, place, NULL), 0);
  assert_int_equal(c->s->ops->remove_prefix(c->s, place, NULL), 0);
  for (uint32_t i = 0; i < world; i++) {
    snprintf(key, sizeof key, "%s/%u", place, i);
    if (i != but) assert_int_equal(c->s->ops->put(c->s, key, "", 0, STORE_REPLACE, NULL), 0);
  }
}

static void a_look_for_all_of_many_ends_at_the_first_that_is_missing(void **state) {
  const uint32_t worlds[] = {1001, 1111, 1987}, missing[] = {0, 1, 10, 99, 109, 110, 999, 1000};
  for (int s = 0; s < 2; s++) {
    scene c = scene_new(world_schemes[s]);
    parts_seen seen;
    open_attempt(&c, "u");
    for (size_t k = 0; k < 3; k++) {
      c.ranks[0].world = worlds[k];
      put_many(&c, worlds[k], worlds[k]);
      assert_int_equal(parts_look_for_all(c.s, c.log, &c.part[0], &seen, NULL), 0);
      assert_int_equal(seen.count, worlds[k]);
      parts_seen_free(&seen);
    }
    for (size_t k = 0; k < sizeof missing / sizeof *missing; k++) {
      put_many(&c, worlds[2], missing[k]);
      assert_int_equal(parts_look_for_all(c.s, c.log, &c.part[0], &seen, NULL), 0);
      if (missing[k] == 1) assert_int_equal(seen.count, 1);
      assert_true(seen.count <= worlds[2] - 1); /* 999 is the last text */
      parts_seen_free(&seen);
      assert_int_equal(parts_look(c.s, c.log, &c.part[0], &seen, NULL), 0);
      assert_int_equal(seen.count, worlds[2] - 1);
      parts_seen_free(&seen);
    }
    scene_free(&c);
  }
}

static void who_sees_all_parts_knows_alike_whose_is_the_newest(void **state) {
  for (int s = 0; s < 2; s++) {
    scene c = scene_new(world_schemes[s]);
    parts_seen seen;
    open_attempt(&c, "u");
    put_all(&c); /* rank 2 comes last; where times are coarse it is the highest of equal ones */
    for (uint32_t i = 0; i < WORLD; i++) {
      assert_int_equal(parts_look(c.s, c.log, &c.part[i], &seen, NULL), 0);
      assert_int_equal(seen.count, WORLD);
      assert_int_equal(seen.newest, WORLD - 1);
      parts_seen_free(&seen);
    }
    scene_free(&c);
  }
}

static void what_rank_0_says_of_a_save_another_rank_can_say(void **state) {
  char needs[RUNLOG_NEEDS_MAX];
  for (int s = 0; s < 2; s++) {
    scene c = scene_new(world_schemes[s]);
    parts_words words;
    manifest m;
    open_attempt(&c, "u");
    memset(needs, '\x01', sizeof needs); /* each is three characters in the text */
    needs[sizeof needs - 2] = '/';
    needs[sizeof needs - 1] = 0;
    const runlog_note note = {.reason = "each \"tenth\"", .needs = needs};
    make_table(&m, 0, 42);
    c.part[0].note = &note;
    assert_int_equal(parts_words_get(c.s, c.log, &c.part[1], &words, NULL), ERR_NOENT);
    assert_int_equal(parts_put(c.s, c.log, &c.part[0], &m, NULL), 0);
    assert_int_equal(parts_words_get(c.s, c.log, &c.part[1], &words, NULL), 0);
    assert_string_equal(words.reason, note.reason);
    assert_string_equal(words.needs, needs);
    manifest_free(&m);
    assert_int_equal(parts_get(c.s, c.log, &c.part[1], 0, &m, NULL), 0);
    manifest_free(&m);
    scene_free(&c);
  }
}

static void every_rank_makes_the_same_manifest_of_all_parts(void **state) {
  for (int s = 0; s < 2; s++) {
    scene c = scene_new(world_schemes[s]);
    open_attempt(&c, "u");
    put_all(&c);
    digest root = {0};
    for (uint32_t i = 0; i < WORLD; i++) {
      manifest m;
      err e = {0};
      if (parts_gather(c.s, c.log, &c.part[i], &m, &e) < 0) fail_msg("%s", e.text);
      assert_int_equal(m.count, WORLD + 3);
      assert_int_equal(m.created_ns, 1000);
      assert_string_equal(m.policy, "first");
      assert_int_equal(m.step, 5);
      assert_int_equal(m.left_out, WORLD * (WORLD - 1) / 2); /* each has a directory of its own */
      assert_int_equal(m.left_here, 1);                      /* of rank 2 */
      assert_int_equal(m.left_names.count, 2);
      assert_string_equal(m.left_names.at[0], "even");
      assert_int_equal(manifest_find(&m, "sub/shared")->mtime_ns, 0); /* of the lowest rank */
      if (i) assert_true(digest_equal(&m.root, &root));
      root = m.root;
      manifest_free(&m);
    }
    scene_free(&c);
  }
}

/* It is told of the whole by who has all records, whatever a record says of itself. */
static void which_rank_alone_has_a_file_is_told(void **state) {
  scene c = scene_new("mem");
  open_attempt(&c, "u");
  for (uint32_t i = 0; i < WORLD; i++) {
    manifest m;
    make_table(&m, i, 42);
    m.world = 7;
    if (i == 1) assert_non_null(add_file(&m, MANIFEST_METADATA, 5, 5));
    if (i != 1) assert_non_null(add_file(&m, "of-two", 9, 9));
    for (size_t k = 0; k < m.count; k++) {
      m.entries[k].alone = true;
      m.entries[k].rank = 6;
    }
    assert_int_equal(manifest_seal(&m, NULL), 0);
    assert_int_equal(parts_put(c.s, c.log, &c.part[i], &m, NULL), 0);
    manifest_free(&m);
  }
  manifest whole;
  assert_int_equal(parts_gather(c.s, c.log, &c.part[0], &whole, NULL), 0);
  assert_int_equal(whole.world, WORLD);
  for (size_t i = 0; i < whole.count; i++) {
    const manifest_entry *at = &whole.entries[i];
    bool own = strncmp(at->name, "own-", 4) == 0;
    assert_int_equal(at->alone, own); /* what the user may set later is nobody's */
    if (own) assert_int_equal(at->rank, at->name[4] - '0');
  }
  manifest_free(&whole);
  scene_free(&c);
}

static void different_bytes_name_both_ranks_and_the_file(void **state) {
  scene c = scene_new("mem");
  open_attempt(&c, "u");
  for (uint32_t i = 0; i < WORLD; i++) {
    manifest m;
    make_table(&m, i, i == 2 ? 43 : 42);
    assert_int_equal(parts_put(c.s, c.log, &c.part[i], &m, NULL), 0);
    manifest_free(&m);
  }
  manifest m;
  err e = {0};
  assert_int_equal(parts_gather(c.s, c.log, &c.part[0], &m, &e), ERR_EXISTS);
  assert_non_null(strstr(e.text, "rank 1 and rank 2"));
  assert_non_null(strstr(e.text, "sub/shared"));
  assert_int_equal(m.count, 0);
  scene_free(&c);
}

static void a_file_of_one_and_a_link_of_another_do_not_mix(void **state) {
  scene c = scene_new("mem");
  open_attempt(&c, "u");
  for (uint32_t i = 0; i < WORLD; i++) {
    manifest m;
    manifest_init(&m);
    m.unit = strdup("u");
    if (i == 2)
      manifest_add(&m, MANIFEST_LINK, "x", "y");
    else
      add_file(&m, "x", 3, 9);
    assert_int_equal(manifest_seal(&m, NULL), 0);
    assert_int_equal(parts_put(c.s, c.log, &c.part[i], &m, NULL), 0);
    manifest_free(&m);
  }
  manifest m;
  assert_int_equal(parts_gather(c.s, c.log, &c.part[0], &m, NULL), ERR_EXISTS);
  scene_free(&c);
}

/* A rank on another machine may not see what a link leads to. */
static void a_file_stands_for_the_link_of_a_rank_that_could_not_follow_it(void **state) {
  for (uint32_t blind = 0; blind < WORLD; blind++) {
    scene c = scene_new("mem");
    open_attempt(&c, "u");
    for (uint32_t i = 0; i < WORLD; i++) {
      manifest m;
      manifest_init(&m);
      m.unit = strdup("u");
      if (i == blind)
        manifest_add(&m, MANIFEST_LINK, "x", "../../shared/x");
      else
        add_file(&m, "x", 3, 9);
      assert_int_equal(manifest_seal(&m, NULL), 0);
      assert_int_equal(parts_put(c.s, c.log, &c.part[i], &m, NULL), 0);
      manifest_free(&m);
    }
    manifest m;
    err e = {0};
    if (parts_gather(c.s, c.log, &c.part[0], &m, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.entries[0].type, MANIFEST_FILE);
    manifest_free(&m);
    scene_free(&c);
  }
}

static void a_part_is_put_once(void **state) {
  scene c = scene_new("file");
  open_attempt(&c, "u");
  put_all(&c);
  put_all(&c); /* the same: an answer was lost */
  manifest m;
  err e = {0};
  make_table(&m, 1, 44);
  assert_int_equal(parts_put(c.s, c.log, &c.part[1], &m, &e), ERR_EXISTS);
  assert_non_null(strstr(e.text, "rank 1"));
  manifest_free(&m);
  scene_free(&c);
}

static void what_is_there_and_who_gave_up_is_seen_by_one_listing(void **state) {
  for (int s = 0; s < 2; s++) {
    scene c = scene_new(world_schemes[s]);
    parts_seen seen;
    char text[100], why[PARTS_REASON_MAX];
    bool conflict, spoken;
    manifest m;
    open_attempt(&c, "u");
    assert_int_equal(parts_look(c.s, c.log, &c.part[0], &seen, NULL), 0);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.failed, WORLD);
    parts_seen_free(&seen);
    make_table(&m, 1, 42);
    assert_int_equal(parts_spoken(c.s, c.log, &c.part[1], &spoken, NULL), 0);
    assert_false(spoken);
    assert_int_equal(parts_put(c.s, c.log, &c.part[1], &m, NULL), 0);
    assert_int_equal(parts_spoken(c.s, c.log, &c.part[1], &spoken, NULL), 0);
    assert_true(spoken);
    manifest_free(&m);
    assert_int_equal(parts_put_failed(c.s, c.log, &c.part[1], false, "late", NULL), 0);
    assert_int_equal(parts_put_failed(c.s, c.log, &c.part[2], true, "other\nbytes", NULL), 0);
    assert_int_equal(parts_put_failed(c.s, c.log, &c.part[2], true, "again", NULL), 0);
    assert_int_equal(parts_spoken(c.s, c.log, &c.part[2], &spoken, NULL), 0);
    assert_true(spoken);
    assert_int_equal(parts_look(c.s, c.log, &c.part[0], &seen, NULL), 0);
    assert_int_equal(seen.count, 1);
    assert_true(seen.there[1] && !seen.there[2]);
    assert_int_equal(seen.failed, 2); /* rank 1 has its part: it is whole, whatever it says later */
    parts_missing(&seen, WORLD, text, sizeof text);
    assert_string_equal(text, "0, 2");
    parts_seen_free(&seen);
    assert_int_equal(parts_failed(c.s, c.log, &c.part[0], 2, &conflict, why, NULL), 0);
    assert_string_equal(why, "other bytes");
    assert_true(conflict);
    scene_free(&c);
  }
}

static void parts_of_another_term_or_attempt_do_not_count(void **state) {
  scene c = scene_new("mem");
  parts_seen seen;
  open_attempt(&c, "u");
  put_all(&c);
  part other = c.part[0];
  other.term++;
  assert_int_equal(parts_look(c.s, c.log, &other, &seen, NULL), 0);
  assert_int_equal(seen.count, 0);
  parts_seen_free(&seen);
  other = c.part[0];
  other.attempt++;
  assert_int_equal(parts_look(c.s, c.log, &other, &seen, NULL), 0);
  assert_int_equal(seen.count, 0);
  parts_seen_free(&seen);
  scene_free(&c);
}

static void odd_names_among_the_records_are_nobodys(void **state) {
  static const char *const names[] = {"3",      "00", "01",           "-1",  "1x", "1.failed2",
                                      "failed", "1 ", "999999999999", "1/2", "x/1"};
  scene c = scene_new("mem");
  parts_seen seen;
  open_attempt(&c, "u");
  char place[STORE_KEY_MAX], key[STORE_KEY_MAX + 40];
  assert_int_equal(runlog_key_parts(c.log, c.part[0].attempt, c.part[0].term, place, NULL), 0);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(key, sizeof key, "%s/%s", place, names[i]);
    assert_int_equal(store_put_text(c.s, key, "{}", STORE_IF_ABSENT), 0);
  }
  assert_int_equal(parts_look(c.s, c.log, &c.part[0], &seen, NULL), 0);
  assert_int_equal(seen.count, 0);
  assert_int_equal(seen.failed, WORLD);
  parts_seen_free(&seen);
  scene_free(&c);
}

/* ---- hostile records ---- */

static int parse(const part *p, uint32_t rank, const char *text, size_t len, err *e) {
  manifest m;
  bool conflict;
  char why[PARTS_REASON_MAX];
  int rc = parts_parse(text, len, "a record", p, rank, &m, &conflict, why, e);
  if (rc < 0) assert_int_equal(m.count, 0);
  manifest_free(&m);
  return rc;
}

static void a_record_of_somebody_else_is_refused(void **state) {
  ranks us = {.rank = 1, .world = 3, .launch = "launch-1"};
  part p = {.attempt = 7, .term = 5, .ranks = &us};
  manifest m;
  buf text;
  buf_init(&text, 1 << 20);
  make_table(&m, 1, 42);
  assert_int_equal(parts_print(&p, &m, false, NULL, &text, NULL), 0);
  assert_int_equal(parse(&p, 1, text.data, text.len, NULL), 0);
  assert_int_equal(parse(&p, 2, text.data, text.len, NULL), ERR_CORRUPT);
  for (int what = 0; what < 4; what++) {
    ranks them = us;
    part other = {.attempt = 7, .term = 5, .ranks = &them};
    if (what == 0) other.attempt = 8;
    if (what == 1) other.term = 6;
    if (what == 2) them.world = 4;
    if (what == 3) snprintf(them.launch, sizeof them.launch, "launch-2");
    err e = {0};
    assert_int_equal(parse(&other, 1, text.data, text.len, &e), ERR_CORRUPT);
    assert_non_null(strstr(e.text, "a record"));
  }
  manifest_free(&m);
  buf_free(&text);
}

static void records_that_are_cut_or_changed_are_refused(void **state) {
  ranks us = {.rank = 1, .world = 3, .launch = "launch-1"};
  part p = {.attempt = 7, .term = 5, .ranks = &us};
  manifest m;
  buf text;
  uint64_t random = 1;
  buf_init(&text, 1 << 20);
  make_table(&m, 1, 42);
  assert_int_equal(parts_print(&p, &m, false, NULL, &text, NULL), 0);
  for (size_t len = 0; len + 1 < text.len; len++) /* the last byte is a line end */
    if (parse(&p, 1, text.data, len, NULL) == 0) fail_msg("taken with %zu bytes", len);
  for (int i = 0; i < 3000; i++) {
    char *copy = malloc(text.len + 1);
    memcpy(copy, text.data, text.len + 1);
    copy[next_random(&random) % text.len] = (char)next_random(&random);
    parse(&p, 1, copy, text.len, NULL); /* whatever it says: no crash, nothing leaks */
    free(copy);
  }
  manifest_free(&m);
  buf_free(&text);
}

static void a_newer_format_is_said_to_be_one(void **state) {
  static const char text[] = "{\"format\":2,\"reader\":2}\n{}";
  ranks us = {.rank = 0, .world = 2, .launch = "l"};
  part p = {.ranks = &us};
  assert_int_equal(parse(&p, 0, text, sizeof text - 1, NULL), ERR_VERSION);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_look_for_all_of_many_ends_at_the_first_that_is_missing),
      cmocka_unit_test(who_sees_all_parts_knows_alike_whose_is_the_newest),
      cmocka_unit_test(what_rank_0_says_of_a_save_another_rank_can_say),
      cmocka_unit_test(every_rank_makes_the_same_manifest_of_all_parts),
      cmocka_unit_test(which_rank_alone_has_a_file_is_told),
      cmocka_unit_test(different_bytes_name_both_ranks_and_the_file),
      cmocka_unit_test(a_file_of_one_and_a_link_of_another_do_not_mix),
      cmocka_unit_test(a_file_stands_for_the_link_of_a_rank_that_could_not_follow_it),
      cmocka_unit_test(a_part_is_put_once),
      cmocka_unit_test(what_is_there_and_who_gave_up_is_seen_by_one_listing),
      cmocka_unit_test(parts_of_another_term_or_attempt_do_not_count),
      cmocka_unit_test(odd_names_among_the_records_are_nobodys),
      cmocka_unit_test(a_record_of_somebody_else_is_refused),
      cmocka_unit_test(records_that_are_cut_or_changed_are_refused),
      cmocka_unit_test(a_newer_format_is_said_to_be_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
