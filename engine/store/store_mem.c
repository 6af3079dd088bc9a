/* store_mem: objects in this process, shared by all who open the same name. It can do no more than
 * an object store can (no publish), so that the code for those is tested without a server. */
#include "store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

typedef struct object {
  char *key; /* with the prefix of the store that put it */
  char *data;
  size_t len;
  int64_t mtime_ns;
  uint64_t version; /* no two contents have had the same */
  char mark[STORE_MARK_MAX];
} object;

/* The contents of one name. They live while at least one store has it open. */
typedef struct space space;
struct space {
  space *next;
  char name[256];
  unsigned opened;
  object *objects; /* sorted by store_key_order */
  size_t count, room;
};

typedef struct mem_store {
  store base;
  space *space;
  char prefix[URI_MAX]; /* the path of the URI: "" or "a/b" */
} mem_store;

typedef struct mem_writer {
  store_writer base;
  uint64_t size;
  bool resume; /* an object of the same bytes is as good as ours */
  bool over;
  int failure; /* sticky: after a failed write no object may be made */
  buf data;
  char mark[STORE_MARK_MAX];
  char key[STORE_KEY_MAX + 1];
} mem_writer;

enum { FULL_MAX = URI_MAX + STORE_KEY_MAX + 2 };

/* Guards the list of spaces and all that is in them. No callback runs under it. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static space *spaces;
static uint64_t versions;

static bool below(const char *key, const char *prefix) {
  size_t len = strlen(prefix);
  return len == 0 || (strncmp(key, prefix, len) == 0 && key[len] == '/');
}

static int by_key(const void *key, const void *item) {
  return store_key_order(key, ((const object *)item)->key);
}

/* The first place whose key is not before `key`. */
static size_t place_of(const space *s, const char *key) {
  return vec_place(key, s->objects, s->count, sizeof(object), by_key, NULL);
}

static object *find(const space *s, const char *key) {
  return vec_find(key, s->objects, s->count, sizeof(object), by_key);
}

static void object_free(object *o) {
  free(o->key);
  free(o->data);
}

static void take_out(space *s, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) object_free(&s->objects[i]);
  if (from < to) memmove(s->objects + from, s->objects + to, (s->count - to) * sizeof *s->objects);
  s->count -= to - from;
}

static void full_key(const mem_store *m, const char *key, char out[FULL_MAX]) {
  size_t len = strlen(m->prefix);
  memcpy(out, m->prefix, len);
  if (len && *key) out[len++] = '/';
  memcpy(out + len, key, strlen(key) + 1);
}

/* Begins every call: refuses a text that is no key, and puts the store's prefix before it. */
static int enter(store *s, const char *key, char full[FULL_MAX], err *e) {
  int rc = store_key_check(key, e);
  if (rc == 0) full_key((mem_store *)s, key, full);
  return rc;
}

static int no_memory(err *e, const char *key) {
  return err_set(e, ERR_NOMEM, "mem store: no memory for \"%.200s\"", key);
}

static int not_found(err *e, const store *s, const char *key) {
  return err_set(e, ERR_NOENT, "mem://%s has no object \"%.200s\"",
                 ((const mem_store *)s)->space->name, key);
}

static space *space_take(const char *name) {
  space *s = spaces;
  while (s && strcmp(s->name, name) != 0) s = s->next;
  if (!s && (s = calloc(1, sizeof *s))) {
    memcpy(s->name, name, strlen(name) + 1);
    s->next = spaces;
    spaces = s;
  }
  if (s) s->opened++;
  return s;
}

static void space_drop(space *s) {
  if (--s->opened) return;
  space **at = &spaces;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  take_out(s, 0, s->count);
  free(s->objects);
  free(s);
}

static int mem_open(const uri *where, const io *io, const log_sink *log, store **out, err *e) {
  *out = NULL;
  mem_store *m = calloc(1, sizeof *m);
  if (!m) return no_memory(e, where->host);
  m->base = (store){.ops = &store_mem_ops, .io = io};
  if (log) m->base.log = *log;
  memcpy(m->prefix, where->path, strlen(where->path) + 1);
  pthread_mutex_lock(&guard);
  m->space = space_take(where->host);
  pthread_mutex_unlock(&guard);
  if (!m->space) {
    free(m);
    return no_memory(e, where->host);
  }
  *out = &m->base;
  return 0;
}

static void mem_close(store *s) {
  pthread_mutex_lock(&guard);
  space_drop(((mem_store *)s)->space);
  pthread_mutex_unlock(&guard);
  free(s);
}

