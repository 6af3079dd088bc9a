#include "program_reports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct client {
  int fd; /* -1: a free place */
  uint64_t id;
  char *data; /* `used` bytes that came; the first line is whole if `ready` */
  size_t used, room;
  size_t line;  /* its length with its end */
  bool ready;   /* a line waits to be handed out */
  bool waiting; /* it was handed out, and waits for its answer */
  bool closing; /* the client sends no more */
} client;

struct reports {
  const io *io;
  int fd; /* -1: nobody new can be heard */
  uint64_t last_id;
  char path[sizeof((struct sockaddr_un *)0)->sun_path];
  client clients[PROGRAM_CLIENTS];
};

int reports_open(const io *io, const char *path, reports **out, err *e) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  *out = NULL;
  if (strlen(path) >= sizeof address.sun_path)
    return err_set(e, ERR_LIMIT,
                   "the socket's path %.200s is longer than %zu bytes, which is all that Linux "
                   "takes: set TMPDIR to a shorter directory",
                   path, sizeof address.sun_path - 1);
  reports *r = calloc(1, sizeof *r);
  if (!r) return err_set(e, ERR_NOMEM, "cannot listen at %s: out of memory", path);
  memcpy(address.sun_path, path, strlen(path) + 1);
  memcpy(r->path, path, strlen(path) + 1);
  r->io = io;
  for (size_t i = 0; i < PROGRAM_CLIENTS; i++) r->clients[i].fd = -1;
  r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int rc = r->fd < 0 ? -errno : 0;
  /* The file gets the socket's mode. A chmod afterwards would leave a moment for others. */
  if (rc == 0) rc = io->chmod(io, r->fd, 0600);
  bool bound = rc == 0 && bind(r->fd, (struct sockaddr *)&address, sizeof address) == 0;
  if (rc == 0 && !bound) rc = -errno;
  if (rc == 0 && listen(r->fd, PROGRAM_CLIENTS) != 0) rc = -errno;
  if (rc == 0) {
    *out = r;
    return 0;
  }
  if (bound) io->unlink(io, AT_FDCWD, path, 0);
  if (r->fd >= 0) io->close(io, r->fd);
  free(r);
  return err_sys(e, rc, "cannot listen on the socket %s", path);
}

static void drop(reports *r, client *c) {
  r->io->close(r->io, c->fd);
  free(c->data);
  *c = (client){.fd = -1};
}

static void stop_listening(reports *r) {
  if (r->fd < 0) return;
  r->io->unlink(r->io, AT_FDCWD, r->path, 0);
  r->io->close(r->io, r->fd);
  r->fd = -1;
}

void reports_close(reports *r) {
  if (!r) return;
  for (size_t i = 0; i < PROGRAM_CLIENTS; i++)
    if (r->clients[i].fd >= 0) drop(r, &r->clients[i]);
  stop_listening(r);
  free(r);
}

static bool is_heard(const client *c) {
  return c->fd >= 0 && !c->ready && !c->waiting;
}

size_t reports_fds(const reports *r, struct pollfd *fds) {
  size_t count = 0, free_places = 0;
  for (size_t i = 0; i < PROGRAM_CLIENTS; i++) {
    if (r->clients[i].fd < 0) free_places++;
    if (is_heard(&r->clients[i]))
      fds[count++] = (struct pollfd){.fd = r->clients[i].fd, .events = POLLIN};
  }
  /* When all places are taken, the next client waits in the kernel's queue. */
  if (r->fd >= 0 && free_places > 0) fds[count++] = (struct pollfd){.fd = r->fd, .events = POLLIN};
  return count;
}

static void accept_client(reports *r) {
  int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    /* Out of descriptors the next poll would come back at once, for ever. So we stop listening, and
     * the kernel refuses later clients. */
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) stop_listening(r);
    return;
  }
  struct ucred peer;
  socklen_t size = sizeof peer;
  bool ours = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
              (peer.uid == geteuid() || peer.uid == 0);
  for (size_t i = 0; ours && i < PROGRAM_CLIENTS; i++) {
    if (r->clients[i].fd >= 0) continue;
    r->clients[i] = (client){.fd = fd, .id = ++r->last_id};
    return;
  }
  r->io->close(r->io, fd);
}

