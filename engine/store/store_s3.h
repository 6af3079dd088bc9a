/* store_s3: declarations that the parts of the S3 store share. Nobody else includes this.
 *
 *    store_s3.c          the handle, reading, the vtable
 *    store_s3_options.c  what the URI and the environment say of encryption, cost and the way there
 *    store_s3_spell.c    names as keys of the bucket, and back
 *    store_s3_request.c  one request: addressed, signed, sent, sent again, its errors
 *    store_s3_error.c    the meaning of an answer that is no success
 *    store_s3_page.c     listings, page by page
 *    store_s3_list.c     list(), exists(), in the order of the vtable
 *    store_s3_many.c     many small objects at once
 *    store_s3_put.c      small objects, and the race
 *    store_s3_write.c    large objects in parts
 *    store_s3_write_end.c  the last request, and what came of it
 *    store_s3_resume.c   the parts that an earlier try sent
 *    store_s3_buffers.c  the part buffers of the process
 *    store_s3_uploads.c  unfinished uploads: found, aborted
 *    store_s3_remove.c   objects removed
 *    store_s3_sum.c      checksums that the server makes, too
 *    store_s3_same.c     what stands already: is it the same?
 *    store_s3_tag.c      ETags, which tell contents apart and say nothing of them
 *    store_s3_examine.c  what a server is, and can do */
#ifndef STORE_STORE_S3_H
#define STORE_STORE_S3_H

#include <pthread.h>

#include "store/aws/credentials.h"
#include "prims/hash.h"
#include "prims/http.h"
#include "store.h"

enum {
  /* A key in the bucket: bytes may become %XX, and components get a mark of two bytes. */
  S3_PATH_MAX = URI_MAX + 4 * STORE_KEY_MAX + 4,
  S3_PAGE = 1000,           /* keys of a listing, and of a bulk delete */
  S3_ANSWER_MAX = 16 << 20, /* of a page: 1,000 keys, encoded */
  S3_ERROR_MAX = 64 << 10,
  S3_ETAG_MAX = 128,
  S3_UPLOAD_MAX = 1024, /* an upload's id */
  S3_CODE_MAX = 64,
  S3_PART = 8 << 20,              /* and one part buffer */
  S3_PART_MIN = 5 << 20,          /* no server takes smaller ones, but for the last */
  S3_PART_RESUMED_MAX = 64 << 20, /* others' parts: what all our buffers together hold */
};

/* The metadata by which a writer knows an object as its own when the answer to its put was lost. */
#define S3_NONCE "x-amz-meta-ckpt-nonce"
/* The mark is kept in this metadata: it tells whose the object is. */
#define S3_MARK "x-amz-meta-ckpt-attempt"
enum { S3_MARK_LINE = sizeof S3_MARK + 2 + STORE_MARK_MAX };
/* Of an object of one put, our digest: "xxh3-128:0123...". */
#define S3_DIGEST "x-amz-meta-ckpt-digest"
enum { S3_DIGEST_MAX = 16 + HASH_HEX_MAX, S3_DIGEST_LINE = sizeof S3_DIGEST + 2 + S3_DIGEST_MAX };

/* How objects are made and requests are sent, beside keys and places: set when the store is opened,
 * and never changed. Lines are whole headers, "name: value"; "": none. */
enum { S3_LINE_MAX = 2200 };
typedef struct s3_options {
  char sse[64], kms_key[S3_LINE_MAX], bucket_key[80]; /* of requests that make an object */
  char storage_class[64];                             /* the same, but for our own records */
  char *customer[3]; /* SSE-C: in the memory of base/secret.h; NULL: none */
  bool requester_pays;
  bool body_unsigned; /* the network is trusted: over plain HTTP, too, the body is not hashed */
} s3_options;

