/* Archives, as the helper reads them, and what it says of them. */
#include "targets.h"

#include <stdbool.h>
#include <string.h>

#include "base/bundle.h"
#include "prims/fs.h"
#include "prims/tar.h"

typedef struct input {
  const uint8_t *data;
  size_t left, step;
} input;

static ssize_t give(void *ctx, const void **block, err *e) {
  input *in = ctx;
  size_t n = in->left < in->step ? in->left : in->step;
  (void)e;
  *block = in->data;
  in->data += n;
  in->left -= n;
  return (ssize_t)n;
}

/* The first byte says in what steps the rest comes. */
void fuzz_tar(const uint8_t *data, size_t size) {
  enum { BYTES_MAX = 4 << 20, ENTRIES_MAX = 1000 };
  input in = {.data = data + 1, .left = size - 1};
  tar_reader *r = NULL;
  tar_entry entry;
  err e = {0};
  uint64_t total = 0, packed, plain;
  int rc = 0;
  if (size == 0) return;
  in.step = data[0] ? (size_t)data[0] * 16 : SIZE_MAX;
  rc = tar_read_open(give, &in, &r, &e);
  for (int i = 0; rc >= 0 && i < ENTRIES_MAX && (rc = tar_read_next(r, &entry, &e)) == 1; i++) {
    const void *piece;
    size_t len;
    uint64_t at = 0, end = 0;
    must(entry.name && (entry.mode & ~0777U) == 0);
    must(entry.kind != TAR_LINK || entry.target);
    while (total < BYTES_MAX && (rc = tar_read_data(r, &piece, &len, &at, &e)) == 1) {
      must(at >= end && at + len <= entry.size);
      end = at + len;
      total += len;
      volatile uint8_t last = len ? ((const uint8_t *)piece)[len - 1] : 0;
      (void)last;
    }
    tar_read_bytes(r, &packed, &plain);
    must(packed <= size);
    if (total >= BYTES_MAX) break;
  }
  must(rc >= 0 || *e.text);
  tar_read_close(r);
}

/* What the helper says, and the names that it may say. */
/* Of a link with two directories above it: ".." comes first, and no more than two of them. */
static void check_target(const char *target) {
  int above = 2;
  bool named = false;
  must(*target && *target != '/');
  for (const char *at = target; *at; at += strspn(at, "/")) {
    size_t len = strcspn(at, "/");
    bool up = len == 2 && at[0] == '.' && at[1] == '.';
    must(!up || (!named && above-- > 0));
    named |= !up && !(len == 1 && *at == '.');
    at += len;
  }
}

void fuzz_bundle(const uint8_t *data, size_t size) {
  unsigned char head[BUNDLE_HEAD] = {0}, again[BUNDLE_HEAD];
  bundle_head h, back;
  err e = {0};
  memcpy(head, data, size < sizeof head ? size : sizeof head);
  if (bundle_get_head(head, &h, &e) == 0) {
    must(h.kind <= BUNDLE_END && (h.mode & ~0777U) == 0);
    must(h.name <= BUNDLE_NAME_MAX && h.target <= BUNDLE_NAME_MAX);
    bundle_put_head(again, &h);
    must(bundle_get_head(again, &back, NULL) == 0 && back.size == h.size && back.name == h.name);
  }
  char *own = fuzz_text(data, size);
  if (fs_beneath_check(own, &e) == 0) {
    must(*own != '/' && strlen(own) < FS_PATH_MAX && !strstr(own, "/../") && !strstr(own, "//"));
    must(strncmp(own, "../", 3) != 0 && strcmp(own, "..") != 0);
  }
  if (fs_beneath_check_link("a/b/l", own, &e) == 0) check_target(own);
  free(own);
}
