#include "unit_kept.h"

#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "prims/fs.h"

void unit_kept_note(unit_files *t, const struct stat *st) {
  if (S_ISLNK(st->st_mode)) return; /* a link's owner is whoever made it */
  if (st->st_uid != geteuid()) t->lacks |= UNIT_OWNERS;
  if (!S_ISREG(st->st_mode)) return;
  if (st->st_mode & (S_ISUID | S_ISGID)) t->lacks |= UNIT_SET_ID;
  if (st->st_nlink > 1) t->lacks |= UNIT_SEVERAL_NAMES;
  if (st->st_blocks < st->st_size / 512) t->lacks |= UNIT_MAYBE_HOLES;
}

/* The system's own marks, as those of SELinux and of file servers, are made anew where a file is
 * restored. */
static bool has_attributes(const char *path) {
  char names[4096];
  ssize_t len = llistxattr(path, names, sizeof names);
  for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1) {
    const char *name = names + at;
    if (strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0 ||
        strncmp(name, "system.posix_acl_", 17) == 0)
      return true;
  }
  return false;
}

static bool has_holes(const io *io, const unit_file *f, const char *path) {
  int fd = unit_files_open(io, f, path, NULL);
  if (fd < 0) return false;
  off_t hole = lseek(fd, 0, SEEK_HOLE);
  io->close(io, fd);
  return hole >= 0 && (uint64_t)hole < f->size;
}

unsigned unit_kept_look(const io *io, const unit_files *t) {
  enum { MOST = 256 };
  unsigned lacks = t->lacks, seen = 0;
  char path[FS_PATH_MAX];
  for (size_t i = 0; i < t->count && seen < MOST; i++) {
    const unit_file *f = &t->files[i];
    if (f->type != MANIFEST_FILE || unit_files_path(t, f, path, NULL) < 0) continue;
    seen++;
    if (!(lacks & UNIT_ATTRIBUTES) && !f->followed && has_attributes(path))
      lacks |= UNIT_ATTRIBUTES;
    if (lacks & UNIT_MAYBE_HOLES && !(lacks & UNIT_HOLES) && f->size > 0 && has_holes(io, f, path))
      lacks |= UNIT_HOLES;
  }
  return lacks;
}

void unit_kept_tell(unsigned lacks, const log_sink *log, const char *unit) {
  static const struct {
    unsigned bit;
    const char *text;
  } kinds[] = {
      {UNIT_OWNERS, "the owner of files"},
      {UNIT_SET_ID, "set-id bits"},
      {UNIT_HARD_LINKS, "hard links (each name becomes a file)"},
      {UNIT_ATTRIBUTES, "extended attributes"},
      {UNIT_HOLES, "holes in files (they are filled with zeros)"},
  };
  char text[256] = "";
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    size_t len = strlen(text);
    if (lacks & kinds[i].bit)
      snprintf(text + len, sizeof text - len, "%s%s", len ? ", " : "", kinds[i].text);
  }
  if (*text)
    log_say(log, LOG_WARN, "%s: not all of it is kept, and a restore is without: %s", unit, text);
}
