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
#include "prims/hash.h"
#include "store_key.h"

enum { STORE_TAG_MAX = 160, STORE_MARK_MAX = 64, STORE_SERVER_MAX = 512 };

typedef enum store_cap {
  STORE_CAP_IF_ABSENT = 1, /* put with STORE_IF_ABSENT: exactly one of many racers wins */
  STORE_CAP_PUBLISH = 2,   /* publish(): a whole prefix appears at once */
  STORE_CAP_RESUME = 4,    /* write_open with STORE_RESUME */
} store_cap;

typedef enum store_how {
  STORE_IF_ABSENT, /* ERR_EXISTS if the key is there */
  STORE_REPLACE,   /* a reader sees the old object or the new one */
} store_how;

/* These say how a large object is written. */
enum {
  STORE_STAGED = 1, /* the key lies in a prefix that publish() will show */
  STORE_RESUME = 2, /* an earlier try may have sent a part of it, or all of it */
  STORE_OVER = 4,   /* it replaces the object that is there, in one step; with neither of the
                     * others */
};

typedef struct store_object {
  uint64_t size;
  int64_t mtime_ns;          /* by the store's own clock */
  char mark[STORE_MARK_MAX]; /* given by put_marked() or write_mark(); only head() tells it */
} store_object;

/* These say how the names below a directory are spelt in the bucket. A bucket's keys are UTF-8 and
 * pass through XML, so no store can have them all as they are. */
typedef enum store_spelling {
  STORE_SPELT_1,     /* as by 1.0, and wherever nothing else was said: '%', control characters and
                      * bytes that are not UTF-8 are %XX */
  STORE_SPELT_PLAIN, /* as they are; a component that cannot be, and one that begins as such a one
                      * does, is "%~" and then as by 1.0 */
  STORE_SPELT_RAW,   /* the keys of another tool, to be read: as they are, all of them. From now on
                      * a listing refuses (ERR_INVAL) a key that cannot be a name */
} store_spelling;

typedef struct store store;
typedef struct store_writer store_writer;
typedef struct store_ops store_ops;

/* The common head of every store's own struct. */
struct store {
  const store_ops *ops;
  const io *io;
  log_sink log;
  /* The user's word that nobody else writes here: where IF_ABSENT cannot be relied on, the key is
   * looked up before the put. Set once, before the first write. */
  bool single_writer;
  /* If it becomes not 0, calls of this store give up soon with ERR_CANCELED, except calls that were
   * handed a flag of their own. May be NULL. */
  atomic_int *cancel;
  /* The user's word that no checkpoint's data is removed here (settle.h). Set once, too. */
  bool no_delete;
  /* So long a name that another machine made may stay unseen here. 0: no longer than a moment. */
  int64_t lag_ns;
  /* While this is not 0, calls to a server that does not answer go on until it has been silent for
   * so long, and a host's name that nobody knows is ERR_INVAL at once. Else each call has a limit of
   * its own, and the name is asked for again. Any thread. */
  _Atomic int64_t patience_ns;
  /* The race was run by this handle, or need not be (commit/arbiter.h). */
  atomic_bool arbitrates;
  /* IO_MONO: since when nothing that was asked has been answered; 0: all was. The store sets it. */
  _Atomic int64_t silent_ns;
};
struct store_writer {
  store *store;
};

/* Called for each object (is_prefix false) or, with a delimited list, for each "directory" below
 * the prefix (is_prefix true, key without the trailing slash, object NULL). Keys come in byte order
 * of their components. Returns 0 to go on; another value stops the listing and is returned. */
typedef int store_list_fn(void *ctx, const char *key, bool is_prefix, const store_object *object);

/* What a listing told, kept for when it is over: no listing is held open while another request
 * runs. store_keys_add() is a store_list_fn, and its `ctx` a store_keys. */
