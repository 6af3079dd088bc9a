/* parts: a record is one line of JSON that says whose it is, and behind it the text of a manifest:
 * so that a table is printed, checked and bounded by one code, wherever it stands. */
#include "parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/vec.h"

enum { HEAD_MAX = 32 << 10, AT_ONCE = 64 };

static int key_of(const runlog *log, const part *p, uint32_t rank, const char *end,
                  char out[STORE_KEY_MAX], err *e) {
  char place[STORE_KEY_MAX];
  int rc = runlog_key_parts(log, p->attempt, p->term, place, e);
  if (rc < 0) return rc;
  if (snprintf(out, STORE_KEY_MAX, "%s/%" PRIu32 "%s", place, rank, end) < STORE_KEY_MAX) return 0;
  return err_set(e, ERR_LIMIT, "%s: the store's name for a part record is too long", place);
}

/* ---- the text ---- */

static bool add_name(json_t *head, const char *key, const char *text) {
  return !text || !*text || json_object_set_new(head, key, js_name_new(text)) == 0;
}

static bool add_note(json_t *head, const runlog_note *note) {
  return !note || (add_name(head, "reason", note->reason) && add_name(head, "needs", note->needs));
}

static json_t *head_new(const part *p, bool conflict, const char *why) {
  json_t *head = json_pack("{s:i, s:i, s:I, s:I, s:I, s:I, s:o}", "format", PARTS_FORMAT, "reader",
                           PARTS_READER, "attempt", (json_int_t)p->attempt, "term",
                           (json_int_t)p->term, "rank", (json_int_t)p->ranks->rank, "world",
                           (json_int_t)p->ranks->world, "launch", js_name_new(p->ranks->launch));
  if (head && !why && !add_note(head, p->note)) {
    json_decref(head);
    return NULL;
  }
  if (!head || !why) return head;
  buf plain;
  buf_init(&plain, PARTS_REASON_MAX);
  js_plain(*why ? why : "it gave no reason", PARTS_REASON_MAX - 1, &plain);
  int bad = buf_failed(&plain);
  if (!bad) bad = json_object_set_new(head, "failed", json_stringn(plain.data, plain.len));
  if (!bad) bad = json_object_set_new(head, "conflict", json_boolean(conflict));
  buf_free(&plain);
  if (!bad) return head;
  json_decref(head);
  return NULL;
}

int parts_print(const part *p, const manifest *table, bool conflict, const char *why, buf *out,
                err *e) {
  json_t *head = head_new(p, conflict, why);
  int rc =
      head ? js_print(head, out, e) : err_set(e, ERR_NOMEM, "print a part record: out of memory");
  json_decref(head);
  if (rc == 0) buf_str(out, "\n");
  if (rc == 0 && !why) rc = manifest_print(table, out, e);
  if (rc == 0 && buf_failed(out))
    rc = err_set(e, buf_failed(out), "print a part record: %s", err_text(buf_failed(out)));
  return rc;
}

static int must_be(const json_t *head, const char *key, const char *what, uint64_t expected,
                   err *e) {
  int64_t found;
  int rc = js_get_int(head, key, what, &found, e);
  if (rc < 0 || (found >= 0 && (uint64_t)found == expected)) return rc;
  return err_set(e, ERR_CORRUPT, "%s: its %s is %lld, not %llu", what, key, (long long)found,
                 (unsigned long long)expected);
}

static int check_head(const json_t *head, const char *what, const part *p, uint32_t rank, err *e) {
  char *launch = NULL;
  int rc = js_check_reader(head, what, PARTS_READER, e);
  if (rc == 0) rc = must_be(head, "attempt", what, p->attempt, e);
  if (rc == 0) rc = must_be(head, "term", what, p->term, e);
  if (rc == 0) rc = must_be(head, "rank", what, rank, e);
  if (rc == 0) rc = must_be(head, "world", what, p->ranks->world, e);
  if (rc == 0) rc = js_get_name(head, "launch", what, &launch, e);
  if (rc == 0 && strcmp(launch, p->ranks->launch) != 0)
    rc = err_set(e, ERR_CORRUPT, "%s: it is of another launch", what);
  free(launch);
  return rc;
}

