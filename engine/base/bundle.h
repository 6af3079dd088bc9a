/* bundle: how the entries of an archive pass between us and the helper libexec/ckpt-archive, as a
 * stream of bytes in either direction.
 *
 * The helper asks for input when it needs some, so neither side ever waits for the other to read.
 * It sends frames: a byte (BUNDLE_WANT, ...), four bytes of length, the payload. The answer to
 * BUNDLE_WANT is four bytes of length and that many bytes; a length of 0 says that there are no
 * more.
 *
 * When it unpacks, the input is the archive and the output entries; when it packs, it is the other
 * way round. An entry is a head, its name, the target of a link, and for a file pieces, each with a
 * head of its own; an empty piece ends the file. A head of kind BUNDLE_END ends it all. Numbers
 * have their least significant byte first. Neither side trusts the other. */
#ifndef BASE_BUNDLE_H
#define BASE_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

typedef enum bundle_frame {
  BUNDLE_WANT = 'W',   /* it asks for input */
  BUNDLE_BYTES = 'B',  /* a piece of the output */
  BUNDLE_DONE = 'Z',   /* all went well; nothing follows */
  BUNDLE_FAILED = 'F', /* four bytes of status, and a text; nothing follows */
} bundle_frame;

enum { BUNDLE_FRAME_HEAD = 5, BUNDLE_COUNT = 4, BUNDLE_CHUNK = 1 << 20 };

typedef enum bundle_kind { BUNDLE_FILE, BUNDLE_DIR, BUNDLE_LINK, BUNDLE_END } bundle_kind;

enum { BUNDLE_HEAD = 29, BUNDLE_PIECE = 12, BUNDLE_NAME_MAX = 64 << 10 };

typedef struct bundle_head {
  bundle_kind kind;
  uint32_t mode; /* permission bits */
  int64_t mtime_ns;
  uint64_t size;         /* of a file; 0 for the others */
  uint32_t name, target; /* the lengths of both, without a NUL */
} bundle_head;

typedef struct bundle_piece {
  uint64_t at; /* offset in the file; the gap between two pieces is a hole */
  uint32_t len;
} bundle_piece;

void bundle_put_count(unsigned char to[BUNDLE_COUNT], uint32_t count);
uint32_t bundle_get_count(const unsigned char from[BUNDLE_COUNT]);

void bundle_put_head(unsigned char to[BUNDLE_HEAD], const bundle_head *head);
/* ERR_FORMAT if the kind is unknown, or a name has more than BUNDLE_NAME_MAX bytes. */
int bundle_get_head(const unsigned char from[BUNDLE_HEAD], bundle_head *out, err *e);

void bundle_put_piece(unsigned char to[BUNDLE_PIECE], bundle_piece piece);
bundle_piece bundle_get_piece(const unsigned char from[BUNDLE_PIECE]);

#endif