typedef struct store_found {
  char *key;
  bool is_prefix;
  store_object object; /* of a prefix with no object zeros */
} store_found;
typedef struct store_keys {
  store_found *at;
  size_t count, room;
} store_keys;
int store_keys_add(void *keys, const char *key, bool is_prefix, const store_object *object);
void store_keys_free(store_keys *l); /* it is empty afterwards */

/* An object that was begun, and of which nothing shows yet: an upload in parts, a temporary file.
 */
typedef struct store_unfinished {
  const char *key;  /* of the object; of a temporary file its own name */
  const char *id;   /* tells several of the same key apart */
  int64_t begun_ns; /* or last written to, by the store's own clock; 0: not known */
  uint64_t bytes;   /* 0: not known */
  bool raw;         /* the key is as the store has it: as names are spelt there, no name has it, and
                     * only discard() takes it */
} store_unfinished;
typedef int store_unfinished_fn(void *ctx, const store_unfinished *what);

/* One object of many that are asked for at once: what get() would be given, and would return. */
typedef struct store_ask {
  const char *key;
  buf out;
  int rc;
  err why;
} store_ask;

/* Where a writer counts; each may be NULL. */
typedef struct store_tally {
  _Atomic uint64_t
      *stored;            /* bytes of the object that the store has said it has, those of an earlier
                             * try too; taken back when the writer ends without the object */
  _Atomic uint64_t *sent; /* bytes that went out, also those that are sent again */
} store_tally;

/* What a look at a place found, for who wants to save there. */
typedef enum store_word {
  STORE_FINE,
  STORE_NOTE,    /* worth knowing */
  STORE_WARNING, /* something will not work, or not as well as it could */
  STORE_FAULT,   /* saving would fail */
} store_word;
typedef struct store_finding {
  const char *topic; /* one word: "clock" */
  store_word word;
  int status;         /* of a fault: ERR_* */
  const char *text;   /* what was seen, and what it means */
  const char *advice; /* what to do; "": nothing */
} store_finding;
typedef void store_finding_fn(void *ctx, const store_finding *finding);

