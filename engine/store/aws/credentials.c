#include "credentials.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/secret.h"
#include "credentials_parts.h"

/* ---- values ---- */

/* One with a control character could write headers of its own. */
int credentials_copy(char *to, size_t room, const char *value, const char *where, err *e) {
  size_t len = strlen(value);
  for (size_t i = 0; i < len; i++)
    if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
      return err_set(e, ERR_FORMAT, "%s has a control character in it", where);
  if (len >= room) return err_set(e, ERR_FORMAT, "%s is longer than %zu bytes", where, room - 1);
  memcpy(to, value, len + 1);
  return 0;
}

/* These say who asks. They are taken from one place only: half of them from here and half from
 * there would be somebody else. */
static const char *const who[] = {"AWS_ACCESS_KEY_ID",   "AWS_SECRET_ACCESS_KEY",
                                  "AWS_PROFILE",         "AWS_WEB_IDENTITY_TOKEN_FILE",
                                  "AWS_NO_SIGN_REQUEST", "AWS_DEFAULT_PROFILE",
                                  "AWS_SESSION_TOKEN",   "AWS_SECURITY_TOKEN",
                                  "AWS_ROLE_ARN",        "AWS_ROLE_SESSION_NAME"};
enum { WHO = sizeof who / sizeof *who, DECIDING = 5 /* the first of them */ };

bool credentials_is_laid(const io *io) {
  for (int i = 0; i < DECIDING; i++)
    if (io_variable_laid(io, who[i])) return true;
  return false;
}

const char *credentials_variable(const io *io, const char *name) {
  bool ours = false;
  for (int i = 0; i < WHO && !ours; i++) ours = strcmp(who[i], name) == 0;
  const char *value =
      ours && credentials_is_laid(io) ? io_variable_laid(io, name) : io_variable(io, name);
  return value && *value ? value : NULL;
}

bool credentials_yes(const char *value) {
  return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 &&
         strcasecmp(value, "no") != 0;
}

/* The first of the variables (ended by NULL) that is set; 1 if one is. */
static int take_variable(const io *io, const char *const *names, char *to, size_t room, err *e) {
  for (; *names; names++) {
    const char *value = credentials_variable(io, *names);
    if (!value) continue;
    char where[96];
    snprintf(where, sizeof where, "the variable %s", *names);
    int rc = credentials_copy(to, room, value, where, e);
    return rc < 0 ? rc : 1;
  }
  return 0;
}

int credentials_of_variables(const io *io, credentials *out, err *e) {
  static const char *const access[] = {"AWS_ACCESS_KEY_ID", NULL};
  static const char *const secret[] = {"AWS_SECRET_ACCESS_KEY", NULL};
  static const char *const token[] = {"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", NULL};
  int rc = take_variable(io, access, out->access, sizeof out->access, e);
  if (rc >= 0) rc = take_variable(io, secret, out->secret, sizeof out->secret, e);
  if (rc >= 0 && *out->access) rc = take_variable(io, token, out->token, sizeof out->token, e);
  if (rc < 0) return rc;
  if (!*out->access != !*out->secret)
    return err_set(e, ERR_ACCESS,
                   "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: there is %s but no %s",
                   *out->access ? "an access key" : "a secret key",
                   *out->access ? "secret key" : "access key");
  snprintf(out->from, sizeof out->from, CREDENTIALS_VARIABLES);
  return *out->access != 0;
}

/* ---- what is no secret ---- */

/* A profile's setting of S3 alone, or of all services. */
static const profile_entry *setting(const profiles *p, const char *key, bool s3) {
  static const profile_file files[] = {PROFILE_KEYS, PROFILE_CONFIG};
  for (int i = 0; i < 2; i++) {
    const profile_entry *at = NULL;
    if (s3) at = profiles_get(p, files[i], PROFILE_NAMED, p->name, "s3", key);
    if (!at) at = profiles_get(p, files[i], PROFILE_NAMED, p->name, "", key);
    if (at) return at;
  }
  return NULL;
}

/* What the profile's [services] say of one of them. */
static const profile_entry *service(const profiles *p, const char *nest) {
  const char *name = profiles_text(p, p->name, "services");
  return name ? profiles_get(p, PROFILE_CONFIG, PROFILE_SERVICES, name, nest, "endpoint_url")
              : NULL;
}

