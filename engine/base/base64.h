/* base64: bytes as text, as headers and tokens have them. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

/* Appends the text. `url`: with '-' and '_', and without padding, as tokens have it. */
void base64_encode(const void *bytes, size_t len, bool url, buf *out);

/* Decodes a padded text into `out`, of `room` bytes; a line end behind it is passed over. False: it
 * is none, or has more bytes. */
bool base64_decode(const char *text, uint8_t *out, size_t room, size_t *len);

#endif
