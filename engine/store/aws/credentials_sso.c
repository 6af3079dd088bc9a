/* Keys that SSO (IAM Identity Center) gives for the token that `aws sso login` left behind. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/secret.h"
#include "credentials_parts.h"
#include "prims/fs.h"
#include "prims/hash.h"
#include "sigv4.h"

enum { URL_MAX = 2048, HEADER_MAX = 20 << 10, WINDOW_S = 15 * 60 };
static const int64_t second = 1000000000;

typedef struct sso {
  const char *profile, *session; /* session NULL: the older way, without one */
  const char *start, *region, *role, *account;
  char path[FS_PATH_MAX]; /* of the token */
} sso;

/* ---- the profile ---- */

static int take_setting(const credentials_ask *a, sso *s, const char *key, bool of_session,
                        const char **out, err *e) {
  const profile_entry *shared = NULL;
  const char *own = profiles_text(a->files, s->profile, key);
  if (s->session && of_session)
    shared = profiles_get(a->files, PROFILE_CONFIG, PROFILE_SESSION, s->session, "", key);
  if (own && shared && strcmp(own, shared->value) != 0)
    return err_set(
        e, ERR_FORMAT,
        "%.300s: the profile \"%.100s\" and its sso-session \"%.100s\" have not the same "
        "%s",
        a->files->path[PROFILE_CONFIG], s->profile, s->session, key);
  *out = own ? own : shared ? shared->value : NULL;
  if (*out) return 0;
  return err_set(e, ERR_ACCESS, "%.300s: the profile \"%.100s\" is for SSO, but there is no %s%s",
                 a->files->path[PROFILE_CONFIG], s->profile, key,
                 s->session && of_session ? " in its sso-session" : "");
}

/* Its name is the SHA-1 of the session's, or of the address. */
static int token_path(const credentials_ask *a, sso *s, err *e) {
  char name[HASH_SHA1_HEX];
  const char *home = io_variable(a->io, "HOME"), *text = s->session ? s->session : s->start;
  if (!home || !*home) return err_set(e, ERR_ACCESS, "SSO: HOME is not set");
  int rc = hash_sha1_hex(text, strlen(text), name, e);
  if (rc < 0) return rc;
  int len = snprintf(s->path, sizeof s->path, "%s/.aws/sso/cache/%s.json", home, name);
  return len < FS_PATH_MAX ? 0 : err_set(e, ERR_LIMIT, "HOME: the path is too long");
}

static int take_settings(const credentials_ask *a, const char *profile, sso *s, err *e) {
  *s = (sso){.profile = profile};
  s->session = profiles_text(a->files, profile, "sso_session");
  int rc = take_setting(a, s, "sso_role_name", false, &s->role, e);
  if (rc == 0) rc = take_setting(a, s, "sso_account_id", false, &s->account, e);
  if (rc == 0) rc = take_setting(a, s, "sso_start_url", true, &s->start, e);
  if (rc == 0) rc = take_setting(a, s, "sso_region", true, &s->region, e);
  return rc == 0 ? token_path(a, s, e) : rc;
}

/* ---- the token ---- */

static int log_in(const sso *s, const char *why, err *e) {
  return err_set(e, ERR_ACCESS, "SSO: %s (%.300s): run aws sso login --profile %.100s", why,
                 s->path, s->profile);
}

static const char *text_of(const json_t *token, const char *key) {
  const char *text = json_string_value(json_object_get(token, key));
  return text && *text ? text : NULL;
}

static int read_token(const credentials_ask *a, const sso *s, json_t **out, err *e) {
  buf text;
  err why = {0};
  buf_init_secret(&text, JS_SECRET_MAX);
  int rc = fs_read(a->io, s->path, JS_SECRET_MAX, &text, &why);
  if (rc == 0) rc = js_parse_secret(text.data ? text.data : "", text.len, s->path, out, &why);
  buf_free(&text);
  if (rc == ERR_NOENT) return log_in(s, "there is no token", e);
  if (rc == ERR_FORMAT) return log_in(s, "the token is unreadable", e);
  if (rc < 0 && e) *e = why;
  if (rc == 0 && (!text_of(*out, "accessToken") || !text_of(*out, "expiresAt")))
    rc = log_in(s, "the token is unreadable", e);
  return rc;
}