static int take_reason(const json_t *head, const char *what, bool *conflict,
                       char why[PARTS_REASON_MAX], err *e) {
  const char *text;
  buf plain;
  int rc = js_opt_str(head, "failed", what, "", &text, e);
  if (rc == 0) rc = js_opt_bool(head, "conflict", what, false, conflict, e);
  if (rc < 0) return rc;
  buf_init(&plain, PARTS_REASON_MAX);
  js_plain(text, PARTS_REASON_MAX - 1, &plain);
  snprintf(why, PARTS_REASON_MAX, "%s", buf_failed(&plain) || !plain.data ? "" : plain.data);
  buf_free(&plain);
  return 0;
}

int parts_parse(const char *text, size_t len, const char *what, const part *p, uint32_t rank,
                manifest *table, bool *conflict, char why[PARTS_REASON_MAX], err *e) {
  const char *end = len ? memchr(text, '\n', len < HEAD_MAX ? len : HEAD_MAX) : NULL;
  json_t *head = NULL;
  manifest_init(table);
  *conflict = false;
  *why = 0;
  if (!end) return err_set(e, ERR_FORMAT, "%s: no part record", what);
  size_t first = (size_t)(end - text);
  int rc = js_parse(text, first, what, &head, e);
  if (rc == 0) rc = check_head(head, what, p, rank, e);
  if (rc == 0) rc = take_reason(head, what, conflict, why, e);
  if (rc == 0 && *why && len > first + 1)
    rc = err_set(e, ERR_FORMAT, "%s: it gave up, and has a table all the same", what);
  if (rc == 0 && !*why) rc = manifest_parse(end + 1, len - first - 1, what, table, e);
  json_decref(head);
  return rc;
}

/* ---- one record ---- */

static int read_part(store *s, const runlog *log, const part *p, uint32_t rank, const char *end,
                     manifest *table, bool *conflict, char why[PARTS_REASON_MAX], err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  manifest_init(table);
  buf_init(&text, (size_t)MANIFEST_BYTES_MAX + HEAD_MAX);
  int rc = key_of(log, p, rank, end, key, e);
  if (rc == 0) rc = s->ops->get(s, key, &text, e);
  if (rc == 0)
    rc = parts_parse(text.data ? text.data : "", text.len, key, p, rank, table, conflict, why, e);
  buf_free(&text);
  return rc;
}

static int put(store *s, const char *key, const part *p, const manifest *table, bool conflict,
               const char *why, err *e) {
  buf text;
  buf_init(&text, (size_t)MANIFEST_BYTES_MAX + HEAD_MAX);
  int rc = parts_print(p, table, conflict, why, &text, e);
  if (rc == 0) rc = store_put_marked(s, key, text.data, text.len, STORE_IF_ABSENT, p->mark, e);
  buf_free(&text);
  return rc;
}

/* Checks the record that is there already: an earlier try's answer may have been lost, and the same
 * table is the same part. */
static int ours_is_there(store *s, const runlog *log, const part *p, const manifest *table,
                         err *e) {
  manifest there;
  bool conflict;
  char why[PARTS_REASON_MAX];
  int rc = read_part(s, log, p, p->ranks->rank, "", &there, &conflict, why, e);
  if (rc == 0 && (*why || !digest_equal(&there.root, &table->root)))
    rc = err_set(e, ERR_EXISTS,
                 "rank %" PRIu32 " has put other files of \"%.200s\" before: is there another "
                 "process of this rank?",
                 p->ranks->rank, table->unit);
  manifest_free(&there);
  return rc;
}

int parts_put(store *s, const runlog *log, const part *p, const manifest *table, err *e) {
  char key[STORE_KEY_MAX];
  int rc = key_of(log, p, p->ranks->rank, "", key, e);
  if (rc == 0) rc = put(s, key, p, table, false, NULL, e);
  return rc == ERR_EXISTS ? ours_is_there(s, log, p, table, e) : rc;
}

