/* unpack: makes a directory of an archive, all of it or nothing.
 *
 * The archive is a stranger's: names are judged here, directories are opened without following any
 * link (fs_open_beneath), files are made only where nothing is. It is staged in a private sibling
 * of the directory, flushed, and renamed. Files, directories, and symbolic links that stay inside
 * are taken; set-id bits, owners, extended attributes and ACLs are left out. */
#ifndef JOB_PACK_UNPACK_H
#define JOB_PACK_UNPACK_H

#include <stdint.h>

#include "base/err.h"
#include "base/io.h"

typedef struct unpack_options {
  const io *io;
  const char *libexec;  /* as in fs_find_helper(); may be NULL */
  const char *file;     /* the archive */
  const char *dir;      /* absent, or an empty directory */
  uint64_t bytes_max;   /* of all files; 0: 1 TiB, and at most 1,000 times what is in the archive,
                           once that is more than 256 MiB */
  uint64_t entries_max; /* 0: 4 million */
} unpack_options;

/* ERR_FORMAT and ERR_LIMIT name the entry at fault; `dir` is then as it was. */
int unpack_archive(const unpack_options *options, err *e);

#endif