static void print_time(int64_t ns, char out[32]) {
  time_t seconds = (time_t)(ns / second);
  struct tm t;
  gmtime_r(&seconds, &t);
  strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &t);
}

static int ask_token(const credentials_ask *a, const sso *s, const json_t *token, json_t **out,
                     err *e) {
  static const char *const headers[] = {"content-type: application/json", NULL};
  char endpoint[1024], url[URL_MAX];
  buf body, answer;
  int bad = 0, rc = credentials_endpoint(a, "SSO_OIDC", "sso_oidc", "oidc", s->region, endpoint, e);
  if (rc < 0) return rc;
  buf_init_secret(&body, JS_SECRET_MAX);
  buf_init_secret(&answer, CREDENTIALS_ANSWER_MAX);
  json_t *request = json_object(); /* what it refers to is secret, it is not */
  js_set(request, "clientId", json_incref(json_object_get(token, "clientId")), &bad);
  js_set(request, "clientSecret", json_incref(json_object_get(token, "clientSecret")), &bad);
  js_set(request, "refreshToken", json_incref(json_object_get(token, "refreshToken")), &bad);
  js_set(request, "grantType", json_string("refresh_token"), &bad);
  rc = bad ? err_set(e, ERR_NOMEM, "SSO: no memory") : js_print_secret(request, &body, e);
  json_decref(request);
  snprintf(url, sizeof url, "%s/token", endpoint);
  const credentials_request r = {.what = "SSO: renew the token",
                                 .method = "POST",
                                 .url = url,
                                 .headers = headers,
                                 .body = &body};
  if (rc == 0) rc = credentials_send(a, &r, &answer, NULL, e);
  if (rc == 0) rc = js_parse_secret(answer.data ? answer.data : "", answer.len, r.what, out, e);
  if (rc == 0 && (!text_of(*out, "accessToken") ||
                  json_integer_value(json_object_get(*out, "expiresIn")) <= 0)) {
    json_decref(*out);
    *out = NULL;
    rc = err_set(e, ERR_FORMAT, "SSO: the answer has no token");
  }
  buf_free(&body);
  buf_free(&answer);
  return rc;
}

/* Puts the new token where the old one was: what it was made with is good for one time only. */
static int keep_token(const credentials_ask *a, const sso *s, json_t *token, json_t *fresh,
                      err *e) {
  static const char *const taken[] = {"accessToken", "refreshToken"};
  char expires[32];
  int bad = 0;
  buf text;
  int64_t lives = json_integer_value(json_object_get(fresh, "expiresIn"));
  print_time(a->io->now(a->io, IO_WALL) + (lives < 1 << 30 ? lives : 1 << 30) * second, expires);
  for (int i = 0; i < 2; i++)
    if (text_of(fresh, taken[i]))
      js_set(token, taken[i], json_incref(json_object_get(fresh, taken[i])), &bad);
  js_set(token, "expiresAt", json_string(expires), &bad);
  js_set(token, "startUrl", json_string(s->start), &bad);
  js_set(token, "region", json_string(s->region), &bad);
  buf_init_secret(&text, JS_SECRET_MAX);
  int rc = bad ? err_set(e, ERR_NOMEM, "SSO: no memory") : js_print_secret(token, &text, e);
  if (rc == 0) rc = fs_replace(a->io, s->path, text.data, text.len, 0600, e);
  buf_free(&text);
  return rc;
}

