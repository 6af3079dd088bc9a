#include "targets.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
  const char *name;
  fuzz_target *run;
} targets[] = {
#define X(name) {#name, fuzz_##name},
    FUZZ_TARGETS(X)
#undef X
};
enum { TARGETS = sizeof targets / sizeof *targets };

fuzz_target *fuzz_find(const char *name) {
  for (size_t i = 0; i < TARGETS; i++)
    if (strcmp(targets[i].name, name) == 0) return targets[i].run;
  return NULL;
}

const char *fuzz_name(size_t i) {
  return i < TARGETS ? targets[i].name : NULL;
}

char *fuzz_text(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  must(text);
  if (size > 0) memcpy(text, data, size);
  text[size] = 0;
  return text;
}

const uint8_t *fuzz_piece(const uint8_t **at, size_t *left, char by, size_t *len) {
  const uint8_t *from = *at;
  if (!from) return NULL;
  const uint8_t *end = *left > 0 ? memchr(from, by, *left) : NULL;
  *len = end ? (size_t)(end - from) : *left;
  *at = end ? end + 1 : NULL;
  *left = end ? *left - *len - 1 : 0;
  return from;
}

/* ---- files ---- */

static char scratch[64];

static void remove_scratch(void) {
  static const char *const names[] = {"journal.jsonl", "why.jsonl", "why.1.jsonl", "file",
                                      "credentials",   "config",    "socket",      "metrics.json",
                                      "unit/file.bin", "unit"};
  char path[128];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
    remove(path);
  }
  remove(scratch);
}

const char *fuzz_dir(void) {
  if (*scratch) return scratch;
  snprintf(scratch, sizeof scratch, "/dev/shm/ckpt-fuzz.XXXXXX");
  if (!mkdtemp(scratch)) {
    snprintf(scratch, sizeof scratch, "/tmp/ckpt-fuzz.XXXXXX");
    must(mkdtemp(scratch));
  }
  atexit(remove_scratch);
  return scratch;
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t size) {
  static char path[128];
  snprintf(path, sizeof path, "%s/%s", fuzz_dir(), name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  close(fd);
  return path;
}

/* ---- the system ---- */

static int no_flush(const io *io, int fd) {
  (void)io, (void)fd;
  return 0;
}

static void no_sleep(const io *io, int64_t ns) {
  (void)io, (void)ns;
}

/* A second for each look: whoever waits for a time gets there. */
static int64_t moving_clock(const io *io, io_clock clock) {
  static _Atomic int64_t now = 1700000000000000000;
  (void)io, (void)clock;
  return atomic_fetch_add(&now, 1000000000);
}

const io *fuzz_io(void) {
  static io made;
  if (made.open) return &made;
  made = *io_system();
  made.fsync = made.fdatasync = no_flush;
  made.sleep = no_sleep;
  made.now = moving_clock;
  return &made;
}
