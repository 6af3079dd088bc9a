/* What stands in a store: manifests, the log, hints beside it. */
#include "targets.h"

#include <string.h>

#include "base/json.h"
#include "commit/lease.h"
#include "commit/manifest/manifest_thin.h"
#include "commit/parts.h"
#include "commit/pins.h"
#include "commit/log/runlog.h"
#include "commit/log/runlog_impl.h"

/* No name of a manifest may lead out of the directory that it is restored into. */
static void check_name(const char *name) {
  must(*name && *name != '/' && strlen(name) < 65536);
  for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
    size_t len = strcspn(at, "/");
    must(len > 0 && !(len == 1 && *at == '.') && !(len == 2 && at[0] == '.' && at[1] == '.'));
  }
}

/* Each file is some rank's, and no rank has what is none of the whole. */
static void check_parts(const manifest *m) {
  const uint32_t most = m->world < 4 ? m->world : 4;
  for (uint32_t rank = 0; rank < most; rank++) {
    manifest part;
    must(manifest_part(m, rank, &part, NULL) == 0);
    for (size_t i = 0; i < part.count; i++) must(manifest_find(m, part.entries[i].name));
    for (size_t i = 0; i < m->count; i++)
      must(m->entries[i].alone || manifest_find(&part, m->entries[i].name));
    free(part.entries);
  }
}

void fuzz_manifest(const uint8_t *data, size_t size) {
  char *own = fuzz_text(data, size);
  manifest m, again;
  buf text;
  err e = {0};
  buf_init(&text, 8 << 20);
  int rc = manifest_parse(own, size, "input", &m, &e);
  if (rc == 0) {
    for (size_t i = 0; i < m.count; i++) {
      check_name(m.entries[i].name);
      must(i == 0 || strcmp(m.entries[i - 1].name, m.entries[i].name) < 0);
      must(manifest_find(&m, m.entries[i].name) == &m.entries[i]);
    }
    manifest_bytes(&m);
    check_parts(&m);
    must(manifest_print(&m, &text, NULL) == 0);
    must(manifest_parse(text.data, text.len, "print", &again, NULL) == 0);
    must(digest_equal(&m.root, &again.root) && m.count == again.count && m.world == again.world);
    for (size_t i = 0; i < m.count; i++) {
      must(!m.entries[i].alone || m.entries[i].rank < m.world);
      must(m.entries[i].alone == again.entries[i].alone &&
           m.entries[i].rank == again.entries[i].rank);
    }
    manifest_free(&again);
    manifest_free(&m);
  } else {
    must(e.code == rc && *e.text);
  }
  buf_free(&text);
  free(own);
}

/* What is left of a checkpoint is part of it, by the count that was told before. */
static void take_files(manifest *m, const names *globs) {
  manifest_rest rest;
  const digest root = m->root;
  const size_t count = m->count, files = manifest_files(m);
  const bool may = manifest_thin_judge(m, globs, &rest) == NULL;
  must(manifest_thin(m, globs, NULL) == 0);
  must(m->count <= count && digest_equal(&m->root, &root));
  must(!may || (rest.files > 0 && rest.files < files && manifest_files(m) == rest.files &&
                manifest_bytes(m) == rest.bytes));
  for (size_t i = 1; i < m->count; i++)
    must(strcmp(m->entries[i - 1].name, m->entries[i].name) < 0);
}

/* The first line is a note of what is gone, the rest a manifest. */
void fuzz_thin(const uint8_t *data, size_t size) {
  const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
  const size_t len = end ? (size_t)(end - data) : size;
  char *own = fuzz_text(data, len), *table = fuzz_text(data + len, size - len);
  manifest_thin_note note, again;
  manifest m;
  buf text;
  buf_init(&text, 8 << 20);
  if (manifest_thin_parse(own, len, "input", &note, NULL) == 0) {
    must(note.globs.count > 0 && note.globs.count <= MANIFEST_LEFT_GLOBS);
    if (manifest_parse(table, size - len, "input", &m, NULL) == 0) {
      must(manifest_thin_print(&m, &note.globs, note.newest, &text, NULL) == 0);
      must(manifest_thin_parse(text.data, text.len, "print", &again, NULL) == 0);
      must(manifest_thin_is_of(&again, &m) && again.newest == note.newest);
      must(names_same(names_list(&again.globs), names_list(&note.globs)));
      manifest_thin_free(&again);
      take_files(&m, &note.globs);
      manifest_free(&m);
    }
  }
  manifest_thin_free(&note);
  buf_free(&text);
  free(own);
  free(table);
}

