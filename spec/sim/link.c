/* The store as one process sees it: requests and answers that get lost, come late or are refused.
 *
 * It is strongly consistent, as the object stores of today are: what a listing shows is what is
 * there. As a file store it can publish, and nothing comes late: a call that is on its way when its
 * process is paused simply has not been made yet. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commit/manifest/manifest.h"
#include "prims/fs.h"
#include "prims/hash.h"
#include "sim.h"

typedef enum fate { DONE, LOST, LOST_REPLY, LATE, REFUSED, DEAD } fate;
typedef enum deed { PUT_ABSENT, PUT_REPLACE, REMOVE } deed;

weather sim_weather;

/* ---- what is done ---- */

static bool is_pin(const char *key) {
  return strncmp(key, ".ckpt/pins/", 11) == 0;
}

/* A pin that was renewed too late counts again if its reader was told so: it looks at the log then.
 */
static void note_pin(actor *a, const char *key, bool told) {
  enum { PIN_LIFE_S = 900 };
  if (!is_pin(key)) return;
  if (!a->pin[0] || sim_now > a->pin_until) a->pin_since = sim_now;
  if (a->pin[0] && sim_now > a->pin_until) a->pin_lapsed = !told;
  snprintf(a->pin, sizeof a->pin, "%s", key);
  a->pin_until = sim_now + PIN_LIFE_S * SECOND;
}

static int put_now(actor *by, const char *key, const void *data, size_t len, deed how,
                   const char *mark) {
  bool there = space_find(key) != NULL;
  if (there && how == PUT_ABSENT) return ERR_EXISTS;
  space_put(key, data, len, mark);
  judge_put(by, key, there);
  return 0;
}

static void remove_now(actor *by, const char *key) {
  if (!space_find(key)) return;
  judge_remove(by, key);
  space_remove(key);
}

/* ---- what is still on its way ---- */

static struct late {
  int by;
  deed how;
  char *key, *data;
  size_t len;
  char mark[STORE_MARK_MAX];
} lates[LATE_MAX];
static size_t late_count;

static void late_drop(size_t i) {
  free(lates[i].key);
  free(lates[i].data);
  lates[i] = lates[--late_count];
}

void late_clear(void) {
  while (late_count) late_drop(0);
}

static bool late_add(const actor *a, deed how, const char *key, const void *data, size_t len,
                     const char *mark) {
  if (late_count == LATE_MAX) return false;
  struct late *l = &lates[late_count++];
  *l = (struct late){a->id, how, strdup(key), malloc(len + 1), len, ""};
  snprintf(l->mark, sizeof l->mark, "%s", mark);
  if (!l->key || !l->data) abort();
  if (len) memcpy(l->data, data, len);
  sim_count->late++;
  return true;
}

bool late_arrive(void) {
  static actor nobody = {.name = "a late one"};
  if (late_count == 0) return false;
  size_t i = (size_t)sim_roll(late_count);
  struct late *l = &lates[i];
  sim_trace("late: %s %s", l->how == REMOVE ? "remove" : "put", l->key);
  if (l->how == REMOVE)
    remove_now(&nobody, l->key);
  else if (put_now(&nobody, l->key, l->data, l->len, l->how, l->mark) == 0)
    sim_count->late_made++;
  late_drop(i);
  return true;
}

/* ---- one call ---- */

static void tarry(actor *a) {
  if (!a->calm && sim_chance(sim_weather.pause)) {
    static const int64_t longest[] = {30 * SECOND, 1200 * SECOND, 7200 * SECOND};
    a->wake = sim_now + (int64_t)sim_roll((uint64_t)longest[sim_roll(3)]);
    a->paused += a->wake - sim_now;
    sim_count->pauses++;
    sim_trace("is paused for %.0f s", (double)(a->wake - sim_now) / 1e9);
  }
  actor_yield();
}

