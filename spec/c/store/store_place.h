/* store_place: a fresh, empty store for one test, of whichever kind the suite runs for. */
#ifndef SPEC_STORE_PLACE_H
#define SPEC_STORE_PLACE_H

#include "store/store.h"

typedef struct store_place {
  char *dir; /* a scratch directory; a file store's root is <dir>/root */
  uri where;
  store *s;
} store_place;

/* The scheme that the next stores have: "file", "mem", or "s3" (of the server that the AWS_*
 * variables name, in its bucket "ckpt-test"). */
extern const char *store_place_scheme;
/* The directory under which their scratch directories are made; NULL: where tmpdir_new() makes
 * them. */
extern const char *store_place_parent;

/* Opens one with `io` at a place where nothing is yet (a file store's root is not there). */
void store_place_make(store_place *p, const io *io);
void store_place_remove(store_place *p);

/* cmocka's setup and teardown of the same; *state becomes the store_place. */
int store_place_setup(void **state);
int store_place_teardown(void **state);

/* Shorthands. A text as an object; what is there must equal `text`; the whole listing as one string
 * ("a b/c d/": prefixes end in a slash; "!INVAL" if it failed), which the caller frees. */
int store_put_text(store *s, const char *key, const char *text, store_how how);
void store_must_hold(store *s, const char *key, const char *text);
void store_must_be(store *s, const char *key, const char *data, size_t len); /* of any size */
bool store_holds(store *s, const char *key);
char *store_listing(store *s, const char *prefix, bool delimited);
void store_must_list(store *s, const char *prefix, bool delimited, const char *expected);

/* Streams `len` bytes in chunks of `chunk`. What write_close returned, or the first failure. */
int store_stream(store *s, const char *key, const void *data, size_t len, size_t chunk,
                 bool staged);

#endif