struct store_ops {
  uint32_t version; /* of this struct: 1 */
  const char *scheme;
  uint32_t caps;
  /* Looks at nothing that is there: a place is opened before it is made, and at each place above. */
  int (*open)(const uri *where, const io *io, const log_sink *log, store **out, err *e);
  void (*close)(store *);
  /* ERR_NOSTORE if nothing is at the store's own root yet (put makes it). */
  int (*exists)(store *, err *e);
  /* Reads a small object whole and appends it to `out`. ERR_NOENT; ERR_LIMIT if it is larger than
   * the buffer's cap allows; ERR_CORRUPT, as with read(), if something that is no object stands
   * there (on a disk a link, a device). On failure `out` is as it was before. */
  int (*get)(store *, const char *key, buf *out, err *e);
  /* Fills `to` from offset `at`; returns the number of bytes, short only at the object's end. */
  ssize_t (*read)(store *, const char *key, uint64_t at, void *to, size_t len, err *e);
  int (*head)(store *, const char *key, store_object *out, err *e);
  /* Writes a small object. ERR_CONFLICT: the key's prefix is being removed at the same time. */
  int (*put)(store *, const char *key, const void *data, size_t len, store_how how, err *e);
  /* Lists all objects whose key begins with prefix + "/" ("" for all), at any depth, or with
   * `delimited` only one level. A prefix with nothing below it lists nothing. */
  int (*list)(store *, const char *prefix, bool delimited, store_list_fn *fn, void *ctx, err *e);
  /* These remove an object, or all below a prefix. If it is absent already, that is no error.
   * remove_prefix: ERR_CONFLICT if somebody goes on making objects below it. */
  int (*remove)(store *, const char *key, err *e);
  int (*remove_prefix)(store *, const char *prefix, err *e);
  /* Writes a large object as a stream, of a size known before; if-absent, unless STORE_OVER is
   * given. Nothing shows under the key before write_close returned 0; that refuses (ERR_INVAL)
   * another number of bytes, and any object that a write failed for. write_close and write_abort
   * free the writer, on failure too.
   *
   * STORE_STAGED, only where STORE_CAP_PUBLISH: the object is durable only after the publish(), and
   * may show, half written, until then.
   *
   * STORE_RESUME, only where STORE_CAP_RESUME: the parts that an earlier try of the same bytes sent
   * are not sent again; an object that is there already with equal bytes is success, with others
   * ERR_EXISTS. A write that failed or was aborted may leave its parts for a resume, but none with
   * STORE_OVER; remove_prefix() takes them away too.
   *
   * When `cancel` (may be NULL) becomes not 0, this writer's calls end soon with ERR_CANCELED. */
  int (*write_open)(store *, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                    store_writer **out, err *e);
  int (*write)(store_writer *, const void *data, size_t len, err *e);
  int (*write_close)(store_writer *, err *e);
  void (*write_abort)(store_writer *);
  /* Makes everything under `from` durable and renames the prefix to `to`, which must not exist, in
   * one step. ERR_EXISTS if it does. After another failure all of it is at `from`, or all of it at
   * `to`. NULL where the capability is missing. */
  int (*publish)(store *, const char *from, const char *to, err *e);
  /* Tests whether IF_ABSENT holds at this very place: 16 racers at once, 5 rounds, below
   * ".ckpt/tmp". 0: one winner each time. ERR_UNSUPPORTED, with what was seen and --single-writer:
   * it does not hold. NULL: it holds by construction. */
  int (*race)(store *, err *e);
  /* Tells which server gave the last answer: its address, and what it calls itself, in printable
   * ASCII; "" if there was none. NULL together with race. */
  void (*server)(store *, char out[STORE_SERVER_MAX]);
  /* Tells each object that was begun below the prefix ("": all) and neither finished nor aborted,
   * in any order; `fn` as in list(). Somebody may be at work on it. NULL: nothing is ever left, or
   * it cannot be told. */
  int (*unfinished)(store *, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e);
  /* Removes an unfinished object. If it is gone already, that is no error; a writer that is at work
   * on it fails. */
  int (*discard)(store *, const store_unfinished *what, err *e);
  /* Does as get(), and gives a tag that tells this content from others of the same key. NULL: the
   * store has no tags. */
  int (*get_tagged)(store *, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e);
  /* Does as put(), with a mark: a short text of letters and digits that stays with the object, in
   * its metadata, and tells whose it is. NULL: the store keeps no marks. */
  int (*put_marked)(store *, const char *key, const void *data, size_t len, store_how how,
                    const char *mark, err *e);
  /* Marks a large object, before its first byte. An object that an earlier try began keeps that
   * try's mark. NULL together with put_marked. */
  void (*write_mark)(store_writer *, const char *mark);
  /* Removes these objects, all of which lie below the prefix. If one is absent already, that is no
   * error. On a disk the directories there that hold nothing any more go too. NULL: they are
   * removed one after the other. */
  int (*remove_below)(store *, const char *prefix, const char *const *keys, size_t count, err *e);
  /* Replaces the object whose content has this tag (compare-and-swap): of several who come with one
   * tag, one wins. ERR_CONFLICT: it has another content by now; ERR_NOENT. It guards only against
   * other replace_if() calls, not against a put(). NULL together with get_tagged. */
  int (*replace_if)(store *, const char *key, const void *data, size_t len, const char *tag,
                    err *e);
  /* Makes everything below the prefix durable where it is, as publish() does before it renames.
   * NULL where that capability is missing. */
  int (*flush)(store *, const char *prefix, err *e);
  /* Returns 0 if this user made everything below the prefix, and all of it is directories and plain
   * files; else ERR_ACCESS, which names the offender. NULL: the store has no owners, whoever may
   * write to it counts as one. */
  int (*check_owner)(store *, const char *prefix, err *e);
  /* Lists the directories right below the prefix, with or without objects in them, as list() tells
   * prefixes, but each with its own time. NULL: a directory without an object does not exist
   * there. */
  int (*list_dirs)(store *, const char *prefix, store_list_fn *fn, void *ctx, err *e);
  /* Called for a writer with STORE_RESUME, before its first byte: an upload that was begun before
   * that time, by the store's own clock, or at a time that it does not tell, is somebody else's,
   * and is left alone. NULL: a resume can find nobody else's. */
  void (*write_since)(store_writer *, int64_t ns);
  /* Says how all that is below the prefix ("": all) is spelt from now on, by this handle; the prefix
   * itself is spelt as it was. What was said of a prefix below that one stays. NULL: the store has
   * every name as it is. */
  int (*spell)(store *, const char *prefix, store_spelling how, err *e);
  /* Called before the first byte: from then on the writer counts there. NULL: write() returns when
   * the store has the bytes. */
  void (*write_tally)(store_writer *, const store_tally *tally);
  /* Does as get() for each, side by side and in any order: many cost little more time than one. It
   * waits until all are answered. NULL: asking for more than is needed costs as much as ever. */
  void (*get_many)(store *, store_ask *asks, size_t count);
  /* Called right before write_close(): the object's hash_of_blocks(), which tells equal bytes that
   * are there already. NULL: the store compares in another way. */
  void (*write_digest)(store_writer *, hash_kind kind, const digest *of);
  /* Lends memory for the next bytes of the object: who has filled it, all of it, hands it back with
   * write_lent() and its CRC64NVME, and write() has nothing to copy. NULL: write() it is, which
   * tells what is wrong, if something is. Both are NULL where there is nothing to be saved. */
  void *(*write_lend)(store_writer *, size_t len);
  int (*write_lent)(store_writer *, size_t len, uint64_t crc64, err *e);
  /* Tells what is particular to this place: whose credentials, which server, what it checks. It makes an
   * object of this key, and removes it. NULL: nothing is. */
  int (*examine)(store *, const char *key, store_finding_fn *fn, void *ctx, err *e);
};