typedef struct s3_store {
  store base;
  const struct s3_dialect *dialect; /* NULL: S3 itself */
  s3_options options;
  http *net;
  char bucket[64];
  char shown[88];       /* "s3://bucket" */
  char prefix[URI_MAX]; /* of the URI, as it stands in the bucket: "" or "a/b" */
  pthread_mutex_t mutex;
  credentials who;  /* all but the keys; under mutex: the region may turn out to be another one */
  unsigned changes; /* of it so far; under mutex */
  credentials_source *keys;
  char server[STORE_SERVER_MAX]; /* who gave the last answer; under mutex */
  int64_t ahead_ns;              /* so far is the server's clock ahead of ours; under mutex */
  atomic_bool lists_uploads;     /* the server has told an upload below a prefix */
  atomic_bool no_sums;           /* the server refuses what it is told of checksums */
  /* How what is below these is spelt; under `spelling`. `spelt_count` alone is read without it. */
  pthread_mutex_t spelling;
  struct s3_spelt *spelt;
  _Atomic size_t spelt_count;
  size_t spelt_room;
} s3_store;

/* What all dialects open and close; the second also after the first has failed. */
int s3_set_up(s3_store *s, const uri *where, const io *io, const log_sink *log, err *e);
void s3_take_down(s3_store *s);

/* ---- options ---- */

/* Reads them from the environment, then from the query of the URI. ERR_INVAL names what is not
 * known. */
int s3_options_open(s3_store *s, const uri *where, err *e);
/* Puts what both say of region and endpoint over what s->who has from elsewhere. */
int s3_options_way(s3_store *s, const uri *where, err *e);
void s3_options_forget(s3_options *o);
struct s3_request;
/* Adds the headers that this request has to have to `lines`, from *count on; they stay where they
 * are as long as the store. ERR_ACCESS: a key of the customer's would go over plain HTTP. */
int s3_options_headers(const s3_store *s, const struct s3_request *r, bool https,
                       const char **lines, size_t *count, err *e);

/* ---- keys ---- */

/* Makes the path of a key in the bucket, spelt as s3_spell() was told. ERR_INVAL, ERR_LIMIT for a
 * text that is no key; "" is the prefix of the store itself. */
int s3_path(s3_store *s, const char *key, char out[S3_PATH_MAX], err *e);
/* Turns a path back into a key. False for a path in the bucket that no key of ours could have. */
bool s3_key_of(s3_store *s, const char *path, char out[STORE_KEY_MAX + 1]);
/* The same of a key that is the path below the store's prefix, as it stands. */
int s3_raw_path(const s3_store *s, const char *key, char out[S3_PATH_MAX], err *e);
bool s3_raw_key(const s3_store *s, const char *path, char out[STORE_KEY_MAX + 1]);
/* True if a listing may not leave out what s3_key_of() has no key for. */
bool s3_tells_all(s3_store *s, const char *prefix);
int s3_spell(store *base, const char *prefix, store_spelling how, err *e);
void s3_forget_spelling(s3_store *s);

/* ---- one request ---- */

/* What is said of CRC64NVME. A server that refuses to hear of it is asked again without. */
typedef enum s3_sum {
  S3_SUM_NONE,
  S3_SUM_BODY,   /* that of the body */
  S3_SUM_DEMAND, /* that of the body, where S3 demands a sum: else its MD5 */
  S3_SUM_BEGIN,  /* the parts of the upload that begins will have it */
  S3_SUM_ASK,    /* the server is to tell it */
} s3_sum;
enum { S3_SUM_LINES = 2, S3_SUM_LINE = 64, S3_CRC_TEXT = 13 };

typedef struct s3_request {
  const char *verb;           /* for errors: "put", "list", ... */
  const char *method;         /* GET, ... */
  const char *path;           /* in the bucket; "": the bucket itself */
  const char *const *query;   /* name, value, ..., NULL; may be NULL */
  const char *const *headers; /* "name: value", in lower case; NULL ends; may be NULL */
  const void *body;
  size_t len;
  s3_sum sum;
  const uint64_t *crc; /* of the body, if it is known already */
  void *into;          /* as in http_response */
  size_t room;         /* of `into`, or the most that the answer's body may have; 0: S3_ERROR_MAX */
  bool may_fail_late;  /* a success may turn out to be an error in the body */
  atomic_int *cancel;  /* NULL: the store's */
  _Atomic uint64_t *sent; /* grows as the body goes out; may be NULL */
} s3_request;

