/* sigv4: AWS Signature Version 4 for S3. Pure but for the digests. libcurl's own signing differs
 * from version to version and refuses what S3 allows, so it is not used. */
#ifndef STORE_AWS_SIGV4_H
#define STORE_AWS_SIGV4_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Stands for a body that is not hashed, which is allowed over TLS. */
#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

typedef struct sigv4_key {
  const char *access, *secret, *token; /* token NULL or "": none */
  const char *region;
  const char *service; /* NULL: "s3" */
} sigv4_key;

typedef struct sigv4_request {
  const char *method;
  const char *host;         /* as in the Host header, with a port that is not the default one */
  const char *path;         /* not encoded; begins with a slash */
  const char *const *query; /* name, value, name, value, ..., NULL; not encoded, any order */
  const char *const
      *headers;        /* further headers to sign, "name: value", names in lower case; NULL ends */
  const char *payload; /* hex SHA-256 of the body, or SIGV4_UNSIGNED */
  int64_t time_ns;     /* since 1970 */
} sigv4_request;

/* Appends to `target` path and query as they have to be sent ("/b/a%20b?list-type=2&..."), and to
 * `headers` the lines "name: value\n" that have to be sent beside the caller's: host,
 * x-amz-content-sha256, x-amz-date, x-amz-security-token, authorization. Without an access key
 * nothing is signed (anonymous). ERR_NOMEM; ERR_LIMIT for more than 60 headers or query items. */
int sigv4_sign(const sigv4_key *key, const sigv4_request *request, buf *target, buf *headers,
               err *e);

/* Percent-encodes all bytes but A-Za-z0-9-_.~ (and the slash too if `slash`, else it stays). */
void sigv4_encode(const char *text, int slash, buf *out);

#endif
