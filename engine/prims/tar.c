#include "tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A callback's error goes around libarchive, which knows one number for all errors. */
typedef struct passing {
  int rc;
  err e;
} passing;

static const char *reason_of(struct archive *a) {
  const char *text = archive_error_string(a);
  return text ? text : "it is damaged";
}

static int read_failed(struct archive *a, const passing *p, err *e) {
  if (p->rc < 0) return err_set(e, p->rc, "%s", p->e.text);
  return err_set(e, ERR_FORMAT, "the archive cannot be read: %s", reason_of(a));
}

/* ---- reading ---- */

enum { RECORD = 512 };

struct tar_reader {
  struct archive *a;
  tar_source *source;
  void *ctx;
  passing failed;
  uint64_t size, at; /* of the file that is being read */
  /* The last block of the archive that was handed over, and what stood before it. */
  const unsigned char *block;
  size_t block_len;
  uint64_t block_at;
  unsigned char tail[RECORD];
};

static void keep_tail(tar_reader *r) {
  size_t n = r->block_len < RECORD ? r->block_len : RECORD;
  if (n == 0) return;
  memmove(r->tail, r->tail + n, RECORD - n);
  memcpy(r->tail + RECORD - n, r->block + r->block_len - n, n);
}

static la_ssize_t on_read(struct archive *a, void *ctx, const void **block) {
  tar_reader *r = ctx;
  keep_tail(r);
  r->block_at += r->block_len;
  ssize_t n = r->source(r->ctx, block, &r->failed.e);
  r->block = n > 0 ? *block : NULL;
  r->block_len = n > 0 ? (size_t)n : 0;
  if (n >= 0) return n;
  r->failed.rc = (int)n;
  archive_set_error(a, EIO, "its source failed");
  return ARCHIVE_FATAL;
}

/* A tar ends with records of zeros. libarchive takes any end of the file between two entries for
 * the archive's; where nothing compresses it, that is how a copy that was cut off may look. */
static bool is_cut_off(const tar_reader *r) {
  if (archive_filter_count(r->a) > 1) return false;
  uint64_t at = (uint64_t)archive_filter_bytes(r->a, 0);
  for (uint64_t i = at < RECORD ? 0 : at - RECORD; i < at; i++) {
    if (i >= r->block_at + r->block_len || i + RECORD < r->block_at) return true;
    if (i >= r->block_at ? r->block[i - r->block_at] : r->tail[RECORD - (r->block_at - i)])
      return true;
  }
  return at < RECORD;
}

/* Only the formats and filters that are named here are read: libarchive knows dozens, and each is
 * code that a stranger's bytes would reach. */
static int set_up_reader(tar_reader *r) {
  return archive_read_support_format_tar(r->a) == ARCHIVE_OK &&
         archive_read_support_filter_none(r->a) == ARCHIVE_OK &&
         archive_read_support_filter_gzip(r->a) == ARCHIVE_OK &&
         archive_read_support_filter_zstd(r->a) == ARCHIVE_OK;
}

int tar_read_open(tar_source *source, void *ctx, tar_reader **out, err *e) {
  *out = NULL;
  tar_reader *r = calloc(1, sizeof *r);
  if (!r) return err_set(e, ERR_NOMEM, "no memory to read an archive");
  *r = (tar_reader){.a = archive_read_new(), .source = source, .ctx = ctx};
  int rc = 0;
  if (!r->a)
    rc = err_set(e, ERR_NOMEM, "no memory to read an archive");
  else if (!set_up_reader(r))
    rc = err_set(e, ERR_UNSUPPORTED, "this libarchive lacks tar, gzip or zstd");
  else if (archive_read_open(r->a, r, NULL, on_read, NULL) != ARCHIVE_OK)
    rc = read_failed(r->a, &r->failed, e);
  if (rc < 0)
    tar_read_close(r);
  else
    *out = r;
  return rc;
}

void tar_read_close(tar_reader *r) {
  if (!r) return;
  if (r->a) archive_read_free(r->a);
  free(r);
}

static int64_t time_of(struct archive_entry *entry) {
  int64_t ns;
  if (__builtin_mul_overflow((int64_t)archive_entry_mtime(entry), 1000000000, &ns) ||
      __builtin_add_overflow(ns, (int64_t)archive_entry_mtime_nsec(entry), &ns))
    return 0;
  return ns;
}

