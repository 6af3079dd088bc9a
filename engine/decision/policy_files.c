#include "policy_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/names.h"
#include "decision/policy_impl.h"
#include "prims/fs.h"

static bool is_path(const char *name) {
  size_t len = strlen(name);
  return strchr(name, '/') || (len > 4 && strcmp(name + len - 4, ".lua") == 0);
}

static int list_policy(void *ctx, const fs_entry *entry, err *e) {
  size_t len = strlen(entry->name);
  (void)e;
  if (len > 4 && strcmp(entry->name + len - 4, ".lua") == 0)
    buf_fmt(ctx, " %.*s", (int)(len - 4), entry->name);
  return 0;
}

static int no_such(const io *io, const char *dir, const char *name, err *e) {
  buf names;
  buf_init(&names, 400);
  fs_list(io, dir, list_policy, &names, NULL); /* no directory has no policy */
  int rc = err_set(e, ERR_INVAL, "there is no policy \"%s\" in %s%s%s; a path has a slash", name,
                   dir, names.len ? ", which has" : "", names.len ? names.data : "");
  buf_free(&names);
  return rc;
}

int policy_read_file(const io *io, const char *path, buf *text, err *e) {
  int rc = fs_read(io, path, POLICY_FILE_MAX, text, e);
  if (rc == ERR_LIMIT)
    return err_set(e, ERR_INVAL, "the policy %s is over %d KiB", path, POLICY_FILE_MAX >> 10);
  const char *nul = rc == 0 && text->len ? memchr(text->data, 0, text->len) : NULL;
  if (!nul) return rc;
  size_t line = 1;
  for (const char *p = text->data; p < nul; p++) line += *p == '\n';
  return err_set(e, ERR_INVAL,
                 "the policy %s has a byte 0 in line %zu: a policy is text; in a string write it "
                 "as \\0",
                 path, line);
}

int policy_read(const policy_options *o, const char *dir, const char *name, buf *text, err *e) {
  char path[FS_PATH_MAX], file[FS_PATH_MAX];
  if (is_path(name)) {
    int rc = policy_read_file(o->io, name, text, e);
    return rc == ERR_NOENT ? err_set(e, ERR_INVAL, "there is no policy file %s", name) : rc;
  }
  int n = snprintf(file, sizeof file, "%s.lua", name);
  if (n >= FS_PATH_MAX || *name == '\0')
    return err_set(e, ERR_INVAL, "\"%.100s\" is no name of a policy", name);
  int rc = fs_join(path, dir, file, e);
  if (rc == 0) rc = policy_read_file(o->io, path, text, e);
  return rc == ERR_NOENT ? no_such(o->io, dir, name, e) : rc;
}

/* ---- by what an edit is seen ---- */

/* Through links: what a link leads to is the file. Returns 0, or -errno. */
static int look(const io *io, const char *path, policy_file *out) {
  struct stat st;
  int fd = io->open(io, AT_FDCWD, path, O_PATH, 0);
  if (fd < 0) return fd;
  int rc = io->fstat(io, fd, &st);
  io->close(io, fd); /* nothing was written: nothing can be lost */
  if (rc < 0) return rc;
  out->device = st.st_dev;
  out->inode = st.st_ino;
  out->size = st.st_size;
  out->changed_ns = io_time_ns(st.st_mtim);
  return 0;
}

bool policy_file_edited(const io *io, policy_file *f) {
  policy_file now = *f;
  if (look(io, f->path, &now) < 0) return false;
  const bool same = now.device == f->device && now.inode == f->inode && now.size == f->size &&
                    now.changed_ns == f->changed_ns;
  *f = now;
  return !same;
}

/* ---- all of them ---- */

/* The host may have another working directory when the file is looked at again. */
static int path_from_here(const char *name, char path[FS_PATH_MAX], err *e) {
  char here[FS_PATH_MAX];
  if (*name == '/') return fs_join(path, "", name, e);
  if (!getcwd(here, sizeof here))
    return err_set(e, ERR_IO,
                   "the policy %.300s: the working directory is not known; give an "
                   "absolute path",
                   name);
  while (strncmp(name, "./", 2) == 0) name += 2;
  return fs_join(path, here, name, e);
}

static int whole_path(const char *dir, const char *name, char path[FS_PATH_MAX], err *e) {
  char file[FS_PATH_MAX];
  if (is_path(name)) return path_from_here(name, path, e);
  int n = snprintf(file, sizeof file, "%s.lua", name);
  return n < FS_PATH_MAX ? fs_join(path, dir, file, e)
                         : err_set(e, ERR_INVAL, "\"%.100s\" is no name of a policy", name);
}

int policy_files_place(const char *const *given, names *out, err *e) {
  char path[FS_PATH_MAX];
  for (size_t i = 0; given && given[i]; i++) {
    int rc = is_path(given[i]) ? path_from_here(given[i], path, e) : 0;
    if (rc < 0) return rc;
    if (!names_add(out, is_path(given[i]) ? path : given[i]))
      return err_set(e, ERR_NOMEM, "out of memory for the policy %s", given[i]);
  }
  return 0;
}

/* What it looks like is taken before it is read: an edit between the two is told once too often, and never
 * not at all. */
static int read_one(const policy_options *o, const char *dir, const char *name, policy_file *f,
                    err *e) {
  char path[FS_PATH_MAX];
  int rc = whole_path(dir, name, path, e);
  if (rc < 0) return rc;
  buf_init(&f->text, POLICY_FILE_MAX);
  f->name = strdup(name);
  f->path = strdup(path);
  if (!f->name || !f->path) return err_set(e, ERR_NOMEM, "out of memory for the policy %s", name);
  look(o->io, path, f); /* that it is not there, the read says */
  return policy_read(o, dir, name, &f->text, e);
}

int policy_files_read(const io *io, const char *dir, const char *const *names, policy_files *out,
                      err *e) {
  const policy_options o = {.io = io, .dir = dir};
  char found[FS_PATH_MAX];
  size_t count = 0;
  *out = (policy_files){0};
  while (names && names[count]) count++;
  if (count == 0) return 0;
  if (count > POLICY_CHAIN_MAX)
    return err_set(e, ERR_INVAL, "more than %d policies", POLICY_CHAIN_MAX);
  int rc = policy_shipped_dir(io, dir, found, e);
  if (rc < 0) return rc;
  out->at = calloc(count, sizeof *out->at);
  out->dir = strdup(found);
  if (!out->at || !out->dir) rc = err_set(e, ERR_NOMEM, "out of memory for %zu policies", count);
  for (; rc == 0 && out->count < count; out->count++)
    rc = read_one(&o, found, names[out->count], &out->at[out->count], e);
  if (rc < 0) policy_files_free(out);
  return rc;
}

void policy_files_free(policy_files *f) {
  for (size_t i = 0; i < f->count; i++) {
    free(f->at[i].name);
    free(f->at[i].path);
    buf_free(&f->at[i].text);
  }
  free(f->at);
  free(f->dir);
  *f = (policy_files){0};
}
