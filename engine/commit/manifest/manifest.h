/* manifest: the table of contents of one checkpoint, with digests; pure data.
 *
 * It stands beside the files as MANIFEST_NAME, is written after them, and is never restored into a
 * watched tree. A checkpoint that was copied with any tool still verifies by it. */
#ifndef COMMIT_MANIFEST_MANIFEST_H
#define COMMIT_MANIFEST_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/names.h"
#include "prims/hash.h"
#include "prims/match.h"

#define MANIFEST_NAME ".ckpt-manifest.json"
/* The user's own words about a checkpoint, in a file at the top of its directory, which may be
 * replaced in the store later. So it is outside of the root digest, if it is not larger than
 * this. */
#define MANIFEST_METADATA ".metadata.json"
enum { MANIFEST_METADATA_MAX = HASH_BLOCK };

/* A reader refuses a manifest that asks for a higher one. It reads format 0, too. 1.0 is reader 1;
 * only what it would look for under another key asks for 2. */
enum { MANIFEST_FORMAT = 1, MANIFEST_READER = 2 };
/* These are caps against hostile or broken input. */
enum { MANIFEST_BYTES_MAX = 256 << 20, MANIFEST_ENTRIES_MAX = 4 << 20 };

typedef enum manifest_type { MANIFEST_FILE, MANIFEST_DIR, MANIFEST_LINK } manifest_type;

typedef struct manifest_entry {
  char *name; /* relative, any bytes; safe: no "..", no leading slash, no empty component */
  manifest_type type;
  mode_t mode;      /* permission bits */
  int64_t mtime_ns; /* since 1970 */
  uint64_t size;    /* of a file */
  digest file;      /* of a file: the digest over its blocks */
  digest *blocks;   /* of a file: hash_block_count(size) of them, with their CRC-32C unless 1.0 has
                     * written it */
  char *target;     /* of a link */
  bool outside;     /* of the root digest, as MANIFEST_METADATA is; manifest_seal and a parse set
                     * it */
  bool alone;       /* of the ranks that saved it together only `rank` had it; else several had, or
                     * nobody has told */
  uint32_t rank;
} manifest_entry;

/* Names that were left out, for people: the first of them in byte order, each once; a directory's ends
 * in a slash. Zero it before the first one. */
enum { MANIFEST_LEFT_NAMED = 16 };
typedef struct manifest_left {
  char *at[MANIFEST_LEFT_NAMED];
  size_t count;
} manifest_left;

enum { MANIFEST_LEFT_GLOBS = 64 };

/* Both return false when out of memory. */
bool manifest_left_note(manifest_left *left, const char *name);
bool manifest_left_add(manifest_left *left, const manifest_left *more);
void manifest_left_free(manifest_left *left);

typedef struct manifest {
  char *unit;      /* its own name: "checkpoint-3" */
  match_kind kind; /* directory, single file (its one entry is `unit`), group of files */
  int64_t step;    /* or MATCH_NO_STEP */
  int64_t created_ns;
  int64_t mtime_ns; /* of the unit's directory itself; of the newest file otherwise */
  mode_t mode;      /* of the unit's directory */
  char *policy;     /* the name of the policy that wanted it */
  char *metrics;    /* a JSON object as text, or NULL */
  char *attempt;    /* the attempt that made it (runlog_attempt_id); NULL in manifests of 1.0, or if
                     * no attempt did */
  uint64_t left_out;        /* files that excludes have left out; 0: none, or of 1.0 */
  uint64_t left_here;       /* of these, those that were left out of this one alone */
  manifest_left left_names; /* the first of these */
  names
      left_globs; /* match_exclude patterns by which files were left out of this one alone, beside the
                     * excludes of all */
  uint32_t
      world;  /* so many ranks saved it together, each its own part; 0: one alone, or not told */
  bool above; /* it is a file above the checkpoints of other logs, and no checkpoint */
  hash_kind hash;
  bool
      plain_keys; /* in a bucket its names are keys as they are; else they are spelt as by 1.0. It is
                    * told only if that is a difference (manifest_is_odd) */
  bool in_bucket; /* it was made for one, so 1.0 must not read it if that is a difference */
  bool old;       /* read from format 0, in which nothing is outside */
  manifest_entry *entries; /* sorted by name, bytewise; unique */
  size_t count, room;
  digest root; /* over the sorted table; set by manifest_seal and by a successful parse */
  digest text; /* of the whole text that was parsed; empty: of none (manifest_text_digest) */
} manifest;