typedef struct s3_call {
  s3_store *s;
  s3_request r; /* the memory that it points to stays the caller's */
  http_request sent;
  http_response answer;   /* after s3_finish() */
  char code[S3_CODE_MAX]; /* the server's word for what is wrong, or "" */
  unsigned tries;
  bool doubtful; /* an earlier copy of the request may have been carried out */
  http_call *running;
  err trouble; /* it could not even be sent */
  int64_t begun;
  bool moved, renewed; /* the region was corrected, the keys were fetched again */
  uint64_t print;      /* credentials_print() of those that it was signed with */
  err unrenewed;       /* why there are no others */
  bool clocked;        /* the server's clock was taken over */
  unsigned changes;    /* of the store's region when this was signed */
  int64_t ahead_ns;    /* as the store had it then */
  int64_t sent_ns;     /* IO_MONO of the last sending */
  atomic_int stop;     /* set by s3_end() */
  buf url, lines;      /* `lines`: the headers of the signature */
  char sums[S3_SUM_LINES][S3_SUM_LINE], payload[72];
  bool bare; /* it is sent once more without them */
  buf body;  /* what a dialect sends instead of the caller's */
  const char *headers[HTTP_HEADERS_MAX];
} s3_call;

struct s3_page;
/* Another protocol for the same requests. What it is given is one of S3, and what S3 would have
 * answered it has to make of its server's answer. */
typedef struct s3_dialect {
  /* Fills in c->url, c->headers and what of c->sent is another than S3's. */
  int (*prepare)(s3_call *c, err *e);
  /* Called when an answer came: translates it, and sets c->code. */
  void (*answered)(s3_call *c);
  /* True if the request is to be sent again, with other keys. */
  bool (*renew)(s3_call *c);
  /* Reads a page of the keys that begin with `start`. `what` names the listing in an error. */
  int (*page)(s3_store *s, const char *start, bool delimited, unsigned max, const char *next,
              const char *what, struct s3_page *out, err *e);
} s3_dialect;

/* Sends the request; a failure shows in s3_finish(). */
void s3_start(s3_call *c, s3_store *s, const s3_request *r);
/* Waits, and sends it again where that makes sense. 0: a status of 2xx. ERR_*: `e` has the story,
 * and c->answer.status and c->code what the server said (0, "": nothing). */
int s3_finish(s3_call *c, err *e);
void s3_end(s3_call *c); /* stops it if it still runs; a zeroed one is fine */
/* Starts and finishes a request; the caller still owes an s3_end(). */
int s3_do(s3_call *c, s3_store *s, const s3_request *r, err *e);
/* Waits for the bare outcome of one sending, without a second one. */
int s3_once(s3_call *c, err *e);

/* Makes the headers of its sums. */
int s3_sum_lines(s3_call *c, err *e);
/* True if the answer may be about its sums, and it is worth another try without. */
bool s3_without_sums(s3_call *c);
/* Remembers that the server has taken without sums what it had refused with them. */
void s3_sums_settled(const s3_call *c);
/* CRC64NVME as S3 writes it: 12 characters for 8 bytes. */
void s3_crc_print(uint64_t crc, char out[S3_CRC_TEXT]);
bool s3_crc_parse(const char *text, uint64_t *out);

/* Gives the code and the text for an answer that is no success. */
int s3_refused(const s3_call *c, err *e);
/* Reads status and body into c->code; also a late error in the body of a 200. */
void s3_read_code(s3_call *c);

/* ---- objects ---- */

typedef struct s3_head {
  store_object object; /* with its mark */
  char nonce[40];
  char digest[S3_DIGEST_MAX]; /* "": none */
  bool summed;                /* the server told `crc`, its CRC64NVME of the whole object */
  uint64_t crc;
} s3_head;
/* Asks for an object's head. ERR_NOENT. */
int s3_look(s3_store *s, const char *path, atomic_int *cancel, s3_head *out, err *e);
/* The same, and for its sum: a bucket that encrypts has to decrypt it for that. */
int s3_look_sum(s3_store *s, const char *path, atomic_int *cancel, s3_head *out, err *e);

/* What an object has to be, for s3_is_same(). */
typedef struct s3_wanted {
  const char *path, *mark;
  uint64_t size, crc;
  bool one_put;     /* the digest in its metadata, if there is one, is that of its bytes */
  hash_kind hash;   /* of... */
  const digest *of; /* ...hash_of_blocks(); `len` 0: not known */
  atomic_int *cancel;
} s3_wanted;
/* Returns 1 if the object that the head was told of is this one: of this attempt, or of none, and
 * with these bytes. What the server cannot tell is read back. */
