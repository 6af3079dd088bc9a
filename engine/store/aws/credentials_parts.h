/* credentials_parts: what the files credentials_*.c share. Nobody else includes this, but the fuzzers. */
#ifndef STORE_AWS_CREDENTIALS_PARTS_H
#define STORE_AWS_CREDENTIALS_PARTS_H

#include "base/buf.h"
#include "base/json.h"
#include "credentials.h"

/* ---- the two files ---- */

typedef enum profile_file { PROFILE_KEYS, PROFILE_CONFIG, PROFILE_BOTH } profile_file;
typedef enum profile_kind {
  PROFILE_NAMED,    /* [NAME], [profile NAME] */
  PROFILE_SESSION,  /* [sso-session NAME] */
  PROFILE_SERVICES, /* [services NAME] */
  PROFILE_OTHER
} profile_kind;

/* A setting; the texts are the file's own, which profiles_free() wipes. */
typedef struct profile_entry {
  profile_file file;
  profile_kind kind;
  unsigned line;
  const char *section, *nest, *key, *value; /* nest: "s3" in its indented settings, or "" */
} profile_entry;

typedef struct profiles {
  buf text[2]; /* of the files, in pieces */
  char path[2][4096];
  char name[256]; /* AWS_PROFILE */
  bool named;     /* it is given, and no default */
  profile_entry *at;
  size_t count, room;
} profiles;

/* Reads both; a file that is not there is no error. `lenient`: one that may not be read neither, if
 * no variable names it. What it filled in is to be freed, after a failure, too. */
int profiles_read(const io *io, bool lenient, profiles *out, err *e);
void profiles_free(profiles *p);
/* True if the section is there. */
bool profiles_has(const profiles *p, profile_file file, const char *section);
/* Returns the setting, of both files that of the keys first; NULL: there is none, or it is empty. */
const profile_entry *profiles_get(const profiles *p, profile_file file, profile_kind kind,
                                  const char *section, const char *nest, const char *key);
/* The same of a profile, in both files, as a text. */
const char *profiles_text(const profiles *p, const char *profile, const char *key);
/* Copies the value of an entry (NULL: does nothing): ERR_FORMAT for what is too long, or could write
 * headers of its own. */
int profiles_take(const profiles *p, const profile_entry *entry, char *to, size_t room, err *e);

/* ---- asking ---- */

typedef struct credentials_ask {
  const io *io;
  const credentials *places; /* region and certificates */
  const profiles *files;
  atomic_int *cancel, *stop; /* may be NULL */
} credentials_ask;

/* Copies a value; ERR_FORMAT as above. `where` names it. */
int credentials_copy(char *to, size_t room, const char *value, const char *where, err *e);
/* Returns a variable that is set and not empty, or NULL. Those that tell who we are count from the
 * one place alone that names keys, a profile or a token file. */
const char *credentials_variable(const io *io, const char *name);
/* True if what io lays over the environment tells who we are. */
bool credentials_is_laid(const io *io);
bool credentials_yes(const char *value); /* "1", "true", ...; NULL is no */
/* Reads "2026-01-02T03:04:05Z", with a fraction or another offset too, in ns since 1970; 0 for
 * others. */
int64_t credentials_time(const char *text);

/* Finds the endpoint of a service other than S3: AWS_ENDPOINT_URL_<VARIABLE>, AWS_ENDPOINT_URL, the
 * profile's services, its endpoint_url, else AWS's own, "https://<host>.<region>.amazonaws.com". */
int credentials_endpoint(const credentials_ask *a, const char *variable, const char *nest,
                         const char *host, const char *region, char out[1024], err *e);

typedef struct credentials_request {
  const char *what; /* for errors: "STS" */
  const char *method, *url;
  const char *const *headers;
  const buf *body;  /* may be NULL */
  unsigned stall_s; /* 0: 5 */
  unsigned tries;   /* of what may pass; 0: 3 */
  bool direct;      /* past any proxy */
  bool xml;         /* how its errors are told */
  bool lone;        /* a status other than 200 is told by `status`, and is no error */
} credentials_request;
/* Sends it, and appends the body of the answer to a secret buffer. ERR_ACCESS: the server refuses. */
enum { CREDENTIALS_ANSWER_MAX = JS_SECRET_MAX };
int credentials_send(const credentials_ask *a, const credentials_request *r, buf *answer,
                     int *status, err *e);

/* Reads an answer in JSON. The members have these names; token and expiration NULL: not looked for.
 * `must_expire`: the last two have to be there. */
typedef struct credentials_names {
  const char *access, *secret, *token, *expiration;
  bool must_expire;
} credentials_names;
int credentials_of_json(const json_t *from, const credentials_names *names, const char *what,
                        credentials *out, err *e);

/* ---- the sources: 1: found; 0: there is none, and `looked` says why in a few words ---- */

/* A role's keys, for a request that is signed by `with`. */
typedef struct credentials_role {
  const char *arn, *session, *external_id, *duration; /* but for the first these may be NULL */
} credentials_role;
int credentials_of_role(const credentials_ask *a, const credentials_role *role,
                        const credentials *with, credentials *out, err *e);
/* `variables`: those of the environment are asked first. */
int credentials_of_web(const credentials_ask *a, const char *profile, bool variables,
                       credentials *out, err *e);
int credentials_of_sso(const credentials_ask *a, const char *profile, credentials *out, err *e);
int credentials_of_process(const credentials_ask *a, const char *profile, credentials *out, err *e);
int credentials_of_container(const credentials_ask *a, credentials *out, err *e);
enum { CREDENTIALS_WHY_MAX = 300 };
#define CREDENTIALS_INSTANCE "the instance's metadata"
int credentials_of_instance(const credentials_ask *a, credentials *out,
                            char looked[CREDENTIALS_WHY_MAX], err *e);
int credentials_of_variables(const io *io, credentials *out, err *e);
/* All of them, in their order. */
int credentials_of_chain(const credentials_ask *a, credentials *out, err *e);

/* Reads the XML of STS. */
int credentials_of_sts(const buf *answer, credentials *out, err *e);
/* Splits a line as a shell does, without running anything: the words are one behind the other in
 * `text`, and `argv` (of `room`) is ended by NULL. ERR_FORMAT: a quote is open at the end. */
int credentials_split(const char *line, buf *text, char **argv, size_t room, err *e);
int credentials_of_output(const char *text, size_t len, const char *profile, credentials *out,
                          err *e);

/* credentials_find() with flags that end it. */
int credentials_look(const io *io, atomic_int *cancel, atomic_int *stop, credentials *out, err *e);

#endif
