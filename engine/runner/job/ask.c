#include "ask.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/json.h"
#include "runner/cli/clock.h"
#include "runner/cli/durations.h"
#include "runner/cli/report.h"
#include "runner/cli/record.h"

#define FAIL(error, result, ...) (snprintf((error), ASK_ERROR_MAX, __VA_ARGS__), (result))

const option_spec ask_dir = {"dir", "DIR", "the directory that the run watches", take_place,
                             .at = OF(dir)};
const option_spec ask_state = {"state", "DIR", "for our own files (default: DIR.ckpt beside DIR)",
                               take_text, .at = OF(state)};

int ask_exit_code(ask_result result) {
  return result == ASK_DONE ? EXIT_DONE : result == ASK_NOBODY ? EXIT_NOTHING : EXIT_FAILED;
}

/* Names the other machine: a socket is one machine's, and of one boot; the state directory may be
 * seen by others, too. */
static ask_result elsewhere(const ckpt_place *place, char *error) {
  char here[sizeof place->host] = "";
  if (gethostname(here, sizeof here - 1) < 0) here[0] = 0;
  snprintf(error, ASK_ERROR_MAX,
           "%s at %.400s%s: it was last started on host %.100s (boot %.60s), and this is host "
           "%.100s on another boot%s",
           place->held ? "the run" : "no run is alive", place->state,
           place->held ? " can only be asked where it runs" : ", as far as is seen from here",
           *place->host ? place->host : "?", place->boot, *here ? here : "?",
           place->held ? "" : "; if that one still runs, ask it there");
  return place->held ? ASK_FAILED : ASK_NOBODY;
}

/* ---- one with a state directory of its own ---- */

typedef struct others {
  const char *not_this; /* state directory */
  char state[4096];     /* of the first; "": there is none */
  char all[512];        /* theirs, a blank between */
  unsigned count;
} others;

static void on_watcher(void *ctx, const ckpt_watcher *w) {
  others *o = ctx;
  size_t len = strlen(o->all);
  if (!w->alive || strcmp(w->state, o->not_this) == 0 || strlen(w->state) >= sizeof o->state)
    return;
  if (o->count++ == 0) memcpy(o->state, w->state, strlen(w->state) + 1);
  snprintf(o->all + len, sizeof o->all - len, "%s%s", len ? " " : "", w->state);
}

/* Where nobody has the default state directory, the one that watches with another is meant. */
static int find_beside(ckpt *engine, const options *o, ckpt_place *out, char *error) {
  others them = {.not_this = out->state};
  if (out->held || o->state || !o->dir) return 0;
  int rc = ckpt_watchers(engine, o->dir, on_watcher, &them);
  if (rc < 0 || them.count == 0) return rc < 0 ? rc : 0;
  if (them.count > 1)
    return FAIL(error, 1, "%.300s has several watchers: say which one with --state: %s", o->dir,
                them.all);
  return ckpt_locate(engine, o->dir, them.state, out);
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
  if (rc == 0) rc = find_beside(engine, o, out, error);
  if (rc < 0) snprintf(error, ASK_ERROR_MAX, "%s", ckpt_error(engine));
  ckpt_close(engine);
  if (rc != 0) return ASK_FAILED;
  if (*out->socket) return ASK_DONE;
  if (*out->boot) return elsewhere(out, error);
  if (out->held)
    return FAIL(error, ASK_FAILED, "the run at %.900s has no socket, so it cannot be asked",
                out->state);
  return FAIL(error, ASK_NOBODY, "no run is alive at %.900s", out->state);
}

/* ---- the wire ---- */

/* Finds out when all of it has to be over, on the clock of clock_s(); INFINITY: never. A run
 * answers at once. A script that runs the job by itself (ckpt.wrap_command) answers when it wants
 * the next result, and says so in the job's environment: so many seconds, or "none". -1: that is no
 * time. */
static int deadline(double *until, char *error) {
  enum { MOST_S = 1000000 };
  const char *text = getenv("CKPT_ANSWER_WAIT");
  double seconds = 10;
  if (text && strcmp(text, "none") == 0)
    seconds = INFINITY;
  else if (text && *text && (!duration_read(text, &seconds) || seconds <= 0))
    return FAIL(error, -1, "CKPT_ANSWER_WAIT is no time; say 10 (seconds), or none");
  *until = seconds >= MOST_S ? INFINITY : clock_s() + seconds;
  return 0;
}

