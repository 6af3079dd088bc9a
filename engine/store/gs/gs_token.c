#include "gs_token.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/secret.h"
#include "prims/fs.h"
#include "prims/hash.h"

enum {
  FILE_MAX = JS_SECRET_MAX,
  ANSWER_MAX = 64 << 10,
  LIFE_S = 3600, /* of what we sign: the most that Google takes */
  EARLY_S = 225, /* so long before its end a token is not used any more, as in google-auth */
  TRIES = 3,
  METADATA_S = 5, /* of silence: it is on this very machine, or nowhere */
};

#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define METADATA "/computeMetadata/v1/instance/service-accounts/default/token"

static const int64_t SECOND = 1000000000;

typedef enum kind { NOBODY, SERVICE, USER, MACHINE } kind;

struct gs_token {
  const io *io;
  http *net;
  char ca_file[1024];
  kind kind;
  bool looked; /* nothing said that there is a metadata server */
  char *email, *key, *key_id, *id, *secret, *refresh, *uri;
  pthread_mutex_t lock; /* guards all below */
  buf token;
  int64_t good_until; /* IO_MONO */
};

/* ---- files ---- */

static int take(const json_t *doc, const char *name, char **to, err *e) {
  const char *text;
  int rc = js_get_str(doc, name, "the credentials", &text, e);
  if (rc < 0) return rc;
  *to = secret_copy(text);
  return *to ? 0 : err_set(e, ERR_NOMEM, "no memory for credentials");
}

/* A signed assertion or a refresh token goes there. */
static int check_uri(const char *uri, err *e) {
  bool here =
      strncmp(uri, "http://127.0.0.1:", 17) == 0 || strncmp(uri, "http://localhost:", 17) == 0;
  if (strncmp(uri, "https://", 8) == 0 || here) return 0;
  return err_set(e, ERR_FORMAT, "the \"token_uri\" of the credentials has to begin with https://");
}

static int take_members(gs_token *t, const json_t *doc, const char *type, err *e) {
  const char *uri = TOKEN_URI;
  int rc = js_opt_str(doc, "token_uri", "the credentials", TOKEN_URI, &uri, e);
  if (rc == 0) rc = check_uri(uri, e);
  if (rc == 0 && !(t->uri = secret_copy(uri)))
    rc = err_set(e, ERR_NOMEM, "no memory for credentials");
  if (rc < 0) return rc;
  if (strcmp(type, "service_account") == 0) {
    t->kind = SERVICE;
    rc = take(doc, "client_email", &t->email, e);
    if (rc == 0) rc = take(doc, "private_key", &t->key, e);
    return rc == 0 && json_object_get(doc, "private_key_id")
               ? take(doc, "private_key_id", &t->key_id, e)
               : rc;
  }
  t->kind = USER;
  rc = take(doc, "client_id", &t->id, e);
  if (rc == 0) rc = take(doc, "client_secret", &t->secret, e);
  return rc == 0 ? take(doc, "refresh_token", &t->refresh, e) : rc;
}

static int take_text(gs_token *t, const char *text, size_t len, err *e) {
  static const char *const others[] = {"external_account", "external_account_authorized_user",
                                       "impersonated_service_account", "gdch_service_account"};
  json_t *doc = NULL;
  const char *type;
  if (js_parse_secret(text, len, "the credentials", &doc, NULL) < 0 || !json_is_object(doc)) {
    json_decref(doc);
    return err_set(e, ERR_FORMAT, "the credentials are no JSON object");
  }
  int rc = js_get_str(doc, "type", "the credentials", &type, e);
  bool known =
      rc == 0 && (strcmp(type, "service_account") == 0 || strcmp(type, "authorized_user") == 0);
  if (known) rc = take_members(t, doc, type, e);
  for (size_t i = 0; rc == 0 && !known && i < sizeof others / sizeof *others; i++)
    if (strcmp(type, others[i]) == 0)
      rc = err_set(e, ERR_UNSUPPORTED,
                   "credentials of the type %s are not known here: take a service account's key, "
                   "gcloud auth application-default login, or the machine's own account",
                   others[i]);
  if (rc == 0 && !known)
    rc = err_set(e, ERR_UNSUPPORTED,
                 "the \"type\" of the credentials is neither service_account nor authorized_user");
  json_decref(doc);
  return rc;
}

