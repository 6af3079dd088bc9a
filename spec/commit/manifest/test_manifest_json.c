#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/manifest/manifest.h"
#include "manifest_make.h"

static void print(const manifest *m, buf *out) {
  err e = {0};
  buf_init(out, MANIFEST_BYTES_MAX);
  if (manifest_print(m, out, &e) != 0) fail_msg("print: %s", e.text);
}

static void a_manifest_survives_the_trip_byte_for_byte(void **state) {
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    manifest m, back;
    buf first, second;
    err e = {0};
    make_random(&m, seed, 30);
    print(&m, &first);
    if (manifest_parse(first.data, first.len, "test", &back, &e) != 0)
      fail_msg("seed %llu: %s", (unsigned long long)seed, e.text);
    print(&back, &second);
    if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
      fail_msg("seed %llu: printed twice, not the same", (unsigned long long)seed);
    assert_true(digest_equal(&m.root, &back.root));
    assert_int_equal(m.count, back.count);
    for (size_t i = 0; i < m.count; i++) {
      assert_string_equal(m.entries[i].name, back.entries[i].name);
      assert_int_equal(m.entries[i].mtime_ns, back.entries[i].mtime_ns);
      assert_int_equal(m.entries[i].mode, back.entries[i].mode);
      assert_int_equal(m.entries[i].size, back.entries[i].size);
    }
    buf_free(&first);
    buf_free(&second);
    manifest_free(&m);
    manifest_free(&back);
  }
}

static void
globs_that_were_for_it_alone_are_read_back_and_what_is_none_is_passed_over(void **state) {
  manifest m, back;
  buf text;
  manifest_init(&m);
  m.unit = strdup("u");
  assert_non_null(add_file(&m, "a", 5, 3));
  assert_true(names_add(&m.left_globs, "optim*.pt"));
  assert_true(names_add(&m.left_globs, "100%/\xff"));
  m.left_out = 3;
  m.left_here = 2;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  print(&m, &text);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  assert_int_equal(back.left_globs.count, 2);
  assert_int_equal(back.left_out, 3);
  assert_int_equal(back.left_here, 2);
  assert_string_equal(back.left_globs.at[0], "optim*.pt");
  assert_string_equal(back.left_globs.at[1], "100%/\xff");
  assert_true(digest_equal(&m.root, &back.root));
  manifest_free(&back);
  char *at = strstr(text.data, "\"optim*.pt\"");
  assert_non_null(at);
  memcpy(at, "7, \"/[ptim\"", 11);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  assert_int_equal(back.left_globs.count, 1);
  buf_free(&text);
  manifest_free(&back);
  manifest_free(&m);
}

static void names_that_were_left_out_are_words_the_first_of_them_alone(void **state) {
  manifest m, back;
  buf text;
  manifest_init(&m);
  m.unit = strdup("u");
  assert_non_null(add_file(&m, "a", 5, 3));
  m.left_out = 40;
  for (int i = 39; i >= 0; i--) {
    char name[] = "..\n%";
    name[0] = (char)('0' + i / 10);
    name[1] = (char)('0' + i % 10);
    assert_true(manifest_left_note(&m.left_names, name));
    assert_true(manifest_left_note(&m.left_names, name)); /* once is enough */
  }
  assert_int_equal(manifest_seal(&m, NULL), 0);
  print(&m, &text);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  assert_int_equal(back.left_names.count, MANIFEST_LEFT_NAMED);
  assert_string_equal(back.left_names.at[0], "00\n%");
  assert_string_equal(back.left_names.at[MANIFEST_LEFT_NAMED - 1], "15\n%");
  assert_true(digest_equal(&m.root, &back.root));
  manifest_free(&back);
  /* What is no name costs nothing else. */
  char *at = strstr(text.data, "\"00%0A%25\"");
  assert_non_null(at);
  memcpy(at, "7, \"%zz\"  ", 10);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  assert_string_equal(back.left_names.at[0], "01\n%");
  buf_free(&text);
  manifest_free(&back);
  manifest_free(&m);
}

