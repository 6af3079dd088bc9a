/* secret: memory that holds keys and tokens: no core file has it, it is wiped when it is given back,
 * and it stays out of the swap as far as an eighth of the limit on locked memory (ulimit -l) allows.
 *
 * Any thread. What is larger than SECRET_PIECE_MAX gets pages of its own. */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

enum { SECRET_PIECE_MAX = 64 << 10 };

/* Returns zeroed memory; NULL: there is none. */
void *secret_alloc(size_t size);
/* Moves it, if it must grow, and wipes where it was; `old` may be NULL. NULL: there is no memory,
 * and the old one is as it was. */
void *secret_resize(void *old, size_t size);
char *secret_copy(const char *text);
/* Copies a list that ends with NULL, in one piece. */
char **secret_copy_list(const char *const *list);
void secret_free(void *p); /* NULL is fine */

/* True if this is a piece of this memory, of up to SECRET_PIECE_MAX bytes. */
bool secret_owns(const void *p);

#endif
