#include "tmpdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(bool ok, const char *what, const char *path) {
  if (ok) return;
  fprintf(stderr, "test helper: cannot %s %s: %s\n", what, path, strerror(errno));
  abort();
}

char *tmpdir_new_in(const char *where) {
  char *dir = NULL;
  must(asprintf(&dir, "%s/ckpt-test.XXXXXX", where) > 0, "name a directory in", where);
  must(mkdtemp(dir) != NULL, "make", dir);
  return dir;
}

char *tmpdir_new(void) {
  const char *where = getenv("TMPDIR");
  return tmpdir_new_in(where && *where ? where : "/tmp");
}

static int open_up(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st, (void)ftw;
  if (type == FTW_D || type == FTW_DNR) chmod(path, 0700);
  return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st, (void)type, (void)ftw;
  return remove(path);
}

void tmpdir_remove(char *dir) {
  if (!dir) return;
  nftw(dir, open_up, 16, FTW_PHYS);
  must(nftw(dir, remove_one, 16, FTW_PHYS | FTW_DEPTH) == 0, "remove", dir);
  free(dir);
}

int tmpdir_set_up(void **state) {
  *state = tmpdir_new();
  return 0;
}

int tmpdir_tear_down(void **state) {
  tmpdir_remove(*state);
  return 0;
}

const char *tmpdir_path(const char *dir, const char *name) {
  static _Thread_local char paths[8][4096];
  static _Thread_local unsigned next;
  char *path = paths[next++ % 8];
  int len = snprintf(path, sizeof paths[0], "%s/%s", dir, name);
  must(len > 0 && (size_t)len < sizeof paths[0], "join", name);
  return path;
}

void write_bytes(const char *path, const void *data, size_t len) {
  FILE *f = fopen(path, "w");
  must(f != NULL, "create", path);
  must(fwrite(data, 1, len, f) == len, "write", path);
  must(fclose(f) == 0, "close", path);
}

void write_unnoticed(const char *path, const void *data, size_t len) {
  struct stat was;
  must(stat(path, &was) == 0 && was.st_size == (off_t)len, "look at", path);
  write_bytes(path, data, len);
  const struct timespec times[2] = {was.st_atim, was.st_mtim};
  must(utimensat(AT_FDCWD, path, times, 0) == 0, "set the times of", path);
}

void write_file(const char *path, const char *text) {
  write_bytes(path, text, strlen(text));
}

char *make_pattern(size_t len, unsigned seed) {
  char *bytes = malloc(len + 1);
  must(bytes != NULL, "find memory for", "a pattern");
  for (size_t i = 0; i < len; i++) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (char)(seed >> 24);
  }
  return bytes;
}

void write_pattern(const char *path, size_t len, unsigned seed) {
  char *bytes = make_pattern(len, seed);
  write_bytes(path, bytes, len);
  free(bytes);
}

void make_dir(const char *path) {
  must(mkdir(path, 0755) == 0, "make", path);
}

char *read_file(const char *path, size_t *len) {
  FILE *f = fopen(path, "r");
  if (!f) return NULL;
  struct stat st;
  must(fstat(fileno(f), &st) == 0, "look at", path);
  size_t size = (size_t)st.st_size;
  char *bytes = malloc(size + 1);
  must(bytes != NULL, "find memory for", path);
  must(fread(bytes, 1, size, f) == size, "read", path);
  fclose(f);
  bytes[size] = 0;
  if (len) *len = size;
  return bytes;
}

static bool bytes_are(const char *path, const char *want, size_t want_len) {
  size_t len;
  char *bytes = read_file(path, &len);
  bool same = bytes && len == want_len && memcmp(bytes, want, len) == 0;
  free(bytes);
  return same;
}

bool file_is(const char *path, const char *text) {
  return bytes_are(path, text, strlen(text));
}

bool files_equal(const char *a, const char *b) {
  size_t len;
  char *bytes = read_file(a, &len);
  bool same = bytes && bytes_are(b, bytes, len);
  free(bytes);
  return same;
}

bool path_exists(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

mode_t path_mode(const char *path) {
  struct stat st;
  must(lstat(path, &st) == 0, "look at", path);
  return st.st_mode & 07777;
}

int count_entries(const char *dir) {
  DIR *d = opendir(dir);
  must(d != NULL, "open", dir);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(d));)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) count++;
  closedir(d);
  return count;
}

int count_fds(void) {
  return count_entries("/proc/self/fd") - 1; /* less the one that lists */
}