/* Returns 1 if the file is there. */
static int take_file(gs_token *t, const char *path, bool optional, err *e) {
  buf text;
  err why = {0};
  buf_init_secret(&text, FILE_MAX);
  int rc = fs_read(t->io, path, FILE_MAX, &text, &why);
  if (rc == ERR_NOENT && optional) {
    buf_free(&text);
    return 0;
  }
  if (rc >= 0) rc = take_text(t, text.data ? text.data : "", text.len, &why);
  buf_free(&text);
  return rc < 0 ? err_set(e, rc, "%s: %.700s", path, why.text) : 1;
}

static bool is_yes(const char *value) {
  return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0;
}

static int find(gs_token *t, err *e) {
  const char *given = getenv("GOOGLE_APPLICATION_CREDENTIALS"), *home = getenv("HOME");
  const char *config = getenv("CLOUDSDK_CONFIG"), *emulator = getenv("STORAGE_EMULATOR_HOST");
  char path[4096];
  if (is_yes(getenv("GOOGLE_SKIP_SIGNATURE"))) return 0;
  if (given && *given) {
    int rc = take_file(t, given, false, e);
    return rc < 0 ? rc : 0;
  }
  if (emulator && *emulator) return 0;
  bool own = config && *config;
  int len =
      own ? snprintf(path, sizeof path, "%s/application_default_credentials.json", config)
          : snprintf(path, sizeof path, "%s/.config/gcloud/application_default_credentials.json",
                     home ? home : "");
  if (len >= (int)sizeof path) return err_set(e, ERR_LIMIT, "CLOUDSDK_CONFIG is too long");
  int rc = own || (home && *home) ? take_file(t, path, true, e) : 0;
  if (rc != 0) return rc < 0 ? rc : 0;
  t->kind = MACHINE;
  t->looked = !getenv("GCE_METADATA_HOST");
  return 0;
}

int gs_token_open(const io *io, http *net, const char *ca_file, bool anonymous, gs_token **out,
                  err *e) {
  gs_token *t = *out = calloc(1, sizeof *t);
  if (!t) return err_set(e, ERR_NOMEM, "no memory for credentials");
  t->io = io;
  t->net = net;
  snprintf(t->ca_file, sizeof t->ca_file, "%s", ca_file);
  pthread_mutex_init(&t->lock, NULL);
  buf_init_secret(&t->token, GS_TOKEN_MAX);
  int rc = anonymous ? 0 : find(t, e);
  if (rc < 0) {
    gs_token_close(t);
    *out = NULL;
  }
  return rc;
}

void gs_token_close(gs_token *t) {
  if (!t) return;
  char *texts[] = {t->email, t->key, t->key_id, t->id, t->secret, t->refresh, t->uri};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) secret_free(texts[i]);
  buf_free(&t->token);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

int gs_token_check(const char *text, size_t len, err *e) {
  gs_token *t = NULL;
  int rc = gs_token_open(io_system(), NULL, "", true, &t, e);
  if (rc == 0) rc = take_text(t, text, len, e);
  gs_token_close(t);
  return rc;
}

/* ---- what is asked with ---- */

static void add_form(buf *out, const char *name, const char *value) {
  buf_fmt(out, "%s%s=", out->len ? "&" : "", name);
  for (; *value; value++) {
    bool plain =
        strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", *value);
    buf_fmt(out, plain ? "%c" : "%%%02X", (unsigned char)*value);
  }
}

static int add_json(buf *out, json_t *doc, int bad, err *e) {
  buf text;
  buf_init(&text, ANSWER_MAX);
  int rc = bad || !doc ? err_set(e, ERR_NOMEM, "no memory for a token") : js_print(doc, &text, e);
  if (rc == 0) base64_encode(text.data, text.len, true, out);
  buf_free(&text);
  json_decref(doc);
  return rc;
}

