/* structure: tells whether a file can be whole, to its last byte, by its format.
 *
 * It is a cheap look at the ends of a file (never at all of it) that finds a torn write where no
 * event can: after a crash, or for a unit that was first seen by a listing. It knows zip
 * (torch.save, npz, keras: the central directory at the end), safetensors (the header's offsets
 * against the size), HDF5 (the superblock's end of file), JSON (parses), UBJSON (XGBoost: its last
 * brace), pickle (ends with STOP) and TensorFlow's tensor bundle (the index against its shards). */
#ifndef EVENT_STRUCTURE_H
#define EVENT_STRUCTURE_H

#include "base/err.h"
#include "base/io.h"
#include "event/rules.h"

typedef enum structure {
  STRUCTURE_SOUND,   /* whole, as far as its format tells */
  STRUCTURE_TORN,    /* cannot be whole */
  STRUCTURE_UNKNOWN, /* no format we know */
} structure;

/* What the structure of a file proves about a writer. */
typedef enum structure_proof {
  STRUCTURE_PROVES_NOTHING,
  STRUCTURE_PROVES_LENGTH, /* all of its bytes are there, but not that they were filled
                            * (safetensors): it takes a close that was seen */
  STRUCTURE_PROVES_CLOSED, /* whole, if no writer on another machine may still add to it (HDF5) */
  STRUCTURE_PROVES_WHOLE,  /* its end was written last (zip, UBJSON) */
} structure_proof;

/* Looks what the structure of one file proves. NOTHING where it is torn, or of no known format.
 * Errors as structure_of_file. */
int structure_proves(const io *io, const char *path, structure_proof *out, err *e);

/* The same of a group of files, `stem` under `root`: WHOLE if all of it is one tensor bundle, whose index is
 * written last, and files that are sound themselves; else NOTHING. Errors as structure_of_unit. */
int structure_proves_group(const io *io, const char *root, const char *path, const rules *rules,
                           structure_proof *out, err *e);

/* Looks at one file. `why` (may be NULL, room `len`) gets a short text: "zip: no central
 * directory". A negative ERR_* only if it cannot be read; ERR_NOENT if it vanished. */
int structure_of_file(const io *io, const char *path, structure *out, char *why, size_t len,
                      err *e);

/* Looks at a unit (file, directory, or `stem` of a group: every file `stem`.*) under `root`: TORN
 * if one of its files is, or a required marker is missing; SOUND if there are files and all are;
 * else UNKNOWN. Excluded names are passed over; an excluded temporary name inside alone proves
 * nothing. */
int structure_of_unit(const io *io, const char *root, const char *path, match_kind kind,
                      const rules *rules, structure *out, char *why, size_t len, err *e);

/* True for the name of a shard of a tensor bundle (".data-00000-of-00002"): how many there are its index
 * tells, and not the checkpoint before. */
bool structure_is_shard(const char *name);

#endif
