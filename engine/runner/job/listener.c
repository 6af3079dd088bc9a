#include "listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runner/cli/record.h"

typedef struct client {
  int fd; /* -1: a free place */
  size_t used, room;
  char *data; /* the beginning of a line that is not whole yet */
  char *out;  /* the rest of a long answer that the socket did not take; NULL: none */
  size_t out_size, out_sent;
  uint64_t turn; /* of its last line, or its coming */
} client;

struct listener {
  int fd;
  char path[sizeof((struct sockaddr_un *)0)->sun_path];
  dev_t device; /* of the socket that we made there */
  ino_t inode;
  uint64_t turns;
  client clients[LISTENER_CLIENTS];
};

/* True if nobody listens there. A full queue is somebody's, too. */
static bool is_dead(const struct sockaddr_un *address) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
              errno == ECONNREFUSED;
  if (fd >= 0) close(fd);
  return dead;
}

/* Removes a stale socket, which stays when its process is killed. One that is listened to, and any
 * other file at that place, is not ours to remove. */
static int remove_stale(const struct sockaddr_un *address) {
  const char *path = address->sun_path;
  struct stat st;
  if (lstat(path, &st) != 0) return errno == ENOENT ? 0 : -errno;
  if (!S_ISSOCK(st.st_mode)) return -EEXIST;
  if (st.st_uid != geteuid() || !is_dead(address)) return -EADDRINUSE;
  return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Removes only the socket that we made: the place may have been cleared, and taken by somebody
 * else. */
static void remove_own(const listener *l) {
  struct stat st;
  if (lstat(l->path, &st) == 0 && st.st_dev == l->device && st.st_ino == l->inode) unlink(l->path);
}

static int bind_socket(listener *l) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  struct stat st;
  memcpy(address.sun_path, l->path, strlen(l->path));
  int rc = remove_stale(&address);
  if (rc != 0) return rc;
  /* Linux makes the file with the mode of the socket. A chmod afterwards would leave a moment in
   * which others can connect, and umask belongs to all threads. */
  if (fchmod(l->fd, 0600) != 0) return -errno;
  if (bind(l->fd, (struct sockaddr *)&address, sizeof address) != 0) return -errno;
  if (lstat(l->path, &st) != 0) return -errno;
  l->device = st.st_dev;
  l->inode = st.st_ino;
  /* The queue is as long as the kernel lets it be: while it is full, clients wait. */
  if (listen(l->fd, SOMAXCONN) == 0) return 0;
  rc = -errno;
  remove_own(l);
  return rc;
}

int listener_open(listener **out, const char *path, char error[LISTENER_ERROR_MAX]) {
  listener *l = NULL;
  *out = NULL;
  if (strlen(path) >= sizeof l->path) {
    snprintf(error, LISTENER_ERROR_MAX,
             "the socket's path '%.200s' is longer than %zu bytes, which is all that Linux takes: "
             "set XDG_RUNTIME_DIR to a shorter directory",
             path, sizeof l->path - 1);
    return -1;
  }
  l = calloc(1, sizeof *l);
  int rc = l ? 0 : -ENOMEM;
  if (rc == 0) {
    memcpy(l->path, path, strlen(path) + 1);
    for (size_t i = 0; i < LISTENER_CLIENTS; i++) l->clients[i].fd = -1;
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    rc = l->fd < 0 ? -errno : bind_socket(l);
  }
  if (rc == 0) {
    *out = l;
    return 0;
  }
  snprintf(error, LISTENER_ERROR_MAX, "cannot listen on the socket '%.200s': %s", path,
           strerror(-rc));
  if (l && l->fd >= 0) close(l->fd);
  free(l);
  return -1;
}

static void drop(client *c) {
  close(c->fd);
  free(c->data);
  free(c->out);
  *c = (client){.fd = -1};
}

void listener_close(listener *l) {
  if (!l) return;
  for (size_t i = 0; i < LISTENER_CLIENTS; i++)
    if (l->clients[i].fd >= 0) drop(&l->clients[i]);
  /* Removed while it is still ours: once it is closed, another run could have bound its own there.
   */
  if (l->fd >= 0) {
    remove_own(l);
    close(l->fd);
  }
  free(l);
}

size_t listener_fds(const listener *l, struct pollfd *fds) {
  size_t count = 0;
  if (!l) return 0;
  for (size_t i = 0; i < LISTENER_CLIENTS; i++)
    if (l->clients[i].fd >= 0)
      fds[count++] =
          (struct pollfd){.fd = l->clients[i].fd, .events = l->clients[i].out ? POLLOUT : POLLIN};
  if (l->fd >= 0) fds[count++] = (struct pollfd){.fd = l->fd, .events = POLLIN};
  return count;
}

static client *idlest(listener *l) {
  client *found = NULL;
  for (size_t i = 0; i < LISTENER_CLIENTS; i++) {
    client *c = &l->clients[i];
    if (c->fd >= 0 && (!found || c->turn < found->turn)) found = c;
  }
  return found;
}

/* Finds a free place. Connections that somebody left open shut nobody out: the one that was silent
 * for longest goes. */
static client *free_place(listener *l) {
  for (size_t i = 0; i < LISTENER_CLIENTS; i++)
    if (l->clients[i].fd < 0) return &l->clients[i];
  client *c = idlest(l);
  drop(c);
  return c;
}

static int take_connection(listener *l) {
  for (;;) {
    int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    client *c = fd < 0 && (errno == EMFILE || errno == ENFILE) ? idlest(l) : NULL;
    if (!c) return fd < 0 ? -errno : fd;
    drop(c);
  }
}

