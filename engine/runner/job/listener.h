/* listener: the socket on which the job's processes report results (CKPT_SOCKET).
 *
 * A stream socket. A client sends JSON objects, one on each line, and gets a line for each:
 * {"ok":true}, {"error":"..."}, or {"ok":true,"lines":N} and then N lines of text. Only our own
 * user and root are listened to. Memory is bounded: a line has at most LISTENER_LINE_MAX bytes, an
 * answer LISTENER_ANSWER_MAX; when LISTENER_CLIENTS are connected and one more comes, the one that
 * was silent for longest is dropped. */
#ifndef RUNNER_JOB_LISTENER_H
#define RUNNER_JOB_LISTENER_H

#include <poll.h>
#include <stddef.h>
#include <stdio.h>

enum { LISTENER_LINE_MAX = 64 * 1024, LISTENER_CLIENTS = 256, LISTENER_FDS = LISTENER_CLIENTS + 1 };
enum { LISTENER_ERROR_MAX = 512, LISTENER_ANSWER_MAX = 256 * 1024 };

typedef struct listener listener;

/* Takes one line (without its end, ended by NUL; it may be overwritten): returns NULL if it is
 * accepted, else why not; the text is read at once. Whole lines that it writes to `answer` follow
 * the {"ok":...}. */
typedef const char *listener_fn(void *ctx, char *line, FILE *answer);

/* Binds `path`, whose directory exists and is ours alone. A socket of ours to which nobody listens
 * is replaced; anything else that stands there is left, and is an error. Returns 0, or -1 with a
 * text in `error`; then *out is NULL. */
int listener_open(listener **out, const char *path, char error[LISTENER_ERROR_MAX]);
/* Also removes the socket, if it still stands there. NULL is fine. */
void listener_close(listener *l);

/* Writes what to poll for into `fds` (room for LISTENER_FDS) and returns the number; 0 for NULL. */
size_t listener_fds(const listener *l, struct pollfd *fds);
/* Serves the descriptors that poll() reported. Never blocks. 0, or -errno when nobody new can be
 * served any more (out of descriptors): said once. */
int listener_serve(listener *l, const struct pollfd *fds, size_t count, listener_fn *fn, void *ctx);

#endif