static void each_block_has_its_crc_beside_its_digest(void **state) {
  const uint64_t size = 2 * (uint64_t)HASH_BLOCK + 5;
  manifest m, back;
  buf text;
  manifest_init(&m);
  m.unit = strdup("u");
  manifest_entry *made = add_file(&m, "a", size, 3);
  uint32_t crcs[3];
  for (int i = 0; i < 3; i++) crcs[i] = made->blocks[i].crc;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  print(&m, &text);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  for (int i = 0; i < 3; i++) {
    assert_true(back.entries[0].blocks[i].summed);
    assert_true(back.entries[0].blocks[i].crc == crcs[i]);
  }
  buf_free(&text);
  m.entries[0].blocks[1].summed = false; /* one without: none is told */
  print(&m, &text);
  manifest_free(&back);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  for (int i = 0; i < 3; i++) assert_false(back.entries[0].blocks[i].summed);
  buf_free(&text);
  manifest_free(&m);
  manifest_free(&back);
}

/* True if a reader of 1.0 takes the text: it knows reader 1. */
static bool old_reader_takes(const char *text) {
  return strstr(text, "\"reader\":1") != NULL;
}

static void make_ranked(manifest *m) {
  manifest_init(m);
  m->unit = strdup("u");
  m->world = 3;
  for (uint32_t i = 0; i < 3; i++) {
    char name[] = "own-0";
    name[4] = (char)('0' + i);
    manifest_entry *at = add_file(m, name, 10, i);
    at->alone = true;
    at->rank = i;
  }
  assert_non_null(add_file(m, "shared", 10, 7));
}

static void which_rank_alone_had_a_file_comes_back_and_is_not_in_the_root(void **state) {
  manifest m, back;
  buf text;
  make_ranked(&m);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  digest told = m.root;
  print(&m, &text);
  assert_int_equal(manifest_parse(text.data, text.len, "test", &back, NULL), 0);
  assert_int_equal(back.world, 3);
  for (uint32_t i = 0; i < 3; i++) {
    assert_true(back.entries[i].alone);
    assert_int_equal(back.entries[i].rank, i);
  }
  assert_false(back.entries[3].alone);
  assert_true(old_reader_takes(text.data));
  manifest_free(&back);
  buf_free(&text);
  m.world = 0;
  for (size_t i = 0; i < m.count; i++) m.entries[i].alone = false;
  assert_int_equal(manifest_seal(&m, NULL), 0);
  assert_true(digest_equal(&m.root, &told));
  manifest_free(&m);
}

/* Everybody restores a file of which it is not told: nothing that stands there can make it fewer. */
static void what_is_no_rank_of_that_world_says_nothing(void **state) {
  static const char *const ranks[] = {
      "3",     "-1",  "4294967296", "4294967297", "18446744073709551",
      "\"0\"", "0.0", "null",       "[0]",        "true"};
  static const char *const worlds[] = {"1", "0", "-3", "4294967299", "\"3\"", "null", "3.0", "[3]"};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks + sizeof worlds / sizeof *worlds; i++) {
    const bool is_rank = i < sizeof ranks / sizeof *ranks;
    const char *from = is_rank ? "\"rank\":0" : "\"world\":3";
    manifest m, back;
    buf text, changed;
    err e = {0};
    make_ranked(&m);
    assert_int_equal(manifest_seal(&m, NULL), 0);
    print(&m, &text);
    char *at = strstr(text.data, from);
    assert_non_null(at);
    size_t keep = strlen(from) - 1;
    buf_init(&changed, 1 << 20);
    buf_add(&changed, text.data, (size_t)(at - text.data) + keep);
    buf_str(&changed, is_rank ? ranks[i] : worlds[i - sizeof ranks / sizeof *ranks]);
    buf_str(&changed, at + keep + 1);
    if (manifest_parse(changed.data, changed.len, "test", &back, &e) < 0) fail_msg("%s", e.text);
    assert_int_equal(back.world, is_rank ? 3 : 0);
    for (size_t k = 0; k < back.count; k++)
      assert_int_equal(back.entries[k].alone, is_rank && k > 0 && k < 3);
    buf_free(&text);
    buf_free(&changed);
    manifest_free(&back);
    manifest_free(&m);
  }
}

