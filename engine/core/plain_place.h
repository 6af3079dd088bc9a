/* plain_place: what lies at a place of a store: its objects, and what the records say of them. */
#ifndef CORE_PLAIN_PLACE_H
#define CORE_PLAIN_PLACE_H

#include "base/uri.h"
#include "core/manifest.h"
#include "core/plain.h"
#include "store/store.h"

typedef struct place_object {
  char *key;
  uint64_t size;
  int64_t mtime_ns;
} place_object;

typedef struct place_record {
  char *dir;     /* "": the place itself */
  bool is_whole; /* it has a record */
  bool is_part;  /* an upload began there */
  bool is_ours;  /* it is part of what an upload to the whole writes */
} place_record;

typedef struct plain_place {
  store *store; /* its root is the place */
  const io *io;
  uri where;
  place_object *objects; /* in the order of store_key_order(); no records, nothing of a log */
  size_t count, room;
  place_record *records;
  size_t record_count, record_room;
  bool has_log;    /* of a run, here or below */
  bool has_record; /* the place itself has one */
  bool damaged;    /* ... that cannot be read */
  bool has_part;   /* an upload to it began; without a record it did not end */
  manifest record; /* what all of them say, each of what it is nearest to; sealed */
} plain_place;

int plain_place_open(const plain *p, const char *where, plain_place *out, err *e);
/* Lists it and reads the records. `lenient`: a record that cannot be read is passed over with a
 * warning, as one that will be replaced. Else ERR_CONFLICT if one vanishes in between. */
int plain_place_read(const plain *p, plain_place *at, bool lenient, err *e);
/* ERR_CONFLICT. */
int plain_place_busy(const plain_place *at, err *e);
/* Fine on one that could not be opened. */
void plain_place_close(plain_place *at);
/* A file store makes its objects in .ckpt/tmp; a directory that people look into should not keep
 * that when it is empty. The above does it too. */
void plain_place_tidy(const plain_place *at);

const place_object *plain_place_find(const plain_place *at, const char *key); /* NULL: none */
/* The name that the record has for the whole. */
const char *plain_place_name(const plain_place *at);
/* The key of the record of a directory, or of the part of one. */
int plain_record_key(const char *dir, bool part, char out[STORE_KEY_MAX + 1], err *e);
/* The directory within the place, to which an upload did not end, that has `name`; NULL: none. */
const char *plain_place_cut(const plain_place *at, const char *name);
/* The store's own files, and those of a run's log, are below a component ".ckpt": no place tells of
 * them. Sets *log for one of a log. */
bool plain_is_own(const char *key, bool *log);
/* Is `name` below the directory `dir` ("": all is)? */
bool plain_is_below(const char *dir, const char *name);

/* Takes a place, which is about to be removed, out of the records of all places above it: what is
 * left there is whole without it. */
int plain_forget_above(const plain *p, const uri *where, err *e);

/* Moves all that the entry owns into a new one of that name. */
int plain_take_entry(manifest *to, manifest_entry *from, const char *name, err *e);
/* The same, leaving `from` as it is. */
int plain_copy_entry(manifest *to, const manifest_entry *from, err *e);

#endif
