/* What comes to the runner: its socket and its command line. */
#include "targets.h"

#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runner/cli/durations.h"
#include "runner/job/listener.h"
#include "runner/job/question.h"
#include "runner/cli/text.h"
#include "runner/cli/words.h"
#include "runner/verbs/verbs.h"

/* ---- the socket ---- */

static const char *take_line(void *ctx, char *line, FILE *out) {
  (void)ctx;
  must(*line && !strchr(line, '\n') && strlen(line) <= LISTENER_LINE_MAX);
  if (is_question(line)) fprintf(out, "%s\n", line);
  return strlen(line) % 2 ? "odd" : NULL;
}

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memcpy(address.sun_path, path, strlen(path) + 1);
  must(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
  return fd;
}

void fuzz_notify(const uint8_t *data, size_t size) {
  static listener *l;
  static char path[100];
  struct pollfd fds[LISTENER_FDS];
  char error[LISTENER_ERROR_MAX], answers[4096];
  if (!l) {
    snprintf(path, sizeof path, "%s/socket", fuzz_dir());
    must(listener_open(&l, path, error) == 0);
  }
  int fd = connect_to(path);
  for (size_t sent = 0; sent < size;) {
    ssize_t n = send(fd, data + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) break;
    sent += (size_t)n;
  }
  shutdown(fd, SHUT_WR);
  size_t count;
  for (int turns = 0; turns < 2000; turns++) { /* until it is gone: only the door is left */
    count = listener_fds(l, fds);
    if (turns > 0 && count == 1) break;
    must(poll(fds, count, 1000) >= 0);
    must(listener_serve(l, fds, count, take_line, NULL) == 0);
    while (recv(fd, answers, sizeof answers, MSG_DONTWAIT) > 0) continue;
  }
  close(fd);
  while ((count = listener_fds(l, fds)) > 1 && poll(fds, count, 1000) > 0)
    listener_serve(l, fds, count, take_line, NULL);
}

/* ---- the command line ---- */

/* The first byte is the verb; then the words, with a NUL or a line end between two. */
void fuzz_options(const uint8_t *data, size_t size) {
  enum { WORDS = 64 };
  char *argv[WORDS + 2] = {0}, verb[] = "verb";
  char error[OPTIONS_ERROR_MAX] = "";
  int argc = 1;
  options o;
  if (size == 0) return;
  argv[0] = verb;
  const uint8_t *at = data + 1, *piece;
  size_t left = size - 1, len;
  while (argc <= WORDS && (piece = fuzz_piece(&at, &left, '\n', &len)))
    argv[argc++] = fuzz_text(piece, len);
  char *own[WORDS + 2];
  memcpy(own, argv, sizeof own); /* getopt moves them about */
  size_t count = 1;
  while (verbs[count]) count++;
  int rc = verb_parse(verbs[data[0] % count], &o, argc, argv, error);
  must(rc == 0 || (rc == -1 && *error));
  if (rc == 0 && !o.help) must(isfinite(o.run.quiet_s) && isfinite(o.grace_s) && isfinite(o.pin_s));
  options_free(&o);
  for (int i = 1; i < argc; i++) free(own[i]);
}

void fuzz_words(const uint8_t *data, size_t size) {
  char *own = fuzz_text(data, size), *text = NULL;
  size_t room = 0;
  word_list list = {0};
  int rc = words_split(&list, own, "/a b/{}");
  must(rc == 0 || rc == -1);
  if (list.count) {
    must(!list.items[list.count]);
    words_nearest(own, (const char *const *)list.items, list.count);
  }
  word_list_free(&list);
  FILE *f = open_memstream(&text, &room);
  must(f);
  text_plain(f, own);
  text_json(f, own);
  text_json_name(f, own);
  must(fclose(f) == 0);
  for (size_t i = 0; i < room; i++) must((unsigned char)text[i] >= ' ' && text[i] != 0x7f);
  free(text);
  free(own);
}

void fuzz_durations(const uint8_t *data, size_t size) {
  char *own = fuzz_text(data, size);
  double found = -1;
  if (duration_read(own, &found)) must(found >= 0);
  if (share_read(own, &found)) must(found > 0 && found <= 1);
  free(own);
}
