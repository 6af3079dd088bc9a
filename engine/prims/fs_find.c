#include "fs_find.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Finds the directory of our program; false: it cannot be told. */
static bool program_dir(const io *io, char dir[FS_PATH_MAX]) {
  char path[FS_PATH_MAX];
  ssize_t n = io->readlink(io, AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  fs_parent(path, dir);
  return true;
}

/* Finds the directory of libckpt.so, where we are in one. */
static bool library_dir(char dir[FS_PATH_MAX]) {
  static const char here = 0;
  Dl_info info;
  if (dladdr(&here, &info) == 0 || !info.dli_fname || strlen(info.dli_fname) >= FS_PATH_MAX)
    return false;
  /* A program is known by the name that it was started with, which may be relative to a directory
   * that we have left. */
  if (*info.dli_fname != '/') return false;
  fs_parent(info.dli_fname, dir);
  return true;
}

static bool holds(const io *io, const char *dir, const char *beside, const char *file, char *out) {
  char path[FS_PATH_MAX];
  struct stat st;
  return fs_join(out, dir, beside, NULL) == 0 && fs_join(path, out, file, NULL) == 0 &&
         io->lstat(io, AT_FDCWD, path, &st) == 0;
}

int fs_find(const io *io, const fs_find_place *place, char *out, err *e) {
  char dirs[2][FS_PATH_MAX];
  size_t count = 0;
  const char *taken = place->given;
  if (!taken) taken = getenv(place->variable);
  if (taken && *taken) return fs_join(out, taken, "", e);
  if (program_dir(io, dirs[count])) count++;
  if (library_dir(dirs[count])) count++;
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; place->beside[k]; k++)
      if (holds(io, dirs[i], place->beside[k], place->file, out)) return 0;
  return fs_join(out, place->installed, "", e);
}

int fs_find_helper(const io *io, const char *given, const char *file, char *out, err *e) {
  const fs_find_place place = {.given = given,
                               .variable = "CKPT_LIBEXEC",
                               .file = file,
                               .beside = {"libexec", "build/libexec", "../libexec/ckpt-lua"},
                               .installed = CKPT_PREFIX "/libexec/ckpt-lua"};
  char dir[FS_PATH_MAX];
  int rc = fs_find(io, &place, dir, e);
  return rc < 0 ? rc : fs_join(out, dir, file, e);
}
