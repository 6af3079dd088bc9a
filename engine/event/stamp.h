/* stamp: a number for the regular files of a unit as they stand: sizes, mtimes and inodes, in any
 * order.
 *
 * The detector takes one when it calls a unit complete, a save when it lists the files: so a write
 * in between shows, even if its event is still on the way. Not for the disk. */
#ifndef EVENT_STAMP_H
#define EVENT_STAMP_H

#include <stdint.h>

/* Returns the share of one file in the sum, which begins at 0; never 0 itself. */
static inline uint64_t stamp_of_file(uint64_t size, int64_t mtime_ns, uint64_t inode) {
  uint64_t x = size * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)mtime_ns;
  x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93) ^ inode;
  x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
  return (x ^ (x >> 32)) | 1;
}

#endif
