/* store_s3: CRC64NVME, which the server makes too: it finds what changed on its way, and later tells
 * what it holds. */
#include <stdio.h>
#include <string.h>

#include "prims/crc/crc.h"
#include "prims/hash.h"
#include "store_s3.h"

#define ALGORITHM "CRC64NVME"

static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Four characters for each three bytes; the last ones are "=" for bytes that are not there. */
static void encode(const unsigned char *bytes, size_t len, char *out) {
  for (size_t i = 0; i < len; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16;
    if (i + 1 < len) three |= (uint32_t)bytes[i + 1] << 8;
    if (i + 2 < len) three |= bytes[i + 2];
    for (size_t k = 0; k < 4; k++) *out++ = i + k > len ? '=' : base64[three >> (18 - 6 * k) & 63];
  }
  *out = 0;
}

void s3_crc_print(uint64_t crc, char out[S3_CRC_TEXT]) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(crc >> (56 - 8 * i));
  encode(bytes, sizeof bytes, out);
}

bool s3_crc_parse(const char *text, uint64_t *out) {
  char again[S3_CRC_TEXT];
  uint64_t high = 0;
  unsigned last = 0;
  if (strlen(text) != S3_CRC_TEXT - 1) return false;
  for (int i = 0; i < 11; i++) { /* 10 of six bits, one with the last four */
    const char *at = strchr(base64, text[i]);
    if (!at) return false;
    if (i < 10)
      high = high << 6 | (uint64_t)(at - base64);
    else
      last = (unsigned)(at - base64);
  }
  *out = high << 4 | last >> 2;
  s3_crc_print(*out, again);
  return strcmp(again, text) == 0;
}

/* ---- what goes along ---- */

static void say_crc(s3_call *c) {
  char text[S3_CRC_TEXT];
  s3_crc_print(c->r.crc ? *c->r.crc : crc64nvme(0, c->r.body, c->r.len), text);
  snprintf(c->sums[0], sizeof c->sums[0], "x-amz-checksum-crc64nvme: %s", text);
}

static int say_md5(s3_call *c, err *e) {
  unsigned char md5[HASH_MD5_BYTES];
  char text[4 * (HASH_MD5_BYTES / 3 + 1) + 1];
  int rc = hash_md5(c->r.body, c->r.len, md5, e);
  if (rc < 0) return rc;
  encode(md5, sizeof md5, text);
  snprintf(c->sums[0], sizeof c->sums[0], "content-md5: %s", text);
  return 0;
}

int s3_sum_lines(s3_call *c, err *e) {
  c->bare |= atomic_load(&c->s->no_sums);
  if (c->bare) memset(c->sums, 0, sizeof c->sums);
  if (c->bare && c->r.sum == S3_SUM_DEMAND) return say_md5(c, e);
  if (c->bare || *c->sums[0]) return 0;
  switch (c->r.sum) {
  case S3_SUM_BODY:
  case S3_SUM_DEMAND: say_crc(c); break;
  case S3_SUM_BEGIN:
    snprintf(c->sums[0], sizeof c->sums[0], "x-amz-checksum-algorithm: " ALGORITHM);
    snprintf(c->sums[1], sizeof c->sums[1], "x-amz-checksum-type: FULL_OBJECT");
    break;
  case S3_SUM_ASK: snprintf(c->sums[0], sizeof c->sums[0], "x-amz-checksum-mode: ENABLED"); break;
  case S3_SUM_NONE: break;
  }
  return 0;
}

/* ---- a server that does not know them ---- */

/* The answer to a HEAD has no word in it. */
static bool may_be_about_sums(const s3_call *c) {
  static const char *const codes[] = {"InvalidArgument",
                                      "InvalidRequest",
                                      "InvalidChecksum",
                                      "InvalidDigest",
                                      "MissingContentMD5",
                                      "NotImplemented",
                                      NULL};
  int status = c->answer.status;
  if (c->trouble.code || (status != 400 && status != 501)) return false;
  if (!*c->code) return true;
  for (size_t i = 0; codes[i]; i++)
    if (strcmp(c->code, codes[i]) == 0) return true;
  return false;
}

bool s3_without_sums(s3_call *c) {
  if (c->r.sum == S3_SUM_NONE || c->bare || !may_be_about_sums(c)) return false;
  c->bare = true;
  return true;
}

void s3_sums_settled(const s3_call *c) {
  s3_store *s = c->s;
  if (!c->bare || atomic_exchange(&s->no_sums, true)) return;
  log_say(&s->base.log, LOG_DEBUG,
          "s3://%s: the server knows no CRC64NVME; what stands is read back to be compared",
          s->bucket);
}