/* A removal is cut in two at each of its steps, now and then. */
static void look_for_removal(actor *a, const char *key, bool removes) {
  static const char *const steps[] = {".ckpt/cleared/", ".ckpt/clearing/", ".ckpt/staging/gone."};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
    if (strncmp(key, steps[i], strlen(steps[i])) == 0)
      lost_under_removal(a, key + strlen(steps[i]));
  const judge_attempt *of = removes ? judge_attempt_for(key) : NULL;
  if (of) lost_under_removal(a, of->nonce);
}

/* The request is on its way; then it is seen what becomes of it. */
static fate begin(actor *a, bool writes) {
  if (a->dead) return DEAD;
  tarry(a);
  if (a->dead) return DEAD;
  if (a->calm) return DONE;
  if (sim_chance(sim_weather.lost)) return sim_count->lost_requests++, LOST;
  if (sim_chance(sim_weather.refused)) return sim_count->refused++, REFUSED;
  if (!writes) return DONE;
  if (sim_chance(sim_weather.lost_reply)) return LOST_REPLY;
  return !sim_weather.files && sim_chance(sim_weather.late) ? LATE : DONE;
}

/* The answer comes back. */
static int end(actor *a, fate f, int rc, const char *what, const char *key, err *e) {
  sim_trace("%s %s: %s", what, key,
            f == LOST         ? "the request is lost"
            : f == REFUSED    ? "503"
            : f == LATE       ? "it will come late"
            : f == LOST_REPLY ? "the answer is lost"
            : f == DEAD       ? "dead"
            : rc < 0          ? err_text(rc)
                              : "done");
  if (f == LOST || f == LATE) return err_set(e, ERR_TIMEOUT, "%s %s: no answer", what, key);
  if (f == REFUSED) return err_set(e, ERR_IO, "%s %s: 503", what, key);
  if (f != DEAD) tarry(a);
  if (f == DEAD || a->dead) return err_set(e, ERR_CANCELED, "%s %s: dead", what, key);
  if (f == LOST_REPLY) {
    sim_count->lost_replies++;
    return err_set(e, ERR_IO, "%s %s: the connection broke", what, key);
  }
  return rc < 0 ? err_set(e, rc, "%s %s: %s", what, key, err_text(rc)) : rc;
}

static actor *of(store *s) {
  return s->io->ctx;
}

static int link_exists(store *s, err *e) {
  (void)s;
  return space_count() ? 0 : err_set(e, ERR_NOSTORE, "nothing is there yet");
}

static void note_entry(actor *a, const char *key) {
  long long epoch, place;
  if (!lost_place(key, &epoch, &place) || epoch < a->read_epoch) return;
  if (epoch > a->read_epoch || place > a->read_to) a->read_to = place;
  a->read_epoch = epoch;
}

/* When it was told that a rank has ended: .ckpt/ranks/<launch> of the first, <launch>.over/<rank>. */
static void note_word(actor *a, const object *o) {
  const char *over = strstr(o->key, ".over/");
  if (strncmp(o->key, ".ckpt/ranks/", 12) != 0 || !strstr(o->data, "\"over\"")) return;
  unsigned rank = over ? (unsigned)strtoul(over + 6, NULL, 10) : 0;
  if (rank < RANKS) a->heard[rank] = sim_now;
}

static void note_read(actor *a, const char *key) {
  const char *shard = strstr(key, "/shard-");
  a->has_read |= shard ? 1u << strtoul(shard + 7, NULL, 10) : READ_SHARED;
}

static int link_get(store *s, const char *key, buf *out, err *e) {
  actor *a = of(s);
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  fate f = begin(a, false);
  buf got;
  buf_init(&got, 64 << 20);
  const object *o = f == DONE ? space_find(key) : NULL;
  if (o)
    buf_add(&got, o->data, o->len), note_word(a, o);
  else
    rc = ERR_NOENT;
  rc = end(a, f, rc, "get", key, e);
  a->saw_head |= rc == 0 && strcmp(key, ".ckpt/head") == 0;
  if (rc == 0) note_entry(a, key);
  if (rc == 0 && got.len > out->max - out->len) rc = err_set(e, ERR_LIMIT, "%s is too large", key);
  if (rc == 0) buf_add(out, got.data ? got.data : "", got.len);
  buf_free(&got);
  return rc;
}