static void check_state(const runlog_state *s) {
  for (size_t i = 0; i < s->commit_count; i++) {
    const runlog_commit *c = &s->commits[i];
    const runlog_attempt *a = runlog_find_attempt(s, c->attempt);
    must(c->n < s->next && c->dir && c->unit);
    must(a && a->fate == RUNLOG_COMMITTED && a->n == c->attempt);
    must(runlog_find_commit(s, c->n) == c && runlog_commit_of(s, c->attempt) == c);
    must(i == 0 || s->commits[i - 1].n < c->n);
    must(c->thin.globs.count <= MANIFEST_LEFT_GLOBS);
    must(runlog_unit_check(c->unit, NULL) == 0);
    check_name(c->dir);
    must(!strchr(c->dir, '/'));
  }
  const runlog_commit *newest = runlog_newest(s, NULL);
  must(!newest || (newest->life == RUNLOG_LIVE && !newest->bad));
}

static void fold(const uint8_t *data, size_t size) {
  runlog_state s = {0};
  const uint8_t *at = data, *piece;
  size_t left = size, len;
  s.term.n = RUNLOG_NONE;
  s.snapshot = RUNLOG_NONE;
  while (size && (piece = fuzz_piece(&at, &left, '\n', &len))) {
    json_t *entry = NULL;
    const char *ignored = NULL;
    uint64_t next = s.next;
    if (js_parse((const char *)piece, len, "entry", &entry, NULL) < 0) continue;
    int rc = runlog_apply(&s, entry, &ignored, NULL);
    json_decref(entry);
    if (rc < 0) break;
    must(s.next > next);
    check_state(&s);
  }
  runlog_state_free(&s);
}

void fuzz_runlog(const uint8_t *data, size_t size) {
  fold(data, size);
}

/* ---- a store in memory ---- */

static store *place(void) {
  static store *s;
  uri where;
  if (s) return s;
  must(uri_parse("mem://fuzz", &where, NULL) == 0);
  must(store_open(&where, fuzz_io(), NULL, &s, NULL) == 0);
  return s;
}

static void put(const char *key, const uint8_t *data, size_t size) {
  must(place()->ops->put(place(), key, data, size, STORE_REPLACE, NULL) == 0);
}

static void clear(void) {
  must(place()->ops->remove_prefix(place(), ".ckpt", NULL) == 0);
}

/* What is printed is compact, with its members in order: printed anew it is the same. */
static json_t *printed(const runlog_state *s, buf *text) {
  json_t *state = NULL;
  buf again;
  buf_init(text, RUNLOG_SNAPSHOT_MAX);
  buf_init(&again, RUNLOG_SNAPSHOT_MAX);
  must(runlog_state_print(s, js_print, text, NULL) == 0);
  must(js_parse(text->data, text->len, "print", &state, NULL) == 0);
  must(js_print(state, &again, NULL) == 0 && strcmp(again.data, text->data) == 0);
  buf_free(&again);
  return state;
}

static void must_print_alike(const runlog_state *a, const runlog_state *b) {
  buf first, second;
  json_decref(printed(a, &first));
  json_decref(printed(b, &second));
  must(strcmp(first.data, second.data) == 0);
  buf_free(&first);
  buf_free(&second);
}

/* Piece by piece it is what it is as a whole. */
static void check_pieces(const uint8_t *text, size_t len, uint64_t through, const json_t *state) {
  const buf raw = {.data = (char *)text, .len = len, .max = len};
  json_t *rest = NULL;
  runlog_state s = {0}, whole = {0};
  if (through < INT64_MAX && runlog_parse_pieces(&raw, "input", &rest, NULL) == 0 &&
      runlog_state_load_text(&raw, through, "input", &s, NULL) == 0) {
    must(runlog_state_load(state, through, "input", &whole, NULL) == 0);
    must_print_alike(&s, &whole);
  }
  runlog_state_free(&s);
  runlog_state_free(&whole);
  json_decref(rest);
}

/* A state that was taken is printed and read again as the same. */
static void check_snapshot(const uint8_t *text, size_t len) {
  json_t *entry = NULL;
  runlog_state s = {0}, again = {0};
  if (js_parse((const char *)text, len, "entry", &entry, NULL) < 0) return;
  const json_t *state = json_object_get(entry, "state");
  uint64_t through = (uint64_t)json_integer_value(json_object_get(entry, "through"));
  check_pieces(text, len, through, state);
  if (state && through < INT64_MAX && runlog_state_load(state, through, "input", &s, NULL) == 0) {
    buf text;
    json_t *first = printed(&s, &text);
    check_state(&s);
    must(runlog_state_load(first, through, "print", &again, NULL) == 0 && again.next == s.next);
    must_print_alike(&s, &again);
    json_decref(first);
    buf_free(&text);
  }
  runlog_state_free(&s);
  runlog_state_free(&again);
  json_decref(entry);
}

