/* store_lossy: a store around another one, that loses requests and replies by a seed, and lets
 * somebody else in between. For one thread. */
#ifndef SPEC_STORE_LOSSY_H
#define SPEC_STORE_LOSSY_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

typedef struct store_lossy {
  store base; /* hand &base to the code under test */
  store *inner;
  store_ops ops;
  uint64_t random;                  /* the state of the seeded choices */
  unsigned lost, never, late, deaf; /* of 1000 puts: done but not answered; not done; done later;
                                       of 1000 gets: failed */
  long puts, gets;                  /* how many came */
  long lost_at, never_at;     /* the put of that number, from 1, is done and not answered; that
                                 one and all later ones are not done; 0: none */
  void (*between)(void *ctx); /* called before each put and get; NULL: nothing */
  void *ctx;
  char *late_key, *late_data; /* a put that is still under way */
  size_t late_len;
} store_lossy;

/* Loses nothing until it is told to. `inner` is borrowed. `proof`: the capabilities
 * STORE_CAP_IF_ABSENT and, which `inner` must have, STORE_CAP_RESUME. Never NULL: aborts. */
store_lossy *store_lossy_new(store *inner, uint64_t seed, bool proof);
void store_lossy_free(store_lossy *s);   /* a put that is under way is lost */
void store_lossy_arrive(store_lossy *s); /* it arrives */

#endif
