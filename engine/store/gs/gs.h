/* gs: what the parts of the store of Google Cloud Storage share. Nobody else includes this.
 *
 *    gs.c          the handle, what the URI says, the vtable
 *    gs_dialect.c  a request of S3 as one of the JSON API, and its answer as one of S3
 *    gs_json.c     resources and listings in JSON
 *    gs_write.c    large objects, by resumable uploads
 *    gs_remove.c   many objects removed
 *    gs_token.c    bearer tokens */
#ifndef STORE_GS_GS_H
#define STORE_GS_GS_H

#include "gs_token.h"
#include "store/store_s3.h"

typedef struct gs_store {
  s3_store s3; /* first */
  gs_token *token;
  char endpoint[1024]; /* "https://storage.googleapis.com" */
  char project[128];   /* who is billed for it: "x-goog-user-project: ...", or "" */
  char storage_class[64];
} gs_store;

extern const s3_dialect gs_dialect;

/* These make requests of S3's kind mean what S3 does not have: the first name in their query. */
#define GS_BEGIN "gs-begin"     /* a resumable upload of an object; its value is the size */
#define GS_SESSION "gs-session" /* goes to the URL that is its value */

/* The text of an address: all but letters, digits and "-._~" as %XX. */
void gs_encode(const char *text, buf *out);

/* ---- JSON ---- */

/* What the resource of an object says. Texts are "" where it says nothing. */
typedef struct gs_resource {
  uint64_t size;
  char generation[32], created[64], crc32c[16], nonce[40], mark[STORE_MARK_MAX];
} gs_resource;
int gs_read_resource(const char *text, size_t len, gs_resource *out, err *e);
/* Appends the entries of a page of a listing; `next` is set as in s3_page. */
int gs_read_page(const char *text, size_t len, const char *what, s3_page *out, err *e);
/* Reads the word for an error: "conditionNotMet"; "NoSuchBucket" if that is what it says. */
void gs_read_error(const char *text, size_t len, char code[S3_CODE_MAX]);
/* Appends the JSON of what goes along with an object. Any of the texts may be NULL or "". */
int gs_add_resource(const char *nonce, const char *mark, const char *storage_class,
                    const uint32_t *crc, buf *out, err *e);
/* The base64 of the sum, as Google writes it. */
void gs_crc_text(uint32_t crc, char out[16]);

/* ---- the vtable ---- */

int gs_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                  store_writer **out, err *e);
int gs_write(store_writer *writer, const void *data, size_t len, err *e);
int gs_write_close(store_writer *writer, err *e);
void gs_write_abort(store_writer *writer);
void gs_write_mark(store_writer *writer, const char *mark);
void gs_write_tally(store_writer *writer, const store_tally *tally);
int gs_remove_prefix(store *base, const char *prefix, err *e);
int gs_remove_below(store *base, const char *prefix, const char *const *keys, size_t count, err *e);

#endif