static int mem_exists(store *s, err *e) {
  mem_store *m = (mem_store *)s;
  pthread_mutex_lock(&guard);
  size_t at = place_of(m->space, m->prefix);
  /* An object whose key is the prefix itself is not below it, and sorts just before the first that
   * is. */
  if (at < m->space->count && strcmp(m->space->objects[at].key, m->prefix) == 0) at++;
  bool found = at < m->space->count && below(m->space->objects[at].key, m->prefix);
  pthread_mutex_unlock(&guard);
  return found ? 0
               : err_set(e, ERR_NOSTORE, "nothing is at mem://%s%s%s yet", m->space->name,
                         *m->prefix ? "/" : "", m->prefix);
}

static int copy_out(const object *o, const char *key, buf *out, err *e) {
  if (o->len > out->max - out->len)
    return err_set(e, ERR_LIMIT, "\"%.200s\" has %zu bytes, over the limit of %zu", key, o->len,
                   out->max - out->len);
  buf_add(out, o->data, o->len);
  return buf_failed(out) ? no_memory(e, key) : 0;
}

static void tag_of(const object *o, char tag[STORE_TAG_MAX]) {
  snprintf(tag, STORE_TAG_MAX, "%llu", (unsigned long long)o->version);
}

/* `tag` may be NULL. */
static int mem_get_tagged(store *s, const char *key, buf *out, char *tag, err *e) {
  char full[FULL_MAX];
  int rc = enter(s, key, full, e);
  if (rc < 0) return rc;
  pthread_mutex_lock(&guard);
  const object *o = find(((mem_store *)s)->space, full);
  rc = o ? copy_out(o, key, out, e) : not_found(e, s, key);
  if (rc == 0 && tag) tag_of(o, tag);
  pthread_mutex_unlock(&guard);
  return rc;
}

static int mem_get(store *s, const char *key, buf *out, err *e) {
  return mem_get_tagged(s, key, out, NULL, e);
}

/* The last one first: nobody may count on an order. */
static void mem_get_many(store *s, store_ask *asks, size_t count) {
  for (size_t i = count; i-- > 0;)
    asks[i].rc = mem_get_tagged(s, asks[i].key, &asks[i].out, NULL, &asks[i].why);
}

static ssize_t mem_read(store *s, const char *key, uint64_t at, void *to, size_t len, err *e) {
  char full[FULL_MAX];
  ssize_t rc = enter(s, key, full, e);
  if (rc < 0) return rc;
  pthread_mutex_lock(&guard);
  const object *o = find(((mem_store *)s)->space, full);
  if (!o)
    rc = not_found(e, s, key);
  else if (at < o->len) {
    if (len > o->len - at) len = o->len - at;
    memcpy(to, o->data + at, len);
    rc = (ssize_t)len;
  }
  pthread_mutex_unlock(&guard);
  return rc;
}

static int mem_head(store *s, const char *key, store_object *out, err *e) {
  char full[FULL_MAX];
  int rc = enter(s, key, full, e);
  if (rc < 0) return rc;
  pthread_mutex_lock(&guard);
  const object *o = find(((mem_store *)s)->space, full);
  if (o) {
    *out = (store_object){.size = o->len, .mtime_ns = o->mtime_ns};
    memcpy(out->mark, o->mark, sizeof out->mark);
  } else
    rc = not_found(e, s, key);
  pthread_mutex_unlock(&guard);
  return rc;
}

/* Makes `data` (malloced, owned from here on) the content of `key`, in one step. */
static int insert(store *s, const char *key, char *data, size_t len, store_how how,
                  const char *mark, err *e) {
  char full[FULL_MAX];
  int64_t now = s->io->now(s->io, IO_WALL);
  full_key((mem_store *)s, key, full);
  object made = {.key = strdup(full), .data = data, .len = len, .mtime_ns = now};
  snprintf(made.mark, sizeof made.mark, "%s", mark);
  space *home = ((mem_store *)s)->space;
  int rc = 0;
  pthread_mutex_lock(&guard);
  made.version = ++versions;
  object *old = find(home, full);
  if (!made.key)
    rc = no_memory(e, key);
  else if (old && how == STORE_IF_ABSENT)
    rc = err_set(e, ERR_EXISTS, "mem://%s has an object \"%.200s\" already", home->name, key);
  else if (old) {
    object keep = *old;
    *old = made;
    made = keep;
  } else if (!VEC_ROOM(home->objects, home->count, home->room))
    rc = no_memory(e, key);
  else {
    size_t at = place_of(home, full);
    memmove(home->objects + at + 1, home->objects + at, (home->count - at) * sizeof made);
    home->objects[at] = made;
    home->count++;
    made = (object){0};
  }
  pthread_mutex_unlock(&guard);
  object_free(&made);
  return rc;
}