static bool ignores_endpoints(const io *io, const profiles *p) {
  const char *given = credentials_variable(io, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
  if (!given) given = profiles_text(p, p->name, "ignore_configured_endpoint_urls");
  return credentials_yes(given);
}

static int take_endpoint(const io *io, const profiles *p, credentials *c, err *e) {
  static const char *const variables[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
  if (ignores_endpoints(io, p)) return 0;
  int rc = take_variable(io, variables, c->endpoint, sizeof c->endpoint, e);
  if (rc != 0) return rc;
  const profile_entry *at = service(p, "s3");
  return profiles_take(p, at ? at : setting(p, "endpoint_url", true), c->endpoint,
                       sizeof c->endpoint, e);
}

static int take_places(const io *io, const profiles *p, credentials *c, err *e) {
  static const char *const region[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
  static const char *const ca[] = {"AWS_CA_BUNDLE", NULL};
  int rc = take_variable(io, region, c->region, sizeof c->region, e);
  if (rc == 0) rc = profiles_take(p, setting(p, "region", false), c->region, sizeof c->region, e);
  if (rc >= 0 && !*c->region) memcpy(c->region, "us-east-1", sizeof "us-east-1");
  if (rc >= 0) rc = take_endpoint(io, p, c, e);
  if (rc >= 0) rc = take_variable(io, ca, c->ca_file, sizeof c->ca_file, e);
  if (rc == 0)
    rc = profiles_take(p, setting(p, "ca_bundle", false), c->ca_file, sizeof c->ca_file, e);
  return rc < 0 ? rc : 0;
}

/* The endpoint's text is not shown: somebody may have put a password into it. */
static int check_endpoint(credentials *c, err *e) {
  if (!*c->endpoint) return 0;
  const char *host = strncmp(c->endpoint, "http://", 7) == 0    ? c->endpoint + 7
                     : strncmp(c->endpoint, "https://", 8) == 0 ? c->endpoint + 8
                                                                : "";
  size_t len = strlen(c->endpoint);
  while (len > 0 && c->endpoint[len - 1] == '/') c->endpoint[--len] = 0;
  if (*host && *host != '/' && !strpbrk(host, "?#@ \\")) return 0;
  return err_set(e, ERR_INVAL,
                 "the endpoint of S3 (AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the profile's "
                 "endpoint_url) has to be http://HOST[:PORT] or https://HOST[:PORT]");
}

int credentials_endpoint(const credentials_ask *a, const char *variable, const char *nest,
                         const char *host, const char *region, char out[1024], err *e) {
  char name[64];
  const char *const variables[] = {name, "AWS_ENDPOINT_URL", NULL};
  snprintf(name, sizeof name, "AWS_ENDPOINT_URL_%s", variable);
  snprintf(out, 1024, "https://%s.%s.amazonaws.com%s", host, region,
           strncmp(region, "cn-", 3) == 0 ? ".cn" : "");
  if (ignores_endpoints(a->io, a->files)) return 0;
  int rc = take_variable(a->io, variables, out, 1024, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  const profile_entry *at = service(a->files, nest);
  return profiles_take(a->files, at ? at : setting(a->files, "endpoint_url", false), out, 1024, e);
}

/* "BUCKET.HOST" is no name where the host is an address, and seldom one at an endpoint of one's
 * own: the common clients take the path there too. */
static bool wants_path(const char *endpoint, bool virtual_asked) {
  const char *host = strstr(endpoint, "://");
  if (!host) return false;
  host += 3;
  bool address = *host == '[' || strspn(host, "0123456789.") == strcspn(host, ":/");
  return address || (!virtual_asked && !strstr(host, ".amazonaws.com"));
}

static int set_style(const io *io, const profiles *p, credentials *c, err *e) {
  static const char *const variable[] = {"AWS_S3_ADDRESSING_STYLE", NULL};
  char style[16] = "";
  int rc = take_variable(io, variable, style, sizeof style, e);
  if (rc == 0)
    rc = profiles_take(
        p, profiles_get(p, PROFILE_BOTH, PROFILE_NAMED, p->name, "s3", "addressing_style"), style,
        sizeof style, e);
  if (rc < 0) return rc;
  bool path = strcmp(style, "path") == 0, virtual_asked = strcmp(style, "virtual") == 0;
  c->path_style = path || wants_path(c->endpoint, virtual_asked);
  if (!*style || path || virtual_asked || strcmp(style, "auto") == 0) return 0;
  return err_set(e, ERR_INVAL,
                 "the addressing style of S3 (AWS_S3_ADDRESSING_STYLE or the "
                 "profile's addressing_style) has to be path, virtual or auto");
}

/* ---- all together ---- */

static int look_in(const io *io, const profiles *files, credentials_ask *ask, credentials *out,
                   err *e) {
  ask->files = files;
  ask->places = out;
  int rc = take_places(io, files, out, e);
  if (rc == 0) rc = check_endpoint(out, e);
  if (rc == 0) rc = set_style(io, files, out, e);
  return rc == 0 ? credentials_of_chain(ask, out, e) : rc;
}

int credentials_look(const io *io, atomic_int *cancel, atomic_int *stop, credentials *out, err *e) {
  credentials_ask ask = {.io = io, .cancel = cancel, .stop = stop};
  *out = (credentials){0};
  /* Beside keys of the environment the home may be another user's. */
  bool lenient = credentials_variable(io, "AWS_ACCESS_KEY_ID") != NULL;
  profiles *files = secret_alloc(sizeof *files);
  if (!files) return err_set(e, ERR_NOMEM, "no memory for keys");
  int rc = profiles_read(io, lenient, files, e);
  if (rc == 0) rc = look_in(io, files, &ask, out, e);
  profiles_free(files);
  secret_free(files);
  if (rc < 0) credentials_forget(out);
  return rc < 0 ? rc : 0;
}

int credentials_find(const io *io, credentials *out, err *e) {
  return credentials_look(io, NULL, NULL, out, e);
}

void credentials_forget(credentials *c) {
  explicit_bzero(c->access, sizeof c->access);
  explicit_bzero(c->secret, sizeof c->secret);
  explicit_bzero(c->token, sizeof c->token);
}
