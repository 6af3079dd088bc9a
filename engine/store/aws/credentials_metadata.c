/* Keys that the place where we run gives: a container's agent (ECS, EKS pod identity), an instance's
 * metadata (EC2). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "credentials_parts.h"
#include "prims/fs.h"

enum { URL_MAX = 2048, HEADER_MAX = 16 << 10, TOKEN_MAX = 12 << 10, ROLE_MAX = 256 };
enum { CONTAINER_STALL_S = 2, CONTAINER_TRIES = 3, TIMEOUT_MOST = 60, ATTEMPTS_MOST = 10 };
static const int64_t minute = INT64_C(60000000000);

static const char *text_of(const buf *b) {
  return b->data ? b->data : "";
}

static void trim_end(buf *text) {
  while (text->len && strchr(" \t\r\n", text->data[text->len - 1])) text->data[--text->len] = 0;
}

static bool is_header_value(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f) return false;
  return true;
}

static int read_keys(const buf *answer, const char *what, credentials *out, err *e) {
  static const credentials_names names = {"AccessKeyId", "SecretAccessKey", "Token", "Expiration",
                                          true};
  json_t *value = NULL;
  int rc = js_parse_secret(text_of(answer), answer->len, what, &value, e);
  if (rc < 0) return rc;
  rc = credentials_of_json(value, &names, what, out, e);
  json_decref(value);
  return rc;
}

/* ---- a container ---- */

static bool is_loopback(const char *host) {
  unsigned a, b, c, d;
  int end = 0;
  if (strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0) return true;
  return sscanf(host, "%3u.%3u.%3u.%3u%n", &a, &b, &c, &d, &end) == 4 && !host[end] && a == 127 &&
         b < 256 && c < 256 && d < 256;
}