/* They are on their way side by side: any of them is answered first, and others act in between. */
static void link_get_many(store *s, store_ask *asks, size_t count) {
  size_t *order = calloc(count + 1, sizeof *order);
  if (!order) abort();
  for (size_t i = 0; i < count; i++) {
    size_t at = (size_t)sim_roll(i + 1);
    order[i] = order[at];
    order[at] = i;
  }
  for (size_t i = 0; i < count; i++) {
    store_ask *ask = &asks[order[i]];
    ask->rc = link_get(s, ask->key, &ask->out, &ask->why);
  }
  free(order);
}

/* What tells contents apart here is the content itself. */
static void tag_of(const object *o, char tag[STORE_TAG_MAX]) {
  digest d;
  hash_bytes(HASH_XXH3_128, o->data, o->len, &d, NULL);
  digest_hex(&d, tag);
}

static int link_get_tagged(store *s, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e) {
  int rc = link_get(s, key, out, e);
  object o = {.data = out->data ? out->data : "", .len = out->len};
  if (rc == 0) tag_of(&o, tag);
  return rc;
}

static ssize_t link_read(store *s, const char *key, uint64_t at, void *to, size_t len, err *e) {
  actor *a = of(s);
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  fate f = begin(a, false);
  const object *o = f == DONE ? space_find(key) : NULL;
  ssize_t got = ERR_NOENT;
  if (o) {
    got = at < o->len ? (ssize_t)(o->len - at < len ? o->len - at : len) : 0;
    if (got) memcpy(to, o->data + at, (size_t)got);
    note_read(a, key);
  }
  return end(a, f, (int)got, "read", key, e);
}

static int link_head(store *s, const char *key, store_object *out, err *e) {
  actor *a = of(s);
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  look_for_removal(a, key, false);
  fate f = begin(a, false);
  const object *o = f == DONE ? space_find(key) : NULL;
  if (o) {
    *out = (store_object){.size = o->len, .mtime_ns = o->made};
    memcpy(out->mark, o->mark, sizeof out->mark);
  } else {
    rc = ERR_NOENT;
  }
  return end(a, f, rc, "head", key, e);
}

/* Its reader wakes while a pin that has expired is removed, and renews it. */
static void wake_holder(const char *key) {
  for (int i = 0; i < ACTORS_MAX; i++) {
    actor *a = actor_at(i);
    if (a && strcmp(a->pin, key) == 0 && a->wake > sim_now && sim_chance(300)) {
      a->wake = sim_now;
      actor_sleep(actor_running(), SECOND / 20);
    }
  }
}

static int write_call(actor *a, deed how, const char *key, const void *data, size_t len,
                      const char *mark, const char *what, bool equal_is_fine, err *e) {
  int rc = 0;
  look_for_removal(a, key, how == REMOVE);
  if (how == REMOVE && a->calm && is_pin(key)) wake_holder(key);
  fate f = begin(a, true);
  if (f == LATE && !late_add(a, how, key, data, len, mark)) f = LOST;
  if ((f == DONE || f == LOST_REPLY) && how == REMOVE) {
    remove_now(a, key);
    a->dead |= a->doomed && strcmp(fs_base(key), MANIFEST_NAME) == 0;
  } else if (f == DONE || f == LOST_REPLY) {
    if (how == PUT_ABSENT) lost_before_put(a, key);
    const object *there = space_find(key);
    rc = put_now(a, key, data, len, how, mark);
    if (rc == 0) note_pin(a, key, f == DONE);
    if (rc == ERR_EXISTS && equal_is_fine && there->len == len &&
        memcmp(there->data, data, len) == 0) {
      sim_count->resumed++;
      rc = 0;
    }
  }
  return end(a, f, rc, what, key, e);
}

static int link_put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                           const char *mark, err *e) {
  int rc = store_key_check(key, e);
  return rc < 0 ? rc
                : write_call(of(s), how == STORE_REPLACE ? PUT_REPLACE : PUT_ABSENT, key, data, len,
                             mark, "put", false, e);
}

static int link_put(store *s, const char *key, const void *data, size_t len, store_how how,
                    err *e) {
  return link_put_marked(s, key, data, len, how, "", e);
}

