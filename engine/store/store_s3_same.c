/* store_s3: tells whether what stands under a key is what would be put there. An ETag does not: it is
 * no digest of an object in parts, or of one that the server encrypts. */
#include <stdlib.h>
#include <string.h>

#include "prims/crc/crc.h"
#include "store_s3.h"

/* Reads block `i`. Returns 1 if it is as long as it has to be. */
static int read_block(s3_store *s, const s3_wanted *w, size_t i, void *to, size_t want, err *e) {
  ssize_t got = s3_read_path(s, w->path, (uint64_t)i * HASH_BLOCK, to, want, w->cancel, e);
  return got < 0 ? (int)got : (size_t)got == want;
}

static int read_all(s3_store *s, const s3_wanted *w, void *room, digest *blocks, err *e) {
  size_t count = hash_block_count(w->size);
  uint64_t crc = 0;
  digest whole;
  int rc = 1;
  for (size_t i = 0; rc == 1 && i < count; i++) {
    uint64_t left = w->size - (uint64_t)i * HASH_BLOCK, sum = 0;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    rc = read_block(s, w, i, room, want, e);
    int bad = rc == 1 ? hash_block(w->hash, room, want, &blocks[i], &sum, e) : 0;
    if (bad < 0) rc = bad;
    crc = crc64nvme_join(crc, sum, want);
  }
  if (rc != 1 || w->of->len == 0) return rc == 1 ? crc == w->crc : rc;
  rc = hash_of_blocks(w->hash, blocks, count, &whole, e);
  return rc < 0 ? rc : crc == w->crc && digest_equal(&whole, w->of);
}

static int read_back(s3_store *s, const s3_wanted *w, err *e) {
  size_t room = w->size < HASH_BLOCK ? (size_t)w->size + 1 : HASH_BLOCK;
  void *data = s3_buffer_take(room, true);
  digest *blocks = calloc(hash_block_count(w->size) + 1, sizeof *blocks);
  int rc = data && blocks
               ? read_all(s, w, data, blocks, e)
               : err_set(e, ERR_NOMEM, "no memory to compare %s/%.400s", s->shown, w->path);
  free(blocks);
  s3_buffer_give(data, room);
  return rc;
}

/* Compares the digest that came with the object's one put. 1, 0; -1: it tells nothing. */
static int by_digest(const s3_wanted *w, const s3_head *head) {
  const char *name = hash_name(w->hash);
  size_t len = strlen(name);
  char hex[HASH_HEX_MAX];
  if (!w->one_put || w->of->len == 0) return -1;
  if (strncmp(head->digest, name, len) != 0 || head->digest[len] != ':') return -1;
  digest_hex(w->of, hex);
  return strcmp(head->digest + len + 1, hex) == 0;
}

int s3_is_same(s3_store *s, const s3_wanted *w, const s3_head *head, err *e) {
  const char *mark = head->object.mark;
  if (head->object.size != w->size) return 0;
  /* An object of 1.0 has no mark. */
  if (w->mark && *w->mark && *mark && strcmp(mark, w->mark) != 0) return 0;
  int told = by_digest(w, head);
  if (told >= 0) return told;
  if (head->summed && head->crc == w->crc) return 1;
  /* The server may make its sum in another way: only other bytes are others. */
  return read_back(s, w, e);
}