/* Small ones, so that each place can be tried. */
static void every_flipped_byte_is_seen_or_harmless(void **state) {
  long refused = 0, harmless = 0;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    manifest m, back;
    buf text;
    uint64_t random = seed;
    make_random(&m, seed, 4);
    print(&m, &text);
    for (size_t at = 0; at < text.len; at++)
      for (int i = 0; i < 11; i++) {
        char keep = text.data[at];
        text.data[at] = (char)(i < 8 ? keep ^ 1 << i : i == 8 ? 0 : (char)next_random(&random));
        int rc = manifest_parse(text.data, text.len, "test", &back, NULL);
        if (rc == 0 && !digest_equal(&m.root, &back.root))
          fail_msg("seed %llu: byte %zu as %d was not seen", (unsigned long long)seed, at,
                   text.data[at]);
        *(rc == 0 ? &harmless : &refused) += 1;
        if (rc == 0) manifest_free(&back);
        text.data[at] = keep;
      }
    buf_free(&text);
    manifest_free(&m);
  }
  assert_true(refused > harmless);
}

static void every_truncated_text_is_refused(void **state) {
  for (uint64_t seed = 1; seed <= 20; seed++) {
    manifest m, back;
    buf text;
    make_random(&m, seed, 6);
    print(&m, &text);
    for (size_t len = 0; len + 1 < text.len; len++) {
      char *cut = malloc(len ? len : 1); /* its own memory: a read past the end is found */
      memcpy(cut, text.data, len);
      err e = {0};
      assert_int_equal(manifest_parse(cut, len, "test", &back, &e), ERR_FORMAT);
      assert_non_null(strstr(e.text, "test"));
      free(cut);
    }
    buf_free(&text);
    manifest_free(&m);
  }
}

/* One printed manifest in which `from` is replaced by `to` where it is first. */
static int parse_changed(const char *from, const char *to, err *e) {
  manifest m, back;
  buf text, changed;
  make_small(&m, "u", 1);
  assert_non_null(manifest_add(&m, MANIFEST_LINK, "the-link", "the-target"));
  assert_int_equal(manifest_seal(&m, NULL), 0);
  print(&m, &text);
  char *at = strstr(text.data, from);
  if (!at) fail_msg("%s is not in %s", from, text.data);
  buf_init(&changed, 1 << 20);
  buf_add(&changed, text.data, (size_t)(at - text.data));
  buf_str(&changed, to);
  buf_str(&changed, at + strlen(from));
  int rc = manifest_parse(changed.data, changed.len, "test", &back, e);
  if (rc == 0) manifest_free(&back);
  buf_free(&text);
  buf_free(&changed);
  manifest_free(&m);
  return rc;
}