/* It is never late: who comes with an old tag is refused whenever he comes. */
static int link_replace_if(store *s, const char *key, const void *data, size_t len, const char *tag,
                           err *e) {
  actor *a = of(s);
  char now[STORE_TAG_MAX] = "";
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  fate f = begin(a, true);
  if (f == LATE) f = LOST;
  if (f == DONE || f == LOST_REPLY) {
    const object *there = space_find(key);
    if (there) tag_of(there, now);
    rc = !there ? ERR_NOENT : strcmp(now, tag) != 0 ? ERR_CONFLICT : 0;
    if (rc == 0) rc = put_now(a, key, data, len, PUT_REPLACE, "");
  }
  return end(a, f, rc, "replace", key, e);
}

static int link_remove(store *s, const char *key, err *e) {
  int rc = store_key_check(key, e);
  return rc < 0 ? rc : write_call(of(s), REMOVE, key, NULL, 0, "", "remove", false, e);
}

/* ---- listings ---- */

typedef struct listing {
  char (*at)[STORE_KEY_MAX];
  bool *is_prefix;
  store_object *objects;
  size_t count, room;
} listing;

static void listing_add(listing *n, const char *key, size_t len, const object *o) {
  if (n->count == n->room) {
    n->room = n->room ? 2 * n->room : 64;
    n->at = realloc(n->at, n->room * sizeof *n->at);
    n->is_prefix = realloc(n->is_prefix, n->room * sizeof *n->is_prefix);
    n->objects = realloc(n->objects, n->room * sizeof *n->objects);
    if (!n->at || !n->is_prefix || !n->objects) abort();
  }
  snprintf(n->at[n->count], STORE_KEY_MAX, "%.*s", (int)len, key);
  n->is_prefix[n->count] = o == NULL;
  n->objects[n->count] =
      o ? (store_object){.size = o->len, .mtime_ns = o->made} : (store_object){0};
  n->count++;
}

static void listing_take(listing *n, const char *prefix, bool delimited) {
  size_t skip = *prefix ? strlen(prefix) + 1 : 0;
  for (size_t i = *prefix ? space_from(prefix) : 0; i < space_count(); i++) {
    const object *o = space_at(i);
    if (!space_below(o->key, prefix)) {
      if (strcmp(o->key, prefix) == 0) continue;
      break;
    }
    size_t part = skip + strcspn(o->key + skip, "/");
    if (!delimited || !o->key[part]) {
      listing_add(n, o->key, strlen(o->key), o);
    } else if (n->count == 0 || !n->is_prefix[n->count - 1] ||
               strlen(n->at[n->count - 1]) != part ||
               strncmp(n->at[n->count - 1], o->key, part) != 0) {
      listing_add(n, o->key, part, NULL);
    }
  }
}

static void listing_free(listing *n) {
  free(n->at);
  free(n->is_prefix);
  free(n->objects);
}

static int link_list(store *s, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                     err *e) {
  actor *a = of(s);
  listing n = {0};
  fate f = begin(a, false);
  if (f == DONE) listing_take(&n, prefix, delimited);
  int rc = end(a, f, 0, "list", prefix, e);
  for (size_t i = 0; rc == 0 && i < n.count; i++)
    rc = fn(ctx, n.at[i], n.is_prefix[i], n.is_prefix[i] ? NULL : &n.objects[i]);
  listing_free(&n);
  return rc;
}

/* A listing, then one request for each object: others come in between, and it may stop halfway. */
static int link_remove_prefix(store *s, const char *prefix, err *e) {
  actor *a = of(s);
  listing n = {0};
  int rc = store_key_check(prefix, e);
  if (rc < 0) return rc;
  fate f = begin(a, false);
  if (f == DONE) listing_take(&n, prefix, false);
  rc = end(a, f, 0, "list", prefix, e);
  for (size_t i = 0; rc == 0 && i < n.count; i++)
    rc = write_call(a, REMOVE, n.at[i], NULL, 0, "", "remove", false, e);
  listing_free(&n);
  return rc;
}

/* ---- large objects ---- */

