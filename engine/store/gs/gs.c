/* gs: a bucket of Google Cloud Storage. gs://bucket/prefix */
#include "gs.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- what environment and URI say ---- */

typedef struct said {
  char endpoint[1000], scheme[8], ca_file[1000], project[100], storage_class[60], anonymous[16];
  char passed[64];
} said;

#define OF(member) offsetof(said, member), sizeof(((said *)NULL)->member)

static const struct option {
  const char *key;
  size_t at, room;
} options[] = {
    {"endpoint_override", OF(endpoint)},
    {"scheme", OF(scheme)},
    {"tls_ca_file_path", OF(ca_file)},
    {"user_project", OF(project)},
    {"storage_class", OF(storage_class)},
    {"anonymous", OF(anonymous)},
    /* pyarrow knows these, and nothing here depends on them. */
    {"default_bucket_location", OF(passed)},
    {"project_id", OF(passed)},
    {"retry_limit_seconds", OF(passed)},
};

enum { OPTIONS = sizeof options / sizeof *options };

static int take(said *t, const char *name, const char *value, uint32_t *seen, err *e) {
  size_t i = 0;
  while (i < OPTIONS && strcmp(options[i].key, name) != 0) i++;
  if (i == OPTIONS)
    return err_set(e, ERR_INVAL,
                   "\"%s=...\" in the target is not known; there are endpoint_override, scheme, "
                   "tls_ca_file_path, user_project, storage_class, anonymous",
                   name);
  if (*seen >> i & 1) return err_set(e, ERR_INVAL, "the target has \"%s=\" twice", name);
  *seen |= UINT32_C(1) << i;
  if (strlen(value) >= options[i].room)
    return err_set(e, ERR_INVAL, "\"%s=\" in the target is too long", name);
  memcpy((char *)t + options[i].at, value, strlen(value) + 1);
  return 0;
}

