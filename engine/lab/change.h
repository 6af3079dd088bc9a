/* change: reads what happened to a file, as a trace of a directory tells it: a JSON object on a line, in
 * the words of inotify. It comes from outside: each line is checked as a whole. */
#ifndef LAB_CHANGE_H
#define LAB_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef enum lab_change_what {
  LAB_FILE_CREATE,
  LAB_FILE_MODIFY,
  LAB_FILE_CLOSE_WRITE,
  LAB_FILE_MOVED_FROM,
  LAB_FILE_MOVED_TO,
  LAB_FILE_DELETE,
  LAB_FILE_ATTRIB,
  LAB_FILE_SCAN, /* a listing of the new directory before it found this: no event told of it */
  LAB_FILE_CHANGES,
} lab_change_what;

/* One change; the texts are its own. */
typedef struct lab_change {
  int64_t at_ns, end_ns; /* end: of the last of several writes that are one line */
  lab_change_what what;
  char *path, *link; /* link: where it leads, of a symbolic link; NULL: it is none */
  int64_t size;      /* negative: not known */
  uint32_t cookie;   /* pairs MOVED_FROM and MOVED_TO */
  bool is_dir;
  size_t line; /* in its file, from 1 */
  bool moved; /* of a MOVED_TO, and of a MOVED_FROM: what it tells is done, the other one told it */
} lab_change;

void lab_change_free(lab_change *change);

/* True if a line is of a trace, and not of a run that is told. */
bool lab_change_is(const char *line, size_t len);

/* Reads one line, as lab_event_read() does; 0: it tells nothing that counts, and *out is empty. 1: it
 * does. */
int lab_change_read(const char *line, size_t len, const char *where, int64_t after_ns,
                    lab_change *out, err *e);

#endif
