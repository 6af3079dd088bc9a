/* The public API, its part about single checkpoints of a target: all that is known of one, and
 * pins. As a guest: no run is opened, and nobody is fenced. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/seconds.h"
#include "ckpt_state.h"
#include "core/pins.h"
#include "core/restore.h"

/* ---- which checkpoint is meant ---- */

int ckpt_no_such(const ckpt_asked *a, err *e) {
  if (!a->name) return err_set(e, ERR_NOENT, "%s has no checkpoint", a->where);
  return err_set(e, ERR_NOENT, "%s has no checkpoint %s (ckpt-lua ls shows what there is)",
                 a->where, a->name);
}

static int is_begun(void *ctx, const catalog_place *at, runlog *log, err *e) {
  (void)at, (void)e;
  *(bool *)ctx |= runlog_view(log)->next > 0;
  return 0;
}

/* 1 if there is a log at or below the place. */
static int is_target(const ckpt_asked *a, err *e) {
  ckpt *c = a->engine;
  bool here = false;
  err why = {0};
  int rc = catalog_log_at(c->env.io, &c->log, a->where, "", is_begun, &here, e);
  if (rc < 0 || here) return rc < 0 ? rc : 1;
  rc = catalog_logs(c->env.io, &c->log, a->where, is_begun, &here, &why);
  if (rc == ERR_NOENT || rc == ERR_NOSTORE) return 0;
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 1;
}

/* Without a name the last part of the place may be one. */
int ckpt_ask(ckpt *c, const char *uri, const char *name, ckpt_asked *a) {
  err *e = &c->error;
  *a = (ckpt_asked){.engine = c, .name = name};
  if (!uri || !*uri) return err_set(e, ERR_INVAL, "a target is needed");
  if (snprintf(a->where, sizeof a->where, "%s", uri) >= (int)sizeof a->where)
    return err_set(e, ERR_LIMIT, "%.100s...: the URI is too long", uri);
  int target = name ? 1 : is_target(a, e);
  char *slash = strrchr(a->where, '/');
  bool splits = slash && slash > a->where && slash[-1] != '/' && slash[1];
  if (target != 0 || !splits) return target < 0 ? target : 0;
  *slash = 0;
  a->name = slash + 1;
  return 0;
}

int ckpt_each_log(const ckpt_asked *a, catalog_log_fn *fn, void *ctx, err *e) {
  ckpt *c = a->engine;
  return catalog_logs(c->env.io, &c->log, a->where, fn, ctx, e);
}

/* The newest live one of all groups that is meant. */
typedef struct chosen {
  const ckpt_asked *asked;
  char group[STORE_KEY_MAX];
  uint64_t number;
  int64_t time_ns;
  bool found;
} chosen;

static int choose_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  chosen *ch = ctx;
  const runlog_commit *c = catalog_newest(log, ch->asked->name);
  (void)at, (void)e;
  if (!c || (ch->found && c->time_ns <= ch->time_ns)) return 0;
  snprintf(ch->group, sizeof ch->group, "%s", runlog_prefix(log));
  ch->number = c->n;
  ch->time_ns = c->time_ns;
  ch->found = true;
  return 0;
}

/* Calls fn for the log that has it, with *chosen known. */
static int with_chosen(const ckpt_asked *a, chosen *ch, catalog_log_fn *fn, void *ctx, err *e) {
  ckpt *c = a->engine;
  *ch = (chosen){.asked = a};
  int rc = ckpt_each_log(a, choose_in, ch, e);
  if (rc == 0 && !ch->found) rc = ckpt_no_such(a, e);
  return rc < 0 ? rc : catalog_log_at(c->env.io, &c->log, a->where, ch->group, fn, ctx, e);
}

static int get_chosen(const chosen *ch, const runlog *log, const runlog_commit **out, err *e) {
  *out = runlog_find_commit(runlog_view(log), ch->number);
  if (*out && (*out)->life == RUNLOG_LIVE) return 0;
  return err_set(e, ERR_CONFLICT, "it was dropped just now: nothing was done");
}

/* ---- pins ---- */

struct pinning {
  chosen chosen;
  int64_t life_ns;
  char *id;
};

