/* credentials: finds the keys that sign the requests to S3, and the endpoint where they go.
 *
 * The keys are looked for as botocore does; the first that has some is taken:
 *
 *    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *    the profile AWS_PROFILE ("default") of the files AWS_SHARED_CREDENTIALS_FILE
 *      (~/.aws/credentials) and AWS_CONFIG_FILE (~/.aws/config): a role that it assumes
 *    web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or the profile's
 *    the profile's SSO session; its keys in the file of keys; its credential_process; its keys in
 *      the other file
 *    none at all (anonymous), if AWS_NO_SIGN_REQUEST is set
 *    the container's (ECS, EKS): AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
 *    the instance's metadata (EC2)
 *
 * Otherwise it is ERR_ACCESS with what was looked at. What io lays over the environment is asked
 * first; if keys, a profile or a token file are named there, those of the environment are passed
 * over, as by a profile that is given in the code. Region: AWS_REGION, AWS_DEFAULT_REGION, the
 * profile's, else us-east-1. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's
 * endpoint_url. Keys are never logged.
 *
 *    credentials.c           region, endpoint and the rest that is no secret
 *    credentials_profile.c   the two files
 *    credentials_chain.c     the order, and roles that a profile assumes
 *    credentials_sts.c       a role's keys; web identity
 *    credentials_sso.c       SSO's token and its keys
 *    credentials_process.c   a program's keys
 *    credentials_metadata.c  a container's and an instance's keys
 *    credentials_ask.c       what these share: requests, answers, times
 *    credentials_source.c    the keys of a store, fetched again in time */
#ifndef STORE_AWS_CREDENTIALS_H
#define STORE_AWS_CREDENTIALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/io.h"
#include "base/log.h"

enum { CREDENTIALS_TOKEN_MAX = 8192 }; /* S3 takes no more in all headers together */

/* Its `from` where the variables have the keys. */
#define CREDENTIALS_VARIABLES "the environment"

typedef struct credentials {
  char access[256], secret[256], token[CREDENTIALS_TOKEN_MAX];
  int64_t expires_ns; /* IO_WALL; 0: they do not, as far as is known */
  char region[64];
  char endpoint[1024]; /* "http://127.0.0.1:9000"; "": AWS itself */
  char ca_file[1024];  /* AWS_CA_BUNDLE; "": the system's */
  /* True if AWS_S3_ADDRESSING_STYLE or the profile's s3 addressing_style is "path", if the endpoint
   * is an address, or if it is not AWS's own ("virtual" wins over that). A bucket with a dot in its
   * name needs it, too: the store sees to that. */
  bool path_style;
  bool anonymous;
  char from[32]; /* which source they are from, for people: "web identity" */
} credentials;

/* Files are read through `io`; a malformed line is ERR_FORMAT that names file and line, never its
 * value. ERR_ACCESS: there are no keys, or half a pair of them. ERR_INVAL: the endpoint or the
 * addressing style is malformed. It may ask servers, and run the profile's program, and then fail
 * as these do. On failure `out` holds no secret. */
int credentials_find(const io *io, credentials *out, err *e);
/* Overwrites the secrets. */
void credentials_forget(credentials *c);

/* ---- the keys of a store ---- */

/* They are in the memory of base/secret.h, and shared by all its threads; one at a time fetches
 * them again: 15 minutes before they expire beside the requests, which go on with the old ones, 10
 * minutes before that in the way of the next request, as botocore does; of keys that live less than
 * an hour at a quarter and a sixth of that time. */
typedef struct credentials_source credentials_source;

/* Finds them for the first time; `places` (may be NULL) gets all but the secrets. The io must live
 * as long as the source. */
int credentials_open(const io *io, const log_sink *log, credentials *places,
                     credentials_source **out, err *e);
void credentials_close(credentials_source *s); /* nobody uses it any more; NULL is fine */

/* Returns keys that are good now, which stay as they are until they are given back; NULL: there are
 * none. `ahead_ns`: so far is the server's clock ahead of ours. A fetch ends early when `cancel`
 * (may be NULL) becomes not 0. */
const credentials *credentials_take(credentials_source *s, int64_t ahead_ns, atomic_int *cancel,
                                    err *e);
void credentials_give(credentials_source *s, const credentials *keys); /* NULL is fine */

/* The server refused the keys whose access key and token hash to `print`: looks for others, unless
 * another thread has found them meanwhile. True if there are others now. A failure is in `e`. Keys
 * that a server gave less than CREDENTIALS_REST_S seconds ago are not fetched again. */
enum { CREDENTIALS_REST_S = 10 };
bool credentials_renew(credentials_source *s, uint64_t print, atomic_int *cancel, err *e);
uint64_t credentials_print(const credentials *keys);

#endif
