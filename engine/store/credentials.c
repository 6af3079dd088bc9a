#include "credentials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "prims/fs.h"

enum { FILE_MAX = 1 << 20, PATH_ROOM = 4096 };

/* A file of profiles, while it is read. */
typedef struct reader {
  const char *path;
  unsigned line;
  const char *profile;
  bool optional;  /* if we may not read it, it counts as absent: the home may be another user's */
  bool prefixed;  /* ~/.aws/config: sections are called "profile NAME", but for "default" */
  bool inside;    /* the line is in the wanted section */
  bool seen;      /* such a section is there */
  char nested[8]; /* "s3" while in its indented settings, "?" in those of others */
  credentials *to;
  char style[16]; /* addressing_style */
  char other[64]; /* another way to keys, that is not known here: "role_arn" */
} reader;

/* ---- values ---- */

/* Copies a value; one with a control character could write headers of its own. `where` names it. */
static int take(char *to, size_t room, const char *value, const char *where, err *e) {
  size_t len = strlen(value);
  for (size_t i = 0; i < len; i++)
    if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
      return err_set(e, ERR_FORMAT, "%s has a control character in it", where);
  if (len >= room) return err_set(e, ERR_FORMAT, "%s is longer than %zu bytes", where, room - 1);
  memcpy(to, value, len + 1);
  return 0;
}

/* The first of the variables (ended by NULL) that is set and not empty; true if one is. */
static int take_env(const char *const *names, char *to, size_t room, err *e) {
  for (; *names; names++) {
    const char *value = getenv(*names);
    if (!value || !*value) continue;
    char where[96];
    snprintf(where, sizeof where, "the variable %s", *names);
    int rc = take(to, room, value, where, e);
    return rc < 0 ? rc : 1;
  }
  return 0;
}

/* ---- the files ---- */

static char *trim(char *text) {
  text += strspn(text, " \t");
  size_t len = strlen(text);
  while (len > 0 && strchr(" \t\r", text[len - 1])) len--;
  text[len] = 0;
  return text;
}

static int malformed(const reader *r, const char *what, err *e) {
  return err_set(e, ERR_FORMAT, "%s, line %u: %s", r->path, r->line, what);
}

static int take_section(reader *r, char *line, err *e) {
  char *end = strchr(line, ']');
  /* Behind the bracket a comment may stand, and nothing else. */
  if (!end || !strchr("#;", *trim(end + 1))) return malformed(r, "a section needs its \"]\"", e);
  *end = 0;
  char *name = trim(line + 1);
  bool is_profile = strncmp(name, "profile", 7) == 0 && (name[7] == ' ' || name[7] == '\t');
  if (is_profile) name = trim(name + 8);
  size_t len = strlen(name);
  if (len >= 2 && (*name == '"' || *name == '\'') && name[len - 1] == *name) {
    name[len - 1] = 0;
    name++;
  }
  r->nested[0] = 0;
  /* "[sso-session x]" and its kind are no profiles, whatever they are called. */
  bool profile = !r->prefixed || is_profile || strcmp(name, "default") == 0;
  r->inside = profile && strcmp(name, r->profile) == 0;
  r->seen = r->seen || r->inside;
  return 0;
}

static int take_setting(reader *r, const char *key, const char *value, err *e) {
  credentials *c = r->to;
  const struct {
    const char *key;
    char *to;
    size_t room;
  } known[] = {
      {"aws_access_key_id", c->access, sizeof c->access},
      {"aws_secret_access_key", c->secret, sizeof c->secret},
      {"aws_session_token", c->token, sizeof c->token},
      {"region", c->region, sizeof c->region},
      {"endpoint_url", c->endpoint, sizeof c->endpoint},
      {"ca_bundle", c->ca_file, sizeof c->ca_file},
      {"s3.endpoint_url", c->endpoint, sizeof c->endpoint},
      {"s3.addressing_style", r->style, sizeof r->style},
  };
  static const char *const others[] = {"credential_process", "role_arn", "sso_session",
                                       "sso_start_url", "web_identity_token_file"};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
    if (strcasecmp(key, others[i]) == 0) snprintf(r->other, sizeof r->other, "%s", others[i]);
  char full[64], where[PATH_ROOM + 128];
  if ((size_t)snprintf(full, sizeof full, "%s%s%s", r->nested, *r->nested ? "." : "", key) >=
      sizeof full)
    return 0; /* longer than any known key */
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcasecmp(full, known[i].key) != 0) continue;
    snprintf(where, sizeof where, "%s, line %u: %s", r->path, r->line, known[i].key);
    return take(known[i].to, known[i].room, value, where, e);
  }
  return 0;
}

