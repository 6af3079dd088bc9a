/* last_lines: what the job said last, where its output goes to a file that we can read: a log of Slurm or
 * nohup. Nothing is put between the job and its output: what goes to a terminal or a pipe is not
 * known. */
#ifndef RUNNER_JOB_LAST_LINES_H
#define RUNNER_JOB_LAST_LINES_H

#include <stddef.h>
#include <sys/types.h>

typedef struct last_lines {
  int fd;     /* -1: they cannot be known */
  off_t from; /* the file's end when the job was started */
} last_lines;

/* Looks where `out` (standard error, say) goes; if that is no file, at `other`. */
last_lines last_lines_begin(int out, int other);
/* Writes the last lines of the job, without those of ours, into `text` (room > 0), a line's end between
 * them; "": none is known. */
void last_lines_take(const last_lines *l, char *text, size_t room);
void last_lines_end(last_lines *l);

#endif
