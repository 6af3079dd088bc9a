/* manifest_read: reads a manifest as it stands in a store. */
#ifndef COMMIT_MANIFEST_READ_H
#define COMMIT_MANIFEST_READ_H

#include "commit/manifest/manifest_thin.h"
#include "store/store.h"

/* Makes its key in the directory of a checkpoint ("": at the store's own root). */
int manifest_key(const char *dir_key, char out[STORE_KEY_MAX], err *e);

/* Reads and checks the manifest of a checkpoint directory ("<prefix>/<dir>"; "": the store's own
 * root). ERR_NOENT if there is none. */
int manifest_read(store *s, const char *dir_key, manifest *out, err *e);
/* The same of a checkpoint that was committed with this root: what is absent, cut or another one is
 * read once more before it is believed. ERR_CORRUPT if it is not that one. */
int manifest_read_committed(store *s, const char *dir_key, const digest *root, manifest *out,
                            err *e);
/* The same where the commit knows the digest of the manifest's whole text, too (`text` empty: it
 * does not, it is of 1.0). */
int manifest_read_proven(store *s, const char *dir_key, const digest *root, const digest *text,
                         manifest *out, err *e);
/* Takes what a note beside the manifest of that directory (manifest_thin.h) says to be gone out of `m`: 1 if
 * there is one that is about it, else 0. Who has a log goes by that. */
int manifest_take_note(store *s, const char *dir_key, manifest *m, err *e);
/* Reads the note: 1 if there is one that is about `m`; free it then. 0: there is none, or no such one. */
int manifest_read_note(store *s, const char *dir_key, const manifest *m, manifest_thin_note *out,
                       err *e);
/* Makes the note's key. */
int manifest_note_key(const char *dir_key, char out[STORE_KEY_MAX], err *e);
/* Says to the store how the names of this manifest, which stands in that directory, are spelt. Both
 * of the readers do it. */
int manifest_spell(store *s, const char *dir_key, const manifest *m, err *e);
/* The same as manifest_read() of the manifest's own key. */
int manifest_read_at(store *s, const char *key, manifest *out, err *e);

#endif