int parts_put_failed(store *s, const runlog *log, const part *p, bool conflict, const char *why,
                     err *e) {
  char key[STORE_KEY_MAX];
  err gone = {0};
  int rc = key_of(log, p, p->ranks->rank, ".failed", key, e);
  if (rc == 0) rc = put(s, key, p, NULL, conflict, why, &gone);
  if (rc == ERR_EXISTS) return 0;
  return rc < 0 && gone.code ? err_set(e, rc, "%s", gone.text) : rc;
}

static int must_have_table(uint32_t rank, const char *why, err *e) {
  if (!*why) return 0;
  return err_set(e, ERR_CORRUPT, "the part of rank %" PRIu32 " has no table", rank);
}

int parts_get(store *s, const runlog *log, const part *p, uint32_t rank, manifest *out, err *e) {
  bool conflict;
  char why[PARTS_REASON_MAX];
  int rc = read_part(s, log, p, rank, "", out, &conflict, why, e);
  if (rc == 0) rc = must_have_table(rank, why, e);
  if (rc < 0) manifest_free(out);
  return rc;
}

int parts_failed(store *s, const runlog *log, const part *p, uint32_t rank, bool *conflict,
                 char why[PARTS_REASON_MAX], err *e) {
  manifest table;
  int rc = read_part(s, log, p, rank, ".failed", &table, conflict, why, e);
  if (rc == 0 && !*why) snprintf(why, PARTS_REASON_MAX, "it gave no reason");
  manifest_free(&table);
  return rc;
}

static int take_name(const json_t *head, const char *key, const char *what, char *out, size_t room,
                     err *e) {
  char *text = NULL;
  if (!json_object_get(head, key)) return 0;
  int rc = js_get_name(head, key, what, &text, e);
  if (rc == 0 && snprintf(out, room, "%s", text) >= (int)room)
    rc = err_set(e, ERR_FORMAT, "%s: its %s is too long", what, key);
  free(text);
  return rc;
}

int parts_words_parse(const char *text, size_t len, const char *what, parts_words *out, err *e) {
  const char *end = len ? memchr(text, '\n', len < HEAD_MAX ? len : HEAD_MAX) : NULL;
  json_t *head = NULL;
  *out = (parts_words){0};
  if (!end) return err_set(e, ERR_FORMAT, "%s: no part record", what);
  int rc = js_parse(text, (size_t)(end - text), what, &head, e);
  if (rc == 0) rc = take_name(head, "reason", what, out->reason, sizeof out->reason, e);
  if (rc == 0) rc = take_name(head, "needs", what, out->needs, sizeof out->needs, e);
  json_decref(head);
  return rc;
}

int parts_words_get(store *s, const runlog *log, const part *p, parts_words *out, err *e) {
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, (size_t)MANIFEST_BYTES_MAX + HEAD_MAX);
  int rc = key_of(log, p, 0, "", key, e);
  if (rc == 0) rc = s->ops->get(s, key, &text, e);
  if (rc == 0) rc = parts_words_parse(text.data ? text.data : "", text.len, key, out, e);
  buf_free(&text);
  return rc;
}

int parts_spoken(store *s, const runlog *log, const part *p, bool *out, err *e) {
  static const char *const ends[] = {"", ".failed"};
  char key[STORE_KEY_MAX];
  store_object object;
  int rc = ERR_NOENT;
  for (int i = 0; rc == ERR_NOENT && i < 2; i++) {
    err why = {0};
    rc = key_of(log, p, p->ranks->rank, ends[i], key, e);
    if (rc < 0) return rc;
    rc = s->ops->head(s, key, &object, &why);
    if (rc < 0 && rc != ERR_NOENT) return err_set(e, rc, "%s", why.text);
  }
  *out = rc == 0;
  return 0;
}

/* ---- all of them ---- */

