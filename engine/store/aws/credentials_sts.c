/* Keys that STS lends: of a role, for other keys or for a token that somebody vouches for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/secret.h"
#include "credentials_parts.h"
#include "prims/fs.h"
#include "prims/hash.h"
#include "sigv4.h"
#include "xml.h"

enum { BODY_MAX = 64 << 10, TOKEN_MAX = 20 << 10, LINES_MAX = 24 << 10, HEADERS = 8 };

/* ---- the answer ---- */

typedef struct taken {
  credentials *to;
  err *error;
  int code;
} taken;

static int take_element(void *ctx, const char *path, const char *text) {
  taken *t = ctx;
  const char *name = strrchr(path, '/');
  credentials *c = t->to;
  if (!text || !name || name - path < 12 || strncmp(name - 12, "/Credentials", 12) != 0) return 0;
  if (strcmp(name, "/AccessKeyId") == 0)
    t->code = credentials_copy(c->access, sizeof c->access, text, "STS: AccessKeyId", t->error);
  else if (strcmp(name, "/SecretAccessKey") == 0)
    t->code = credentials_copy(c->secret, sizeof c->secret, text, "STS: SecretAccessKey", t->error);
  else if (strcmp(name, "/SessionToken") == 0)
    t->code = credentials_copy(c->token, sizeof c->token, text, "STS: SessionToken", t->error);
  else if (strcmp(name, "/Expiration") == 0)
    c->expires_ns = credentials_time(text);
  return t->code;
}

int credentials_of_sts(const buf *answer, credentials *out, err *e) {
  taken t = {.to = out, .error = e};
  int rc = xml_walk_secret(answer->data ? answer->data : "", answer->len, "the answer of STS",
                           take_element, &t, e);
  if (t.code < 0) return t.code;
  if (rc < 0) return rc;
  const char *missing = !*out->access      ? "AccessKeyId"
                        : !*out->secret    ? "SecretAccessKey"
                        : !*out->token     ? "SessionToken"
                        : !out->expires_ns ? "Expiration"
                                           : NULL;
  return missing ? err_set(e, ERR_FORMAT, "the answer of STS has no %s", missing) : 0;
}

/* ---- the request ---- */

static void add_field(buf *body, const char *name, const char *value) {
  if (!value || !*value) return;
  buf_fmt(body, "%s%s=", body->len ? "&" : "", name);
  sigv4_encode(value, 1, body);
}

/* Where it goes: "https://HOST[:PORT]", and the path behind that. */
static int split(const char *endpoint, char host[512], const char **path, err *e) {
  const char *at = strstr(endpoint, "://");
  size_t len = at ? strcspn(at + 3, "/?#") : 0;
  if (len == 0 || len >= 512 || memchr(at + 3, '@', len))
    return err_set(e, ERR_INVAL,
                   "the endpoint of STS (AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL or the profile's) "
                   "has to be http://HOST[:PORT] or https://HOST[:PORT]");
  memcpy(host, at + 3, len);
  host[len] = 0;
  *path = at[3 + len] == '/' ? at + 3 + len : "/";
  return 0;
}

/* Cuts the lines apart and lists them behind those that are there. */
static void list_lines(char *lines, const char **headers, size_t n, size_t room) {
  for (char *line = lines; line && *line && n + 1 < room;) {
    char *end = strchr(line, '\n');
    headers[n++] = line;
    if (!end) break;
    *end = 0;
    line = end + 1;
  }
  headers[n] = NULL;
}

static int sign(const credentials_ask *a, const credentials *with, const char *host,
                const char *path, const buf *body, const char **headers, buf *target, buf *lines,
                err *e) {
  char digest[HASH_HEX_MAX];
  int rc = hash_sha256_hex(body->data, body->len, digest, e);
  if (rc < 0) return rc;
  const sigv4_key key = {.access = with->access,
                         .secret = with->secret,
                         .token = with->token,
                         .region = a->places->region,
                         .service = "sts"};
  const sigv4_request r = {.method = "POST",
                           .host = host,
                           .path = path,
                           .headers = headers,
                           .payload = digest,
                           .time_ns = a->io->now(a->io, IO_WALL)};
  rc = sigv4_sign(&key, &r, target, lines, e);
  if (rc == 0) list_lines(lines->data, headers, 1, HEADERS + 1);
  return rc;
}

