/* libexec/ckpt-archive: the process in which archives are read and written (base/bundle.h).
 *
 * `ckpt-archive unpack LIMIT`, `ckpt-archive pack plain|gzip|zstd`, on descriptors 0 and 1, which
 * are all that it has: it cannot open a file. Names are judged, and files made, on the other side.
 * LIMIT is how many bytes may come out of one byte of the archive, once it is BOMB_FROM in all; 0:
 * any number. */
#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bundle.h"
#include "prims/lockdown.h"
#include "prims/tar.h"

enum { OUT_MAX = 256 << 10, STATES = 16 };
static const uint64_t bomb_from = 256 << 20;

/* The two streams. Their memory is there before anything is read. */
static struct wire {
  unsigned char in[BUNDLE_CHUNK];
  size_t in_len, in_at;
  bool dry; /* there is no more input */
  unsigned char out[BUNDLE_FRAME_HEAD + OUT_MAX];
  size_t out_len;
} wire;

/* ---- the wire; who is not there any more cannot be told anything ---- */

static void read_all(void *to, size_t len) {
  for (char *at = to; len > 0;) {
    ssize_t n = read(0, at, len);
    if (n == 0 || (n < 0 && errno != EINTR)) _exit(1);
    if (n < 0) continue;
    at += n;
    len -= (size_t)n;
  }
}

static void write_all(const void *from, size_t len) {
  for (const char *at = from; len > 0;) {
    ssize_t n = write(1, at, len);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n < 0) continue;
    at += n;
    len -= (size_t)n;
  }
}

static void send_frame(bundle_frame type, const void *payload, size_t len) {
  unsigned char head[BUNDLE_FRAME_HEAD] = {(unsigned char)type};
  bundle_put_count(head + 1, (uint32_t)len);
  write_all(head, sizeof head);
  write_all(payload, len);
}

static void flush_out(void) {
  size_t len = wire.out_len - BUNDLE_FRAME_HEAD;
  if (len == 0) return;
  wire.out[0] = BUNDLE_BYTES;
  bundle_put_count(wire.out + 1, (uint32_t)len);
  write_all(wire.out, wire.out_len);
  wire.out_len = BUNDLE_FRAME_HEAD;
  lockdown_allow(0, STATES); /* the CPU limit counts in steps, too: work that gets on may go on */
}

static void give(const void *bytes, size_t len) {
  for (const char *at = bytes; len > 0;) {
    size_t room = sizeof wire.out - wire.out_len, n = len < room ? len : room;
    memcpy(wire.out + wire.out_len, at, n);
    wire.out_len += n;
    at += n;
    len -= n;
    if (n == room) flush_out();
  }
}

/* Asks for the next piece of input; false at its end. */
static bool fill_in(void) {
  unsigned char count[BUNDLE_COUNT];
  if (wire.dry) return false;
  flush_out();
  send_frame(BUNDLE_WANT, "", 0);
  read_all(count, sizeof count);
  wire.in_len = bundle_get_count(count);
  wire.in_at = 0;
  if (wire.in_len > sizeof wire.in) _exit(1);
  wire.dry = wire.in_len == 0;
  read_all(wire.in, wire.in_len);
  lockdown_allow(0, STATES);
  return !wire.dry;
}

/* ---- unpack ---- */

static ssize_t on_source(void *ctx, const void **block, err *e) {
  (void)ctx, (void)e;
  *block = wire.in;
  return fill_in() ? (ssize_t)wire.in_len : 0;
}

static void give_head(const tar_entry *entry) {
  static const bundle_kind kinds[] = {BUNDLE_FILE, BUNDLE_DIR, BUNDLE_LINK};
  unsigned char head[BUNDLE_HEAD];
  size_t target = entry->kind == TAR_LINK ? strlen(entry->target) : 0;
  bundle_put_head(head, &(bundle_head){.kind = kinds[entry->kind],
                                       .mode = entry->mode,
                                       .mtime_ns = entry->mtime_ns,
                                       .size = entry->size,
                                       .name = (uint32_t)strlen(entry->name),
                                       .target = (uint32_t)target});
  give(head, sizeof head);
  give(entry->name, strlen(entry->name));
  give(entry->target, target);
}

static void give_piece(uint64_t at, const void *data, size_t len) {
  unsigned char head[BUNDLE_PIECE];
  bundle_put_piece(head, (bundle_piece){.at = at, .len = (uint32_t)len});
  give(head, sizeof head);
  give(data, len);
}

static int check_bomb(const tar_reader *r, uint64_t limit, err *e) {
  uint64_t packed, plain;
  tar_read_bytes(r, &packed, &plain);
  if (limit == 0 || plain < bomb_from || plain / limit <= packed) return 0;
  return err_set(e, ERR_LIMIT,
                 "more than %llu bytes come out of each byte of the archive: if that is right, "
                 "say how large it may get",
                 (unsigned long long)limit);
}

static int unpack_data(tar_reader *r, uint64_t size, uint64_t limit, err *e) {
  const void *data;
  size_t len;
  uint64_t at;
  int rc;
  while ((rc = tar_read_data(r, &data, &len, &at, e)) == 1) {
    for (const char *from = data; rc >= 0 && len > 0;) {
      size_t n = len < BUNDLE_CHUNK ? len : BUNDLE_CHUNK;
      give_piece(at, from, n);
      from += n, at += n, len -= n;
    }
    rc = check_bomb(r, limit, e);
    if (rc < 0) break;
  }
  if (rc == 0) give_piece(size, "", 0);
  return rc;
}

