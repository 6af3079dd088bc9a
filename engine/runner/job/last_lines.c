#include "last_lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINES = 12, LINE_MAX_LEN = 250, LOOK = 16 << 10 };

/* It may be open for writing only. */
static int open_again(int fd, off_t *size) {
  char path[40];
  struct stat st;
  if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) return -1;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  *size = st.st_size;
  return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

last_lines last_lines_begin(int out, int other) {
  last_lines l = {.fd = -1};
  l.fd = open_again(out, &l.from);
  if (l.fd < 0) l.fd = open_again(other, &l.from);
  return l;
}

/* Of what was drawn over, the last is seen. */
static const char *shown_of(char *line) {
  char *end = line + strlen(line);
  while (end > line && (end[-1] == '\r' || end[-1] == ' ')) *--end = 0;
  char *again = strrchr(line, '\r');
  return again ? again + 1 : line;
}

static void join(char *lines[LINES], size_t count, char *text, size_t room) {
  size_t len = 0;
  for (size_t i = count > LINES ? count - LINES : 0; i < count && len + 2 < room; i++)
    len += (size_t)snprintf(text + len, room - len, "%s%.*s", len ? "\n" : "", LINE_MAX_LEN,
                            lines[i % LINES]);
}

/* Takes the text apart in place; of a line that began before it only the rest is there. */
static void take_apart(char *at, char *text, size_t room) {
  char *lines[LINES], *rest = NULL;
  size_t count = 0;
  for (char *line = strtok_r(at, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    const char *shown = shown_of(line);
    if (*shown && strncmp(shown, "ckpt-lua: ", 10) != 0) lines[count++ % LINES] = (char *)shown;
  }
  join(lines, count, text, room);
}

void last_lines_take(const last_lines *l, char *text, size_t room) {
  char bytes[LOOK + 1];
  struct stat st;
  *text = 0;
  if (l->fd < 0 || fstat(l->fd, &st) < 0 || st.st_size <= l->from) return;
  off_t from = st.st_size - l->from > LOOK ? st.st_size - LOOK : l->from;
  ssize_t len = pread(l->fd, bytes, LOOK, from);
  if (len <= 0) return;
  for (ssize_t i = 0; i < len; i++)
    if (!bytes[i]) bytes[i] = ' ';
  bytes[len] = 0;
  take_apart(bytes, text, room);
}

void last_lines_end(last_lines *l) {
  if (l->fd >= 0) close(l->fd);
  l->fd = -1;
}