int s3_is_same(s3_store *s, const s3_wanted *w, const s3_head *head, err *e);
/* Reads a piece of an object, short at its end. */
ssize_t s3_read_path(s3_store *s, const char *path, uint64_t at, void *to, size_t len,
                     atomic_int *cancel, err *e);

/* Puts an object. With `if_absent` a put whose answer was lost is known by its nonce, which is of
 * 32 digits and a NUL. */
typedef struct s3_object {
  const char *path;
  const void *data;
  size_t len;
  bool if_absent;
  const char *mark;     /* may be NULL */
  const char *digest;   /* the header "x-amz-meta-ckpt-digest: ..."; may be NULL */
  const uint64_t *crc;  /* as in s3_request */
  const char *if_match; /* the header "if-match: ...": ERR_CONFLICT if it does not; may be NULL */
  atomic_int *cancel;
  _Atomic uint64_t *sent; /* as in s3_request */
} s3_object;
int s3_put_object(s3_store *s, const s3_object *o, err *e);
/* Appends the body of an answer to `out`. ERR_LIMIT if it does not fit in. */
int s3_body(const s3_store *s, s3_call *c, buf *out, err *e);
/* So many objects are asked for at once. */
enum { S3_WIDE = 64 };
void s3_get_many(store *base, store_ask *asks, size_t count);
/* True if nothing stands there; false if something does, or nobody can tell. So often is an object
 * made again that was refused as being there, and is not. */
enum { S3_REFUSALS = 2 };
bool s3_is_absent(s3_store *s, const char *path, atomic_int *cancel);
/* Makes the header "name: value" of a new nonce. */
int s3_nonce_header(const s3_store *s, char out[64], err *e);
const char *s3_nonce_of(const char header[64]);
/* Makes the header "name: value" of a mark; NULL for none. */
const char *s3_mark_header(const char *mark, char out[S3_MARK_LINE]);

/* ---- listings ---- */

typedef struct s3_entry {
  char *path; /* in the bucket */
  bool is_prefix;
  store_object object;
} s3_entry;
typedef struct s3_page {
  s3_entry *entries;
  size_t count, room;
  char *next; /* what the next page is asked with; NULL: this was the last */
} s3_page;
/* A server that says again and again that there is more, and gives nothing, would hold us for ever:
 * more empty pages in a row are an error. */
enum { S3_EMPTY_MAX = 500 };
int s3_endless(const s3_store *s, err *e);
/* Calls `fn` for each page, at most `max` in one, of the objects below `path` + "/" ("": all), but
 * not for empty ones. Return 0 to go on; another value ends the walk and is returned. */
typedef int s3_page_fn(void *ctx, const s3_page *page, err *e);
int s3_pages(s3_store *s, const char *path, bool delimited, unsigned max, s3_page_fn *fn, void *ctx,
             err *e);
/* Undoes the encoding "url" of a listing, in place. A space comes as a plus. */
void s3_decode(char *text);
/* Adds an entry, whose path the page then owns. False: no memory, and `path` is freed. */
bool s3_page_add(s3_page *page, char *path, bool is_prefix, const store_object *object);

int s3_exists(store *base, err *e);
int s3_list(store *base, const char *prefix, bool delimited, store_list_fn *fn, void *ctx, err *e);

/* ---- unfinished uploads ---- */

typedef struct s3_upload {
  char *path, *id;
  int64_t begun_ns; /* by the server's clock; 0: it does not say */
} s3_upload;
/* Calls `fn` for each upload whose path begins with `start`. */
typedef int s3_upload_fn(void *ctx, const s3_upload *upload);
int s3_uploads(s3_store *s, const char *start, atomic_int *cancel, s3_upload_fn *fn, void *ctx,
               err *e);
/* Does so for a directory, whose `start` ends in a slash ("": the bucket), also where the server
 * does not know prefixes. */
int s3_uploads_below(s3_store *s, const char *start, s3_upload_fn *fn, void *ctx, err *e);
/* Aborts all uploads below `path`. Returns how many there were. */
long s3_uploads_abort(s3_store *s, const char *path, err *e);

/* Aborts one upload, if that can be done at once. */
void s3_upload_drop(s3_store *s, const char *path, const char *id);

