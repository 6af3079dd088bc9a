/* store_s3: gives an answer of an S3 server that is no success its meaning: one code of ours, and a
 * text that says what was asked, of what, what the server said, and what to look at. It shows no
 * header of the request, and no free text of the server's, which may repeat them. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "store_s3.h"
#include "store/aws/xml.h"

/* The first row that fits counts: by the server's word, or if the word is NULL, by the status. */
static const struct meaning {
  const char *code;
  int status;
  int rc;
  const char *hint;
} meanings[] = {
    {"NoSuchBucket", 0, ERR_NOSTORE, "make the bucket, or check its name and the endpoint"},
    {"InvalidBucketName", 0, ERR_INVAL, "check the name of the bucket"},
    {"NoSuchKey", 0, ERR_NOENT, NULL},
    {"NoSuchUpload", 0, ERR_CONFLICT, "the upload was aborted or completed by somebody else"},
    {"InvalidPart", 0, ERR_CONFLICT, "a part of the upload is gone"},
    {"SignatureDoesNotMatch", 0, ERR_ACCESS,
     "check the secret key (AWS_SECRET_ACCESS_KEY or the profile) and the region"},
    {"InvalidAccessKeyId", 0, ERR_ACCESS,
     "check the access key (AWS_ACCESS_KEY_ID or the profile) and the endpoint"},
    {"XAdminUserNotFound", 0, ERR_ACCESS,
     "check the access key (AWS_ACCESS_KEY_ID or the profile) and the endpoint"},
    {"RequestTimeTooSkewed", 0, ERR_ACCESS, "the clock of this machine is wrong"},
    {"ExpiredToken", 0, ERR_ACCESS, "the session is over: get new credentials"},
    {"InvalidToken", 0, ERR_ACCESS, "check AWS_SESSION_TOKEN: it belongs to other keys"},
    {"QuotaExceeded", 0, ERR_NOSPACE, "free some space, or have the quota raised"},
    {"XMinioStorageFull", 0, ERR_NOSPACE, "free some space on the server"},
    {"InsufficientStorage", 0, ERR_NOSPACE, "free some space on the server"},
    {"EntityTooLarge", 0, ERR_LIMIT, "the server takes no object of this size"},
    {"KeyTooLongError", 0, ERR_LIMIT, "use shorter names or a shorter prefix"},
    {"BadDigest", 0, ERR_IO, "the bytes changed on their way"},
    {"XAmzContentSHA256Mismatch", 0, ERR_IO, "the bytes changed on their way"},
    {"XAmzContentChecksumMismatch", 0, ERR_IO, "the bytes changed on their way"},
    {"ObjectParentIsFile", 0, ERR_INVAL,
     "this server keeps objects as files: a key cannot lie below another object"},
    {"ExistingObjectIsDirectory", 0, ERR_INVAL,
     "this server keeps objects as files: a key cannot be an object and a prefix"},
    {"NotImplemented", 0, ERR_UNSUPPORTED, NULL},
    {"AuthorizationHeaderMalformed", 0, ERR_ACCESS, "check the region (AWS_REGION)"},
    {"InternalError", 0, ERR_IO, NULL},
    {"RequestTimeout", 0, ERR_IO, NULL},
    {"SlowDown", 0, ERR_IO, NULL},
    {NULL, 301, ERR_ACCESS, "the bucket lives elsewhere: check the region (AWS_REGION)"},
    {NULL, 307, ERR_IO, NULL},
    {NULL, 401, ERR_ACCESS, "check the credentials"},
    {NULL, 403, ERR_ACCESS,
     "these credentials may not do this here: check them and the bucket's policy"},
    {NULL, 404, ERR_NOENT, NULL},
    {NULL, 408, ERR_IO, NULL},
    {NULL, 409, ERR_CONFLICT, NULL},
    {NULL, 412, ERR_EXISTS, NULL},
    {NULL, 416, ERR_INVAL, NULL},
    {NULL, 429, ERR_IO, "the server asks for fewer requests"},
    {NULL, 501, ERR_UNSUPPORTED, NULL},
    {NULL, 507, ERR_NOSPACE, "free some space on the server"},
};

enum { MEANINGS = sizeof meanings / sizeof meanings[0] };

static struct meaning meaning_of(const s3_call *c) {
  int status = c->answer.status;
  for (size_t i = 0; i < MEANINGS; i++)
    if (meanings[i].code ? strcmp(meanings[i].code, c->code) == 0 : meanings[i].status == status)
      return meanings[i];
  return (struct meaning){.rc = status >= 500 || status < 300 ? ERR_IO : ERR_INVAL};
}

static int find_code(void *ctx, const char *path, const char *text) {
  char *out = ctx;
  if (text && strcmp(path, "Error/Code") == 0) snprintf(out, S3_CODE_MAX, "%s", text);
  return 0;
}

/* Only a plain word is shown: it comes from an unknown server. */
static bool is_word(const char *text) {
  for (; *text; text++)
    if (!isalnum((unsigned char)*text) && !strchr("-_./+=", *text)) return false;
  return true;
}

void s3_read_code(s3_call *c) {
  const http_response *a = &c->answer;
  bool late = a->status / 100 == 2;
  if ((late && !c->r.may_fail_late) || a->body.len == 0) return;
  /* The answer of a proxy on the way may be no XML; the status tells enough. */
  int rc = xml_walk(a->body.data, a->body.len, "an answer", find_code, c->code, NULL);
  if (rc < 0 && late) snprintf(c->code, sizeof c->code, "InternalError"); /* it was cut off */
  if (!is_word(c->code)) c->code[0] = 0;
}

int s3_refused(const s3_call *c, err *e) {
  const char *bucket = c->s->bucket, *scheme = c->s->base.ops->scheme;
  char tries[32] = "", id[80] = "";
  if (c->tries > 1) snprintf(tries, sizeof tries, " (try %u)", c->tries);
  const char *slash = *c->r.path ? "/" : "";
  if (c->trouble.code)
    return err_set(e, c->trouble.code, "%s %s://%s%s%.400s%s: %.400s", c->r.verb, scheme, bucket,
                   slash, c->r.path, tries, c->trouble.text);
  struct meaning m = meaning_of(c);
  if (c->answer.status == 400 && strcmp(c->r.method, "HEAD") == 0) /* it has no room for a word */
    m = (struct meaning){.rc = ERR_ACCESS,
                         .hint = "have the credentials expired, or is the region another one?"};
  if (m.rc == ERR_ACCESS && c->s->options.customer[0])
    m.hint = "is the object encrypted by another key than AWS_SSE_CUSTOMER_KEY_..., or by none? "
             "Else check the credentials, the bucket's policy and the region";
  if (!http_header(&c->answer, "x-amz-request-id", id, sizeof id) || !is_word(id)) id[0] = 0;
  return err_set(e, m.rc, "%s %s://%s%s%.400s%s: the server answered %d%s%s%s%s%s%s", c->r.verb,
                 scheme, bucket, slash, c->r.path, tries, c->answer.status, *c->code ? " " : "",
                 c->code, *id ? ", request id " : "", id, m.hint ? ": " : "", m.hint ? m.hint : "");
}
