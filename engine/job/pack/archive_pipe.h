/* archive_pipe: the helper process for archives, as a pipe: bytes are fed into it when it asks for
 * them, and its output is taken. base/bundle.h describes the bytes.
 *
 * It reads an archive of a stranger with a library that may end its process: its output is as
 * little trusted as the archive itself. One thread. */
#ifndef JOB_PACK_ARCHIVE_PIPE_H
#define JOB_PACK_ARCHIVE_PIPE_H

#include "base/bundle.h"
#include "base/io.h"

/* Fills `to` with the next bytes of its input. Returns how many; 0 at the end, or a negative
 * ERR_*. */
typedef ssize_t archive_feed(void *ctx, void *to, size_t room, err *e);

typedef struct archive_pipe archive_pipe;

typedef struct archive_pipe_options {
  const io *io;
  const char *libexec;         /* as in fs_find_helper(); may be NULL */
  const char *verb, *argument; /* of its command line: "unpack" "0", "pack" "zstd" */
  const char *what;            /* stands before the helper's own words */
  archive_feed *feed;
  void *ctx;
} archive_pipe_options;

int archive_pipe_open(const archive_pipe_options *options, archive_pipe **out, err *e);
void archive_pipe_close(archive_pipe *p); /* NULL is fine */

/* Takes up to `len` bytes of its output, fewer only at its end. Returns how many, or a negative
 * ERR_*: that of the feed, that which the helper reports, ERR_IO if it died, ERR_TIMEOUT if it
 * moved nothing for a minute. */
ssize_t archive_pipe_take(archive_pipe *p, void *to, size_t len, err *e);
/* Takes exactly `len` bytes, or fails with ERR_FORMAT. */
int archive_pipe_need(archive_pipe *p, void *to, size_t len, err *e);

#endif