/* Put first, then look: whoever deletes drops first, then lists the pins. */
static int pin_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct pinning *p = ctx;
  const runlog_commit *c;
  int rc = get_chosen(&p->chosen, log, &c, e);
  if (rc < 0) return rc;
  pin_request request = {.dir = c->dir, .by = "user", .commit = c->n, .life_ns = p->life_ns};
  rc = pins_put(at->store, runlog_prefix(log), &request, p->id, false, e);
  if (rc < 0) return rc;
  rc = runlog_refresh(log, e);
  if (rc == 0) rc = get_chosen(&p->chosen, log, &c, e);
  if (rc < 0) pins_remove(at->store, runlog_prefix(log), p->id, NULL);
  return rc;
}

int ckpt_pin(ckpt *c, const char *uri, const char *name, double seconds, char id[33]) {
  ckpt_asked a;
  struct pinning p = {.id = id};
  id[0] = 0;
  int rc = seconds_to_ns(seconds, "how long the pin holds (0: for ever)", &p.life_ns, &c->error);
  if (p.life_ns == SECONDS_FOREVER) p.life_ns = 0;
  if (rc == 0) rc = ckpt_ask(c, uri, name, &a);
  if (rc == 0) rc = with_chosen(&a, &p.chosen, pin_in, &p, &c->error);
  if (rc < 0) id[0] = 0;
  return rc;
}

struct unpinning {
  const ckpt_asked *asked;
  int removed;
};

static bool is_meant(const struct unpinning *u, const runlog *log, const pin *p) {
  const runlog_commit *c = runlog_find_commit(runlog_view(log), p->commit);
  return strcmp(p->id, u->asked->name) == 0 ||
         (c && catalog_is_asked(u->asked->name, runlog_prefix(log), c));
}

/* What cannot be read as a pin can still be removed by its name. */
static int unpin_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct unpinning *u = ctx;
  const char *prefix = runlog_prefix(log);
  pins all;
  int rc = pins_list(at->store, prefix, &all, e);
  for (size_t i = 0; rc == 0 && i < all.count; i++) {
    if (!is_meant(u, log, &all.at[i])) continue;
    rc = pins_remove(at->store, prefix, all.at[i].id, e);
    if (rc == 0) u->removed++;
    if (rc == ERR_NOENT) rc = 0;
  }
  const char *slash = strrchr(all.broken_key, '/');
  if (rc == 0 && slash && strcmp(slash + 1, u->asked->name) == 0) {
    rc = pins_remove(at->store, prefix, slash + 1, e);
    u->removed += rc == 0;
  }
  pins_free(&all);
  return rc;
}

int ckpt_unpin(ckpt *c, const char *uri, const char *name_or_id) {
  ckpt_asked a;
  int rc = ckpt_ask(c, uri, name_or_id, &a);
  struct unpinning u = {.asked = &a};
  if (rc == 0 && !a.name)
    rc = err_set(&c->error, ERR_INVAL, "which pin? (an id, or a checkpoint's name)");
  if (rc == 0) rc = ckpt_each_log(&a, unpin_in, &u, &c->error);
  if (rc < 0) return rc;
  if (u.removed) return u.removed;
  return err_set(&c->error, ERR_NOENT, "%s has no pin %s, and none on a checkpoint of that name",
                 a.where, a.name);
}

/* ---- show ---- */

static void set(json_t *object, const char *key, json_t *value, int *bad) {
  *bad |= json_object_set_new(object, key, value);
}

static void set_text(json_t *object, const char *key, const char *text, int *bad) {
  if (text && *text) set(object, key, json_string(text), bad);
}

static json_t *file_json(const manifest_entry *f, int *bad) {
  static const char *const types[] = {
      [MANIFEST_FILE] = "file", [MANIFEST_DIR] = "dir", [MANIFEST_LINK] = "link"};
  char hex[HASH_HEX_MAX];
  json_t *o = json_object();
  set(o, "name", js_name_new(f->name), bad);
  set(o, "type", json_string(types[f->type]), bad);
  set(o, "mode", json_integer(f->mode), bad);
  set(o, "mtime_ns", json_integer(f->mtime_ns), bad);
  if (f->type == MANIFEST_LINK) set(o, "target", js_name_new(f->target), bad);
  if (f->type != MANIFEST_FILE) return o;
  digest_hex(&f->file, hex);
  set(o, "size", json_integer((json_int_t)f->size), bad);
  set(o, "digest", json_string(hex), bad);
  return o;
}