static int unpack(uint64_t limit, err *e) {
  tar_reader *r = NULL;
  tar_entry entry;
  int rc = tar_read_open(on_source, NULL, &r, e);
  while (rc >= 0 && (rc = tar_read_next(r, &entry, e)) == 1) {
    if (strlen(entry.name) > BUNDLE_NAME_MAX ||
        (entry.kind == TAR_LINK && strlen(entry.target) > BUNDLE_NAME_MAX))
      rc = err_set(e, ERR_LIMIT, "a name in the archive has more than %d bytes", BUNDLE_NAME_MAX);
    if (rc < 0) break;
    give_head(&entry);
    if (entry.kind == TAR_FILE) rc = unpack_data(r, entry.size, limit, e);
    if (rc == 0) rc = check_bomb(r, limit, e);
  }
  unsigned char end[BUNDLE_HEAD];
  bundle_put_head(end, &(bundle_head){.kind = BUNDLE_END});
  if (rc == 0) give(end, sizeof end);
  tar_read_close(r);
  return rc;
}

/* ---- pack ---- */

static int on_sink(void *ctx, const void *data, size_t len, err *e) {
  (void)ctx, (void)e;
  give(data, len);
  return 0;
}

static int take(void *to, size_t len, err *e) {
  for (char *at = to; len > 0;) {
    if (wire.in_at == wire.in_len && !fill_in())
      return err_set(e, ERR_FORMAT, "the entries end too early");
    size_t left = wire.in_len - wire.in_at, n = len < left ? len : left;
    memcpy(at, wire.in + wire.in_at, n);
    wire.in_at += n;
    at += n;
    len -= n;
  }
  return 0;
}

static int pack_data(tar_writer *w, err *e) {
  static unsigned char data[64 << 10];
  unsigned char head[BUNDLE_PIECE];
  int rc;
  do {
    rc = take(head, sizeof head, e);
    bundle_piece piece = bundle_get_piece(head);
    if (rc == 0 && piece.len == 0) return 0;
    for (size_t left = piece.len; rc == 0 && left > 0;) {
      size_t n = left < sizeof data ? left : sizeof data;
      rc = take(data, n, e);
      if (rc == 0) rc = tar_write_data(w, data, n, e);
      left -= n;
    }
  } while (rc == 0);
  return rc;
}

/* Packs one entry. Returns 1 if there may be another one. */
static int pack_one(tar_writer *w, err *e) {
  static char name[BUNDLE_NAME_MAX + 1], target[BUNDLE_NAME_MAX + 1];
  static const tar_kind kinds[] = {TAR_FILE, TAR_DIR, TAR_LINK};
  unsigned char bytes[BUNDLE_HEAD];
  bundle_head head = {.kind = BUNDLE_END};
  int rc = take(bytes, sizeof bytes, e);
  if (rc == 0) rc = bundle_get_head(bytes, &head, e);
  if (rc < 0 || head.kind == BUNDLE_END) return rc;
  rc = take(name, head.name, e);
  if (rc == 0) rc = take(target, head.target, e);
  name[head.name] = target[head.target] = 0;
  if (rc == 0)
    rc = tar_write_next(w,
                        &(tar_entry){.kind = kinds[head.kind],
                                     .name = name,
                                     .target = target,
                                     .mode = head.mode,
                                     .mtime_ns = head.mtime_ns,
                                     .size = head.size},
                        e);
  if (rc == 0 && head.kind == BUNDLE_FILE) rc = pack_data(w, e);
  return rc < 0 ? rc : 1;
}

static int pack(tar_filter filter, err *e) {
  tar_writer *w = NULL;
  int rc = tar_write_open(filter, on_sink, NULL, &w, e);
  if (rc == 0) do
      rc = pack_one(w, e);
    while (rc == 1);
  if (rc == 0) rc = tar_write_end(w, e);
  tar_write_close(w);
  return rc;
}

/* ---- */

static int work(int argc, char **argv, err *e) {
  static const char *const filters[] = {"plain", "gzip", "zstd"};
  if (argc == 3 && strcmp(argv[1], "unpack") == 0) return unpack(strtoull(argv[2], NULL, 10), e);
  for (int i = 0; argc == 3 && strcmp(argv[1], "pack") == 0 && i < 3; i++)
    if (strcmp(argv[2], filters[i]) == 0) return pack((tar_filter)i, e);
  return err_set(e, ERR_INVAL, "ckpt-archive is a helper of ckpt-lua, and is not called by hand");
}

static void tell_failure(int rc, const err *e) {
  unsigned char text[BUNDLE_COUNT + ERR_TEXT_MAX];
  size_t len = strlen(e->text);
  bundle_put_count(text, (uint32_t)rc);
  memcpy(text + BUNDLE_COUNT, e->text, len);
  send_frame(BUNDLE_FAILED, text, BUNDLE_COUNT + len);
}

int main(int argc, char **argv) {
  static err e;
  wire.out_len = BUNDLE_FRAME_HEAD;
  /* Names in pax headers are UTF-8; in the C locale libarchive would translate them. The locale is
   * set before the files that it may need are out of reach. */
  if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, "C");
  lockdown(); /* where the kernel has no filters the rest of it holds */
  lockdown_allow(0, STATES);
  int rc = work(argc, argv, &e);
  if (rc < 0) {
    tell_failure(rc, &e);
    return 1;
  }
  flush_out();
  send_frame(BUNDLE_DONE, "", 0);
  return 0;
}