/* The parts that an earlier try sent, by their number, from 1. */
typedef struct s3_part {
  uint64_t size;
  char etag[S3_ETAG_MAX]; /* by which the upload's end names it */
  bool summed;
  uint64_t crc; /* by the server's word */
} s3_part;
typedef struct s3_left {
  char upload[S3_UPLOAD_MAX]; /* "": none */
  bool summed;                /* what its parts hold can be told by their sums */
  int64_t begun_ns;
  s3_part *parts;
  size_t count;
} s3_left;
int s3_left_find(s3_store *s, const char *path, atomic_int *cancel, s3_left *out, err *e);
void s3_left_free(s3_left *l);
/* Returns the size of its parts; 0: nothing tells, or it is none that can be gone on with. */
size_t s3_left_part_size(const s3_left *l, uint64_t size);

/* ---- what every writer of a large object asks ---- */

/* Is it one that a bucket takes, of `most` bytes? Its path goes into `path`. */
int s3_may_open(s3_store *s, const char *key, uint64_t size, uint64_t most, unsigned how,
                char path[S3_PATH_MAX], err *e);
/* May `len` bytes more come, of an object of `size` of which `taken` are there? */
int s3_may_write(const char *path, uint64_t size, uint64_t taken, size_t len,
                 const atomic_int *cancel, err *e);
int s3_may_close(const char *path, uint64_t size, uint64_t taken, err *e);
/* Says again why an earlier write failed. */
int s3_failed_before(int failure, const err *why, err *e);

/* ---- part buffers ---- */

/* The process has S3_BUFFERS of S3_PART bytes for all its writers. A writer that has none is never
 * kept waiting for those of others, which may be held by its own thread: it gets one more than
 * there are. */
enum { S3_BUFFERS = 8 };
void s3_buffers_join(void);  /* a writer comes */
void s3_buffers_leave(void); /* the last one gives the memory back to the kernel */
/* Takes one piece of memory of `size` bytes, which counts as so many buffers, at most as all. NULL:
 * so many are not free, or with `need` there is no memory. */
void *s3_buffer_take(size_t size, bool need);
void s3_buffer_give(void *buffer, size_t size);

/* ---- the rest of the vtable ---- */

int s3_head_key(store *base, const char *key, store_object *out, err *e);
int s3_get(store *base, const char *key, buf *out, err *e);
ssize_t s3_read(store *base, const char *key, uint64_t at, void *to, size_t len, err *e);
int s3_put(store *base, const char *key, const void *data, size_t len, store_how how, err *e);
int s3_put_marked(store *base, const char *key, const void *data, size_t len, store_how how,
                  const char *mark, err *e);
int s3_race(store *base, err *e);
void s3_server(store *base, char out[STORE_SERVER_MAX]);
int s3_get_tagged(store *base, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e);
int s3_replace_if(store *base, const char *key, const void *data, size_t len, const char *tag,
                  err *e);
int s3_remove(store *base, const char *key, err *e);
int s3_remove_prefix(store *base, const char *prefix, err *e);
int s3_remove_below(store *base, const char *prefix, const char *const *keys, size_t count, err *e);
int s3_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                  store_writer **out, err *e);
int s3_write(store_writer *writer, const void *data, size_t len, err *e);
int s3_write_close(store_writer *writer, err *e);
void s3_write_mark(store_writer *writer, const char *mark);
void s3_write_since(store_writer *writer, int64_t ns);
void s3_write_tally(store_writer *writer, const store_tally *tally);
void s3_write_abort(store_writer *writer);
void s3_write_digest(store_writer *writer, hash_kind kind, const digest *of);
void *s3_write_lend(store_writer *writer, size_t len);
int s3_write_lent(store_writer *writer, size_t len, uint64_t crc64, err *e);
int s3_unfinished(store *base, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e);
int s3_discard(store *base, const store_unfinished *what, err *e);
int s3_examine(store *base, const char *key, store_finding_fn *fn, void *ctx, err *e);

/* Reads "2009-10-12T17:50:30.000Z" or "Mon, 12 Oct 2009 17:50:30 GMT", in ns since 1970; 0 for
 * others. */
int64_t s3_time(const char *text);
/* Puts an ETag without quotes into `out`; "" if it does not fit. */
void s3_etag(const char *text, char out[S3_ETAG_MAX]);

#endif
