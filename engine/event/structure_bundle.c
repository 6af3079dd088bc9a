/* structure_bundle: TensorFlow's tensor bundle: shards of tensors, and an index that is written when all
 * of them have their names.
 *
 * The index is a table of LevelDB's format (table_format.md there) without compression: blocks of keys
 * and values, each with its CRC-32C, and a footer with a magic number. The first value tells how many
 * shards there are, each other one where a tensor's bytes are (tensor_bundle.proto of TensorFlow). So a
 * sound index with shards of that length is a whole checkpoint: BundleWriter and MergeBundles
 * (tensor_bundle.cc) rename the shards before they write it. */
#include "structure_format.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "prims/crc/crc.h"

enum {
  FOOTER_LEN = 48,
  TRAILER_LEN = 5, /* of a block: its compression, and the sum of all that */
  INDEX_MAX = 64 << 20,
  SHARDS_MAX = 65536,
};
#define MAGIC UINT64_C(0xdb4775248b80fb57)
#define INDEX ".index"
#define SHARD ".data-ddddd-of-ddddd"

bool structure_is_shard(const char *name) {
  size_t len = strlen(name), n = strlen(SHARD);
  if (len < n) return false;
  name += len - n;
  for (size_t i = 0; i < n; i++) {
    bool digit = SHARD[i] == 'd' && i > 5; /* behind ".data" */
    if (digit ? !isdigit((unsigned char)name[i]) : name[i] != SHARD[i]) return false;
  }
  return true;
}

bool format_bundle_index(const char *name, const uint8_t *head, size_t len) {
  size_t n = strlen(name), m = strlen(INDEX);
  /* An empty key, and a value that begins with the number of shards. */
  bool begins = len >= 4 && head[0] == 0 && head[1] == 0 && head[2] > 0 && head[3] == 0x08;
  return begins && n > m && strcmp(name + n - m, INDEX) == 0;
}

/* ---- bytes ---- */

typedef struct span {
  const uint8_t *at, *end;
} span;

static bool varint(span *s, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; shift < 64 && s->at < s->end; shift += 7) {
    const uint8_t b = *s->at++;
    *out |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80) return true;
  }
  return false;
}

static bool take(span *s, uint64_t len, span *out) {
  if (len > (uint64_t)(s->end - s->at)) return false;
  *out = (span){s->at, s->at + len};
  s->at += len;
  return true;
}

/* ---- the table ---- */

typedef struct bundle {
  span all;       /* of the index */
  uint64_t count; /* of the shards */
  uint64_t *ends; /* where the last tensor of each ends */
  bool begun;     /* its first entry was read */
} bundle;

/* Where a block stands, without its trailer. */
typedef struct handle {
  uint64_t at, len;
} handle;

typedef enum finding { WHOLE, DAMAGED, OTHER /* no such table, or one we cannot read */ } finding;

static bool read_handle(span *s, handle *out) {
  return varint(s, &out->at) && varint(s, &out->len) && out->len >= 4;
}

/* Takes the entries of the block of a handle. */
static finding open_block(const bundle *b, handle h, span *entries) {
  span rest = b->all;
  if (h.at > (uint64_t)(rest.end - rest.at)) return DAMAGED;
  rest.at += h.at;
  const uint64_t len = h.len;
  if (len > UINT64_MAX - TRAILER_LEN || !take(&rest, len + TRAILER_LEN, entries)) return DAMAGED;
  const uint8_t *trailer = entries->end - TRAILER_LEN;
  if (*trailer != 0) return OTHER;
  /* LevelDB masks a sum, so that one that stands in summed bytes does no harm. */
  const uint32_t sum = crc32c(0, entries->at, (size_t)len + 1);
  if ((uint32_t)format_le(trailer + 1, 4) != ((sum >> 15 | sum << 17) + UINT32_C(0xa282ead8)))
    return DAMAGED;
  const uint64_t restarts = format_le(trailer - 4, 4);
  if (restarts > (len - 4) / 4) return DAMAGED;
  entries->end = trailer - 4 - 4 * restarts;
  return WHOLE;
}

/* Takes the next entry; keys are shortened by what they share with the one before, and only whether
 * one is empty matters here. */
static bool entry(span *entries, bool *named, span *value) {
  uint64_t shared, own, len;
  span key;
  if (!varint(entries, &shared) || !varint(entries, &own) || !varint(entries, &len)) return false;
  *named = shared + own > 0;
  return take(entries, own, &key) && take(entries, len, value);
}

/* Takes the next field of a message: its number, and its value if that is a varint. */
static bool field(span *message, uint64_t *number, uint64_t *value) {
  uint64_t tag, len;
  span skipped;
  if (!varint(message, &tag)) return false;
  *number = tag >> 3;
  *value = 0;
  switch (tag & 7) {
  case 0: return varint(message, value);
  case 1: return take(message, 8, &skipped);
  case 2: return varint(message, &len) && take(message, len, &skipped);
  case 5: return take(message, 4, &skipped);
  default: return false;
  }
}

