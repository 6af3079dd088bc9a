#include "ask.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "flat.h"
#include "report.h"
#include "text.h"

#define FAIL(error, result, ...) (snprintf((error), ASK_ERROR_MAX, __VA_ARGS__), (result))

int ask_exit_code(ask_result result) {
  return result == ASK_DONE ? EXIT_DONE : result == ASK_NOBODY ? EXIT_NOTHING : EXIT_FAILED;
}

ask_result ask_find(const options *o, ckpt_place *out, char error[ASK_ERROR_MAX]) {
  const char *socket = getenv("CKPT_SOCKET");
  *out = (ckpt_place){.size = sizeof *out};
  if (!o->dir && !o->state) {
    if (!socket || !*socket)
      return FAIL(error, ASK_NOBODY,
                  "CKPT_SOCKET is not set, so this is no part of a job: say which run is meant "
                  "with --dir DIR");
    if (strlen(socket) >= sizeof out->socket)
      return FAIL(error, ASK_FAILED, "CKPT_SOCKET is no path of a socket: %.200s", socket);
    memcpy(out->socket, socket, strlen(socket) + 1);
    return ASK_DONE;
  }
  ckpt *engine = NULL;
  ckpt_options options = {.size = sizeof options};
  int rc = ckpt_open(&engine, &options);
  if (rc == 0) rc = ckpt_locate(engine, o->dir, o->state, out);
  if (rc < 0) snprintf(error, ASK_ERROR_MAX, "%s", ckpt_error(engine));
  ckpt_close(engine);
  if (rc < 0) return ASK_FAILED;
  if (*out->socket) return ASK_DONE;
  if (out->held)
    return FAIL(error, ASK_FAILED, "the run at %.900s has no socket, so it cannot be asked",
                out->state);
  return FAIL(error, ASK_NOBODY, "no run is alive at %.900s", out->state);
}

/* ---- the wire ---- */

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  int error = errno;
  close(fd);
  return -error;
}

/* A run answers at once. A script that runs the job by itself (ckpt.wrap_command) answers when it
 * wants the next result, and says so in the job's environment: so many seconds, or "none". */
static int patience_ms(void) {
  enum { PATIENCE_MS = 10000, MOST_S = 1000000 };
  const char *text = getenv("CKPT_ANSWER_WAIT");
  if (text && strcmp(text, "none") == 0) return -1;
  double seconds = text ? strtod(text, NULL) : 0;
  return seconds > 0 && seconds < MOST_S ? (int)(seconds * 1000) : PATIENCE_MS;
}

/* 0 or -errno; -ETIMEDOUT when nothing can be moved for a while. */
static int wait_for(int fd, short events) {
  struct pollfd p = {.fd = fd, .events = events};
  int n;
  do n = poll(&p, 1, patience_ms());
  while (n < 0 && errno == EINTR);
  return n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;
}

static int send_all(int fd, const char *text, size_t size) {
  while (size > 0) {
    int rc = wait_for(fd, POLLOUT);
    if (rc < 0) return rc;
    ssize_t n = send(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return -errno;
    if (n > 0) text += n, size -= (size_t)n;
  }
  return 0;
}

/* An answer as it comes in. */
typedef struct answer {
  bool headed; /* its first line is there */
  char head[4096];
  size_t used;
  uint64_t lines; /* that are still to come */
  ask_result result;
  FILE *out;
} answer;

static bool is_over(const answer *a) {
  return a->headed && a->lines == 0;
}

static int take_head(answer *a, char error[ASK_ERROR_MAX]) {
  flat f;
  a->headed = true;
  if (flat_read(a->head, &f)) return -EPROTO;
  const char *refusal = flat_text(&f, "error", NULL);
  if (refusal) {
    snprintf(error, ASK_ERROR_MAX, "%s", refusal);
    a->result = ASK_REFUSED;
    return 0;
  }
  a->result = ASK_DONE;
  a->lines = flat_number(&f, "lines", 0);
  return flat_bool(&f, "ok") ? 0 : -EPROTO;
}

static int take_bytes(answer *a, const char *text, size_t size, char error[ASK_ERROR_MAX]) {
  int rc = 0;
  for (size_t i = 0; i < size && rc == 0 && !is_over(a); i++) {
    if (a->headed) {
      if (a->out) fputc(text[i], a->out);
      a->lines -= text[i] == '\n';
    } else if (text[i] != '\n') {
      if (a->used + 1 == sizeof a->head) return -EPROTO;
      a->head[a->used++] = text[i];
    } else {
      a->head[a->used] = 0;
      rc = take_head(a, error);
    }
  }
  return rc;
}

static int receive(int fd, answer *a, char error[ASK_ERROR_MAX]) {
  char block[4096];
  while (!is_over(a)) {
    int rc = wait_for(fd, POLLIN);
    if (rc < 0) return rc;
    ssize_t n = recv(fd, block, sizeof block, MSG_DONTWAIT);
    if (n == 0) return -ECONNRESET;
    if (n < 0 && errno != EAGAIN && errno != EINTR) return -errno;
    if (n > 0) rc = take_bytes(a, block, (size_t)n, error);
    if (rc < 0) return rc;
  }
  return 0;
}

static bool is_nobody(int rc) {
  return rc == -ENOENT || rc == -ECONNREFUSED || rc == -ENOTDIR;
}

ask_result ask(const char *socket, const char *line, FILE *out, char error[ASK_ERROR_MAX]) {
  answer a = {.result = ASK_FAILED, .out = out};
  int fd = connect_to(socket);
  if (is_nobody(fd))
    return FAIL(error, ASK_NOBODY, "nobody listens at %s: no run is alive there", socket);
  int rc = fd < 0 ? fd : send_all(fd, line, strlen(line));
  if (rc == 0) rc = send_all(fd, "\n", 1);
  /* Whoever refuses a line may close before he has read all of it: his reason is there to read. */
  if (rc == 0 || rc == -EPIPE) rc = receive(fd, &a, error);
  if (fd >= 0) close(fd);
  if (rc == 0) return a.result;
  return FAIL(error, ASK_FAILED, "the run at %s does not answer: %s", socket,
              rc == -EPROTO ? "that is no answer of ours" : strerror(-rc));
}

ask_result ask_question(const char *socket, const char *verb, const char *name, bool json,
                        FILE *out, char error[ASK_ERROR_MAX]) {
  char *line = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&line, &size);
  if (!f) return FAIL(error, ASK_FAILED, "out of memory");
  fputs("{\"$ckpt\":", f);
  text_json(f, verb);
  if (name) {
    fputs(",\"name\":", f);
    text_json_name(f, name);
  }
  fprintf(f, ",\"json\":%s}", json ? "true" : "false");
  ask_result result =
      fclose(f) == 0 ? ask(socket, line, out, error) : FAIL(error, ASK_FAILED, "out of memory");
  free(line);
  return result;
}