/* Makes the assertion of a service account: a JSON web token that its key has signed. */
static int add_assertion(const gs_token *t, buf *out, err *e) {
  uint8_t signature[HASH_SIGNATURE_MAX];
  size_t len = 0;
  int bad = 0;
  int64_t now = t->io->now(t->io, IO_WALL) / SECOND;
  json_t *head = json_object(), *claims = json_object();
  js_set(head, "alg", json_string("RS256"), &bad);
  js_set(head, "typ", json_string("JWT"), &bad);
  if (t->key_id) js_set(head, "kid", json_string(t->key_id), &bad);
  js_set(claims, "iss", json_string(t->email), &bad);
  js_set(claims, "scope", json_string(SCOPE), &bad);
  /* As google-auth does, wherever the file says that tokens are fetched. */
  js_set(claims, "aud", json_string(TOKEN_URI), &bad);
  js_set(claims, "iat", json_integer(now), &bad);
  js_set(claims, "exp", json_integer(now + LIFE_S), &bad);
  size_t from = out->len;
  int rc = add_json(out, head, bad, e);
  buf_str(out, ".");
  int claimed = add_json(out, claims, bad, rc == 0 ? e : NULL);
  if (rc == 0) rc = claimed;
  if (rc == 0 && buf_failed(out)) rc = err_set(e, buf_failed(out), "the token is too long");
  if (rc == 0) rc = hash_sign_rs256(t->key, out->data + from, out->len - from, signature, &len, e);
  if (rc < 0) return rc;
  buf_str(out, ".");
  base64_encode(signature, len, true, out);
  return 0;
}

