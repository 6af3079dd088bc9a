/* store_key: the names of objects, as texts and rules; no store is asked. */
#ifndef STORE_STORE_KEY_H
#define STORE_STORE_KEY_H

#include "base/err.h"

enum { STORE_KEY_MAX = 1024 };

/* Returns 0, or ERR_INVAL / ERR_LIMIT for a text that cannot be a key. Every store calls it
 * first. */
int store_key_check(const char *key, err *e);

/* Compares keys in the order of listings: byte order of components, as a walk over directories
 * gives it ("a/z" comes before "a-b"). Less than, equal to or greater than 0. */
int store_key_order(const char *a, const char *b);

#endif
