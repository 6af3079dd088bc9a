/* store_s3: finds the unfinished upload of a large object that an earlier try began, and the parts
 * that it has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"
#include "store/aws/xml.h"

enum { PARTS_MAX = 10000 };

void s3_left_free(s3_left *l) {
  free(l->parts);
  *l = (s3_left){0};
}

typedef struct search {
  const char *path;
  s3_left *left;
} search;

/* Of several uploads of one key the newest is taken; where the server tells no times, the last one
 * listed. */
static int take_upload(void *ctx, const s3_upload *u) {
  search *f = ctx;
  if (strcmp(u->path, f->path) != 0 || strlen(u->id) >= S3_UPLOAD_MAX ||
      u->begun_ns < f->left->begun_ns)
    return 0;
  memcpy(f->left->upload, u->id, strlen(u->id) + 1);
  f->left->begun_ns = u->begun_ns;
  return 0;
}

/* State while a page of parts is read. */
typedef struct reading {
  s3_left *left;
  unsigned long number;
  s3_part open;
  bool truncated, failed;
  char next[16];
} reading;

static void end_part(reading *r) {
  s3_left *l = r->left;
  if (r->number >= 1 && r->number <= PARTS_MAX && *r->open.etag) {
    if (r->number > l->count) {
      s3_part *made = realloc(l->parts, r->number * sizeof *made);
      r->failed |= !made;
      if (!made) return;
      memset(made + l->count, 0, (r->number - l->count) * sizeof *made);
      l->parts = made;
      l->count = r->number;
    }
    l->parts[r->number - 1] = r->open;
    l->summed |= r->open.summed;
  }
  r->number = 0;
  r->open = (s3_part){0};
}

static int on_part(void *ctx, const char *path, const char *text) {
  static const char root[] = "ListPartsResult/";
  reading *r = ctx;
  if (strncmp(path, root, sizeof root - 1) != 0) return 0;
  path += sizeof root - 1;
  if (!text) {
    if (strcmp(path, "Part") == 0) end_part(r);
  } else if (strcmp(path, "Part/PartNumber") == 0) {
    r->number = strtoul(text, NULL, 10);
  } else if (strcmp(path, "Part/Size") == 0) {
    r->open.size = strtoull(text, NULL, 10);
  } else if (strcmp(path, "Part/ETag") == 0) {
    s3_etag(text, r->open.etag);
  } else if (strcmp(path, "Part/ChecksumCRC64NVME") == 0) {
    r->open.summed = s3_crc_parse(text, &r->open.crc);
  } else if (strcmp(path, "IsTruncated") == 0) {
    r->truncated = strcmp(text, "true") == 0;
  } else if (strcmp(path, "NextPartNumberMarker") == 0) {
    snprintf(r->next, sizeof r->next, "%s", text);
  }
  return r->failed ? ERR_NOMEM : 0;
}

/* Reads one page; 1 while there may be more. */
static int parts_page(s3_store *s, const char *path, atomic_int *cancel, reading *r, err *e) {
  char from[16];
  snprintf(from, sizeof from, "%s", *r->next ? r->next : "0");
  const char *query[] = {
      "uploadId", r->left->upload, "max-parts", "1000", "part-number-marker", from, NULL};
  s3_call c;
  r->truncated = false;
  int rc = s3_do(&c, s,
                 &(s3_request){.verb = "list the parts of",
                               .method = "GET",
                               .path = path,
                               .query = query,
                               .room = S3_ANSWER_MAX,
                               .cancel = cancel},
                 e);
  bool gone = strcmp(c.code, "NoSuchUpload") == 0;
  if (rc == 0)
    rc = xml_walk(c.answer.body.data ? c.answer.body.data : "", c.answer.body.len,
                  "a list of parts", on_part, r, e);
  if (r->failed) rc = err_set(e, ERR_NOMEM, "no memory for a list of parts");
  s3_end(&c);
  if (gone) s3_left_free(r->left);
  if (gone || rc < 0) return gone ? 0 : rc;
  return r->truncated && strtoul(r->next, NULL, 10) > strtoul(from, NULL, 10);
}

int s3_left_find(s3_store *s, const char *path, atomic_int *cancel, s3_left *out, err *e) {
  *out = (s3_left){0};
  search f = {.path = path, .left = out};
  reading r = {.left = out};
  int rc = s3_uploads(s, path, cancel, take_upload, &f, e);
  if (rc == 0 && *out->upload) {
    do rc = parts_page(s, path, cancel, &r, e);
    while (rc == 1);
  }
  if (rc < 0) s3_left_free(out);
  return rc;
}

size_t s3_left_part_size(const s3_left *l, uint64_t size) {
  uint64_t part = 0;
  for (size_t i = 0; i < l->count; i++) {
    const s3_part *p = &l->parts[i];
    /* The last part may be shorter, and is no measure. */
    if (!*p->etag || (uint64_t)i * part + p->size == size) continue;
    if (part && p->size != part) return 0;
    part = p->size;
  }
  bool fits = part >= S3_PART_MIN && part <= S3_PART_RESUMED_MAX;
  return fits && (size + part - 1) / part <= PARTS_MAX ? (size_t)part : 0;
}
