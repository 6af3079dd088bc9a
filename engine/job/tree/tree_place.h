/* tree_place: a place of a store: its objects, and their entries in the records. */
#ifndef JOB_TREE_TREE_PLACE_H
#define JOB_TREE_TREE_PLACE_H

#include "base/uri.h"
#include "commit/manifest/manifest.h"
#include "job/tree/tree.h"
#include "store/store.h"

typedef struct place_object {
  char *key;
  uint64_t size;
  int64_t mtime_ns;
} place_object;

typedef struct place_record {
  char *dir;     /* "": the place itself */
  bool is_whole; /* it has a record, so it is whole */
  bool is_part;  /* an upload began there */
  bool is_ours;  /* the upload to the whole writes into it, and makes it a part */
} place_record;

typedef struct tree_place {
  store *store; /* its root is the place */
  const io *io;
  uri where;
  place_object *objects; /* in the order of store_key_order(); no records, nothing of a log */
  size_t count, room;
  place_record *records;
  size_t record_count, record_room;
  bool has_log;                /* of a run, here or below */
  char own[STORE_KEY_MAX + 1]; /* the first key below a ".ckpt", of which the place does not tell */
  bool has_record;             /* the place itself has one */
  bool damaged;                /* the record cannot be read */
  bool odd;                    /* how a record's names are spelt is a difference */
  bool old_keys;               /* 1.0 began the place: its names are spelt as by 1.0 */
  bool has_part;   /* it has a partial record; without a record the upload did not end */
  manifest record; /* the entries of all records, each from the nearest one; sealed */
} tree_place;

int tree_place_open(const tree_job *p, const char *where, tree_place *out, err *e);
/* Lists the place and reads the records. `lenient`: a record that cannot be read is passed over
 * with a warning, since it will be replaced. Otherwise ERR_CONFLICT if one vanishes in between. */
int tree_place_read(const tree_job *p, tree_place *at, bool lenient, err *e);
/* Fails with ERR_CONFLICT. */
int tree_place_busy(const tree_place *at, err *e);
/* It is fine on a place that could not be opened. */
void tree_place_close(tree_place *at);
/* A file store makes its objects in .ckpt/tmp; a directory that people look into should not keep
 * that when it is empty. tree_place_close() calls it too. */
void tree_place_tidy(const tree_place *at);

const place_object *tree_place_find(const tree_place *at, const char *key); /* NULL: none */
/* Returns the record's name for the whole place. */
const char *tree_place_name(const tree_place *at);
/* Makes the key of the record of a directory, or of its partial record. */
int tree_record_key(const char *dir, bool part, char out[STORE_KEY_MAX + 1], err *e);
/* Returns the directory within the place, to which an upload did not end, that has `name`; NULL:
 * none. */
const char *tree_place_cut(const tree_place *at, const char *name);
/* True for the store's own files, and those of a run's log, which lie below a component ".ckpt": no
 * place tells of them. Sets *log for a file of a log. */
bool tree_is_own(const char *key, bool *log);
/* True if `name` is below the directory `dir` ("": every name is). */
bool tree_is_below(const char *dir, const char *name);

/* Takes a place, which is about to be removed, out of the records of all places above it: the rest
 * there is whole without it. */
int tree_forget_above(const tree_job *p, const uri *where, err *e);

/* Copies an entry. */
int tree_copy_entry(manifest *to, const manifest_entry *from, err *e);

#endif