typedef struct link_writer {
  store_writer base;
  char key[STORE_KEY_MAX];
  uint64_t size;
  unsigned how;
  buf data;
  char mark[STORE_MARK_MAX];
} link_writer;

static int link_write_open(store *s, const char *key, uint64_t size, unsigned how,
                           atomic_int *cancel, store_writer **out, err *e) {
  (void)cancel;
  *out = NULL;
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  link_writer *w = calloc(1, sizeof *w);
  if (!w) abort();
  w->base.store = s;
  w->size = size;
  w->how = how;
  snprintf(w->key, sizeof w->key, "%s", key);
  buf_init(&w->data, (size_t)size);
  *out = &w->base;
  return 0;
}

static int link_write(store_writer *base, const void *data, size_t len, err *e) {
  link_writer *w = (link_writer *)base;
  buf_add(&w->data, data, len);
  return buf_failed(&w->data) ? err_set(e, ERR_INVAL, "%s: too many bytes", w->key) : 0;
}

static void link_write_mark(store_writer *base, const char *mark) {
  snprintf(((link_writer *)base)->mark, STORE_MARK_MAX, "%s", mark);
}

static void link_write_abort(store_writer *base) {
  link_writer *w = (link_writer *)base;
  buf_free(&w->data);
  free(w);
}

static int link_write_close(store_writer *base, err *e) {
  link_writer *w = (link_writer *)base;
  actor *a = of(base->store);
  int rc = w->data.len == w->size ? 0 : err_set(e, ERR_INVAL, "%s: too few bytes", w->key);
  if (rc == 0)
    rc = write_call(a, PUT_ABSENT, w->key, w->data.data ? w->data.data : "", w->data.len, w->mark,
                    "send", w->how & STORE_RESUME, e);
  link_write_abort(base);
  return rc;
}

static int link_publish(store *s, const char *from, const char *to, err *e) {
  actor *a = of(s);
  look_for_removal(a, to, false);
  look_for_removal(a, from, strncmp(to, ".ckpt/staging/gone.", 19) == 0);
  fate f = begin(a, true);
  int rc = 0;
  if (f == DONE || f == LOST_REPLY) {
    const object *first = space_at(space_from(from)), *there = space_at(space_from(to));
    if (there && (space_below(there->key, to) || strcmp(there->key, to) == 0))
      rc = ERR_EXISTS;
    else if (!first || !space_below(first->key, from))
      rc = ERR_NOENT;
    if (rc == 0) {
      if (strncmp(to, ".ckpt/staging/gone.", 19) == 0 && sim_chance(300)) judge_swap(from);
      judge_publish(a, from, to);
      space_rename(from, to);
      a->dead |= a->doomed && strncmp(to, ".ckpt/staging/gone.", 19) == 0;
    }
  }
  return end(a, f, rc, "publish", to, e);
}

static const store_ops object_ops = {
    .version = 1,
    .scheme = "sim",
    .caps = STORE_CAP_IF_ABSENT | STORE_CAP_RESUME,
    .exists = link_exists,
    .get = link_get,
    .get_many = link_get_many,
    .get_tagged = link_get_tagged,
    .replace_if = link_replace_if,
    .read = link_read,
    .head = link_head,
    .put = link_put,
    .list = link_list,
    .remove = link_remove,
    .remove_prefix = link_remove_prefix,
    .write_open = link_write_open,
    .write = link_write,
    .write_close = link_write_close,
    .write_abort = link_write_abort,
    .put_marked = link_put_marked,
    .write_mark = link_write_mark,
};

static store_ops file_ops;

void link_open(actor *a) {
  file_ops = object_ops;
  file_ops.caps =
      STORE_CAP_IF_ABSENT | STORE_CAP_PUBLISH | (store_file_ops.caps & STORE_CAP_RESUME);
  file_ops.publish = link_publish;
  file_ops.get_many = NULL;
  file_ops.put_marked = NULL; /* files have no metadata of ours */
  file_ops.write_mark = NULL;
  a->store = (store){.ops = sim_weather.files ? &file_ops : &object_ops, .io = &a->io};
}