static void each_fault_has_its_code(void **state) {
  static const struct {
    const char *from, *to;
    int code;
  } cases[] = {
      {"\"reader\":1", "\"reader\":2", 0},
      {"\"reader\":1", "\"reader\":3", ERR_VERSION},
      {"\"reader\":1", "\"keys\":\"plain\",\"reader\":1", 0},
      {"\"reader\":1", "\"keys\":\"other\",\"reader\":1", ERR_FORMAT},
      {"\"reader\":1", "\"reader\":-1", ERR_FORMAT},
      {"\"reader\":1", "\"raeder\":1", ERR_FORMAT},
      {"\"format\":1", "\"format\":9", 0}, /* what it asks for is what counts */
      {"\"format\":1", "\"later\":[{}],\"format\":1", 0},
      {"\"digest\":\"xxh3-128\"", "\"digest\":\"md5\"", ERR_UNSUPPORTED},
      {"\"block\":8388608", "\"block\":4096", ERR_FORMAT},
      {"\"kind\":\"dir\"", "\"kind\":\"tree\"", ERR_FORMAT},
      {"\"kind\":\"dir\"", "\"kind\":\"file\"", ERR_FORMAT},
      {"\"step\":7", "\"step\":-1", ERR_FORMAT},
      {"\"step\":7", "\"step\":8", ERR_CORRUPT},
      {"\"step\":7", "\"step\":7.0", ERR_FORMAT},
      {"\"step\":7", "\"step\":9223372036854775808", ERR_FORMAT},
      {"\"size\":100", "\"size\":-100", ERR_FORMAT},
      {"\"size\":100", "\"size\":99999999999999999999", ERR_FORMAT},
      {"\"size\":100", "\"size\":9223372036854775807", ERR_FORMAT},
      {"\"size\":100", "\"size\":8388609", ERR_FORMAT},
      {"\"size\":100", "\"size\":0", ERR_FORMAT},
      {"\"size\":100", "\"size\":101", ERR_CORRUPT},
      {"\"size\":100", "\"size\":100,\"size\":100", ERR_FORMAT},
      {"\"mode\":\"0644\"", "\"mode\":\"0645\"", ERR_CORRUPT},
      {"\"mode\":\"0644\"", "\"mode\":\"644\"", ERR_FORMAT},
      {"\"mode\":\"0644\"", "\"mode\":\"0648\"", ERR_FORMAT},
      {"\"mode\":\"0644\"", "\"mode\":420", ERR_FORMAT},
      {"\"type\":\"file\"", "\"type\":\"fifo\"", ERR_FORMAT},
      {"\"type\":\"file\"", "\"type\":\"dir\"", ERR_CORRUPT},
      {"\"name\":\"model.pt\"", "\"name\":\"model.p%\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"model%00\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"model\\u0000\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"model%2Fpt\"", ERR_CORRUPT},
      {"\"name\":\"model.pt\"", "\"name\":\"%2Fetc\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"%2E%2E/x\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"the-link/x\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"the-link\"", ERR_FORMAT},
      {"\"name\":\"model.pt\"", "\"name\":\"%6Dodel.pt\"", 0}, /* the same name */
      {"the-target", "/etc/passwd", ERR_CORRUPT},
      {"\"target\":\"the-target\"", "\"target\":\"\"", ERR_FORMAT},
      {"\"blocks\":[", "\"blocks\":[1,", ERR_FORMAT},
      {"\"crc32c\":\"", "\"crc32c\":\"0", ERR_FORMAT},
      {"\"crc32c\":\"", "\"crc32c\":[],\"x\":\"", ERR_FORMAT},
      {"\"crc32c\":\"", "\"crc32c\":\"\",\"x\":\"", ERR_FORMAT},
      {"\"crc32c\":\"", "\"other\":\"", 0}, /* as 1.0 wrote it */
      {"\"unit\":\"u\"", "\"unit\":\"../u\"", ERR_FORMAT},
      {"\"files\":[", "\"files\":[[],", ERR_FORMAT},
      {"\"files\":[", "\"files\":[null,", ERR_FORMAT},
      {"\"files\":[", "\"filez\":[", ERR_FORMAT},
      {"\"root\":\"", "\"root\":\"0", ERR_FORMAT},
      {"\"mode\":\"0755\"", "\"mode\":\"0755\",\"metrics\":[]", ERR_FORMAT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    err e = {0};
    int rc = parse_changed(cases[i].from, cases[i].to, &e);
    if (rc != cases[i].code)
      fail_msg("%s: %s (%s), not %s", cases[i].to, err_name(rc), e.text, err_name(cases[i].code));
    if (rc < 0) assert_int_equal(strncmp(e.text, "test", 4) == 0 || rc == ERR_UNSUPPORTED, 1);
  }
}

static void a_newer_format_is_named_as_such_before_all_else(void **state) {
  static const char text[] =
      "{\"format\":7,\"reader\":7,\"unit\":\"../x\",\"files\":\"elsewhere\"}";
  manifest m;
  err e = {0};
  assert_int_equal(manifest_parse(text, sizeof text - 1, "m", &m, &e), ERR_VERSION);
  assert_non_null(strstr(e.text, "needs a newer ckpt-lua"));
}

static void what_is_no_manifest_is_refused(void **state) {
  static const char *const texts[] = {
      "", "null", "[]", "3", "\"x\"", "{}", "{\"format\":1,\"reader\":1}"};
  manifest m;
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    assert_int_equal(manifest_parse(texts[i], strlen(texts[i]), "m", &m, NULL), ERR_FORMAT);
}

/* Tens of bytes of memory for each byte of text, if it were parsed. */
static void a_text_of_brackets_is_refused_before_it_is_parsed(void **state) {
  enum { LEN = 40 << 20 };
  char *text = malloc(LEN);
  assert_non_null(text);
  memset(text, '[', LEN);
  manifest m;
  assert_int_equal(manifest_parse(text, LEN, "m", &m, NULL), ERR_LIMIT);
  memset(text, ',', LEN);
  assert_int_equal(manifest_parse(text, LEN, "m", &m, NULL), ERR_LIMIT);
  assert_int_equal(manifest_parse(text, (size_t)MANIFEST_BYTES_MAX + 1, "m", &m, NULL), ERR_LIMIT);
  free(text);
}

static void brackets_within_strings_do_not_count(void **state) {
  enum { LEN = 9 << 20 };
  manifest m, back;
  buf text;
  make_small(&m, "u", 1);
  char *policy = malloc(LEN + 1);
  memset(policy, '[', LEN);
  policy[LEN / 2] = '"';
  policy[LEN] = 0;
  m.policy = policy;
  print(&m, &text);
  assert_int_equal(manifest_parse(text.data, text.len, "m", &back, NULL), 0);
  assert_string_equal(back.policy, policy);
  manifest_free(&back);
  manifest_free(&m);
  buf_free(&text);
}

static int print_metrics(const char *metrics) {
  manifest m;
  buf text;
  make_small(&m, "u", 1);
  m.metrics = strdup(metrics);
  buf_init(&text, 1 << 20);
  int rc = manifest_print(&m, &text, NULL);
  buf_free(&text);
  manifest_free(&m);
  return rc;
}

static void how_keys_are_spelt_is_said_where_1_0_had_others(void **state) {
  static const char *const names[] = {"model \xc3\xa9.bin", "100%.txt", "line\n", "caf\xe9"};
  for (int i = 0; i < 4 * 4; i++) {
    manifest m, back;
    buf text;
    bool odd = i % 4 > 0, plain = i & 4, bucket = i & 8;
    buf_init(&text, 1 << 20);
    make_small(&m, "u", 1);
    free(m.entries[0].name);
    m.entries[0].name = strdup(names[i % 4]);
    assert_int_equal(manifest_seal(&m, NULL), 0);
    m.plain_keys = plain;
    m.in_bucket = bucket;
    assert_int_equal(manifest_is_odd(&m), odd);
    assert_int_equal(manifest_print(&m, &text, NULL), 0);
    assert_int_equal(strstr(text.data, "\"keys\":\"plain\"") != NULL, odd && plain);
    assert_int_equal(old_reader_takes(text.data), !(odd && plain && bucket));
    assert_int_equal(manifest_parse(text.data, text.len, "m", &back, NULL), 0);
    assert_int_equal(back.plain_keys, odd && plain);
    assert_true(digest_equal(&back.root, &m.root));
    manifest_free(&back);
    manifest_free(&m);
    buf_free(&text);
  }
}

static void whose_it_is_comes_back_and_what_is_no_text_says_nothing(void **state) {
  static const char *const said[] = {"\"0123\"", "7", "\"\"", "null"};
  manifest m, back;
  buf text;
  buf_init(&text, 1 << 20);
  make_small(&m, "a", 1);
  digest root = m.root;
  m.attempt = strdup("ATTEMPT");
  assert_int_equal(manifest_print(&m, &text, NULL), 0);
  manifest_free(&m);
  char *at = strstr(text.data, "\"ATTEMPT\"");
  assert_non_null(at);
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    memset(at, ' ', strlen("\"ATTEMPT\""));
    memcpy(at, said[i], strlen(said[i]));
    assert_int_equal(manifest_parse(text.data, text.len, "m", &back, NULL), 0);
    assert_true(digest_equal(&back.root, &root));
    if (i == 0)
      assert_string_equal(back.attempt, "0123");
    else
      assert_null(back.attempt);
    manifest_free(&back);
  }
  buf_free(&text);
}