static int mem_put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                          const char *mark, err *e) {
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  char *copy = malloc(len ? len : 1);
  if (!copy) return no_memory(e, key);
  if (len) memcpy(copy, data, len);
  return insert(s, key, copy, len, how, mark, e);
}

static int mem_put(store *s, const char *key, const void *data, size_t len, store_how how, err *e) {
  return mem_put_marked(s, key, data, len, how, "", e);
}

/* Returns the first place behind `last`, and behind all keys below it if `whole`. */
static size_t place_after(const space *s, const char *last, bool whole) {
  size_t at = place_of(s, last);
  if (at < s->count && strcmp(s->objects[at].key, last) == 0) at++;
  while (whole && at < s->count && below(s->objects[at].key, last)) at++;
  return at;
}

/* Takes one step of a listing: finds the key behind `cursor`, and writes it there. `whole` says
 * that the cursor stands for all keys below it too. Returns 1 if there was one. */
static int list_step(const space *s, const char *prefix, bool delimited, char cursor[FULL_MAX],
                     bool *whole, store_object *out) {
  size_t at = place_after(s, cursor, *whole);
  if (at == s->count || !below(s->objects[at].key, prefix)) return 0;
  const object *o = &s->objects[at];
  size_t skip = *prefix ? strlen(prefix) + 1 : 0;
  size_t part = skip + strcspn(o->key + skip, "/");
  size_t len = delimited ? part : strlen(o->key);
  *whole = delimited && o->key[part] == '/';
  memcpy(cursor, o->key, len);
  cursor[len] = 0;
  *out = (store_object){.size = o->len, .mtime_ns = o->mtime_ns};
  return 1;
}

/* Goes from key to key and looks each one up anew: the callback may take its time, and call the
 * store. */
static int mem_list(store *s, const char *prefix, bool delimited, store_list_fn *fn, void *ctx,
                    err *e) {
  mem_store *m = (mem_store *)s;
  char full[FULL_MAX], cursor[FULL_MAX];
  int rc = *prefix ? store_key_check(prefix, e) : 0;
  if (rc < 0) return rc;
  full_key(m, prefix, full);
  memcpy(cursor, full, strlen(full) + 1);
  size_t own = *m->prefix ? strlen(m->prefix) + 1 : 0;
  bool whole = false;
  while (rc == 0) {
    store_object object;
    pthread_mutex_lock(&guard);
    int more = list_step(m->space, full, delimited, cursor, &whole, &object);
    pthread_mutex_unlock(&guard);
    if (!more) break;
    rc = fn(ctx, cursor + own, whole, whole ? NULL : &object);
  }
  return rc;
}

static int mem_remove(store *s, const char *key, err *e) {
  char full[FULL_MAX];
  int rc = enter(s, key, full, e);
  if (rc < 0) return rc;
  space *home = ((mem_store *)s)->space;
  pthread_mutex_lock(&guard);
  const object *o = find(home, full);
  if (o) take_out(home, (size_t)(o - home->objects), (size_t)(o - home->objects) + 1);
  pthread_mutex_unlock(&guard);
  return 0;
}

static int mem_remove_prefix(store *s, const char *prefix, err *e) {
  char full[FULL_MAX];
  int rc = enter(s, prefix, full, e);
  if (rc < 0) return rc;
  space *home = ((mem_store *)s)->space;
  pthread_mutex_lock(&guard);
  take_out(home, place_after(home, full, false), place_after(home, full, true));
  pthread_mutex_unlock(&guard);
  return 0;
}

static int mem_write_open(store *s, const char *key, uint64_t size, unsigned how,
                          atomic_int *cancel, store_writer **out, err *e) {
  *out = NULL;
  int rc = store_key_check(key, e);
  if (rc < 0) return rc;
  (void)cancel; /* no call waits for anything */
  if (how & STORE_STAGED)
    return err_set(e, ERR_UNSUPPORTED,
                   "a mem store cannot publish, so nothing can be staged there");
  mem_writer *w = calloc(1, sizeof *w);
  if (!w || size >= SIZE_MAX) {
    free(w);
    return no_memory(e, key);
  }
  w->base.store = s;
  w->size = size;
  w->resume = how & STORE_RESUME;
  w->over = how & STORE_OVER;
  buf_init(&w->data, (size_t)size);
  memcpy(w->key, key, strlen(key) + 1);
  *out = &w->base;
  return 0;
}

