/* program_reports: the socket on which a program reports; a part of program.c. */
#ifndef PRIMS_PROGRAM_REPORTS_H
#define PRIMS_PROGRAM_REPORTS_H

#include <poll.h>

#include "program.h"

typedef struct reports reports;

enum { REPORTS_FDS = PROGRAM_CLIENTS + 1 };

/* Listens at `path`, whose directory exists. Only our own user and root are heard. */
int reports_open(const io *io, const char *path, reports **out, err *e);
/* Removes the socket as well. NULL is fine. */
void reports_close(reports *r);

/* Fills in the descriptors to poll; there is room for REPORTS_FDS. A client whose line waits for an
 * answer is not among them. */
size_t reports_fds(const reports *r, struct pollfd *fds);
/* Reads what came, without blocking. Returns 1 if it did anything. */
int reports_serve(reports *r, const struct pollfd *fds, size_t count);

/* These do as program_report() and program_answer(). */
bool reports_next(reports *r, uint64_t *from, const char **line, size_t *len);
int reports_answer(reports *r, uint64_t from, const char *line, err *e);

#endif