static void metrics_that_no_reader_would_take_are_not_printed(void **state) {
  assert_int_equal(print_metrics("{\"loss\":0.25}"), 0);
  assert_int_equal(print_metrics("[]"), ERR_FORMAT);
  assert_int_equal(print_metrics("{\"loss\":NaN}"), ERR_FORMAT);
  assert_int_equal(print_metrics("{\"loss\":1e999}"), ERR_FORMAT);
  assert_int_equal(print_metrics("x"), ERR_FORMAT);
  char deep[400];
  for (int depth = 50; depth < 70; depth++) { /* {"a":[[..]]} up to and over the limit */
    int len = sprintf(deep, "{\"a\":");
    memset(deep + len, '[', (size_t)depth);
    memset(deep + len + depth, ']', (size_t)depth);
    sprintf(deep + len + 2 * depth, "}");
    manifest m, back;
    buf text;
    make_small(&m, "u", 1);
    m.metrics = strdup(deep);
    buf_init(&text, 1 << 20);
    if (manifest_print(&m, &text, NULL) == 0) {
      assert_int_equal(manifest_parse(text.data, text.len, "m", &back, NULL), 0);
      assert_string_equal(back.metrics, deep);
      manifest_free(&back);
    }
    buf_free(&text);
    manifest_free(&m);
  }
}