typedef struct owned {
  manifest_entry entry;
  uint32_t rank;
} owned;

typedef struct heap {
  owned *items;
  size_t count, room;
} heap;

static void entry_free(manifest_entry *at) {
  free(at->name);
  free(at->blocks);
  free(at->target);
}

static void heap_free(heap *h) {
  for (size_t i = 0; i < h->count; i++) entry_free(&h->items[i].entry);
  free(h->items);
}

/* Takes the entries out of `from`. */
static int add_all(heap *h, manifest *from, uint32_t rank, err *e) {
  if (from->count > MANIFEST_ENTRIES_MAX - h->count)
    return err_set(e, ERR_LIMIT, "the parts of the ranks have more than %d entries",
                   MANIFEST_ENTRIES_MAX);
  while (from->count > 0) {
    if (!VEC_ROOM(h->items, h->count, h->room))
      return err_set(e, ERR_NOMEM, "merge the parts of the ranks: out of memory");
    h->items[h->count++] = (owned){.entry = from->entries[--from->count], .rank = rank};
  }
  return 0;
}

static int by_name(const void *a, const void *b) {
  const owned *x = a, *y = b;
  int order = strcmp(x->entry.name, y->entry.name);
  if (order != 0) return order;
  if (x->entry.type != y->entry.type) return x->entry.type < y->entry.type ? -1 : 1;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool same(const manifest_entry *a, const manifest_entry *b) {
  if (a->type != b->type) return false;
  if (a->type == MANIFEST_FILE) return a->size == b->size && digest_equal(&a->file, &b->file);
  return a->type == MANIFEST_DIR || strcmp(a->target, b->target) == 0;
}

/* A rank that could not follow a link out of the checkpoint has the link, where another rank has the
 * file that it leads to. */
static bool is_link_out(const manifest_entry *link, const manifest_entry *file) {
  const manifest none = {.kind = MATCH_DIR};
  return link->type == MANIFEST_LINK && file->type == MANIFEST_FILE &&
         manifest_link_leads(&none, link) == MANIFEST_LEADS_OUT;
}

static int differ(const owned *a, const owned *b, err *e) {
  buf name;
  buf_init(&name, ERR_TEXT_MAX);
  js_name_escape(a->entry.name, &name);
  err_set(e, ERR_EXISTS,
          "rank %" PRIu32 " and rank %" PRIu32 " have different files under the name \"%.300s\": "
          "ranks that save together write files of different names, or equal ones",
          a->rank, b->rank, buf_failed(&name) ? "?" : name.data);
  buf_free(&name);
  return ERR_EXISTS;
}

/* Checks that of each name all entries can stand for one. Files come before links. */
static int check_names(const heap *h, err *e) {
  for (size_t i = 1, first = 0; i < h->count; i++) {
    const manifest_entry *at = &h->items[i].entry;
    if (strcmp(h->items[first].entry.name, at->name) != 0)
      first = i;
    else if (!same(&h->items[i - 1].entry, at) && !is_link_out(at, &h->items[first].entry))
      return differ(&h->items[i - 1], &h->items[i], e);
  }
  return 0;
}

/* Of equal entries the lowest rank's stays, with its time and mode. The entries move into `out`; one that
 * has no equal was its rank's alone, whatever the record says. */
static int unite(heap *h, manifest *out, err *e) {
  size_t kept = 0;
  if (h->count > 1) qsort(h->items, h->count, sizeof *h->items, by_name);
  int rc = check_names(h, e);
  if (rc < 0) return rc;
  out->entries = calloc(h->count ? h->count : 1, sizeof *out->entries);
  if (!out->entries) return err_set(e, ERR_NOMEM, "merge the parts of the ranks: out of memory");
  out->room = h->count;
  for (size_t i = 0; i < h->count; i++) {
    manifest_entry *at = &h->items[i].entry;
    if (kept && strcmp(out->entries[kept - 1].name, at->name) == 0) {
      out->entries[kept - 1].alone = false;
      entry_free(at);
    } else {
      at->alone = true;
      at->rank = h->items[i].rank;
      out->entries[kept++] = *at;
    }
  }
  out->count = kept;
  h->count = 0;
  return 0;
}

/* Moves everything but the entries. */
static void move_head(manifest *from, manifest *out) {
  *out = *from;
  out->entries = NULL;
  out->count = out->room = 0;
  free(from->entries);
  manifest_init(from);
}

/* Each rank has a directory of its own, of which it leaves files out. */
static int add_left_out(const manifest *table, manifest *out, err *e) {
  out->left_out += table->left_out;
  out->left_here += table->left_here;
  if (manifest_left_add(&out->left_names, &table->left_names)) return 0;
  return err_set(e, ERR_NOMEM, "merge the parts of the ranks: out of memory");
}

static int one_more(const part *p, uint32_t rank, const store_ask *ask, heap *h, manifest *out,
                    err *e) {
  manifest table;
  bool conflict;
  char why[PARTS_REASON_MAX];
  if (ask->rc < 0) return err_set(e, ask->rc, "%s", ask->why.text);
  int rc = parts_parse(ask->out.data ? ask->out.data : "", ask->out.len, ask->key, p, rank, &table,
                       &conflict, why, e);
  if (rc == 0) rc = must_have_table(rank, why, e);
  if (rc == 0 && rank > 0 &&
      (strcmp(table.unit, out->unit) != 0 || table.kind != out->kind || table.hash != out->hash))
    rc = err_set(e, ERR_CORRUPT,
                 "rank %" PRIu32 " has put a part of \"%.200s\" (%s), rank 0 of \"%.200s\" (%s)",
                 rank, table.unit, manifest_kind_name(table.kind), out->unit,
                 manifest_kind_name(out->kind));
  if (rc == 0) rc = add_all(h, &table, rank, e);
  if (rc == 0 && rank > 0) rc = add_left_out(&table, out, e);
  if (rc == 0 && rank == 0) move_head(&table, out);
  manifest_free(&table);
  return rc;
}

/* What the user may set after the save is nobody's. */
static void share_outside(manifest *m) {
  for (size_t i = 0; i < m->count; i++)
    if (m->entries[i].outside) m->entries[i].alone = false;
}

/* The records of so many ranks from `first` on, side by side where the store can: one after the other
 * those of 10,000 ranks take minutes. */
static int some_more(store *s, const runlog *log, const part *p, uint32_t first, uint32_t count,
                     heap *h, manifest *out, err *e) {
  store_ask asks[AT_ONCE] = {0};
  char(*keys)[STORE_KEY_MAX] = calloc(count, sizeof *keys);
  int rc = keys ? 0 : err_set(e, ERR_NOMEM, "merge the parts of the ranks: out of memory");
  for (uint32_t i = 0; rc == 0 && i < count; i++) {
    asks[i].key = keys[i];
    buf_init(&asks[i].out, (size_t)MANIFEST_BYTES_MAX + HEAD_MAX);
    rc = key_of(log, p, first + i, "", keys[i], e);
  }
  if (rc == 0) store_get_many(s, asks, count);
  for (uint32_t i = 0; i < count; i++) {
    if (rc == 0) rc = one_more(p, first + i, &asks[i], h, out, e);
    buf_free(&asks[i].out);
  }
  free(keys);
  return rc;
}

int parts_gather(store *s, const runlog *log, const part *p, manifest *out, err *e) {
  heap h = {0};
  int rc = 0;
  manifest_init(out);
  const uint32_t world = p->ranks->world;
  for (uint32_t i = 0; rc == 0 && i < world; i += AT_ONCE)
    rc = some_more(s, log, p, i, world - i < AT_ONCE ? world - i : AT_ONCE, &h, out, e);
  if (rc == 0) rc = unite(&h, out, e);
  out->world = p->ranks->world;
  if (rc == 0) rc = manifest_seal(out, e);
  share_outside(out);
  heap_free(&h);
  if (rc < 0) manifest_free(out);
  return rc;
}
