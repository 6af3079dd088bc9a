/* Feeds each target with its corpus (spec/fuzz/corpus/NAME), each input a test: what once was a
 * finding stays mended, without a fuzzer. `replay --list` names the targets, `replay NAME FILE...`
 * takes these files. */
#include "targets.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 20, NAMES_MAX = 1000 };

static void feed(fuzz_target *target, const char *path) {
  static uint8_t bytes[INPUT_MAX];
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
  must(n >= 0);
  close(fd);
  uint8_t *own = malloc(n > 0 ? (size_t)n : 1); /* of its size: one byte too far is seen */
  must(own);
  memcpy(own, bytes, (size_t)n);
  target(own, (size_t)n);
  free(own);
}

static size_t feed_all(const char *name) {
  char dir[256], path[600];
  size_t count = 0;
  snprintf(dir, sizeof dir, "spec/fuzz/corpus/%s", name);
  DIR *d = opendir(dir);
  feed(fuzz_find(name), "/dev/null");
  for (struct dirent *entry; d && (entry = readdir(d));) {
    if (*entry->d_name == '.') continue;
    snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
    feed(fuzz_find(name), path);
    count++;
  }
  if (d) closedir(d);
  return count;
}

int main(int argc, char **argv) {
  size_t i = 0;
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    while (fuzz_name(i)) puts(fuzz_name(i++));
    return 0;
  }
  if (argc > 2) {
    must(fuzz_find(argv[1]));
    for (int k = 2; k < argc; k++) feed(fuzz_find(argv[1]), argv[k]);
    return 0;
  }
  for (; fuzz_name(i); i++) {
    printf("# %s\n", fuzz_name(i)); /* a crash is that of the name before it */
    fflush(stdout);
    size_t count = feed_all(fuzz_name(i));
    printf("%sok %zu - %zu inputs pass %s\n", count > 0 ? "" : "not ", i + 1, count, fuzz_name(i));
  }
  printf("1..%zu\n", i);
  return 0;
}