static void only_what_is_sealed_is_printed(void **state) {
  manifest m;
  buf text;
  make_small(&m, "u", 1);
  assert_non_null(manifest_add(&m, MANIFEST_DIR, "d", NULL));
  buf_init(&text, 1 << 20);
  assert_int_equal(manifest_print(&m, &text, NULL), ERR_INVAL);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  buf_init(&text, 300);
  assert_int_equal(manifest_print(&m, &text, NULL), ERR_LIMIT);
  buf_free(&text);
  manifest_free(&m);
}

static void make_with_metadata(manifest *m, uint64_t seed) {
  make_small(m, "u", 1);
  add_file(m, MANIFEST_METADATA, 40, seed);
  assert_int_equal(manifest_seal(m, NULL), 0);
}

static void metadata_has_a_record_outside_of_the_root(void **state) {
  manifest m, other, plain, back;
  buf text;
  make_with_metadata(&m, 5);
  make_with_metadata(&other, 6);
  make_small(&plain, "u", 1);
  assert_true(digest_equal(&m.root, &other.root));
  assert_true(digest_equal(&m.root, &plain.root));
  print(&m, &text);
  assert_non_null(strstr(text.data, "\"metadata\":{"));
  assert_null(strstr(strstr(text.data, "\"files\":["), MANIFEST_METADATA));
  assert_int_equal(manifest_parse(text.data, text.len, "m", &back, NULL), 0);
  const manifest_entry *record = manifest_find(&back, MANIFEST_METADATA);
  assert_non_null(record);
  assert_true(record->outside);
  assert_true(digest_equal(&record->file, &manifest_find(&m, MANIFEST_METADATA)->file));
  assert_int_equal(record->size, 40);
  assert_int_equal(back.count, 2);
  assert_int_equal(manifest_files(&back), 2);
  buf_free(&text);
  manifest_free(&back);
  manifest_free(&plain);
  manifest_free(&other);
  manifest_free(&m);
}

static int parse_with(const char *from, const char *to) {
  manifest m, back;
  buf text, changed;
  make_with_metadata(&m, 5);
  print(&m, &text);
  char *at = strstr(text.data, from);
  assert_non_null(at);
  buf_init(&changed, 1 << 20);
  buf_fmt(&changed, "%.*s%s%s", (int)(at - text.data), text.data, to, at + strlen(from));
  int rc = manifest_parse(changed.data, changed.len, "m", &back, NULL);
  manifest_free(&back);
  buf_free(&text);
  buf_free(&changed);
  manifest_free(&m);
  return rc;
}

/* Whatever else stood there would escape the digest of the table. */
static void nothing_but_metadata_can_be_outside(void **state) {
  assert_int_equal(parse_with("\"name\":\".metadata.json\"", "\"name\":\".metadata.jsox\""),
                   ERR_CORRUPT);
  assert_int_equal(parse_with("\"name\":\".metadata.json\"", "\"name\":\"../x\""), ERR_FORMAT);
  assert_int_equal(parse_with("\"name\":\".metadata.json\"", "\"name\":\"model.pt\""), ERR_FORMAT);
  assert_int_equal(parse_with("\"metadata\":{", "\"metadata\":[],\"x\":{"), ERR_FORMAT);
  assert_int_equal(parse_with("\"format\":1", "\"format\":0"), ERR_FORMAT);
  assert_int_equal(parse_with("\"size\":40", "\"size\":41"), 0); /* it may have been replaced */
}

