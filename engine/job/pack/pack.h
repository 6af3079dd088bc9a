/* pack: makes an archive of a directory.
 *
 * Equal trees (names, bytes, modes, times) give equal archives: entries are sorted, owners are left
 * out. So are extended attributes and ACLs; two names of one file are two files. The archive shows
 * under its name when it is whole and flushed, and never replaces anything. */
#ifndef JOB_PACK_PACK_H
#define JOB_PACK_PACK_H

#include "base/err.h"
#include "base/io.h"

typedef struct pack_options {
  const io *io;
  const char *libexec; /* as in fs_find_helper(); may be NULL */
  const char *dir;
  const char *file; /* its end says how it is compressed: .tar, .tar.gz (.tgz), .tar.zst (.tzst) */
} pack_options;

/* ERR_INVAL for entries that unpack_archive() would refuse: devices, links that lead out.
 * ERR_RETIRED if a file changes meanwhile. */
int pack_archive(const pack_options *options, err *e);

#endif