/* Over plain HTTP the token goes to this machine or its host's agent alone. */
static int check_host(const char *url, err *e) {
  static const char *const agents[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
  char host[256];
  if (strncmp(url, "https://", 8) == 0) return 0;
  const char *at = strncmp(url, "http://", 7) == 0 ? url + 7 : "";
  bool six = *at == '[';
  size_t len = six ? strcspn(++at, "]") : strcspn(at, ":/?#");
  bool user = memchr(at, '@', strcspn(at, "/?#")) != NULL;
  snprintf(host, sizeof host, "%.*s", len < sizeof host ? (int)len : 0, at);
  bool good = !user && is_loopback(host);
  for (int i = 0; i < 3; i++) good |= !user && strcmp(host, agents[i]) == 0;
  if (good) return 0;
  return err_set(e, ERR_ACCESS,
                 "AWS_CONTAINER_CREDENTIALS_FULL_URI names \"%.100s\": over http:// only this "
                 "machine, 169.254.170.2, 169.254.170.23 and [fd00:ec2::23] are asked for keys",
                 user ? "" : host);
}

static int read_authorization(const credentials_ask *a, buf *header, err *e) {
  const char *path = credentials_variable(a->io, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  const char *given = credentials_variable(a->io, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (!path && !given) return 0;
  buf_str(header, "Authorization: ");
  size_t before = header->len;
  int rc = path ? fs_read(a->io, path, TOKEN_MAX, header, e) : 0;
  if (!path) buf_str(header, given);
  if (rc == 0) rc = buf_failed(header);
  if (rc < 0) return path ? rc : err_set(e, rc, "AWS_CONTAINER_AUTHORIZATION_TOKEN is too long");
  trim_end(header);
  if (header->len > before && is_header_value(header->data + before)) return 1;
  return err_set(e, ERR_FORMAT, "%.300s is empty, or has a control character in it",
                 path ? path : "AWS_CONTAINER_AUTHORIZATION_TOKEN");
}

static int ask_container(const credentials_ask *a, const char *url, credentials *out, err *e) {
  static const char what[] = "the container's keys";
  const char *headers[3] = {"Accept: application/json", NULL, NULL};
  buf header, answer;
  buf_init_secret(&header, HEADER_MAX);
  buf_init_secret(&answer, CREDENTIALS_ANSWER_MAX);
  int rc = read_authorization(a, &header, e);
  if (rc > 0) headers[1] = header.data;
  const credentials_request r = {.what = what,
                                 .method = "GET",
                                 .url = url,
                                 .headers = headers,
                                 .stall_s = CONTAINER_STALL_S,
                                 .tries = CONTAINER_TRIES,
                                 .direct = true};
  if (rc >= 0) rc = credentials_send(a, &r, &answer, NULL, e);
  if (rc == 0) rc = read_keys(&answer, what, out, e);
  buf_free(&header);
  buf_free(&answer);
  return rc;
}

int credentials_of_container(const credentials_ask *a, credentials *out, err *e) {
  const char *below = credentials_variable(a->io, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const char *whole = credentials_variable(a->io, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  char url[URL_MAX];
  if (!below && !whole) return 0;
  int len = below ? snprintf(url, sizeof url, "http://169.254.170.2%s", below)
                  : snprintf(url, sizeof url, "%s", whole);
  if (len >= URL_MAX) return err_set(e, ERR_LIMIT, "the URI of the container's keys is too long");
  /* "@other.host/" would name another one. */
  int rc = below && *below != '/' ? err_set(e, ERR_INVAL,
                                            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin "
                                            "with a slash")
                                  : check_host(url, e);
  if (rc == 0) rc = ask_container(a, url, out, e);
  if (rc == 0) snprintf(out->from, sizeof out->from, "the container's agent");
  return rc < 0 ? rc : 1;
}

/* ---- an instance ---- */

typedef struct instance {
  const char *base;
  unsigned timeout_s, attempts;
  buf token; /* a header with it; empty: there is none (version 1) */
} instance;

static const char *given(const credentials_ask *a, const char *variable, const char *key) {
  const char *value = credentials_variable(a->io, variable);
  return value ? value : profiles_text(a->files, a->files->name, key);
}

static unsigned number(const char *text, unsigned most) {
  unsigned long n = text ? strtoul(text, NULL, 10) : 1;
  return n < 1 ? 1 : n > most ? most : (unsigned)n;
}

static void take_settings(const credentials_ask *a, instance *m) {
  const char *mode =
      given(a, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ec2_metadata_service_endpoint_mode");
  const char *base = given(a, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint");
  *m = (instance){.base = base                                    ? base
                          : mode && strcasecmp(mode, "ipv6") == 0 ? "http://[fd00:ec2::254]"
                                                                  : "http://169.254.169.254"};
  m->timeout_s =
      number(given(a, "AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout"), TIMEOUT_MOST);
  m->attempts =
      number(given(a, "AWS_METADATA_SERVICE_NUM_ATTEMPTS", "metadata_service_num_attempts"),
             ATTEMPTS_MOST);
  buf_init_secret(&m->token, HEADER_MAX);
}

static int ask(const credentials_ask *a, const instance *m, const char *method, const char *path,
               const char *header, buf *answer, int *status, err *e) {
  char url[URL_MAX];
  size_t len = strlen(m->base);
  const char *const headers[] = {header, NULL};
  bool slash = len > 0 && m->base[len - 1] == '/';
  if (snprintf(url, sizeof url, "%s%s%s", m->base, slash ? "" : "/", path) >= URL_MAX)
    return err_set(e, ERR_LIMIT, "the address of the instance's metadata is too long");
  const credentials_request r = {.what = "the instance's metadata",
                                 .method = method,
                                 .url = url,
                                 .headers = header ? headers : NULL,
                                 .stall_s = m->timeout_s,
                                 .tries = m->attempts,
                                 .direct = true,
                                 .lone = true};
  *status = 0;
  return credentials_send(a, &r, answer, status, e);
}

/* Fetches the token of version 2. Returns 1; 0: this one speaks version 1 alone, or its answer does
 * not reach a container here (the hop limit); negative: nobody is there. */
static int fetch_token(const credentials_ask *a, instance *m, err *e) {
  int status;
  buf token;
  buf_init_secret(&token, TOKEN_MAX);
  int rc = ask(a, m, "PUT", "latest/api/token", "x-aws-ec2-metadata-token-ttl-seconds: 21600",
               &token, &status, e);
  if (rc == 0 && status == 200 && token.len && is_header_value(token.data)) {
    buf_str(&m->token, "x-aws-ec2-metadata-token: ");
    buf_str(&m->token, token.data);
    rc = 1;
  } else if (rc == 0 && status != 403 && status != 404 && status != 405) {
    rc = err_set(e, ERR_ACCESS, "it answers %d when it is asked for a token", status);
  }
  buf_free(&token);
  return rc;
}

/* Its name is the first line. */
static int fetch_role(const credentials_ask *a, const instance *m, char role[ROLE_MAX], err *e) {
  int status;
  buf answer;
  buf_init_secret(&answer, CREDENTIALS_ANSWER_MAX);
  int rc = ask(a, m, "GET", "latest/meta-data/iam/security-credentials/",
               m->token.len ? m->token.data : NULL, &answer, &status, e);
  if (rc == 0 && status != 200)
    rc = err_set(e, ERR_ACCESS, status == 404 ? "the instance has no role" : "it answers %d",
                 status);
  size_t len = strcspn(text_of(&answer), "\r\n");
  if (rc == 0 && (len == 0 || len >= ROLE_MAX || strpbrk(answer.data, " ?#%")))
    rc = err_set(e, ERR_ACCESS, "it names no role");
  if (rc == 0) snprintf(role, ROLE_MAX, "%.*s", (int)len, answer.data);
  buf_free(&answer);
  return rc;
}

static int fetch_keys(const credentials_ask *a, const instance *m, credentials *out, err *e) {
  static const char what[] = "the instance's metadata";
  char role[ROLE_MAX], path[ROLE_MAX + 64];
  int status, rc = fetch_role(a, m, role, e);
  if (rc < 0) return rc;
  buf answer;
  buf_init_secret(&answer, CREDENTIALS_ANSWER_MAX);
  snprintf(path, sizeof path, "latest/meta-data/iam/security-credentials/%s", role);
  rc = ask(a, m, "GET", path, m->token.len ? m->token.data : NULL, &answer, &status, e);
  if (rc == 0 && status != 200)
    rc = err_set(e, ERR_ACCESS, "it answers %d for the role %.100s", status, role);
  if (rc == 0) rc = read_keys(&answer, what, out, e);
  buf_free(&answer);
  if (rc < 0) return rc;
  /* While it cannot get new ones it goes on giving the old ones, which AWS then honours longer. */
  int64_t now = a->io->now(a->io, IO_WALL);
  if (out->expires_ns <= now) out->expires_ns = now + 10 * minute;
  snprintf(out->from, sizeof out->from, CREDENTIALS_INSTANCE);
  return 0;
}

int credentials_of_instance(const credentials_ask *a, credentials *out,
                            char looked[CREDENTIALS_WHY_MAX], err *e) {
  const char *off = credentials_variable(a->io, "AWS_EC2_METADATA_DISABLED");
  const char *old = given(a, "AWS_EC2_METADATA_V1_DISABLED", "ec2_metadata_v1_disabled");
  instance m;
  err why = {0};
  if (off && strcasecmp(off, "true") == 0) {
    snprintf(looked, CREDENTIALS_WHY_MAX, "AWS_EC2_METADATA_DISABLED is set");
    return 0;
  }
  take_settings(a, &m);
  int rc = fetch_token(a, &m, &why);
  if (rc == 0 && old && strcasecmp(old, "true") == 0)
    rc = err_set(&why, ERR_ACCESS, "it gives no token, and its version 1 is forbidden here");
  if (rc >= 0) rc = fetch_keys(a, &m, out, &why);
  buf_free(&m.token);
  if (rc == 0) return 1;
  if (rc == ERR_CANCELED || rc == ERR_NOMEM) {
    if (e) *e = why;
    return rc;
  }
  snprintf(looked, CREDENTIALS_WHY_MAX, "%.80s: %.180s%s", m.base, why.text,
           rc == ERR_TIMEOUT ? " (in a container: a hop limit of 2)" : "");
  credentials_forget(out);
  return 0;
}