static finding read_header(bundle *b, span value) {
  uint64_t number, n;
  while (value.at < value.end) {
    if (!field(&value, &number, &n)) return OTHER;
    if (number == 1) b->count = n;
  }
  if (b->count == 0 || b->count > SHARDS_MAX) return OTHER;
  b->begun = true;
  return WHOLE;
}

static finding read_tensor(bundle *b, span value) {
  uint64_t number, n, shard = 0, offset = 0, size = 0, end;
  while (value.at < value.end) {
    if (!field(&value, &number, &n)) return OTHER;
    if (number == 3) shard = n;
    if (number == 4) offset = n;
    if (number == 5) size = n;
  }
  if (shard >= b->count || __builtin_add_overflow(offset, size, &end)) return OTHER;
  if (end > b->ends[shard]) b->ends[shard] = end;
  return WHOLE;
}

static finding read_tensors(bundle *b, span entries) {
  span value;
  bool named;
  finding is = WHOLE;
  while (is == WHOLE && entries.at < entries.end) {
    if (!entry(&entries, &named, &value)) return OTHER;
    if (named == !b->begun) return OTHER;
    is = named ? read_tensor(b, value) : read_header(b, value);
  }
  return is;
}

/* Data blocks stand one behind the other. A table in which they do not would let us read one of them as
 * often as it says. */
static finding read_data(bundle *b, span handles) {
  span value, entries;
  bool named;
  uint64_t end = 0;
  handle h;
  finding is = WHOLE;
  while (is == WHOLE && handles.at < handles.end) {
    if (!entry(&handles, &named, &value) || !read_handle(&value, &h) || h.at < end) return OTHER;
    is = open_block(b, h, &entries);
    end = h.at + h.len;
    if (is == WHOLE) is = read_tensors(b, entries);
  }
  return is;
}

static finding read_table(bundle *b) {
  span footer = {b->all.end - FOOTER_LEN, b->all.end - 8}, entries;
  handle about, index; /* the first is of the table itself, and tells nothing of ours */
  if (!read_handle(&footer, &about) || !read_handle(&footer, &index)) return OTHER;
  finding is = open_block(b, about, &entries);
  if (is == WHOLE) is = open_block(b, index, &entries);
  if (is == WHOLE) is = read_data(b, entries);
  return is == WHOLE && !b->begun ? OTHER : is;
}

/* ---- the shards ---- */

static int check_shards(format_file *f, const bundle *b) {
  char path[4096];
  struct stat st;
  const int stem = (int)(strlen(f->path) - strlen(INDEX));
  for (unsigned i = 0; i < b->count; i++) {
    int n =
        snprintf(path, sizeof path, "%.*s.data-%05u-of-%05u", stem, f->path, i, (unsigned)b->count);
    if (n < 0 || (size_t)n >= sizeof path)
      return format_says(f, STRUCTURE_UNKNOWN, "tensor bundle: its name is too long");
    int rc = f->io->lstat(f->io, AT_FDCWD, path, &st);
    if (rc == -ENOENT)
      return format_says(f, STRUCTURE_TORN, "tensor bundle: a shard that it tells of is missing");
    if (rc < 0) return err_sys(f->e, rc, "look at %s", path);
    if (!S_ISREG(st.st_mode))
      return format_says(f, STRUCTURE_UNKNOWN, "tensor bundle: a shard is no file");
    if ((uint64_t)st.st_size < b->ends[i])
      return format_says(f, STRUCTURE_TORN, "tensor bundle: a shard is shorter than it says");
    /* A save that was killed under a name that was there has put its shard beside the old index. */
    if (io_time_ns(st.st_mtim) > f->mtime_ns)
      return format_says(f, STRUCTURE_UNKNOWN, "tensor bundle: a shard is newer than its index");
  }
  f->shards = b->count;
  return format_proves(f, STRUCTURE_PROVES_WHOLE, "tensor bundle: its shards are there");
}

static int check_table(format_file *f, bundle *b) {
  switch (read_table(b)) {
  case WHOLE: return check_shards(f, b);
  case DAMAGED: return format_says(f, STRUCTURE_TORN, "tensor bundle: its sums do not agree");
  case OTHER: break;
  }
  return format_says(f, STRUCTURE_UNKNOWN, "tensor bundle: a table that is not known");
}

int format_bundle(format_file *f) {
  if (f->size > INDEX_MAX)
    return format_says(f, STRUCTURE_UNKNOWN, "tensor bundle: too large to check");
  uint8_t *bytes = malloc((size_t)f->size + 1);
  bundle b = {.ends = calloc(SHARDS_MAX, sizeof *b.ends)};
  int rc = bytes && b.ends ? format_read(f, 0, bytes, (size_t)f->size)
                           : err_set(f->e, ERR_NOMEM, "look at %s: out of memory", f->path);
  if (rc == 0) b.all = (span){bytes, bytes + f->size};
  if (rc == 0 && (f->size < FOOTER_LEN || format_le(b.all.end - 8, 8) != MAGIC))
    rc = format_says(f, STRUCTURE_UNKNOWN, "tensor bundle: no footer");
  else if (rc == 0)
    rc = check_table(f, &b);
  free(b.ends);
  free(bytes);
  return rc;
}
