/* store: a place where checkpoints live, behind one vtable.
 *
 * A store is a flat set of objects under keys ("a/b/c": no empty, "." or ".." component, no leading
 * or trailing slash, at most STORE_KEY_MAX bytes, any byte but NUL). ".ckpt/tmp" and what is below
 * it belong to the store itself. On a disk a key cannot be an object and a prefix (ERR_INVAL), has
 * components of at most 255 bytes and at most 64 of them. Calls block, so they are made
 * on worker threads; one store may be used by many threads at once. What a store can do is asked
 * (caps), never assumed. Every call that returns 0 for a write is durable, unless it says not. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/log.h"
#include "base/uri.h"

enum { STORE_KEY_MAX = 1024, STORE_TAG_MAX = 160, STORE_MARK_MAX = 64 };

typedef enum store_cap {
  STORE_CAP_IF_ABSENT = 1, /* put with STORE_IF_ABSENT: exactly one of many racers wins */
  STORE_CAP_PUBLISH = 2,   /* publish(): a whole prefix appears at once */
  STORE_CAP_RESUME = 4,    /* write_open with STORE_RESUME */
} store_cap;

typedef enum store_how {
  STORE_IF_ABSENT, /* ERR_EXISTS if the key is there */
  STORE_REPLACE,   /* a reader sees the old object or the new one */
} store_how;

/* How a large object is written. */
enum {
  STORE_STAGED = 1, /* the key lies in a prefix that publish() will show */
  STORE_RESUME = 2, /* an earlier try may have sent a part of it, or all of it */
  STORE_OVER = 4,   /* it replaces what is there, in one step; with neither of the others */
};

typedef struct store_object {
  uint64_t size;
  int64_t mtime_ns;          /* by the store's own clock */
  char mark[STORE_MARK_MAX]; /* what put_marked() or write_mark() gave it; only head() tells it */
} store_object;

typedef struct store store;
typedef struct store_writer store_writer;
typedef struct store_ops store_ops;

/* The common head of every store's own struct. */
struct store {
  const store_ops *ops;
  const io *io;
  log_sink log;
  /* The user's word that nobody else writes here: where IF_ABSENT cannot be relied on, it is a look
   * before the put. Set once, before the first write. */
  bool single_writer;
  /* May be NULL. Not 0: calls of this store give up soon with ERR_CANCELED, but those that were
   * handed a flag of their own. */
  atomic_int *cancel;
  /* The user's word that no checkpoint's data is removed here, by settle.h. Set once, too. */
  bool no_delete;
};
struct store_writer {
  store *store;
};

/* Called for each object (is_prefix false) or, with a delimited list, for each "directory" below
 * the prefix (is_prefix true, key without the trailing slash, object NULL). Keys come in byte order
 * of their components. Return 0 to go on; another value stops the listing and is returned. */
typedef int store_list_fn(void *ctx, const char *key, bool is_prefix, const store_object *object);

/* An object that was begun, and of which nothing shows yet: an upload in parts, a temporary file.
 */
typedef struct store_unfinished {
  const char *key;  /* of the object; of a temporary file its own name */
  const char *id;   /* which one, of several of the same key */
  int64_t begun_ns; /* or last written to, by the store's own clock; 0: not known */
  uint64_t bytes;   /* 0: not known */
} store_unfinished;
typedef int store_unfinished_fn(void *ctx, const store_unfinished *what);