static int take_line(reader *r, char *line, err *e) {
  bool indented = *line == ' ' || *line == '\t';
  char *text = trim(line);
  if (!*text || *text == '#' || *text == ';') return 0;
  if (*text == '[') return take_section(r, text, e);
  char *equal = strchr(text, '=');
  /* An indented line that is no setting continues the one before, which is none that we read. */
  if (!equal && indented && r->inside) return 0;
  if (!equal || equal == text) return malformed(r, "neither a section nor \"name = value\"", e);
  *equal = 0;
  const char *key = trim(text);
  char *value = trim(equal + 1);
  /* A comment begins after a space: a secret key may have a '#' in it. */
  for (char *c = value + 1; *value && *c; c++) {
    if ((*c != '#' && *c != ';') || (c[-1] != ' ' && c[-1] != '\t')) continue;
    *c = 0;
    break;
  }
  value = trim(value);
  if (!r->inside) return 0;
  if (!indented) snprintf(r->nested, sizeof r->nested, "%s", "");
  if (!indented && !*value) {
    snprintf(r->nested, sizeof r->nested, "%s", strcasecmp(key, "s3") == 0 ? "s3" : "?");
    return 0;
  }
  return take_setting(r, key, value, e);
}

static int take_text(reader *r, char *text, err *e) {
  int rc = 0;
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0) text += 3; /* some editors put this mark first */
  while (text && rc == 0) {
    char *end = strchr(text, '\n');
    if (end) *end = 0;
    r->line++;
    rc = take_line(r, text, e);
    text = end ? end + 1 : NULL;
  }
  return rc;
}

/* Reads the profiles of one file. A file that is not there is no error: `seen` tells. */
static int read_profiles(const io *io, reader *r, err *e) {
  buf text;
  buf_init(&text, FILE_MAX);
  if (!*r->path) return 0; /* no home */
  err failed = {0};
  int rc = fs_read(io, r->path, FILE_MAX, &text, &failed);
  if (rc == ERR_NOENT || (rc == ERR_ACCESS && r->optional)) {
    rc = 0;
  } else if (rc < 0) {
    if (e) *e = failed;
  } else if (text.len && memchr(text.data, 0, text.len)) {
    rc = err_set(e, ERR_FORMAT, "%s: there is a NUL in it: is it a text?", r->path);
  } else if (text.len) {
    rc = take_text(r, text.data, e);
  }
  if (text.data) explicit_bzero(text.data, text.room);
  buf_free(&text);
  return rc;
}

/* Takes the path of the variable, with "~/" spelled out, else the one below the home; "" without a
 * home. */
static int file_path(const char *variable, const char *otherwise, char out[PATH_ROOM], err *e) {
  const char *given = getenv(variable), *home = getenv("HOME");
  out[0] = 0;
  if (!given || !*given) given = otherwise;
  if (strncmp(given, "~/", 2) != 0)
    home = NULL;
  else if (!home || !*home)
    return 0;
  int len = home ? snprintf(out, PATH_ROOM, "%s%s", home, given + 1)
                 : snprintf(out, PATH_ROOM, "%s", given);
  if (len < PATH_ROOM) return 0;
  return err_set(e, ERR_LIMIT, "%s: the path is too long", variable);
}

/* ---- all together ---- */

/* Keys are used as a pair: half of it from here and half from there would sign wrongly. */
static int check_pair(const credentials *c, const char *where, err *e) {
  if (*c->access && !*c->secret)
    return err_set(e, ERR_ACCESS, "%s: there is an access key but no secret key", where);
  if (*c->secret && !*c->access)
    return err_set(e, ERR_ACCESS, "%s: there is a secret key but no access key", where);
  return 0;
}