/* The entries of a log, a line each, read from a store, snapshots among them, with a hint at the
 * last of those: whatever they say, reading ends, and gives the same twice. */
void fuzz_snapshot(const uint8_t *data, size_t size) {
  static const char type[] = "\"snapshot\"";
  const uint8_t *at = data, *piece;
  size_t left = size, len;
  char key[STORE_KEY_MAX], head[80];
  runlog *a = NULL, *b = NULL;
  uint64_t n = 0;
  clear();
  while (size && n < 200 && (piece = fuzz_piece(&at, &left, '\n', &len))) {
    must(runlog_key_entry("", n, key, NULL) == 0);
    put(key, piece, len);
    if (len && memmem(piece, len, type, sizeof type - 1)) {
      int made = snprintf(head, sizeof head, "{\"format\":1,\"reader\":1,\"snapshot\":%d}", (int)n);
      put(".ckpt/head", (const uint8_t *)head, (size_t)made);
      check_snapshot(piece, len);
    }
    n++;
  }
  int rc = runlog_open(place(), "", &a, NULL);
  must(runlog_open(place(), "", &b, NULL) == rc);
  if (rc == 0) {
    must(runlog_view(a)->next == runlog_view(b)->next && runlog_view(a)->next <= n);
    check_state(runlog_view(a));
    runlog_close(a);
    runlog_close(b);
  }
  clear();
}

/* The record of one rank, which only counts for the save, term, launch and rank that it is asked
 * of: what was taken is printed and read again as the same. Then, as two ranks put it (the records
 * are divided by a NUL): what is made of them has each name once, whoever makes it. */
static const ranks two_ranks = {.rank = 0, .world = 2, .launch = "L"};

/* What rank 0 says beside its table, printed, is read again as the same. */
static void check_words(const char *own, size_t size) {
  parts_words words, again;
  manifest none;
  buf text;
  if (parts_words_parse(own, size, "input", &words, NULL) < 0) return;
  const runlog_note note = {.reason = words.reason, .needs = words.needs};
  const part p = {.attempt = 2, .term = 1, .ranks = &two_ranks, .note = &note};
  manifest_init(&none);
  none.unit = strdup("u");
  buf_init(&text, 8 << 20);
  must(none.unit && manifest_seal(&none, NULL) == 0);
  must(parts_print(&p, &none, false, NULL, &text, NULL) == 0);
  must(parts_words_parse(text.data, text.len, "print", &again, NULL) == 0);
  must(strcmp(words.reason, again.reason) == 0 && strcmp(words.needs, again.needs) == 0);
  manifest_free(&none);
  buf_free(&text);
}

static void check_record(const uint8_t *data, size_t size) {
  const part p = {.attempt = 2, .term = 1, .ranks = &two_ranks};
  char *own = fuzz_text(data, size), why[PARTS_REASON_MAX], again_why[PARTS_REASON_MAX];
  manifest table, again;
  bool conflict, again_conflict;
  err e = {0};
  buf text;
  buf_init(&text, 8 << 20);
  int rc = parts_parse(own, size, "input", &p, 0, &table, &conflict, why, &e);
  must(rc == 0 || (e.code == rc && *e.text));
  check_words(own, size);
  if (rc == 0) {
    must(parts_print(&p, *why ? NULL : &table, conflict, *why ? why : NULL, &text, NULL) == 0);
    must(parts_parse(text.data, text.len, "print", &p, 0, &again, &again_conflict, again_why,
                     NULL) == 0);
    must(strcmp(why, again_why) == 0 && (!*why || conflict == again_conflict));
    must(*why || digest_equal(&table.root, &again.root));
    manifest_free(&again);
  }
  manifest_free(&table);
  buf_free(&text);
  free(own);
}

static void check_gathered(runlog *log, const part *p) {
  manifest whole;
  err e = {0};
  int rc = parts_gather(place(), log, p, &whole, &e);
  must(rc == 0 || (e.code == rc && *e.text));
  if (rc < 0) return;
  for (size_t i = 0; i < whole.count; i++) {
    check_name(whole.entries[i].name);
    must(i == 0 || strcmp(whole.entries[i - 1].name, whole.entries[i].name) < 0);
    must(!whole.entries[i].alone || whole.entries[i].rank < whole.world);
  }
  must(whole.world == 2);
  manifest_free(&whole);
}