static int make_form(const gs_token *t, buf *out, err *e) {
  if (t->kind == SERVICE) {
    add_form(out, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
    buf_str(out, "&assertion="); /* its letters need no escape */
    int rc = add_assertion(t, out, e);
    if (rc < 0) return rc;
  } else {
    add_form(out, "grant_type", "refresh_token");
    add_form(out, "client_id", t->id);
    add_form(out, "client_secret", t->secret);
    add_form(out, "refresh_token", t->refresh);
  }
  return buf_failed(out) ? err_set(e, buf_failed(out), "the credentials are too long") : 0;
}

/* ---- fetching ---- */

static int take_token(gs_token *t, const buf *body, int64_t asked, err *e) {
  json_t *doc = NULL;
  const char *text = NULL;
  int64_t seconds = 0;
  if (js_parse_secret(body->data ? body->data : "", body->len, "the token", &doc, NULL) < 0 ||
      js_get_str(doc, "access_token", "the token", &text, NULL) < 0 ||
      js_opt_int(doc, "expires_in", "the token", LIFE_S, &seconds, NULL) < 0 ||
      strpbrk(text, "\r\n") || !*text) {
    json_decref(doc);
    return err_set(e, ERR_FORMAT, "the answer to the request for a token is none");
  }
  int64_t early = seconds / 4 < EARLY_S ? seconds / 4 : EARLY_S;
  buf_free(&t->token);
  buf_init_secret(&t->token, GS_TOKEN_MAX);
  buf_fmt(&t->token, "authorization: Bearer %s", text);
  t->good_until = asked + (seconds - early) * SECOND;
  json_decref(doc);
  if (!buf_failed(&t->token)) return 0;
  buf_clear(&t->token);
  return err_set(e, ERR_LIMIT, "the token is too long");
}

/* Shows the server's word for what is wrong ("invalid_grant"), and no more of its text. */
static int refused(const gs_token *t, const http_response *answer, const char *url, err *e) {
  json_t *doc = NULL;
  const char *word = "";
  const buf *body = &answer->body;
  if (js_parse_secret(body->data ? body->data : "", body->len, "", &doc, NULL) == 0)
    js_opt_str(doc, "error", "", "", &word, NULL);
  if (strspn(word, "abcdefghijklmnopqrstuvwxyz_") != strlen(word)) word = "";
  const char *hint = t->kind == USER ? "run gcloud auth application-default login again"
                     : t->kind == SERVICE
                         ? "check the account, its key, and the clock of this machine"
                         : "does this machine have a service account?";
  int rc = err_set(e, ERR_ACCESS, "no token for gs://: %.200s answered %d%s%s: %s", url,
                   answer->status, *word ? " " : "", word, hint);
  json_decref(doc);
  return rc;
}

static int ask(gs_token *t, const http_request *r, err *e) {
  http_response answer = {0};
  http_call *call = NULL;
  int64_t asked = t->io->now(t->io, IO_MONO);
  buf_init(&answer.headers, ANSWER_MAX);
  buf_init_secret(&answer.body, ANSWER_MAX);
  int rc = http_start(t->net, r, &answer, &call, e);
  if (rc == 0) rc = http_wait(call, e);
  if (rc == 0 && answer.status == 200)
    rc = take_token(t, &answer.body, asked, e);
  else if (rc == 0 && (answer.status >= 500 || answer.status == 429))
    rc = err_set(e, ERR_IO, "no token for gs://: %.200s answered %d", r->url, answer.status);
  else if (rc == 0)
    rc = refused(t, &answer, r->url, e);
  buf_free(&answer.headers);
  buf_free(&answer.body);
  return rc;
}

static int fetch(gs_token *t, atomic_int *cancel, err *e) {
  static const char *const form[] = {"content-type: application/x-www-form-urlencoded", NULL};
  static const char *const flavor[] = {"metadata-flavor: Google", NULL};
  const char *host = getenv("GCE_METADATA_HOST");
  char url[600];
  buf body;
  buf_init_secret(&body, ANSWER_MAX);
  snprintf(url, sizeof url, "http://%.500s" METADATA,
           host && *host ? host : "metadata.google.internal");
  http_request r = {
      .method = "GET", .url = url, .headers = flavor, .cancel = cancel, .direct = true};
  int rc = 0;
  if (t->kind == MACHINE)
    r.stall_s = METADATA_S;
  else
    rc = make_form(t, &body, e);
  if (rc == 0 && t->kind != MACHINE)
    r = (http_request){.method = "POST",
                       .url = t->uri,
                       .headers = form,
                       .body = body.data,
                       .len = body.len,
                       .ca_file = *t->ca_file ? t->ca_file : NULL,
                       .cancel = cancel};
  if (rc == 0) rc = ask(t, &r, e);
  buf_free(&body);
  return rc;
}

static int fetch_patiently(gs_token *t, atomic_int *cancel, err *e) {
  err why = {0};
  int rc = 0;
  for (int i = 0; i < TRIES; i++) {
    if (i) t->io->sleep(t->io, SECOND / 4 << i);
    rc = fetch(t, cancel, &why);
    if (rc != ERR_IO && rc != ERR_TIMEOUT) break;
    if (t->kind == MACHINE && why.sys == HTTP_UNRESOLVED) break;
  }
  if (rc < 0 && t->kind == MACHINE && t->looked)
    return err_set(
        e, rc == ERR_CANCELED ? rc : ERR_ACCESS,
        "no credentials for gs://: GOOGLE_APPLICATION_CREDENTIALS is not set, gcloud has "
        "none, and there is no metadata server (%.400s); GOOGLE_SKIP_SIGNATURE=true goes "
        "without",
        why.text);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

int gs_token_line(gs_token *t, atomic_int *cancel, buf *line, err *e) {
  int rc = 0;
  if (t->kind == NOBODY) return 0;
  pthread_mutex_lock(&t->lock);
  int64_t now = t->io->now(t->io, IO_MONO);
  if (t->token.len == 0 || now >= t->good_until) rc = fetch_patiently(t, cancel, e);
  if (rc == 0) buf_add(line, t->token.data, t->token.len);
  pthread_mutex_unlock(&t->lock);
  return rc;
}

bool gs_token_refused(gs_token *t, const char *line) {
  if (t->kind == NOBODY) return false;
  pthread_mutex_lock(&t->lock);
  /* Of many requests that were under way the first one drops it. */
  if (t->token.len && strcmp(t->token.data, line) == 0) t->good_until = 0;
  pthread_mutex_unlock(&t->lock);
  return true;
}