static int refuse(const char *name, const char *what, err *e) {
  return err_set(e, ERR_FORMAT, "\"%s\" in it is %s, which is never unpacked", name, what);
}

static int take_kind(struct archive_entry *entry, tar_entry *out, err *e) {
  if (archive_entry_is_encrypted(entry)) return refuse(out->name, "encrypted", e);
  if (archive_entry_hardlink(entry)) return refuse(out->name, "a hard link", e);
  out->target = archive_entry_symlink(entry);
  switch (archive_entry_filetype(entry)) {
  case AE_IFREG: out->kind = TAR_FILE; break;
  case AE_IFDIR: out->kind = TAR_DIR; break;
  case AE_IFLNK: out->kind = TAR_LINK; break;
  case AE_IFIFO: return refuse(out->name, "a fifo", e);
  case AE_IFSOCK: return refuse(out->name, "a socket", e);
  case AE_IFCHR:
  case AE_IFBLK: return refuse(out->name, "a device", e);
  default: return refuse(out->name, "of an unknown kind", e);
  }
  if (out->kind == TAR_LINK && !out->target) return refuse(out->name, "a link to nothing", e);
  return 0;
}

int tar_read_next(tar_reader *r, tar_entry *out, err *e) {
  struct archive_entry *entry;
  int rc = archive_read_next_header(r->a, &entry);
  if (r->failed.rc < 0) return read_failed(r->a, &r->failed, e);
  /* A warning is a header of which a part was not understood: it is refused, since half a name is
   * none. */
  if (rc == ARCHIVE_EOF)
    return is_cut_off(r) ? err_set(e, ERR_FORMAT, "the archive is cut off: its end is missing") : 0;
  if (rc != ARCHIVE_OK) return read_failed(r->a, &r->failed, e);
  *out =
      (tar_entry){.name = archive_entry_pathname(entry), .mode = archive_entry_perm(entry) & 0777};
  if (!out->name) return err_set(e, ERR_FORMAT, "a name in the archive cannot be read");
  if (archive_entry_size(entry) < 0) return refuse(out->name, "of a size below 0", e);
  out->mtime_ns = time_of(entry);
  rc = take_kind(entry, out, e);
  if (rc < 0) return rc;
  out->size = out->kind == TAR_FILE ? (uint64_t)archive_entry_size(entry) : 0;
  r->size = out->size;
  r->at = 0;
  return 1;
}

int tar_read_data(tar_reader *r, const void **data, size_t *len, uint64_t *at, err *e) {
  la_int64_t offset;
  int rc = archive_read_data_block(r->a, data, len, &offset);
  if (rc == ARCHIVE_EOF) return 0;
  if (rc != ARCHIVE_OK) return read_failed(r->a, &r->failed, e);
  if (offset < 0 || (uint64_t)offset < r->at || (uint64_t)offset > r->size ||
      *len > r->size - (uint64_t)offset)
    return err_set(e, ERR_FORMAT, "the archive has data at a place where its file has none");
  *at = (uint64_t)offset;
  r->at = *at + *len;
  return 1;
}

void tar_read_bytes(const tar_reader *r, uint64_t *packed, uint64_t *plain) {
  la_int64_t in = archive_filter_bytes(r->a, -1), out = archive_filter_bytes(r->a, 0);
  *packed = in > 0 ? (uint64_t)in : 0;
  *plain = out > 0 ? (uint64_t)out : 0;
}

/* ---- writing ---- */

struct tar_writer {
  struct archive *a;
  struct archive_entry *entry;
  tar_sink *sink;
  void *ctx;
  passing failed;
  uint64_t left; /* of the file that is being written */
  bool over;     /* bytes that come from now on go nowhere */
};

static la_ssize_t on_write(struct archive *a, void *ctx, const void *data, size_t len) {
  tar_writer *w = ctx;
  (void)a;
  /* libarchive, told of a failure, would never free its buffers: so it is told of none. */
  if (!w->over && w->failed.rc == 0) w->failed.rc = w->sink(w->ctx, data, len, &w->failed.e);
  return (la_ssize_t)len;
}

