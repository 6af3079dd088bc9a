/* shown: tells which characters of a text that others wrote may reach a terminal; writes numbers as
 * people read them. */
#ifndef BASE_SHOWN_H
#define BASE_SHOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the UTF-8 sequence at `at` (the text ends with a NUL), or 0 if there is
 * none. Overlong forms, surrogates and code points past U+10FFFF count as none, because jansson
 * refuses them. */
size_t shown_utf8_len(const unsigned char *at);

/* Looks at the next character at `at`, which is not the end: *len gets its length, 1 for a byte
 * that is no UTF-8. Returns false for such a byte, for control characters (those of C1, U+0080 to
 * U+009F, too: terminals obey U+009B as they do ESC [), and for characters that change the
 * direction of the text, which make a name look like another one. */
bool is_shown(const unsigned char *at, size_t *len);

/* Writes a size for people, "1.4 TiB", and returns it. */
enum { SHOWN_SIZE_MAX = 16 };
const char *shown_size(uint64_t bytes, char out[SHOWN_SIZE_MAX]);

#endif
