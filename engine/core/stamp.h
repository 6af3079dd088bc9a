/* stamp: a number for the regular files of a unit as they stand: sizes, mtimes and inodes, in any
 * order. The detector takes one when it calls a unit complete, a save when it lists the files: what
 * was written in between, with its event still on the way, shows. Not for the disk. */
#ifndef CORE_STAMP_H
#define CORE_STAMP_H

#include <stdint.h>

/* What one file adds to the sum, which begins at 0; never 0 itself. */
static inline uint64_t stamp_of_file(uint64_t size, int64_t mtime_ns, uint64_t inode) {
  uint64_t x = size * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)mtime_ns;
  x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93) ^ inode;
  x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
  return (x ^ (x >> 32)) | 1;
}

#endif
