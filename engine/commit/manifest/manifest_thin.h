/* manifest_thin: what is left of a checkpoint of which some files were taken, since newer ones are
 * there. Its manifest stays as it was, and says what it had; globs say what of it is gone. Pure.
 *
 * A glob is one that passes match_anywhere_check(), so it means the same in the
 * watched tree, in a store and in a copy: a name at any depth below the checkpoint, or with a slash
 * at its end a directory there, with all that is in it. */
#ifndef COMMIT_MANIFEST_MANIFEST_THIN_H
#define COMMIT_MANIFEST_MANIFEST_THIN_H

#include "manifest.h"

/* The note of it beside the files, for who has no log. It is no part of the checkpoint. */
#define MANIFEST_THIN_NAME ".ckpt-thin.json"
enum { MANIFEST_THIN_BYTES_MAX = 64 << 10 };

/* The globs as an array, and back: 1 to MANIFEST_LEFT_GLOBS of them, each of which passes that check
 * (ERR_FORMAT: a reader must know what is gone, or it takes it for damage). */
json_t *manifest_globs_new(const names *globs);
int manifest_globs_get(const json_t *object, const char *key, const char *what, names *out, err *e);

/* True if this entry of a sealed manifest is gone by these globs. */
bool manifest_thin_means(const manifest *m, const manifest_entry *at, const names *globs);

typedef struct manifest_rest {
  uint64_t files, bytes; /* that stay */
} manifest_rest;

/* Returns NULL, with what stays in *out, or why nothing may be taken of this checkpoint by these globs:
 * it is no directory; they mean nothing of it, or all of it; or a link that stays leads to what would go.
 * "": out of memory. */
const char *manifest_thin_judge(const manifest *m, const names *globs, manifest_rest *out);

/* Makes a sealed manifest that of what is left: entries that the globs mean go, and it tells of them as of
 * files that were left out. `root` and `text` stay those of the whole. ERR_NOMEM: free it all the same. */
int manifest_thin(manifest *m, const names *globs, err *e);

/* The note: which save it is about, and what is gone of it. */
typedef struct manifest_thin_note {
  char attempt[65]; /* as in the manifest, "" where it has none */
  char root[HASH_HEX_MAX];
  names globs;
  uint64_t newest; /* runlog_thinned */
} manifest_thin_note;

int manifest_thin_print(const manifest *m, const names *globs, uint64_t newest, buf *out, err *e);
/* Free it, on failure too. */
int manifest_thin_parse(const char *text, size_t len, const char *what, manifest_thin_note *out,
                        err *e);
void manifest_thin_free(manifest_thin_note *note);
/* True if the note is about this manifest. */
bool manifest_thin_is_of(const manifest_thin_note *note, const manifest *m);

#endif