static int accept_client(listener *l) {
  int fd = take_connection(l);
  if (fd < 0) {
    if (fd == -EAGAIN || fd == -EINTR || fd == -ECONNABORTED) return 0;
    /* Out of descriptors or memory: the next poll would come back at once, for ever. Results are
     * an extra; the clients get an error and training goes on. */
    remove_own(l);
    close(l->fd);
    l->fd = -1;
    return fd;
  }
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      (peer.uid == geteuid() || peer.uid == 0))
    *free_place(l) = (client){.fd = fd, .turn = ++l->turns};
  else
    close(fd);
  return 0;
}

/* Sends the rest of an answer; false when the client is gone. */
static bool send_rest(client *c) {
  while (c->out_sent < c->out_size) {
    ssize_t n =
        send(c->fd, c->out + c->out_sent, c->out_size - c->out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    c->out_sent += (size_t)n;
  }
  free(c->out);
  c->out = NULL;
  c->out_size = c->out_sent = 0;
  return true;
}

/* A client that does not read its short answers is dropped: nobody waits for it. A long one may
 * need several turns; until it is out, nothing more is read of this client. */
static bool send_answer(client *c, const char *text, size_t size, bool is_long) {
  if (c->out) {
    char *out =
        size + c->out_size <= LISTENER_ANSWER_MAX ? realloc(c->out, c->out_size + size) : NULL;
    if (!out) return false;
    memcpy(out + c->out_size, text, size);
    c->out = out;
    c->out_size += size;
    return true;
  }
  ssize_t n = send(c->fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n == (ssize_t)size) return true;
  if (!is_long || (n < 0 && errno != EAGAIN)) return false;
  size_t sent = n < 0 ? 0 : (size_t)n;
  c->out = malloc(size - sent);
  if (!c->out) return false;
  memcpy(c->out, text + sent, size - sent);
  c->out_size = size - sent;
  c->out_sent = 0;
  return true;
}

static void write_answer(FILE *f, const char *error, const char *lines, size_t size) {
  size_t count = 0;
  if (!error && size > LISTENER_ANSWER_MAX / 2) error = "the answer is too long";
  for (size_t i = 0; i < size; i++) count += lines[i] == '\n';
  record r = record_begin(f);
  if (error)
    record_text(&r, "error", error);
  else
    record_bool(&r, "ok", true);
  if (!error && size > 0) record_count(&r, "lines", count);
  record_end_line(&r);
  if (!error) fwrite(lines, 1, size, f);
}

static bool answer(client *c, const char *error, const char *lines, size_t size) {
  char *text = NULL;
  size_t room = 0;
  FILE *f = open_memstream(&text, &room);
  if (!f) return false;
  write_answer(f, error, lines, size);
  bool sent = fclose(f) == 0 && send_answer(c, text, room, !error && size > 0);
  free(text);
  return sent;
}

/* Hands on a line that ends at `end`, where a NUL may be written. */
static bool take_line(client *c, char *line, char *end, listener_fn *fn, void *ctx) {
  char *lines = NULL;
  size_t size = 0;
  if (end > line && end[-1] == '\r') end--;
  if (memchr(line, 0, (size_t)(end - line))) return answer(c, "the line has a NUL byte", NULL, 0);
  *end = 0;
  if (!*line) return true;
  FILE *f = open_memstream(&lines, &size);
  if (!f) return false;
  const char *error = fn(ctx, line, f);
  bool sent = fclose(f) == 0 && answer(c, error, lines, size);
  free(lines);
  return sent;
}

static bool make_room(client *c) {
  if (c->room - c->used > 1) return true;
  size_t room = c->room ? c->room * 2 : 1024;
  if (room > LISTENER_LINE_MAX + 2) room = LISTENER_LINE_MAX + 2; /* the line's end, and a NUL */
  char *data = realloc(c->data, room);
  if (!data) return false;
  c->data = data;
  c->room = room;
  return true;
}

/* Reads once; false when the client is to be dropped. */
static bool serve_client(client *c, listener_fn *fn, void *ctx) {
  if (c->out) return send_rest(c);
  if (!make_room(c)) return false;
  ssize_t n = read(c->fd, c->data + c->used, c->room - c->used - 1);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) { /* a last line without an end counts all the same */
    if (c->used > 0) take_line(c, c->data, c->data + c->used, fn, ctx);
    return false;
  }
  char *from = c->data, *seen = c->data + c->used, *end = seen + n, *at;
  while ((at = memchr(seen, '\n', (size_t)(end - seen)))) {
    if (!take_line(c, from, at, fn, ctx)) return false;
    from = seen = at + 1;
  }
  c->used = (size_t)(end - from);
  if (c->used > LISTENER_LINE_MAX) {
    answer(c, "the line is longer than 65536 bytes", NULL, 0);
    return false;
  }
  memmove(c->data, from, c->used);
  if (c->used == 0) { /* an idle client holds no memory */
    free(c->data);
    c->data = NULL;
    c->room = 0;
  }
  return true;
}

int listener_serve(listener *l, const struct pollfd *fds, size_t count, listener_fn *fn,
                   void *ctx) {
  int rc = 0;
  for (size_t k = 0; k < count; k++) {
    if (!fds[k].revents) continue;
    if (fds[k].fd == l->fd) {
      rc = accept_client(l);
      continue;
    }
    for (size_t i = 0; i < LISTENER_CLIENTS; i++) {
      client *c = &l->clients[i];
      if (c->fd != fds[k].fd) continue;
      c->turn = ++l->turns;
      if (!serve_client(c, fn, ctx)) drop(c);
      break;
    }
  }
  return rc;
}