static int keys_of_env(credentials *c, err *e) {
  static const char *const access[] = {"AWS_ACCESS_KEY_ID", NULL};
  static const char *const secret[] = {"AWS_SECRET_ACCESS_KEY", NULL};
  static const char *const token[] = {"AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", NULL};
  int rc = take_env(access, c->access, sizeof c->access, e);
  if (rc >= 0) rc = take_env(secret, c->secret, sizeof c->secret, e);
  if (rc >= 0 && *c->access) rc = take_env(token, c->token, sizeof c->token, e);
  return rc < 0 ? rc : check_pair(c, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", e);
}

static void keys_of_profile(credentials *c, const credentials *from) {
  memcpy(c->access, from->access, sizeof c->access);
  memcpy(c->secret, from->secret, sizeof c->secret);
  memcpy(c->token, from->token, sizeof c->token);
}

static bool is_yes(const char *value) {
  return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 &&
         strcasecmp(value, "no") != 0;
}

static int no_keys(credentials *c, const reader *keys, const reader *config, err *e) {
  if (is_yes(getenv("AWS_NO_SIGN_REQUEST"))) {
    c->anonymous = true;
    return 0;
  }
  const char *other = *keys->other ? keys->other : config->other;
  if (*other)
    return err_set(e, ERR_ACCESS,
                   "no keys for S3: the profile \"%s\" has %s, which is not known "
                   "here; aws configure export-credentials --format env prints the keys that it "
                   "leads to",
                   keys->profile, other);
  return err_set(e, ERR_ACCESS,
                 "no keys for S3: AWS_ACCESS_KEY_ID is not set, and the profile "
                 "\"%s\" %s in %s and %s; AWS_NO_SIGN_REQUEST=1 goes without keys",
                 keys->profile, keys->seen || config->seen ? "has none" : "is not",
                 *keys->path ? keys->path : "~/.aws/credentials",
                 *config->path ? config->path : "~/.aws/config");
}

/* Finds region, endpoint and certificates: in the environment, then in the files, then the
 * default. */
static int places(credentials *c, const credentials *keys, const credentials *config, err *e) {
  static const char *const region[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};
  static const char *const endpoint[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
  static const char *const ca[] = {"AWS_CA_BUNDLE", NULL};
  int rc = take_env(region, c->region, sizeof c->region, e);
  if (rc == 0) memcpy(c->region, *keys->region ? keys->region : config->region, sizeof c->region);
  if (rc >= 0 && !*c->region) memcpy(c->region, "us-east-1", sizeof "us-east-1");
  if (rc >= 0) rc = take_env(endpoint, c->endpoint, sizeof c->endpoint, e);
  if (rc == 0)
    memcpy(c->endpoint, *keys->endpoint ? keys->endpoint : config->endpoint, sizeof c->endpoint);
  if (rc >= 0) rc = take_env(ca, c->ca_file, sizeof c->ca_file, e);
  if (rc == 0)
    memcpy(c->ca_file, *keys->ca_file ? keys->ca_file : config->ca_file, sizeof c->ca_file);
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

/* "BUCKET.HOST" is no name where the host is an address, and seldom one at an endpoint of one's
 * own: the common clients take the path there too. */
static bool wants_path(const char *endpoint, bool virtual_asked) {
  const char *host = strstr(endpoint, "://");
  if (!host) return false;
  host += 3;
  bool address = *host == '[' || strspn(host, "0123456789.") == strcspn(host, ":/");
  return address || (!virtual_asked && !strstr(host, ".amazonaws.com"));
}

static int set_style(credentials *c, const reader *keys, const reader *config, err *e) {
  static const char *const variable[] = {"AWS_S3_ADDRESSING_STYLE", NULL};
  char style[16] = "";
  int rc = take_env(variable, style, sizeof style, e);
  if (rc < 0) return rc;
  if (rc == 0) memcpy(style, *keys->style ? keys->style : config->style, sizeof style);
  bool path = strcmp(style, "path") == 0, virtual_asked = strcmp(style, "virtual") == 0;
  c->path_style = path || wants_path(c->endpoint, virtual_asked);
  if (!*style || path || virtual_asked || strcmp(style, "auto") == 0) return 0;
  return err_set(e, ERR_INVAL,
                 "the addressing style of S3 (AWS_S3_ADDRESSING_STYLE or the "
                 "profile's addressing_style) has to be path, virtual or auto");
}

int credentials_find(const io *io, credentials *out, err *e) {
  credentials keys = {0}, config = {0};
  char keys_path[PATH_ROOM], config_path[PATH_ROOM];
  char profile[256] = "default";
  static const char *const variable[] = {"AWS_PROFILE", "AWS_DEFAULT_PROFILE", NULL};
  reader from_keys = {.path = keys_path, .profile = profile, .to = &keys};
  reader from_config = {.path = config_path, .profile = profile, .prefixed = true, .to = &config};
  *out = (credentials){0};
  int rc = take_env(variable, profile, sizeof profile, e);
  if (rc >= 0) rc = file_path("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", keys_path, e);
  if (rc >= 0) rc = file_path("AWS_CONFIG_FILE", "~/.aws/config", config_path, e);
  if (rc >= 0) rc = keys_of_env(out, e);
  bool env = *out->access;
  from_keys.optional = env && !getenv("AWS_SHARED_CREDENTIALS_FILE");
  from_config.optional = env && !getenv("AWS_CONFIG_FILE");
  if (rc >= 0) rc = read_profiles(io, &from_keys, e);
  if (rc >= 0) rc = read_profiles(io, &from_config, e);
  if (rc >= 0 && !env) {
    keys_of_profile(out, *keys.access || *keys.secret ? &keys : &config);
    rc = check_pair(out, *keys.access || *keys.secret ? keys_path : config_path, e);
  }
  if (rc >= 0 && !*out->access) rc = no_keys(out, &from_keys, &from_config, e);
  if (rc >= 0) rc = places(out, &keys, &config, e);
  if (rc >= 0) rc = check_endpoint(out, e);
  if (rc >= 0) rc = set_style(out, &from_keys, &from_config, e);
  credentials_forget(&keys);
  credentials_forget(&config);
  if (rc < 0) credentials_forget(out);
  return rc < 0 ? rc : 0;
}

void credentials_forget(credentials *c) {
  explicit_bzero(c->access, sizeof c->access);
  explicit_bzero(c->secret, sizeof c->secret);
  explicit_bzero(c->token, sizeof c->token);
}