static int write_failed(tar_writer *w, err *e) {
  if (w->failed.rc < 0) return err_set(e, w->failed.rc, "%s", w->failed.e.text);
  return err_set(e, ERR_INVAL, "it cannot be written to an archive: %s", reason_of(w->a));
}

static bool set_up_writer(tar_writer *w, tar_filter filter) {
  int rc = archive_write_set_format_pax(w->a);
  if (filter == TAR_GZIP && rc == ARCHIVE_OK) {
    rc = archive_write_add_filter_gzip(w->a);
    if (rc == ARCHIVE_OK) rc = archive_write_set_filter_option(w->a, "gzip", "timestamp", NULL);
  } else if (filter == TAR_ZSTD && rc == ARCHIVE_OK) {
    rc = archive_write_add_filter_zstd(w->a);
  }
  return rc == ARCHIVE_OK && archive_write_set_bytes_in_last_block(w->a, 1) == ARCHIVE_OK;
}

int tar_write_open(tar_filter filter, tar_sink *sink, void *ctx, tar_writer **out, err *e) {
  *out = NULL;
  tar_writer *w = calloc(1, sizeof *w);
  if (!w) return err_set(e, ERR_NOMEM, "no memory to write an archive");
  *w = (tar_writer){
      .a = archive_write_new(), .entry = archive_entry_new(), .sink = sink, .ctx = ctx};
  int rc = 0;
  if (!w->a || !w->entry)
    rc = err_set(e, ERR_NOMEM, "no memory to write an archive");
  else if (!set_up_writer(w, filter))
    rc = err_set(e, ERR_UNSUPPORTED, "this libarchive lacks tar, gzip or zstd");
  else if (archive_write_open(w->a, w, NULL, on_write, NULL) != ARCHIVE_OK)
    rc = write_failed(w, e);
  if (rc < 0)
    tar_write_close(w);
  else
    *out = w;
  return rc;
}

void tar_write_close(tar_writer *w) {
  if (!w) return;
  if (w->a) {
    w->over = true; /* freeing it writes the end of it, as if it were whole */
    archive_write_free(w->a);
  }
  archive_entry_free(w->entry);
  free(w);
}

static void set_time(struct archive_entry *entry, int64_t ns) {
  int64_t s = ns / 1000000000, rest = ns % 1000000000;
  if (rest < 0) s--, rest += 1000000000;
  archive_entry_set_mtime(entry, s, (long)rest);
}

int tar_write_next(tar_writer *w, const tar_entry *from, err *e) {
  static const unsigned types[] = {AE_IFREG, AE_IFDIR, AE_IFLNK};
  if (w->left > 0) return err_set(e, ERR_INVAL, "a file in the archive is not whole");
  archive_entry_clear(w->entry);
  archive_entry_copy_pathname(w->entry, from->name);
  archive_entry_set_filetype(w->entry, types[from->kind]);
  archive_entry_set_perm(w->entry, from->mode & 0777);
  archive_entry_set_size(w->entry, from->kind == TAR_FILE ? (la_int64_t)from->size : 0);
  if (from->kind == TAR_LINK) archive_entry_copy_symlink(w->entry, from->target);
  set_time(w->entry, from->mtime_ns);
  int rc = archive_write_header(w->a, w->entry);
  /* It warns of names that are not UTF-8, and writes them as they are. */
  if (w->failed.rc < 0 || (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)) return write_failed(w, e);
  w->left = from->kind == TAR_FILE ? from->size : 0;
  return 0;
}

int tar_write_data(tar_writer *w, const void *data, size_t len, err *e) {
  if (len > w->left) return err_set(e, ERR_INVAL, "a file has more bytes than were announced");
  w->left -= len;
  for (const char *at = data; len > 0;) {
    la_ssize_t n = archive_write_data(w->a, at, len);
    if (n <= 0 || w->failed.rc < 0) return write_failed(w, e);
    at += n;
    len -= (size_t)n;
  }
  return 0;
}

int tar_write_end(tar_writer *w, err *e) {
  if (w->left > 0) return err_set(e, ERR_INVAL, "a file in the archive is not whole");
  int rc = archive_write_close(w->a);
  return rc == ARCHIVE_OK && w->failed.rc == 0 ? 0 : write_failed(w, e);
}
