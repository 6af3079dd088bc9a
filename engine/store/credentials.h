/* credentials: finds the keys that sign the requests to S3, and the endpoint where they go.
 *
 * They are looked for in this order:
 *
 *    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *    the profile AWS_PROFILE ("default") of the files AWS_SHARED_CREDENTIALS_FILE
 *      (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config)
 *    none at all (anonymous), if AWS_NO_SIGN_REQUEST is set
 *
 * Otherwise it is ERR_ACCESS with what was looked at. Region: AWS_REGION, AWS_DEFAULT_REGION, the
 * profile's, else us-east-1. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's
 * endpoint_url. Keys are never logged. */
#ifndef STORE_CREDENTIALS_H
#define STORE_CREDENTIALS_H

#include <stdbool.h>

#include "base/err.h"
#include "base/io.h"

typedef struct credentials {
  char access[256], secret[256], token[4096];
  char region[64];
  char endpoint[1024]; /* "http://127.0.0.1:9000"; "": AWS itself */
  char ca_file[1024];  /* AWS_CA_BUNDLE; "": the system's */
  /* True if AWS_S3_ADDRESSING_STYLE or the profile's s3 addressing_style is "path", if the endpoint
   * is an address, or if it is not AWS's own ("virtual" wins over that). A bucket with a dot in its
   * name needs it, too: the store sees to that. */
  bool path_style;
  bool anonymous;
} credentials;

/* Files are read through `io`; a malformed line is ERR_FORMAT that names file and line, never its
 * value. ERR_ACCESS: there are no keys, or half a pair of them. ERR_INVAL: the endpoint or the
 * addressing style is malformed. On failure `out` holds no secret. */
int credentials_find(const io *io, credentials *out, err *e);
/* Overwrites the secrets. */
void credentials_forget(credentials *c);

#endif
