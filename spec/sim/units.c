/* What is saved: a few small units in several versions, whose bytes say what they are. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim.h"

enum { STEPS = 6, ODD_FROM = 4, ODD_TO = 40 };

static char top[64], staging[96];

static void must(int rc, const char *what) {
  if (rc >= 0) return;
  perror(what);
  exit(2);
}

size_t units_content(const char *unit, unsigned version, const char *file, char *out, size_t room) {
  return (size_t)snprintf(out, room, "%s, version %u, %s\n", unit, version, file);
}

int units_file_count(const char *unit, unsigned world) {
  if (strcmp(unit, "last.ckpt") == 0) return 1;
  return world > 1 ? (int)world + 1 : 2;
}

const char *units_file(const char *unit, unsigned world, unsigned i) {
  static const char *const alone[] = {"model.bin", "sub/opt.bin"};
  static const char *const parts[] = {"config.json", "shard-0.bin", "shard-1.bin", "shard-2.bin"};
  if ((int)i >= units_file_count(unit, world)) return NULL;
  if (strcmp(unit, "last.ckpt") == 0) return unit;
  return world > 1 ? parts[i] : alone[i];
}

const char *units_root(unsigned version, unsigned world, unsigned rank) {
  static char path[128];
  snprintf(path, sizeof path, "%s/v%u-%s%u", top, version, world > 1 ? "r" : "a", rank);
  return path;
}

const char *units_staging(void) {
  return staging;
}

static void make_file(const char *root, const char *unit, unsigned version, const char *file) {
  char path[512], text[256];
  struct timespec when[2] = {{1700000000 + version, 5}, {1700000000 + version, 5}};
  size_t len = units_content(unit, version, file, text, sizeof text);
  if (strcmp(unit, file) == 0)
    snprintf(path, sizeof path, "%s/%s", root, unit);
  else
    snprintf(path, sizeof path, "%s/%s/%s", root, unit, file);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
  must(fd, path);
  must((int)write(fd, text, len), path);
  must(fchmod(fd, 0644), path);
  close(fd);
  must(utimensat(AT_FDCWD, path, when, 0), path);
}

/* Rank `rank` of a world: its own shard, and what all of them have. */
static void make_unit(const char *root, const char *unit, unsigned version, unsigned world,
                      unsigned rank) {
  char path[512];
  struct timespec when[2] = {{1700000000, 0}, {1700000000, 0}};
  const char *file;
  if (strcmp(unit, "last.ckpt") != 0) {
    snprintf(path, sizeof path, "%s/%s", root, unit);
    must(mkdir(path, 0755), path);
    snprintf(path, sizeof path, "%s/%s/sub", root, unit);
    if (world == 1) must(mkdir(path, 0755), path);
  }
  for (unsigned i = 0; (file = units_file(unit, world, i)); i++)
    if (world == 1 || i == 0 || i == rank + 1) make_file(root, unit, version, file);
  if (strcmp(unit, "last.ckpt") == 0) return;
  if (world == 1) must(utimensat(AT_FDCWD, path, when, 0), path);
  snprintf(path, sizeof path, "%s/%s", root, unit);
  must(utimensat(AT_FDCWD, path, when, 0), path);
}

static void make_root(unsigned version, unsigned world, unsigned rank) {
  const char *root = units_root(version, world, rank);
  char name[64];
  must(mkdir(root, 0755), root);
  for (int i = 1; i <= STEPS; i++) {
    snprintf(name, sizeof name, "checkpoint-%d", i * 10);
    make_unit(root, name, version, world, rank);
  }
  make_unit(root, "x", version, world, rank);
  for (int i = ODD_FROM; i <= ODD_TO; i++) {
    snprintf(name, sizeof name, "x.~%d", i);
    make_unit(root, name, version, world, rank);
  }
  if (world == 1) make_unit(root, "last.ckpt", version, world, rank);
  make_file(root, "train.log", version, "train.log"); /* beside the units */
}

void units_make(void) {
  snprintf(top, sizeof top, "%s/ckpt-sim.XXXXXX",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
  if (!mkdtemp(top)) must(-1, top);
  umask(022);
  snprintf(staging, sizeof staging, "%s/staging", top);
  must(mkdir(staging, 0755), staging);
  for (unsigned v = 1; v <= VERSIONS; v++) {
    make_root(v, 1, 0);
    for (unsigned r = 0; r < RANKS; r++) make_root(v, RANKS, r);
  }
}

void units_remove(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", top);
  if (system(command) != 0) fprintf(stderr, "%s stays behind\n", top);
}

saved_unit units_pick(unsigned world) {
  saved_unit u = {.kind = MATCH_DIR, .step = MATCH_NO_STEP};
  switch (sim_roll(9)) {
  case 0:
  case 1:
  case 2:
  case 3:
    u.step = (int64_t)(1 + sim_roll(STEPS)) * 10;
    snprintf(u.name, sizeof u.name, "checkpoint-%d", (int)u.step);
    break;
  case 4:
  case 5:
    snprintf(u.name, sizeof u.name, "%s", world > 1 ? "x" : "last.ckpt");
    if (world == 1) u.kind = MATCH_FILE;
    break;
  case 6: snprintf(u.name, sizeof u.name, "x"); break;
  default: {
    /* A name that looks like a later generation of x, soon. */
    long long n = judge_entries() + (long long)sim_roll(12);
    if (n < ODD_FROM || n > ODD_TO) n = ODD_FROM + (long long)sim_roll(ODD_TO - ODD_FROM + 1);
    snprintf(u.name, sizeof u.name, "x.~%lld", n);
  }
  }
  return u;
}