void fuzz_parts(const uint8_t *data, size_t size) {
  static const char *const keys[] = {".ckpt/parts/2/1/0", ".ckpt/parts/2/1/1",
                                     ".ckpt/parts/2/1/1.failed"};
  const part p = {.attempt = 2, .term = 1, .ranks = &two_ranks};
  const uint8_t *at = data, *piece;
  size_t left = size, len;
  runlog *log = NULL;
  parts_seen seen;
  bool conflict;
  char why[PARTS_REASON_MAX];
  clear();
  for (size_t i = 0; size && i < 3 && (piece = fuzz_piece(&at, &left, 0, &len)); i++) {
    check_record(piece, len);
    put(keys[i], piece, len);
  }
  must(runlog_open(place(), "", &log, NULL) == 0);
  must(parts_look(place(), log, &p, &seen, NULL) == 0 && seen.count <= 2);
  parts_seen_free(&seen);
  check_gathered(log, &p);
  int rc = parts_failed(place(), log, &p, 1, &conflict, why, NULL);
  must(rc < 0 || *why);
  runlog_close(log);
  clear();
}

/* A hint says where the log ends, and may be wrong: what is read is the same without it. */
void fuzz_head(const uint8_t *data, size_t size) {
  const runlog_writer me = {.launch = "a", .host = "here", .state = "/s"};
  runlog *log = NULL;
  uint64_t number;
  clear();
  must(runlog_open(place(), "", &log, NULL) == 0);
  must(runlog_begin(log, "run-1", &me, false, NULL) == 0);
  must(runlog_attempt_begin(log, "checkpoint-3", &number, NULL) == 0);
  uint64_t next = runlog_view(log)->next;
  runlog_close(log);
  put(".ckpt/head", data, size);
  must(runlog_open(place(), "", &log, NULL) == 0 && runlog_view(log)->next == next);
  runlog_close(log);
  clear();
}

/* Whatever stands there, somebody repairs: writers are refused, and the text names nobody that it
 * could not read. */
void fuzz_epoch(const uint8_t *data, size_t size) {
  char *own = fuzz_text(data, size);
  runlog_epoch epoch;
  runlog *log = NULL;
  err e = {0};
  if (runlog_epoch_parse(own, size, "input", &epoch, &e) < 0) must(*e.text);
  must(strlen(epoch.host) < sizeof epoch.host && strlen(epoch.nonce) < sizeof epoch.nonce);
  clear();
  put(".ckpt/epoch/1", data, size);
  must(runlog_open(place(), "", &log, NULL) == 0);
  must(runlog_begin(log, "run", &(runlog_writer){.launch = "a"}, false, &e) == ERR_HELD);
  for (const char *at = e.text; *at; at++) must((unsigned char)*at >= ' ');
  runlog_close(log);
  clear();
  free(own);
}

void fuzz_lease(const uint8_t *data, size_t size) {
  const runlog_term term = {.n = 1, .writer = {.launch = "a", .host = "other", .state = "/s"}};
  const runlog_writer me = {.launch = "b", .host = "here", .state = "/t"};
  err e = {0};
  clear();
  put(".ckpt/lease", data, size);
  int rc = lease_check(place(), "", &term, &me, false, NULL, &e);
  must(rc == 0 || (rc == ERR_HELD && *e.text));
  for (const char *at = e.text; *at; at++) must((unsigned char)*at >= ' ');
  must(lease_check(place(), "", &term, &me, true, NULL, NULL) == 0);
  lease_release(place(), "", 1, &(runlog_writer){0}, NULL);
  clear();
}

void fuzz_pins(const uint8_t *data, size_t size) {
  pins p = {0};
  size_t count = 0;
  clear();
  put(".ckpt/pins/0123456789abcdef0123456789abcdef", data, size);
  must(pins_list(place(), "", &p, NULL) == 0);
  must(p.count + p.broken == 1); /* it holds what it names, or it holds all */
  for (size_t i = 0; i < p.count; i++) must(p.at[i].dir && !pin_expired(&p.at[i], INT64_MIN));
  uint64_t *held = pins_held(&p, INT64_MIN, &count);
  must(held && count == p.count);
  free(held);
  pins_free(&p);
  clear();
}
