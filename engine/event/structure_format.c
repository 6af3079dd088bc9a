#include "structure_format.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int format_says(format_file *f, structure verdict, const char *why) {
  f->verdict = verdict;
  f->why = why;
  return 0;
}

int format_proves(format_file *f, structure_proof proof, const char *why) {
  f->proof = proof;
  return format_says(f, STRUCTURE_SOUND, why);
}

int format_read(format_file *f, uint64_t at, void *to, size_t len) {
  for (size_t done = 0; done < len;) {
    ssize_t n = f->io->pread(f->io, f->fd, (char *)to + done, len - done, (off_t)(at + done));
    if (n < 0) return err_sys(f->e, (int)n, "look at %s", f->path);
    if (n == 0) return err_set(f->e, ERR_RETIRED, "%s became shorter while it was read", f->path);
    done += (size_t)n;
  }
  return 0;
}

int format_byte(format_window *w, uint8_t *out) {
  if (w->at >= w->f->size) return 0;
  if (w->at < w->have_at || w->at - w->have_at >= w->have) {
    uint64_t left = w->f->size - w->at;
    w->have = left < sizeof w->bytes ? (size_t)left : sizeof w->bytes;
    w->have_at = w->at;
    w->read += w->have;
    int rc = format_read(w->f, w->at, w->bytes, w->have);
    if (rc < 0) return rc;
  }
  *out = w->bytes[w->at++ - w->have_at];
  return 1;
}

int format_skip(format_window *w, uint64_t n) {
  if (n > w->f->size - w->at) return 0;
  w->at += n;
  return 1;
}

uint64_t format_le(const uint8_t *p, int bytes) {
  uint64_t n = 0;
  for (int i = bytes; i-- > 0;) n = n << 8 | p[i];
  return n;
}

/* --- zip ------------------------------------------------------------------------------------ */

enum {
  END_LEN = 22,
  END_TAIL = END_LEN + 65535, /* with the longest comment */
  LOCATOR_LEN = 20,
  END64_LEN = 56,
  CENTRAL_LEN = 46,
  CENTRAL_MAX = 64 << 20,
};

typedef struct zip_end {
  uint64_t count, size, at; /* of the central directory */
  uint64_t behind;          /* where the record after it begins */
} zip_end;

/* Reads the 64-bit record, if its locator stands in front of the end record. */
static int read_end64(format_file *f, uint64_t end_at, zip_end *z) {
  uint8_t b[END64_LEN];
  if (end_at < LOCATOR_LEN) return 0;
  int rc = format_read(f, end_at - LOCATOR_LEN, b, LOCATOR_LEN);
  if (rc < 0 || memcmp(b, "PK\6\7", 4) != 0) return rc;
  uint64_t at = format_le(b + 8, 8);
  if (at > end_at || end_at - at < LOCATOR_LEN + END64_LEN) return 0;
  rc = format_read(f, at, b, END64_LEN);
  if (rc < 0 || memcmp(b, "PK\6\6", 4) != 0) return rc;
  *z = (zip_end){.count = format_le(b + 32, 8),
                 .size = format_le(b + 40, 8),
                 .at = format_le(b + 48, 8),
                 .behind = at};
  return 0;
}

/* Walks the central directory: `count` entries fill `size` bytes. */
static bool central_fits(const uint8_t *b, const zip_end *z) {
  uint64_t at = 0;
  for (uint64_t i = 0; i < z->count; i++) {
    if (z->size - at < CENTRAL_LEN || memcmp(b + at, "PK\1\2", 4) != 0) return false;
    uint64_t len = CENTRAL_LEN + format_le(b + at + 28, 2) + format_le(b + at + 30, 2) +
                   format_le(b + at + 32, 2);
    if (z->size - at < len) return false;
    at += len;
  }
  return at == z->size;
}

static int check_central(format_file *f, const zip_end *z) {
  if (z->at > z->behind || z->behind - z->at != z->size)
    return format_says(f, STRUCTURE_UNKNOWN, "zip: the central directory is not where it says");
  if (z->size > CENTRAL_MAX)
    return format_says(f, STRUCTURE_UNKNOWN, "zip: the central directory is too large to check");
  uint8_t *b = malloc((size_t)z->size + 1);
  if (!b) return err_set(f->e, ERR_NOMEM, "look at %s: out of memory", f->path);
  int rc = format_read(f, z->at, b, (size_t)z->size);
  if (rc == 0)
    rc = central_fits(b, z) ? format_proves(f, STRUCTURE_PROVES_WHOLE, "zip: central directory")
                            : format_says(f, STRUCTURE_UNKNOWN, "zip: a broken central directory");
  free(b);
  return rc;
}

