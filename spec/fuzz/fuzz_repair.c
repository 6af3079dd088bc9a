/* A repair reads whatever is left of a log, and what stands beside it. */
#include "targets.h"

#include <string.h>

#include "base/uri.h"
#include "commit/log/runlog_impl.h"
#include "job/repair/repair.h"
#include "store/store.h"

/* The pieces of the input are these objects, and behind them the entries; an empty one is lost. */
static const char *const beside[] = {".ckpt/head", ".ckpt/verified",
                                     ".ckpt/pins/0123456789abcdef0123456789abcdef",
                                     "checkpoint-3/.ckpt-manifest.json"};
enum { BESIDE = sizeof beside / sizeof *beside, ENTRIES = 40, OBJECTS = BESIDE + ENTRIES };

typedef struct placed {
  char key[STORE_KEY_MAX];
  const uint8_t *data;
  size_t len;
} placed;

static store *place(void) {
  static store *s;
  uri where;
  if (s) return s;
  must(uri_parse("mem://repair", &where, NULL) == 0);
  must(store_open(&where, fuzz_io(), NULL, &s, NULL) == 0);
  return s;
}

static void clear(store *s) {
  must(s->ops->remove_prefix(s, ".ckpt", NULL) == 0);
  must(s->ops->remove_prefix(s, "checkpoint-3", NULL) == 0);
}

static size_t put_all(store *s, const uint8_t *data, size_t size, placed *out) {
  const uint8_t *piece, *rest = data;
  size_t len, count = 0;
  for (size_t i = 0; size && i < OBJECTS && (piece = fuzz_piece(&rest, &size, 0x1e, &len)); i++) {
    placed *p = &out[count];
    if (len == 0) continue;
    if (i < BESIDE)
      snprintf(p->key, sizeof p->key, "%s", beside[i]);
    else
      must(runlog_key_entry("", i - BESIDE, p->key, NULL) == 0);
    p->data = piece;
    p->len = len;
    must(s->ops->put(s, p->key, piece, len, STORE_REPLACE, NULL) == 0);
    count++;
  }
  return count;
}

/* A commit that it makes is named by the head. */
static bool may_change(const char *key) {
  return strcmp(key, ".ckpt/head") == 0;
}

static void check_all(store *s, const placed *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    buf there;
    buf_init(&there, 1 << 20);
    must(s->ops->get(s, all[i].key, &there, NULL) == 0);
    bool same = there.len == all[i].len && memcmp(there.data, all[i].data, there.len) == 0;
    must(same || may_change(all[i].key));
    buf_free(&there);
  }
}

/* It removes and changes nothing that is there; and where it says that it is done, the log is read
 * without a word of damage, and can be repaired again. */
void fuzz_repair(const uint8_t *data, size_t size) {
  static placed all[OBJECTS];
  store *s = place();
  const repair how = {.store = s, .prefix = "", .take_over = true};
  runlog *log = NULL;
  err e = {0};
  clear(s);
  size_t count = put_all(s, data, size, all);
  int rc = repair_log(&how, &e);
  must(rc == 0 || *e.text);
  for (const char *at = e.text; *at; at++) must((unsigned char)*at >= ' ');
  check_all(s, all, count);
  if (rc == 0) {
    must(runlog_open(s, "", &log, NULL) == 0 && runlog_check_damage(log, NULL) == 0);
    runlog_close(log);
    must(repair_log(&how, NULL) == 0);
  }
  clear(s);
}