static int mem_write(store_writer *writer, const void *data, size_t len, err *e) {
  mem_writer *w = (mem_writer *)writer;
  buf_add(&w->data, data, len);
  w->failure = buf_failed(&w->data);
  if (w->failure == ERR_LIMIT)
    return err_set(e, w->failure = ERR_INVAL, "\"%.200s\": more than the announced %llu bytes",
                   w->key, (unsigned long long)w->size);
  return w->failure ? no_memory(e, w->key) : 0;
}

static void mem_write_mark(store_writer *writer, const char *mark) {
  mem_writer *w = (mem_writer *)writer;
  snprintf(w->mark, sizeof w->mark, "%s", mark);
}

static void mem_write_abort(store_writer *writer) {
  mem_writer *w = (mem_writer *)writer;
  buf_free(&w->data);
  free(w);
}

static bool holds_equal(const mem_writer *w) {
  char full[FULL_MAX];
  full_key((mem_store *)w->base.store, w->key, full);
  pthread_mutex_lock(&guard);
  const object *o = find(((mem_store *)w->base.store)->space, full);
  bool equal =
      o && o->len == w->data.len && (o->len == 0 || memcmp(o->data, w->data.data, o->len) == 0);
  pthread_mutex_unlock(&guard);
  return equal;
}

static int mem_write_close(store_writer *writer, err *e) {
  mem_writer *w = (mem_writer *)writer;
  int rc;
  if (w->failure)
    rc = err_set(e, w->failure, "\"%.200s\": a write failed before, so nothing was made", w->key);
  else if (w->data.len != w->size)
    rc = err_set(e, ERR_INVAL, "\"%.200s\": %zu bytes were written, %llu were announced", w->key,
                 w->data.len, (unsigned long long)w->size);
  else if (w->resume && holds_equal(w))
    rc = 0;
  else {
    size_t len = w->data.len;
    store_how how = w->over ? STORE_REPLACE : STORE_IF_ABSENT;
    rc = insert(w->base.store, w->key, buf_take(&w->data), len, how, w->mark, e);
  }
  mem_write_abort(writer);
  return rc;
}

/* ---- tags ---- */

static int mem_replace_if(store *s, const char *key, const void *data, size_t len, const char *tag,
                          err *e) {
  char full[FULL_MAX], now[STORE_TAG_MAX];
  int rc = enter(s, key, full, e);
  if (rc < 0) return rc;
  char *copy = malloc(len ? len : 1);
  if (!copy) return no_memory(e, key);
  if (len) memcpy(copy, data, len);
  int64_t time = s->io->now(s->io, IO_WALL);
  pthread_mutex_lock(&guard);
  object *o = find(((mem_store *)s)->space, full);
  if (o) tag_of(o, now);
  if (!o) {
    rc = not_found(e, s, key);
  } else if (strcmp(now, tag) != 0) {
    rc = err_set(e, ERR_CONFLICT, "\"%.200s\" has been replaced by somebody else", key);
  } else {
    char *old = o->data;
    o->data = copy, o->len = len, o->mtime_ns = time, o->version = ++versions;
    o->mark[0] = 0;
    copy = old;
  }
  pthread_mutex_unlock(&guard);
  free(copy);
  return rc;
}

const store_ops store_mem_ops = {
    .version = 1,
    .scheme = "mem",
    .caps = STORE_CAP_IF_ABSENT | STORE_CAP_RESUME,
    .open = mem_open,
    .close = mem_close,
    .exists = mem_exists,
    .get = mem_get,
    .get_many = mem_get_many,
    .read = mem_read,
    .head = mem_head,
    .put = mem_put,
    .list = mem_list,
    .remove = mem_remove,
    .remove_prefix = mem_remove_prefix,
    .write_open = mem_write_open,
    .write = mem_write,
    .write_close = mem_write_close,
    .write_abort = mem_write_abort,
    .publish = NULL,
    .get_tagged = mem_get_tagged,
    .put_marked = mem_put_marked,
    .write_mark = mem_write_mark,
    .replace_if = mem_replace_if,
};