int format_zip(format_file *f) {
  size_t len = f->size < END_TAIL ? (size_t)f->size : END_TAIL;
  uint64_t from = f->size - len;
  uint8_t *b = malloc(len);
  if (!b) return err_set(f->e, ERR_NOMEM, "look at %s: out of memory", f->path);
  int rc = format_read(f, from, b, len);
  size_t at = len;
  bool seen = false, fits = false;
  for (size_t i = len < END_LEN ? 0 : len - END_LEN + 1; rc == 0 && !fits && i-- > 0;) {
    if (memcmp(b + i, "PK\5\6", 4) != 0) continue;
    seen = true;
    at = i;
    fits = i + END_LEN + format_le(b + i + 20, 2) == len;
  }
  if (rc == 0 && !seen) {
    format_says(f, STRUCTURE_TORN, "zip: no central directory");
  } else if (rc == 0 && !fits) {
    format_says(f, STRUCTURE_UNKNOWN, "zip: bytes behind its end");
  } else if (rc == 0) {
    zip_end z = {.count = format_le(b + at + 10, 2),
                 .size = format_le(b + at + 12, 4),
                 .at = format_le(b + at + 16, 4),
                 .behind = from + at};
    rc = read_end64(f, from + at, &z);
    if (rc == 0) rc = check_central(f, &z);
  }
  free(b);
  return rc;
}

/* --- safetensors ---------------------------------------------------------------------------- */

/* The format allows a header of the first size; we read one up to the second, which a hundred
 * thousand tensors have. */
enum { HEADER_MAX = 100 << 20, HEADER_LOOK = 16 << 20 };

/* Returns the end of the last tensor, or -1 where the header is not as it must be. */
static int64_t tensors_end(json_t *header) {
  const char *name;
  json_t *tensor;
  int64_t end = 0;
  if (!json_is_object(header)) return -1;
  json_object_foreach(header, name, tensor) {
    if (strcmp(name, "__metadata__") == 0) continue;
    json_t *offsets = json_object_get(tensor, "data_offsets");
    json_t *a = json_array_get(offsets, 0), *b = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(a) || !json_is_integer(b)) return -1;
    if (json_integer_value(a) < 0 || json_integer_value(b) < json_integer_value(a)) return -1;
    if (json_integer_value(b) > end) end = json_integer_value(b);
  }
  return end;
}

static int judge_tensors(format_file *f, uint64_t header_len, json_t *header) {
  int64_t end = tensors_end(header);
  if (end < 0) return format_says(f, STRUCTURE_TORN, "safetensors: the header has no offsets");
  uint64_t data = f->size - 8 - header_len;
  if ((uint64_t)end > data)
    return format_says(f, STRUCTURE_TORN, "safetensors: shorter than its header says");
  if ((uint64_t)end < data)
    return format_says(f, STRUCTURE_TORN, "safetensors: longer than its header says");
  return format_proves(f, STRUCTURE_PROVES_LENGTH, "safetensors: header and size agree");
}

int format_safetensors(format_file *f) {
  uint8_t head[8];
  if (f->size < 8) return format_says(f, STRUCTURE_TORN, "safetensors: no header");
  int rc = format_read(f, 0, head, 8);
  if (rc < 0) return rc;
  uint64_t len = format_le(head, 8);
  if (len > f->size - 8) return format_says(f, STRUCTURE_TORN, "safetensors: header cut off");
  if (len > HEADER_MAX) return format_says(f, STRUCTURE_TORN, "safetensors: no header");
  if (len > HEADER_LOOK)
    return format_says(f, STRUCTURE_UNKNOWN, "safetensors: the header is too large to check");
  char *text = malloc((size_t)len + 1);
  if (!text) return err_set(f->e, ERR_NOMEM, "look at %s: out of memory", f->path);
  rc = format_read(f, 8, text, (size_t)len);
  json_t *header = NULL;
  int parsed = rc < 0 ? rc : js_parse(text, (size_t)len, f->path, &header, NULL);
  if (rc == 0 && parsed == ERR_LIMIT)
    rc = format_says(f, STRUCTURE_UNKNOWN, "safetensors: the header has too much in it to check");
  else if (rc == 0 && parsed < 0)
    rc = format_says(f, STRUCTURE_TORN, "safetensors: the header is no JSON");
  else if (rc == 0)
    rc = judge_tensors(f, len, header);
  json_decref(header);
  free(text);
  return rc;
}

/* --- HDF5 ----------------------------------------------------------------------------------- */

