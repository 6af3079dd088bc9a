/* gs_token: the bearer tokens by which Google Cloud Storage knows who asks, from where Google's own
 * libraries take them (application default credentials):
 *
 *    GOOGLE_APPLICATION_CREDENTIALS      a file: service_account, authorized_user
 *    application_default_credentials.json in CLOUDSDK_CONFIG (~/.config/gcloud)
 *    the metadata server of the machine, at GCE_METADATA_HOST
 *    none at all, with GOOGLE_SKIP_SIGNATURE=true, or where STORAGE_EMULATOR_HOST alone is set
 *
 * A token is fetched when it is needed first, and again some minutes before it expires. Keys and
 * tokens are in no text. */
#ifndef STORE_GS_TOKEN_H
#define STORE_GS_TOKEN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "prims/http.h"

enum { GS_TOKEN_MAX = 16 << 10 };

typedef struct gs_token gs_token;

/* Finds out where tokens come from; reads files, and asks nobody. `anonymous`: from nowhere. `net`
 * is borrowed. ERR_ACCESS, ERR_FORMAT name the file; ERR_UNSUPPORTED names a kind of credentials that
 * is not known here. */
int gs_token_open(const io *io, http *net, const char *ca_file, bool anonymous, gs_token **out,
                  err *e);
void gs_token_close(gs_token *t);
/* Appends "authorization: Bearer ..." to `line`, or nothing for nobody. Blocks while one is fetched.
 * ERR_ACCESS: there is none. */
int gs_token_line(gs_token *t, atomic_int *cancel, buf *line, err *e);
/* The server has refused what `line` says: true if the next one may be another. */
bool gs_token_refused(gs_token *t, const char *line);

/* For tests: reads the text of a file of credentials, as open does. */
int gs_token_check(const char *text, size_t len, err *e);

#endif
