/* parts: the records in which each rank describes its part of a checkpoint,
 * <prefix>/.ckpt/parts/<attempt>/<term>/.
 *
 * A rank that has sent its files puts `<rank>`, once: who it is, and the table of its files. A rank
 * that cannot take part puts `<rank>.failed` with the reason, so that nobody waits for it. A record
 * counts for its own term only: those of a launch that died are never mixed with those of the next.
 *
 * If several ranks have the same file, it is one entry; if they have files of one name that differ,
 * the checkpoint cannot be made. */
#ifndef COMMIT_PARTS_H
#define COMMIT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "commit/manifest/manifest.h"
#include "commit/ranks.h"
#include "commit/log/runlog.h"

enum { PARTS_FORMAT = 1, PARTS_READER = 1, PARTS_REASON_MAX = 512 };

/* Names the save that a part belongs to, and the rank whose part it is. */
typedef struct part {
  const char *mark; /* of the attempt, for the object's metadata; may be NULL */
  uint64_t attempt, term;
  const ranks *ranks; /* rank, world and launch of the part's writer */
  const runlog_note
      *note; /* of rank 0, which may not be the one that commits: its reason, and its needs.
                            * NULL: none */
} part;

/* That note, as its record has it. */
typedef struct parts_words {
  char reason[RUNLOG_REASON_MAX], needs[RUNLOG_NEEDS_MAX]; /* "": none */
} parts_words;

/* Puts our record with the sealed table of our files. Fine if it is there already. ERR_EXISTS:
 * another table is there under our number, so a second process takes itself for this rank, or the
 * files were written anew. */
int parts_put(store *s, const runlog *log, const part *p, const manifest *table, err *e);

/* Says that there will be no part of ours. `conflict`: other bytes are there under a name of ours,
 * so that the same attempt can never succeed. It is fine if it was said before. */
int parts_put_failed(store *s, const runlog *log, const part *p, bool conflict, const char *why,
                     err *e);

/* Tells whether our own rank has put a record for this attempt yet. */
int parts_spoken(store *s, const runlog *log, const part *p, bool *out, err *e);

/* The records that are there, by one listing. */
typedef struct parts_seen {
  bool *there;     /* one for each rank */
  uint32_t count;  /* how many are there */
  uint32_t failed; /* the first rank that gave up, and has no part; the world's size if none did */
  /* Whose record is the youngest: of all who see all records at once, all name the same. */
  uint32_t newest;
} parts_seen;
int parts_look(store *s, const runlog *log, const part *p, parts_seen *out, err *e);
/* The same for who wants to know only whether all are there: where they take several pages, it ends at the
 * first that is missing. */
int parts_look_for_all(store *s, const runlog *log, const part *p, parts_seen *out, err *e);
void parts_seen_free(parts_seen *seen); /* a zeroed one is fine */
/* Lists the missing ranks, as ranks_list() does. */
void parts_missing(const parts_seen *seen, uint32_t world, char *out, size_t room);

/* Reads the table of one rank. ERR_NOENT: it has put none yet. Free it. */
int parts_get(store *s, const runlog *log, const part *p, uint32_t rank, manifest *out, err *e);

/* Tells why rank `rank` gave up. */
int parts_failed(store *s, const runlog *log, const part *p, uint32_t rank, bool *conflict,
                 char why[PARTS_REASON_MAX], err *e);

/* Reads the records of all ranks and makes one sealed manifest of them, the same whoever does it:
 * step, times, policy and metrics of the whole are rank 0's. It tells which rank alone had what. ERR_EXISTS names two ranks and the
 * file that they have with different bytes. A record that is not of this attempt, term, launch and
 * rank is ERR_CORRUPT. */
int parts_gather(store *s, const runlog *log, const part *p, manifest *out, err *e);

/* Reads what rank 0 says beside its table. */
int parts_words_get(store *s, const runlog *log, const part *p, parts_words *out, err *e);

/* These print and read the text of a record, for tests and fuzzers. If the rank gave up, *table is
 * empty, and `why` is not. */
int parts_print(const part *p, const manifest *table, bool conflict, const char *why, buf *out,
                err *e);
int parts_parse(const char *text, size_t len, const char *what, const part *p, uint32_t rank,
                manifest *table, bool *conflict, char why[PARTS_REASON_MAX], err *e);
int parts_words_parse(const char *text, size_t len, const char *what, parts_words *out, err *e);

#endif