static bool is_word(const char *text, const char *more) {
  size_t n;
  while ((n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")) ||
         (*text && strchr(more, *text) && (n = 1)))
    text += n;
  return !*text;
}

/* HOST[:PORT], or a URL of both. Its text is not shown: it may hold a password. */
static int set_endpoint(gs_store *s, const char *text, const char *scheme, const char *where,
                        err *e) {
  const char *sep = strstr(text, "://"), *host = sep ? sep + 3 : text;
  bool http = sep ? strncmp(text, "http://", 7) == 0 : strcmp(scheme, "http") == 0;
  bool https = sep ? strncmp(text, "https://", 8) == 0 : !http;
  size_t len = strlen(host);
  while (len > 0 && host[len - 1] == '/') len--;
  if (len == 0 || len > 900 || *host == '/' || strpbrk(host, "?#@ \\") || (!http && !https))
    return err_set(e, ERR_INVAL, "%s has to be HOST[:PORT] or a URL of both", where);
  snprintf(s->endpoint, sizeof s->endpoint, "http%s://%.*s", http ? "" : "s", (int)len, host);
  return 0;
}

static int set_way(gs_store *s, const said *t, err *e) {
  const char *emulator = getenv("STORAGE_EMULATOR_HOST");
  bool http = strcmp(t->scheme, "http") == 0;
  if (*t->scheme && !http && strcmp(t->scheme, "https") != 0)
    return err_set(e, ERR_INVAL, "\"scheme=\" in the target has to be http or https");
  if (http && !*t->endpoint)
    return err_set(e, ERR_INVAL,
                   "\"scheme=http\" in the target goes with \"endpoint_override=HOST:PORT\" alone");
  snprintf(s->endpoint, sizeof s->endpoint, "https://storage.googleapis.com");
  if (*t->endpoint)
    return set_endpoint(s, t->endpoint, t->scheme, "\"endpoint_override=\" in the target", e);
  return emulator && *emulator ? set_endpoint(s, emulator, "http", "STORAGE_EMULATOR_HOST", e) : 0;
}

static int set_options(gs_store *s, const said *t, err *e) {
  const char *const files[] = {t->ca_file, getenv("REQUESTS_CA_BUNDLE"), getenv("SSL_CERT_FILE")};
  for (size_t i = 0; i < sizeof files / sizeof *files && !*s->s3.who.ca_file; i++)
    if (files[i]) snprintf(s->s3.who.ca_file, sizeof s->s3.who.ca_file, "%s", files[i]);
  if (!is_word(t->project, "-:.") || !is_word(t->storage_class, "_"))
    return err_set(e, ERR_INVAL,
                   "\"user_project=\" or \"storage_class=\" in the target is no name");
  if (*t->project) snprintf(s->project, sizeof s->project, "x-goog-user-project: %s", t->project);
  memcpy(s->storage_class, t->storage_class, sizeof t->storage_class);
  return set_way(s, t, e);
}

static int take_query(gs_store *s, const char *query, bool *anonymous, err *e) {
  char name[URI_NAME_MAX], value[URI_QUERY_MAX];
  uint32_t seen = 0;
  int rc;
  said *t = calloc(1, sizeof *t);
  if (!t) return err_set(e, ERR_NOMEM, "no memory for a store");
  while ((rc = uri_query_next(&query, name, value, e)) > 0 &&
         (rc = take(t, name, value, &seen, e)) == 0) {
  }
  if (rc == 0) rc = set_options(s, t, e);
  *anonymous = strcasecmp(t->anonymous, "true") == 0 || strcmp(t->anonymous, "1") == 0;
  free(t);
  return rc;
}

/* ---- the handle ---- */

static void gs_close(store *base) {
  gs_store *s = (gs_store *)base;
  gs_token_close(s->token);
  s3_take_down(&s->s3);
  free(s);
}

static int gs_open(const uri *where, const io *io, const log_sink *log, store **out, err *e) {
  *out = NULL;
  bool anonymous = false;
  gs_store *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "no memory for a store");
  s->s3.base.ops = &store_gs_ops;
  s->s3.dialect = &gs_dialect;
  int rc = s3_set_up(&s->s3, where, io, log, e);
  if (rc == 0) rc = take_query(s, where->query, &anonymous, e);
  if (rc == 0) rc = gs_token_open(io, s->s3.net, s->s3.who.ca_file, anonymous, &s->token, e);
  if (rc < 0)
    gs_close(&s->s3.base);
  else
    *out = &s->s3.base;
  return rc;
}

/* The server says of an absent object, too, that its generation is another one. */
static int gs_replace_if(store *base, const char *key, const void *data, size_t len,
                         const char *tag, err *e) {
  err why = {0};
  store_object there;
  int rc = s3_replace_if(base, key, data, len, tag, &why);
  if (rc == ERR_CONFLICT && s3_head_key(base, key, &there, NULL) == ERR_NOENT)
    return err_set(e, ERR_NOENT, "\"%.200s\" is not there", key);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

const store_ops store_gs_ops = {
    .version = 1,
    .scheme = "gs",
    .caps = STORE_CAP_IF_ABSENT | STORE_CAP_RESUME,
    .open = gs_open,
    .close = gs_close,
    .exists = s3_exists,
    .get = s3_get,
    .get_many = s3_get_many,
    .read = s3_read,
    .head = s3_head_key,
    .put = s3_put,
    .put_marked = s3_put_marked,
    .list = s3_list,
    .remove = s3_remove,
    .remove_prefix = gs_remove_prefix,
    .remove_below = gs_remove_below,
    .write_open = gs_write_open,
    .write = gs_write,
    .write_close = gs_write_close,
    .write_abort = gs_write_abort,
    .write_mark = gs_write_mark,
    .write_tally = gs_write_tally,
    .race = s3_race,
    .server = s3_server,
    .get_tagged = s3_get_tagged,
    .replace_if = gs_replace_if,
    .spell = s3_spell,
};