static void a_large_file_of_that_name_or_one_deeper_is_a_file_like_any(void **state) {
  manifest m, plain;
  make_small(&plain, "u", 1);
  static const char *const names[] = {MANIFEST_METADATA, "sub/" MANIFEST_METADATA};
  for (size_t i = 0; i < 2; i++) {
    make_small(&m, "u", 1);
    add_file(&m, names[i], i ? 40 : MANIFEST_METADATA_MAX + 1, 5);
    assert_int_equal(manifest_seal(&m, NULL), 0);
    assert_false(manifest_find(&m, names[i])->outside);
    assert_false(digest_equal(&m.root, &plain.root));
    manifest_free(&m);
  }
  manifest_free(&plain);
}

/* In format 0 it was a file like any other, and the root says so. */
static void a_manifest_of_format_0_is_read_with_its_own_root(void **state) {
  manifest m, back, again;
  buf text;
  make_small(&m, "u", 1);
  m.old = true;
  add_file(&m, MANIFEST_METADATA, 40, 5);
  assert_int_equal(manifest_seal(&m, NULL), 0);
  print(&m, &text);
  assert_non_null(strstr(text.data, "\"format\":0"));
  assert_int_equal(manifest_parse(text.data, text.len, "m", &back, NULL), 0);
  assert_false(manifest_find(&back, MANIFEST_METADATA)->outside);
  assert_true(digest_equal(&m.root, &back.root));
  buf_free(&text);
  print(&back, &text);
  assert_int_equal(manifest_parse(text.data, text.len, "m", &again, NULL), 0);
  manifest_free(&again);
  buf_free(&text);
  manifest_free(&back);
  manifest_free(&m);
}

/* What it says of 10 TB: 100 files of 100 GB, a digest for each block. */
static void ten_terabytes_survive_the_trip(void **state) {
  enum { FILES = 100 };
  const uint64_t each = UINT64_C(100) * 1000 * 1000 * 1000;
  manifest m = {0}, back;
  buf text;
  err e = {0};
  char name[40];
  make_small(&m, "model", 1);
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "shards/model-%05d-of-00100.bin", i);
    add_file(&m, name, each, (uint64_t)i + 1);
  }
  if (manifest_seal(&m, &e) != 0) fail_msg("%s", e.text);
  assert_true(manifest_bytes(&m) > FILES * each);
  print(&m, &text);
  if (manifest_parse(text.data, text.len, "test", &back, &e) != 0) fail_msg("%s", e.text);
  assert_true(manifest_bytes(&back) == manifest_bytes(&m));
  assert_true(digest_equal(&m.root, &back.root));
  assert_true(text.len < MANIFEST_BYTES_MAX / 4);
  buf_free(&text);
  manifest_free(&m);
  manifest_free(&back);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_manifest_survives_the_trip_byte_for_byte),
      cmocka_unit_test(globs_that_were_for_it_alone_are_read_back_and_what_is_none_is_passed_over),
      cmocka_unit_test(names_that_were_left_out_are_words_the_first_of_them_alone),
      cmocka_unit_test(each_block_has_its_crc_beside_its_digest),
      cmocka_unit_test(which_rank_alone_had_a_file_comes_back_and_is_not_in_the_root),
      cmocka_unit_test(what_is_no_rank_of_that_world_says_nothing),
      cmocka_unit_test(every_flipped_byte_is_seen_or_harmless),
      cmocka_unit_test(every_truncated_text_is_refused),
      cmocka_unit_test(each_fault_has_its_code),
      cmocka_unit_test(a_newer_format_is_named_as_such_before_all_else),
      cmocka_unit_test(what_is_no_manifest_is_refused),
      cmocka_unit_test(a_text_of_brackets_is_refused_before_it_is_parsed),
      cmocka_unit_test(brackets_within_strings_do_not_count),
      cmocka_unit_test(how_keys_are_spelt_is_said_where_1_0_had_others),
      cmocka_unit_test(whose_it_is_comes_back_and_what_is_no_text_says_nothing),
      cmocka_unit_test(metrics_that_no_reader_would_take_are_not_printed),
      cmocka_unit_test(only_what_is_sealed_is_printed),
      cmocka_unit_test(metadata_has_a_record_outside_of_the_root),
      cmocka_unit_test(nothing_but_metadata_can_be_outside),
      cmocka_unit_test(a_large_file_of_that_name_or_one_deeper_is_a_file_like_any),
      cmocka_unit_test(ten_terabytes_survive_the_trip),
      cmocka_unit_test(a_manifest_of_format_0_is_read_with_its_own_root),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