/* Opens the store that a URI names. Nothing is created. ERR_UNSUPPORTED names the schemes there
 * are. Close it with store_close; NULL is fine there. */
int store_open(const uri *where, const io *io, const log_sink *log, store **out, err *e);
void store_close(store *s);
/* The schemes that it knows, one after the other from 0; NULL after the last. */
const char *store_scheme(size_t i);

bool store_can(const store *s, store_cap cap);

/* Calls put_marked() or write_mark() where the store keeps marks; elsewhere put(), or nothing.
 * `mark` "" or NULL: none. */
int store_put_marked(store *s, const char *key, const void *data, size_t len, store_how how,
                     const char *mark, err *e);
void store_write_mark(store_writer *w, const char *mark);
/* Calls write_tally(); false where the store has none, and the caller counts by write(). */
bool store_write_tally(store_writer *w, const store_tally *tally);
/* Calls write_digest(), where the store has it. */
void store_write_digest(store_writer *w, hash_kind kind, const digest *of);
/* Calls write_since(), where the store has it. 0: any upload that is there is ours. */
void store_write_since(store_writer *w, int64_t ns);
/* Calls spell(), where the store has it. */
int store_spell(store *s, const char *prefix, store_spelling how, err *e);
/* Calls get_many(), or get() for each. */
void store_get_many(store *s, store_ask *asks, size_t count);
/* Calls list_dirs(), or tells the prefixes that list() finds; those have no `object`. */
int store_list_dirs(store *s, const char *prefix, store_list_fn *fn, void *ctx, err *e);
/* Calls remove_below(), or remove() for each. */
int store_remove_below(store *s, const char *prefix, const char *const *keys, size_t count, err *e);

/* These are all the stores. */
extern const store_ops store_file_ops; /* file:///abs/path: a directory */
extern const store_ops store_mem_ops;  /* mem://name: in this process, shared by name, for tests */
extern const store_ops store_s3_ops;   /* s3://bucket/prefix: AWS, or a server of its protocol */
extern const store_ops store_gs_ops;   /* gs://bucket/prefix: Google Cloud Storage */

#endif
