/* targets: the parsers that make fuzz feeds with bytes from nowhere.
 *
 * Each target is a function that takes any bytes, returns, and holds its own promise with must():
 * that what was accepted can be printed and read again as the same, that a bad hint changes
 * nothing, and so on. A crash, a sanitizer's report, a leak or a broken promise is a finding. */
#ifndef SPEC_FUZZ_TARGETS_H
#define SPEC_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"

#define FUZZ_TARGETS(X)                                                                            \
  X(json)                                                                                          \
  X(names)                                                                                         \
  X(uri)                                                                                           \
  X(manifest)                                                                                      \
  X(thin)                                                                                          \
  X(runlog)                                                                                        \
  X(snapshot)                                                                                      \
  X(head)                                                                                          \
  X(lease)                                                                                         \
  X(pins)                                                                                          \
  X(journal)                                                                                       \
  X(trail)                                                                                         \
  X(match)                                                                                         \
  X(rules)                                                                                         \
  X(structure)                                                                                     \
  X(xml)                                                                                           \
  X(s3) X(gs) X(credentials) X(keys) X(epoch) X(sigv4) X(notify) X(options) X(words) X(durations)  \
      X(answers) X(metrics) X(facts) X(memory) X(list) X(event) X(events) X(tar) X(bundle)         \
          X(parts) X(repair) X(launch) X(comment)

typedef void fuzz_target(const uint8_t *data, size_t size);
#define X(name) fuzz_target fuzz_##name;
FUZZ_TARGETS(X)
#undef X

/* The target of that name; NULL: there is none. */
fuzz_target *fuzz_find(const char *name);
/* The names, one after the other; NULL after the last. */
const char *fuzz_name(size_t i);

/* A promise: the input on which it does not hold is kept. */
#define must(x)                                                                                    \
  ((x) ? (void)0 : (fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #x), abort()))

/* The bytes with a NUL behind them, in memory of its own, so that one byte too far is seen. */
char *fuzz_text(const uint8_t *data, size_t size);

/* The piece before the next `by`, or all that is left; *left is what is behind it. NULL: there was
 * nothing left. */
const uint8_t *fuzz_piece(const uint8_t **at, size_t *left, char by, size_t *len);

/* A file of these bytes in a directory of this process, which is in memory and goes when it ends.
 * Its path is static. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);
const char *fuzz_dir(void);

/* The system's, but nothing is flushed, nothing sleeps, and clocks move by themselves. */
const io *fuzz_io(void);

#endif