struct store_ops {
  uint32_t version; /* of this struct: 1 */
  const char *scheme;
  uint32_t caps;
  int (*open)(const uri *where, const io *io, const log_sink *log, store **out, err *e);
  void (*close)(store *);
  /* ERR_NOSTORE if nothing is at the store's own root yet (put makes it). */
  int (*exists)(store *, err *e);
  /* Small objects, whole, appended to `out`. ERR_NOENT; ERR_LIMIT if it is larger than the buffer's
   * cap allows; ERR_CORRUPT, as with read(), if something that is no object stands there (on a disk
   * a link, a device). On failure `out` holds what it held before. */
  int (*get)(store *, const char *key, buf *out, err *e);
  /* Fills `to` from offset `at`; returns the number of bytes, short only at the object's end. */
  ssize_t (*read)(store *, const char *key, uint64_t at, void *to, size_t len, err *e);
  int (*head)(store *, const char *key, store_object *out, err *e);
  /* ERR_CONFLICT: the key's prefix is being removed at the same time. */
  int (*put)(store *, const char *key, const void *data, size_t len, store_how how, err *e);
  /* All objects whose key begins with prefix + "/" ("" for all), each at any depth, or with
   * `delimited` only one level. A prefix with nothing below it lists nothing. */
  int (*list)(store *, const char *prefix, bool delimited, store_list_fn *fn, void *ctx, err *e);
  /* What is absent already is no error. remove_prefix: ERR_CONFLICT if somebody goes on making
   * objects below it. */
  int (*remove)(store *, const char *key, err *e);
  int (*remove_prefix)(store *, const char *prefix, err *e);
  /* A large object, streamed, of a size known before; if-absent, or with STORE_OVER not. Nothing
   * shows under the key before write_close returned 0; that refuses (ERR_INVAL) another number of
   * bytes, and any object that a write failed for. write_close and write_abort free the writer, on
   * failure too. STORE_STAGED: it is durable only after the publish(), and may show, half written,
   * until then. Only where STORE_CAP_PUBLISH. STORE_RESUME: what an earlier try of the same bytes
   * left is not sent again; an object that is there already with equal bytes is success, with
   * others ERR_EXISTS. Only where STORE_CAP_RESUME. A write that failed or was aborted leaves what
   * a resume can use, but with STORE_OVER nothing; remove_prefix() takes that away too. `cancel`
   * (may be NULL): when it becomes not 0, this writer's calls end soon with ERR_CANCELED. */
  int (*write_open)(store *, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                    store_writer **out, err *e);
  int (*write)(store_writer *, const void *data, size_t len, err *e);
  int (*write_close)(store_writer *, err *e);
  void (*write_abort)(store_writer *);
  /* Makes everything under `from` durable and renames the prefix to `to`, which must not exist, in
   * one step. ERR_EXISTS if it does. After another failure all of it is at `from`, or all of it at
   * `to`. NULL where the capability is missing. */
  int (*publish)(store *, const char *from, const char *to, err *e);
  /* Whether IF_ABSENT holds at this very place: 16 racers at once, 5 rounds, below ".ckpt/tmp". 0:
   * one winner each time. ERR_UNSUPPORTED, with what was seen and --single-writer: not so. NULL: it
   * holds by construction. */
  int (*race)(store *, err *e);
  /* What was begun below the prefix ("": all) and neither finished nor aborted, in any order; `fn`
   * as in list(). It may be somebody's at work. NULL: nothing is ever left, or it cannot be told.
   */
  int (*unfinished)(store *, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e);
  /* Does away with one of them. One that is gone already is no error; whoever is at work on it
   * fails. */
  int (*discard)(store *, const store_unfinished *what, err *e);
  /* As get(), and what tells this content from others of the same key. NULL: the store has no tags.
   */
  int (*get_tagged)(store *, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e);
  /* As put(), with a mark: a short text of letters and digits that stays with the object, in its
   * metadata, and tells whose it is. NULL: the store keeps no marks. */
  int (*put_marked)(store *, const char *key, const void *data, size_t len, store_how how,
                    const char *mark, err *e);
  /* The same for a large object, before its first byte. What an earlier try began has that one's.
   * NULL together with put_marked. */
  void (*write_mark)(store_writer *, const char *mark);
  /* Removes these objects, all of which lie below the prefix. What is absent already is no error.
   * On a disk the directories there that hold nothing any more go too. NULL: one after the other.
   */
  int (*remove_below)(store *, const char *prefix, const char *const *keys, size_t count, err *e);
  /* Replaces the object whose content has this tag: of several who come with one tag, one wins.
   * ERR_CONFLICT: it has another content by now; ERR_NOENT. Holds among those who use it, not
   * against a put(). NULL together with get_tagged. */
  int (*replace_if)(store *, const char *key, const void *data, size_t len, const char *tag,
                    err *e);
  /* Makes everything below the prefix durable where it is, as publish() does before it renames.
   * NULL where that capability is missing. */
  int (*flush)(store *, const char *prefix, err *e);
  /* 0 if this user made everything below the prefix, and all of it is directories and plain files;
   * else ERR_ACCESS, which names what is not. NULL: whoever may write to the store is one. */
  int (*check_owner)(store *, const char *prefix, err *e);
  /* The directories right below the prefix, with or without objects in them, as list() tells
   * prefixes, but each with its own time. NULL: what holds no object is not there. */
  int (*list_dirs)(store *, const char *prefix, store_list_fn *fn, void *ctx, err *e);
  /* Of a writer with STORE_RESUME, before its first byte: what was begun before that time, by the
   * store's own clock, or at a time that it does not tell, is somebody else's. It is left alone.
   * NULL: what a resume finds can be nobody else's. */
  void (*write_since)(store_writer *, int64_t ns);
};

/* Opens the store that a URI names. Nothing is created. ERR_UNSUPPORTED names the schemes there
 * are. Close it with store_close; NULL is fine there. */
int store_open(const uri *where, const io *io, const log_sink *log, store **out, err *e);
void store_close(store *s);

/* 0, or ERR_INVAL / ERR_LIMIT for what cannot be a key. Every store calls it at its door. */
int store_key_check(const char *key, err *e);

/* The order of listings: byte order of components, as a walk over directories gives it ("a/z" comes
 * before "a-b"). Less than, equal to or greater than 0. */
int store_key_order(const char *a, const char *b);

bool store_can(const store *s, store_cap cap);

/* put_marked() and write_mark() where the store keeps marks; elsewhere put(), and nothing. `mark`
 * "" or NULL: none. */
int store_put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                     const char *mark, err *e);
void store_write_mark(store_writer *w, const char *mark);
/* write_since(), where there is that. 0: whatever is there is ours. */
void store_write_since(store_writer *w, int64_t ns);
/* list_dirs(), or the prefixes among what list() tells; those have no `object`. */
int store_list_dirs(store *s, const char *prefix, store_list_fn *fn, void *ctx, err *e);
/* remove_below(), or remove() for each. */
int store_remove_below(store *s, const char *prefix, const char *const *keys, size_t count, err *e);

/* The stores there are. */
extern const store_ops store_file_ops; /* file:///abs/path: a directory */
extern const store_ops store_mem_ops;  /* mem://name: in this process, shared by name, for tests */
extern const store_ops store_s3_ops;   /* s3://bucket/prefix: AWS, or what speaks its protocol */

#endif