/* An answer is short: whoever does not read it is dropped. */
static bool send_line(client *c, const char *text) {
  struct iovec parts[] = {{.iov_base = (void *)text, .iov_len = strlen(text)},
                          {.iov_base = "\n", .iov_len = 1}};
  struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
  ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
  return n == (ssize_t)(parts[0].iov_len + 1);
}

static void skip_line(client *c) {
  c->used -= c->line;
  memmove(c->data, c->data + c->line, c->used);
  c->ready = c->waiting = false;
  c->line = 0;
}

/* Looks whether a line is whole. Returns false when the client is to be dropped. */
static bool find_line(client *c) {
  while (!c->ready) {
    char *end = c->used > 0 ? memchr(c->data, '\n', c->used) : NULL;
    if (!end && c->closing) {
      if (c->used == 0) return false;
      end = c->data + c->used; /* sent without a line's end, and sent nevertheless */
    }
    size_t len = end ? (size_t)(end - c->data) : c->used;
    if (len > PROGRAM_LINE_MAX) {
      send_line(c, "{\"error\":\"the line is longer than 65536 bytes\"}");
      return false;
    }
    if (!end) return true;
    c->line = len + (end < c->data + c->used);
    if (memchr(c->data, 0, len)) {
      if (!send_line(c, "{\"error\":\"the line has a NUL byte\"}")) return false;
      skip_line(c);
    } else if (len == 0 || (len == 1 && *c->data == '\r')) {
      skip_line(c);
    } else {
      c->ready = true;
    }
  }
  return true;
}

/* Reads once; false when the client is to be dropped. */
static bool read_client(client *c) {
  if (c->room - c->used < 1024) {
    size_t room = c->room ? c->room * 2 : 2048;
    char *data = realloc(c->data, room);
    if (!data) return false;
    c->data = data;
    c->room = room;
  }
  ssize_t n = read(c->fd, c->data + c->used, c->room - c->used);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  c->closing = n == 0;
  c->used += (size_t)n;
  return find_line(c);
}

int reports_serve(reports *r, const struct pollfd *fds, size_t count) {
  int did = 0;
  for (size_t k = 0; k < count; k++) {
    if (!fds[k].revents) continue;
    did = 1;
    if (fds[k].fd == r->fd) {
      accept_client(r);
      continue;
    }
    for (size_t i = 0; i < PROGRAM_CLIENTS; i++) {
      client *c = &r->clients[i];
      if (c->fd != fds[k].fd || !is_heard(c)) continue;
      if (!read_client(c)) drop(r, c);
      break;
    }
  }
  return did;
}

bool reports_next(reports *r, uint64_t *from, const char **line, size_t *len) {
  client *first = NULL;
  for (size_t i = 0; i < PROGRAM_CLIENTS; i++) {
    client *c = &r->clients[i];
    if (c->fd >= 0 && c->ready && (!first || c->id < first->id)) first = c;
  }
  if (!first) return false;
  first->ready = false;
  first->waiting = true;
  *from = first->id;
  *line = first->data;
  *len = first->line;
  while (*len > 0 && ((*line)[*len - 1] == '\n' || (*line)[*len - 1] == '\r')) --*len;
  return true;
}

int reports_answer(reports *r, uint64_t from, const char *line, err *e) {
  for (size_t i = 0; i < PROGRAM_CLIENTS; i++) {
    client *c = &r->clients[i];
    if (c->fd < 0 || c->id != from || !c->waiting) continue;
    bool sent = send_line(c, line);
    if (sent) skip_line(c);
    if (!sent || !find_line(c)) drop(r, c);
    if (sent) return 0;
    break;
  }
  return err_set(e, ERR_NOENT, "whoever sent the report does not wait for its answer any more");
}
