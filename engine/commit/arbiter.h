/* arbiter: whether the store arbitrates between writers, and for which servers that has been shown.
 *
 * A log can move: its bucket is copied, or another server or a gateway comes to stand before it.
 * One that ignores the condition of a put would let two writers have the same entry, and each would
 * be told that it has it. So <prefix>/.ckpt/race names the servers for which a race had one winner
 * each time, and where another one answers, the race is run again before anything is written. The
 * document is a hint: one that is absent or cannot be read costs a race. */
#ifndef COMMIT_ARBITER_H
#define COMMIT_ARBITER_H

#include <stdbool.h>

#include "store/store.h"

/* Runs the race, unless it was shown for the server that answers: by this handle, or at this prefix
 * before. *due: it was run, so arbiter_note() is due once anything may be written here.
 * ERR_UNSUPPORTED: there is no arbiter. 0 for a store that needs none, and by the user's word
 * (single_writer). */
int arbiter_check(store *s, const char *prefix, bool *due, err *e);
/* Remembers at this prefix that the race held for the server that answers; where the user's word
 * stands for that, forgets what was remembered. A failure costs another race: it is logged, no
 * more. */
void arbiter_note(store *s, const char *prefix);
/* Does both for who writes as a guest, or beside a first rank that was asked: nothing is run where nothing is
 * remembered, since the writer may have the user's word. */
int arbiter_check_guest(store *s, const char *prefix, err *e);

#endif