static bool can_renew(const credentials_ask *a, const json_t *token) {
  const char *until = text_of(token, "registrationExpiresAt");
  return until && text_of(token, "refreshToken") && text_of(token, "clientId") &&
         text_of(token, "clientSecret") && credentials_time(until) > a->io->now(a->io, IO_WALL);
}

/* Renews a token of a session in its last 15 minutes. What fails is told when it is over. */
static int renew(const credentials_ask *a, const sso *s, json_t *token, err *e) {
  json_t *fresh = NULL;
  int64_t left = credentials_time(text_of(token, "expiresAt")) - a->io->now(a->io, IO_WALL);
  err why = {0};
  if (left > WINDOW_S * second || (left > 0 && !s->session)) return 0;
  int rc = s->session && can_renew(a, token) ? ask_token(a, s, token, &fresh, &why) : ERR_ACCESS;
  /* A cache that cannot be written is no reason to go without the token. */
  if (rc == 0) keep_token(a, s, token, fresh, NULL);
  json_decref(fresh);
  if (rc == 0 || left > 0) return 0;
  if (rc == ERR_IO || rc == ERR_TIMEOUT || rc == ERR_CANCELED) {
    if (e) *e = why;
    return rc;
  }
  return log_in(s, "the token has expired", e);
}

/* ---- the keys ---- */

static int ask_keys(const credentials_ask *a, const sso *s, const json_t *token, buf *answer,
                    err *e) {
  char endpoint[1024];
  buf url, header;
  const char *headers[2] = {NULL, NULL};
  int status = 0;
  int rc = credentials_endpoint(a, "SSO", "sso", "portal.sso", s->region, endpoint, e);
  if (rc < 0) return rc;
  buf_init(&url, URL_MAX);
  buf_init_secret(&header, HEADER_MAX);
  buf_fmt(&url, "%s/federation/credentials?role_name=", endpoint);
  sigv4_encode(s->role, 1, &url);
  buf_str(&url, "&account_id=");
  sigv4_encode(s->account, 1, &url);
  buf_str(&header, "x-amz-sso_bearer_token: ");
  buf_str(&header, text_of(token, "accessToken"));
  if (buf_failed(&url) || buf_failed(&header))
    rc = err_set(e, ERR_LIMIT, "SSO: the role's name or the token is too long");
  headers[0] = header.data;
  const credentials_request r = {
      .what = "SSO: keys for the role", .method = "GET", .url = url.data, .headers = headers};
  if (rc == 0) rc = credentials_send(a, &r, answer, &status, e);
  if (rc < 0 && status == 401) rc = log_in(s, "the token is refused", e);
  buf_free(&url);
  buf_free(&header);
  return rc;
}

int credentials_of_sso(const credentials_ask *a, const char *profile, credentials *out, err *e) {
  static const credentials_names names = {"accessKeyId", "secretAccessKey", "sessionToken",
                                          "expiration", true};
  static const char what[] = "the answer of SSO";
  sso s;
  json_t *token = NULL, *keys = NULL;
  buf answer;
  if (!profiles_text(a->files, profile, "sso_role_name") &&
      !profiles_text(a->files, profile, "sso_account_id"))
    return 0;
  buf_init_secret(&answer, CREDENTIALS_ANSWER_MAX);
  int rc = take_settings(a, profile, &s, e);
  if (rc == 0) rc = read_token(a, &s, &token, e);
  if (rc == 0) rc = renew(a, &s, token, e);
  if (rc == 0) rc = ask_keys(a, &s, token, &answer, e);
  if (rc == 0) rc = js_parse_secret(answer.data ? answer.data : "", answer.len, what, &keys, e);
  if (rc == 0)
    rc = credentials_of_json(json_object_get(keys, "roleCredentials"), &names, what, out, e);
  json_decref(token);
  json_decref(keys);
  buf_free(&answer);
  if (rc == 0) snprintf(out->from, sizeof out->from, "SSO");
  return rc < 0 ? rc : 1;
}