enum { HDF5_TINY = 2048 }; /* an HDF5 file that holds nothing yet is smaller */

int format_hdf5(format_file *f) {
  uint8_t b[64] = {0};
  size_t len = f->size < sizeof b ? (size_t)f->size : sizeof b;
  int rc = format_read(f, 0, b, len);
  if (rc < 0) return rc;
  int version = b[8], width = version < 2 ? b[13] : b[9];
  size_t base_at = version == 0 ? 24 : version == 1 ? 28 : 12, end_at = base_at + 16;
  if (len < 16 || len < end_at + 8) return format_says(f, STRUCTURE_TORN, "HDF5: no superblock");
  if (version > 3 || width != 8) return format_says(f, STRUCTURE_UNKNOWN, "HDF5: of a kind apart");
  uint64_t base = format_le(b + base_at, 8), end = format_le(b + end_at, 8);
  if (base > UINT64_MAX - end || base + end > f->size)
    return format_says(f, STRUCTURE_TORN, "HDF5: shorter than its superblock says");
  if (version == 3 && (b[11] & 1))
    return format_says(f, STRUCTURE_TORN, "HDF5: never closed by its writer");
  if (base + end < f->size)
    return format_says(f, STRUCTURE_UNKNOWN, "HDF5: longer than its superblock says");
  if (f->size < HDF5_TINY) return format_says(f, STRUCTURE_UNKNOWN, "HDF5: perhaps empty");
  return format_proves(f, STRUCTURE_PROVES_CLOSED, "HDF5: superblock and size agree");
}

/* --- LightGBM ------------------------------------------------------------------------------- */

/* Python closes the file and opens it once more for its last line; the program of the command line
 * writes no such line. */
int format_lightgbm(format_file *f) {
  static const char last[] = "\npandas_categorical:";
  enum { TAIL = 65536 };
  size_t len = f->size < TAIL ? (size_t)f->size : TAIL;
  char *b = malloc(len + 1);
  if (!b) return err_set(f->e, ERR_NOMEM, "look at %s: out of memory", f->path);
  int rc = format_read(f, f->size - len, b, len);
  if (rc == 0) {
    b[len] = '\0';
    const char *line = memmem(b, len, last, sizeof last - 1);
    const char *end = line ? strchr(line + 1, '\n') : NULL;
    rc = end && end == b + len - 1
             ? format_proves(f, STRUCTURE_PROVES_WHOLE, "LightGBM: its last line")
             : format_says(f, STRUCTURE_UNKNOWN, "LightGBM: not the last line of Python");
  }
  free(b);
  return rc;
}

/* --- JSON ----------------------------------------------------------------------------------- */

enum { JSON_CHUNK = 65536, JSON_MAX = 64 << 20 };

/* Scans only for signs that the end is there. A parser would refuse the NaN that Python writes. */
typedef struct json_scan {
  int64_t depth;
  bool in_string, escaped, begun, closed, odd;
} json_scan;

static void scan_byte(json_scan *s, char c) {
  if (s->in_string) {
    if (s->escaped)
      s->escaped = false;
    else if (c == '\\')
      s->escaped = true;
    else if (c == '"')
      s->in_string = false;
    return;
  }
  if (c == ' ' || c == '\n' || c == '\r' || c == '\t') return;
  if (s->closed || (!s->begun && c != '{' && c != '[') || c == '\0') s->odd = true;
  s->begun = true;
  if (c == '"') s->in_string = true;
  if (c == '{' || c == '[') s->depth++;
  if ((c == '}' || c == ']') && --s->depth <= 0) s->closed = true;
}

int format_json(format_file *f) {
  json_scan s = {0};
  if (f->size > JSON_MAX) return format_says(f, STRUCTURE_UNKNOWN, "JSON: too large to check");
  char *b = malloc(JSON_CHUNK);
  if (!b) return err_set(f->e, ERR_NOMEM, "look at %s: out of memory", f->path);
  int rc = 0;
  for (uint64_t at = 0; rc == 0 && !s.odd && at < f->size;) {
    size_t n = f->size - at < JSON_CHUNK ? (size_t)(f->size - at) : JSON_CHUNK;
    rc = format_read(f, at, b, n);
    for (size_t i = 0; rc == 0 && i < n; i++) scan_byte(&s, b[i]);
    at += n;
  }
  free(b);
  if (rc < 0) return rc;
  if (s.odd) return format_says(f, STRUCTURE_UNKNOWN, "JSON: not one object or array");
  if (!s.closed) return format_says(f, STRUCTURE_TORN, "JSON: it breaks off");
  return format_says(f, STRUCTURE_SOUND, "JSON: closed");
}