/* `with` NULL: the body says who we are, nothing is signed. */
static int post(const credentials_ask *a, const buf *body, const credentials *with,
                const char *what, credentials *out, err *e) {
  const char *headers[HEADERS + 1] = {"content-type: application/x-www-form-urlencoded"};
  char endpoint[1024], host[512], url[2048];
  const char *path;
  buf target, lines, answer;
  buf_init(&target, 1024);
  buf_init_secret(&lines, LINES_MAX);
  buf_init_secret(&answer, CREDENTIALS_ANSWER_MAX);
  if (buf_failed(body)) return err_set(e, buf_failed(body), "%s: too long, or no memory", what);
  int rc = credentials_endpoint(a, "STS", "sts", "sts", a->places->region, endpoint, e);
  if (rc == 0) rc = split(endpoint, host, &path, e);
  if (rc == 0 && with) rc = sign(a, with, host, path, body, headers, &target, &lines, e);
  if (rc == 0) {
    snprintf(url, sizeof url, "%.*s://%s%s", (int)(strstr(endpoint, "://") - endpoint), endpoint,
             host, with ? target.data : path);
    const credentials_request r = {
        .what = what, .method = "POST", .url = url, .headers = headers, .body = body, .xml = true};
    rc = credentials_send(a, &r, &answer, NULL, e);
  }
  if (rc == 0) rc = credentials_of_sts(&answer, out, e);
  buf_free(&target);
  buf_free(&lines);
  buf_free(&answer);
  return rc;
}

static void begin(const credentials_ask *a, buf *body, const char *action, const char *role,
                  const char *session) {
  char name[64];
  buf_init_secret(body, BODY_MAX);
  if (!session || !*session) {
    snprintf(name, sizeof name, "ckpt-session-%" PRId64, a->io->now(a->io, IO_WALL) / 1000000000);
    session = name;
  }
  add_field(body, "Action", action);
  add_field(body, "Version", "2011-06-15");
  add_field(body, "RoleArn", role);
  add_field(body, "RoleSessionName", session);
}

int credentials_of_role(const credentials_ask *a, const credentials_role *role,
                        const credentials *with, credentials *out, err *e) {
  char what[400];
  buf body;
  begin(a, &body, "AssumeRole", role->arn, role->session);
  add_field(&body, "ExternalId", role->external_id);
  add_field(&body, "DurationSeconds", role->duration);
  snprintf(what, sizeof what, "STS: assume the role %.200s", role->arn);
  int rc = post(a, &body, with, what, out, e);
  buf_free(&body);
  if (rc == 0) snprintf(out->from, sizeof out->from, "an assumed role");
  return rc < 0 ? rc : 1;
}

/* ---- web identity ---- */

static void trim_end(buf *text) {
  while (text->len && strchr(" \t\r\n", text->data[text->len - 1])) text->data[--text->len] = 0;
}

static const char *given(const credentials_ask *a, const char *variable, const char *profile,
                         bool variables, const char *key) {
  const char *value = variables ? credentials_variable(a->io, variable) : NULL;
  return value ? value : profiles_text(a->files, profile, key);
}

static int read_token(const credentials_ask *a, const char *path, buf *token, err *e) {
  int rc = fs_read(a->io, path, TOKEN_MAX, token, e);
  if (rc < 0) return rc;
  trim_end(token);
  if (token->len) return 0;
  return err_set(e, ERR_ACCESS, "the web identity token %.400s is empty", path);
}

int credentials_of_web(const credentials_ask *a, const char *profile, bool variables,
                       credentials *out, err *e) {
  const char *path =
      given(a, "AWS_WEB_IDENTITY_TOKEN_FILE", profile, variables, "web_identity_token_file");
  const char *role = given(a, "AWS_ROLE_ARN", profile, variables, "role_arn");
  const char *session = given(a, "AWS_ROLE_SESSION_NAME", profile, variables, "role_session_name");
  char what[400];
  buf token, body;
  if (!path) return 0;
  if (!role)
    return err_set(
        e, ERR_ACCESS,
        "there is a web identity token, %.300s, but no role for it: set AWS_ROLE_ARN, or "
        "role_arn in the profile \"%.100s\"",
        path, profile);
  buf_init_secret(&token, TOKEN_MAX);
  begin(a, &body, "AssumeRoleWithWebIdentity", role, session);
  int rc = read_token(a, path, &token, e);
  if (rc == 0) {
    add_field(&body, "WebIdentityToken", token.data);
    snprintf(what, sizeof what, "STS: assume the role %.200s by web identity", role);
    rc = post(a, &body, NULL, what, out, e);
  }
  buf_free(&token);
  buf_free(&body);
  if (rc == 0) snprintf(out->from, sizeof out->from, "web identity");
  return rc < 0 ? rc : 1;
}