void manifest_init(manifest *m); /* step MATCH_NO_STEP, all else empty */
void manifest_free(manifest *m); /* a zeroed one is fine */

/* Appends an entry (name and target are copied) and returns it, or NULL when out of memory. The
 * pointer is valid until the next call. Parents need not be listed; empty directories are. */
manifest_entry *manifest_add(manifest *m, manifest_type type, const char *name, const char *target);

/* Sorts, checks every name, number and digest (ERR_FORMAT, ERR_CORRUPT, ERR_LIMIT), and computes
 * the root digest. After this the entries do not change. A single file has one entry, itself; the
 * entries of a group are all named "<unit>.<something>", without a slash.
 *
 * The root digest is over this text, in which a number is 8 bytes, least significant first, and a
 * string is its length as a number, then its bytes, so that no two tables give the same text:
 *   the string "ckpt-manifest-root-0", the unit's name, the kind (0 directory, 1 file, 2 group),
 *   the step (-1 for none), the count of entries; then for each, in the order of the names' bytes:
 *   its type (0 file, 1 directory, 2 link), name, mode, mtime_ns, and
 *     of a file: its size, and its digest as a string (which stands for its blocks);
 *     of a link: its target.
 * What is `outside` is neither among them nor counted.
 * When it was saved, the unit's own mtime and mode, the policy, the metrics, and which rank had what are
 * not in it: equal files of equal units have equal roots. */
int manifest_seal(manifest *m, err *e);

/* Appends the text, ending in a line end. The manifest must be sealed. */
int manifest_print(const manifest *m, buf *out, err *e);

/* Makes the digest of a manifest's whole text, in the kind that its files have: what a commit
 * remembers of it. */
int manifest_text_digest(hash_kind kind, const char *text, size_t len, digest *out, err *e);

/* Reads a manifest, and checks all of it: format number (ERR_VERSION), names (nothing that could
 * leave the directory it is restored into, no entry below a file or a link), counts, digests of
 * blocks against files, and the root digest (ERR_CORRUPT). `what` names it in errors. */
int manifest_parse(const char *text, size_t len, const char *what, manifest *out, err *e);

/* Finds the entry of that name in a sealed manifest; NULL if there is none. */
const manifest_entry *manifest_find(const manifest *m, const char *name);

/* True if it tells which of so many ranks had what. It does not of one that fewer or more ranks saved:
 * what each needs of that only their job knows. */
bool manifest_tells_parts(const manifest *m, uint32_t world);
/* Makes a manifest of those entries of a sealed one that are wanted, each by its number. It borrows all but
 * its table, which is to be freed (`entries`), and has the root of the whole. ERR_NOMEM. */
int manifest_choose(const manifest *whole, const bool *wanted, manifest *out, err *e);
/* The same of what that rank had of it: what it alone had, and what several had; the whole, where it is
 * told no file. */
int manifest_part(const manifest *whole, uint32_t rank, manifest *out, err *e);

/* Where a link of a sealed manifest leads, as far as its names tell: what is there, if it is not in
 * the manifest, was not saved. */
typedef enum manifest_lead {
  MANIFEST_LEADS_WITHIN, /* to an entry, or to another link, which has a lead of its own */
  MANIFEST_LEADS_OUT,
  MANIFEST_LEADS_NOWHERE /* to a name that no entry has, or in a circle */
} manifest_lead;
manifest_lead manifest_link_leads(const manifest *m, const manifest_entry *link);

uint64_t manifest_bytes(const manifest *m); /* the sum of the files' sizes */
/* When its newest file was written; 0: it has none. Directories change when a copy is made. */
int64_t manifest_made_ns(const manifest *m);
size_t manifest_files(const manifest *m);

/* True if both, sealed, have the same names with the same bytes and link targets. Times and modes may
 * differ, as they do in a copy; what is `outside` does not count. */
bool manifest_same_bytes(const manifest *a, const manifest *b);

/* True if 1.0 had another key for one of its names: there is a '%' in it, or what no bucket can
 * have. */
bool manifest_is_odd(const manifest *m);
bool manifest_name_is_odd(const char *name);

const char *manifest_kind_name(match_kind kind); /* "dir", "file", "group" */
/* The member "kind" of an object. */
int manifest_kind_get(const json_t *object, const char *what, match_kind *out, err *e);

#endif