/* Returns 0 or -errno; -ETIMEDOUT when the time is over. */
static int wait_for(int fd, short events, double until) {
  struct pollfd p = {.fd = fd, .events = events};
  for (;;) {
    double left = until - clock_s();
    if (left <= 0) return -ETIMEDOUT;
    int n = poll(&p, 1, left > 1000 ? 1000000 : (int)(left * 1000) + 1);
    if (n > 0) return 0;
    if (n < 0 && errno != EINTR) return -errno;
  }
}

/* A queue that is full lets nobody in until the run takes one out of it, and a run that is stopped
 * never does. A blocking connect() has no limit, and poll() does not tell when there is room. */
static int connect_to(const char *path, double until) {
  enum { PAUSE_MS = 20 };
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return -ENAMETOOLONG;
  memcpy(address.sun_path, path, strlen(path) + 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  int error = 0;
  while (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
    error = errno;
    if (error != EAGAIN && error != EINTR) break;
    if (error == EAGAIN && clock_s() >= until) {
      error = ETIMEDOUT;
      break;
    }
    if (error == EAGAIN) poll(NULL, 0, PAUSE_MS);
    error = 0;
  }
  if (error == 0) return fd;
  close(fd);
  return -error;
}

static int send_all(int fd, const char *text, size_t size, double until) {
  while (size > 0) {
    int rc = wait_for(fd, POLLOUT, until);
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
  json_t *head = NULL;
  a->headed = true;
  if (js_parse(a->head, strlen(a->head), "answer", &head, NULL) < 0) return -EPROTO;
  const char *refusal = json_string_value(json_object_get(head, "error"));
  json_int_t lines = json_integer_value(json_object_get(head, "lines"));
  bool whole = refusal || (json_is_true(json_object_get(head, "ok")) && lines >= 0);
  if (refusal) snprintf(error, ASK_ERROR_MAX, "%s", refusal);
  a->result = refusal ? ASK_REFUSED : ASK_DONE;
  a->lines = refusal || lines < 0 ? 0 : (uint64_t)lines;
  json_decref(head);
  return whole ? 0 : -EPROTO;
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

static int receive(int fd, answer *a, double until, char error[ASK_ERROR_MAX]) {
  char block[4096];
  while (!is_over(a)) {
    int rc = wait_for(fd, POLLIN, until);
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
  double until = 0;
  if (deadline(&until, error) < 0) return ASK_FAILED;
  int fd = connect_to(socket, until);
  if (is_nobody(fd))
    return FAIL(error, ASK_NOBODY, "nobody listens at %s: no run is alive there", socket);
  int rc = fd < 0 ? fd : send_all(fd, line, strlen(line), until);
  if (rc == 0) rc = send_all(fd, "\n", 1, until);
  /* A process that refuses a line may close before it has read all of it: its reason is there to
   * read. */
  if (rc == 0 || rc == -EPIPE) rc = receive(fd, &a, until, error);
  if (fd >= 0) close(fd);
  if (rc == 0) return a.result;
  const bool hung_up = rc == -ECONNRESET || rc == -EPIPE;
  return FAIL(error, hung_up ? ASK_HUNG_UP : ASK_FAILED, "the run at %s does not answer: %s",
              socket, rc == -EPROTO ? "that is no answer of ours" : strerror(-rc));
}

ask_result ask_question(const char *socket, const char *verb, const char *name, bool json,
                        FILE *out, char error[ASK_ERROR_MAX]) {
  char *line = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&line, &size);
  if (!f) return FAIL(error, ASK_FAILED, "out of memory");
  record r = record_begin(f);
  record_text(&r, "$ckpt", verb);
  if (name) record_name(&r, "name", name);
  record_bool(&r, "json", json);
  record_end(&r);
  ask_result result =
      fclose(f) == 0 ? ask(socket, line, out, error) : FAIL(error, ASK_FAILED, "out of memory");
  free(line);
  return result;
}