static json_t *pin_json(const pin *p, int64_t now, int *bad) {
  json_t *o = json_object();
  set(o, "id", json_string(p->id), bad);
  set(o, "by", js_name_new(p->by), bad);
  set(o, "host", js_name_new(p->host), bad);
  set(o, "created_ns", json_integer(p->created_ns), bad);
  if (p->expires_ns) set(o, "expires_ns", json_integer(p->until_ns), bad);
  set(o, "expired", json_boolean(pin_expired(p, now)), bad);
  return o;
}

static void append(json_t *array, json_t *value, int *bad) {
  *bad |= json_array_append_new(array, value);
}

static void set_metrics(json_t *o, const char *text, int *bad) {
  json_t *value = NULL;
  if (text && js_parse(text, strlen(text), "metrics", &value, NULL) == 0)
    set(o, "metrics", value, bad);
}

/* What the log says; metrics that were too large for it are in the manifest. */
static void set_commit(json_t *o, const catalog_item *item, const manifest *m, int *bad) {
  const runlog_commit *c = item->commit;
  char hex[HASH_HEX_MAX];
  digest_hex(&c->root, hex);
  set(o, "group", js_name_new(item->group), bad);
  set(o, "name", js_name_new(c->unit), bad);
  set(o, "dir", js_name_new(c->dir), bad);
  set(o, "uri", js_name_new(item->uri), bad);
  set(o, "number", json_integer((json_int_t)c->n), bad);
  set(o, "kind", json_string(manifest_kind_name(c->kind)), bad);
  if (c->step != MATCH_NO_STEP) set(o, "step", json_integer(c->step), bad);
  set(o, "time_ns", json_integer(c->time_ns), bad);
  set(o, "bytes", json_integer((json_int_t)c->bytes), bad);
  set(o, "digest", json_string(hash_name(m->hash)), bad);
  set(o, "root", json_string(hex), bad);
  set_text(o, "policy", c->policy, bad);
  set_text(o, "reason", c->reason, bad);
  if (c->bad) set(o, "bad", json_true(), bad);
  set_text(o, "bad_reason", c->bad_reason, bad);
  set_metrics(o, c->metrics ? c->metrics : m->metrics, bad);
}

static int show_json(const catalog_item *item, const manifest *m, const pins *held, int64_t now,
                     char **out, err *e) {
  json_t *o = json_object(), *files = json_array(), *pinned = json_array();
  int bad = 0;
  buf text;
  buf_init(&text, 2 * (size_t)MANIFEST_BYTES_MAX);
  set_commit(o, item, m, &bad);
  for (size_t i = 0; i < m->count; i++) append(files, file_json(&m->entries[i], &bad), &bad);
  for (size_t i = 0; i < held->count; i++)
    if (held->at[i].commit == item->commit->n)
      append(pinned, pin_json(&held->at[i], now, &bad), &bad);
  set(o, "files", files, &bad);
  set(o, "pins", pinned, &bad);
  int rc = bad ? err_set(e, ERR_NOMEM, "show: out of memory") : js_print(o, &text, e);
  if (rc == 0) *out = buf_take(&text);
  buf_free(&text);
  json_decref(o);
  return rc;
}

struct showing {
  chosen chosen;
  ckpt *engine;
};

static int show_in(void *ctx, const catalog_place *at, runlog *log, err *e) {
  struct showing *s = ctx;
  const io *io = s->engine->env.io;
  const runlog_commit *c;
  catalog_told t;
  manifest m = {0};
  pins held = {0};
  int rc = get_chosen(&s->chosen, log, &c, e);
  if (rc == 0) rc = catalog_describe(at, log, c, &t, e);
  if (rc == 0) rc = restore_manifest(at->store, runlog_prefix(log), c, &m, e);
  if (rc == 0) rc = pins_list(at->store, runlog_prefix(log), &held, e);
  if (rc == 0) rc = show_json(&t.item, &m, &held, io->now(io, IO_WALL), &s->engine->text, e);
  manifest_free(&m);
  pins_free(&held);
  return rc;
}

int ckpt_show(ckpt *c, const char *uri, const char *name, const char **json) {
  ckpt_asked a;
  struct showing s = {.engine = c};
  free(c->text);
  c->text = NULL;
  *json = NULL;
  int rc = ckpt_ask(c, uri, name, &a);
  if (rc == 0) rc = with_chosen(&a, &s.chosen, show_in, &s, &c->error);
  *json = c->text;
  return rc;
}
