#include "uri.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Joins `base` and `path` and resolves ".", ".." and repeated slashes by name alone. */
static int normalise(const char *base, const char *path, char *out, size_t room, err *e) {
  size_t len = 0;
  const char *parts[] = {path[0] == '/' ? "" : base, path};
  for (int i = 0; i < 2; i++) {
    const char *at = parts[i];
    while (*at) {
      while (*at == '/') at++;
      size_t n = strcspn(at, "/");
      if (n == 0) break;
      if (n == 2 && at[0] == '.' && at[1] == '.') {
        while (len && out[--len] != '/') {
        }
      } else if (!(n == 1 && at[0] == '.')) {
        if (len + n + 2 > room)
          return err_set(e, ERR_LIMIT, "the path is longer than %zu bytes", room - 1);
        out[len++] = '/';
        memcpy(out + len, at, n);
        len += n;
      }
      at += n;
    }
  }
  if (len == 0) out[len++] = '/';
  out[len] = 0;
  return 0;
}

static int parse_file(const char *path, uri *out, err *e) {
  char base[URI_MAX] = "/";
  if (path[0] != '/' && !getcwd(base, sizeof base))
    return err_set(e, ERR_IO, "the working directory is not known; give an absolute path");
  memcpy(out->scheme, "file", sizeof "file");
  return normalise(base, path, out->path, sizeof out->path, e);
}

/* Other tools write "s3:bucket/x" and "user@host:/data". As a path each would be a directory here,
 * which is lost with the machine: whoever means one says so by "./". */
static int refuse_spelling(const char *text, size_t len, err *e) {
  static const char *const schemes[] = {"s3",   "s3a",   "s3n",  "gs",    "gcs",
                                        "az",   "abfs",  "hdfs", "http",  "ftp",
                                        "sftp", "swift", "b2",   "https", "mem"};
  const char *rest = text + len + 1 + strspn(text + len + 1, "/");
  int shown = len < 60 ? (int)len : 60;
  if (len == 4 && strncmp(text, "file", 4) == 0)
    return err_set(e, ERR_INVAL,
                   "\"file:\" without // is no URI: a path is written as it is (%s), or as "
                   "file:///data/run",
                   text + 5);
  for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
    if (strlen(schemes[i]) == len && strncmp(text, schemes[i], len) == 0)
      return err_set(e, ERR_INVAL, "\"%.*s:\" without // is no URI: write %s://%s", shown, text,
                     schemes[i], rest);
  return err_set(e, ERR_INVAL,
                 "\"%.*s:\" before the path is no target: another host cannot be named so (mount "
                 "its directory here), and a path with a colon is written as ./%s",
                 shown, text, text);
}

/* A shell puts the home directory only where a word begins with "~", so not in "--to=~/x". */
static int refuse_home(const char *text, err *e) {
  int shown = strlen(text) < 60 ? (int)strlen(text) : 60;
  return err_set(e, ERR_INVAL,
                 "\"%.*s\": no shell has made \"~\" a directory: write $HOME%.*s, or ./%.*s for "
                 "a directory of that name",
                 shown, text, shown - 1, text + 1, shown, text);
}

/* ---- queries ---- */

enum { SHOWN_MAX = 60 };

static const char name_bytes[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/* Returns where a query begins, at a "?" with NAME= behind it; NULL: there is none. A question mark
 * alone is a character like others. */
static const char *find_query(const char *rest) {
  for (const char *at = strchr(rest, '?'); at; at = strchr(at + 1, '?')) {
    size_t name = strspn(at + 1, name_bytes);
    if (name > 0 && at[1 + name] == '=') return at + 1;
  }
  return NULL;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)tolower((unsigned char)c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes `len` bytes. False: a broken escape, or one of a control character. */
static bool decode(const char *from, size_t len, char *out) {
  for (size_t i = 0; i < len; i++) {
    char c = from[i] == '+' ? ' ' : from[i];
    if (c == '%') {
      int high = i + 2 < len ? hex_digit(from[i + 1]) : -1;
      int low = high >= 0 ? hex_digit(from[i + 2]) : -1;
      if (low < 0) return false;
      c = (char)(high << 4 | low);
      i += 2;
    }
    if ((unsigned char)c < 0x20 || c == 0x7f) return false;
    *out++ = c;
  }
  *out = 0;
  return true;
}

int uri_query_next(const char **at, char name[URI_NAME_MAX], char value[URI_QUERY_MAX], err *e) {
  *at += strspn(*at, "&");
  if (!**at) return 0;
  size_t len = strcspn(*at, "&"), head = strspn(*at, name_bytes);
  if (head == 0 || head >= URI_NAME_MAX || (*at)[head] != '=' || len - head > URI_QUERY_MAX)
    return err_set(e, ERR_INVAL, "the query of the target is no NAME=VALUE&NAME=VALUE");
  memcpy(name, *at, head);
  name[head] = 0;
  if (!decode(*at + head + 1, len - head - 1, value))
    return err_set(e, ERR_INVAL, "\"%s=\" in the query of the target: broken %%XX", name);
  *at += len;
  return 1;
}

/* A command line is seen by all users of the machine, and a target stands in logs. */
static int refuse_secrets(const char *query, err *e) {
  static const char *const words[] = {"secret",     "password",     "token",
                                      "access_key", "customer_key", "credential"};
  char name[URI_NAME_MAX], value[URI_QUERY_MAX];
  int rc;
  while ((rc = uri_query_next(&query, name, value, e)) > 0)
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
      if (strcasestr(name, words[i]))
        return err_set(e, ERR_INVAL,
                       "\"%s=...\" in a target would be seen by others: give it by the "
                       "environment or a file",
                       name);
  return rc;
}

static int take_query(uri *out, const char *query, err *e) {
  bool bucket = strcmp(out->scheme, "s3") == 0 || strcmp(out->scheme, "gs") == 0;
  size_t len = strlen(query), name = strcspn(query, "=");
  if (!bucket)
    return err_set(e, ERR_INVAL, "a %s:// target has no query: leave out \"?%.*s=...\"",
                   out->scheme, name < SHOWN_MAX ? (int)name : SHOWN_MAX, query);
  if (len >= sizeof out->query)
    return err_set(e, ERR_LIMIT, "the query of the target is longer than %zu bytes",
                   sizeof out->query - 1);
  memcpy(out->query, query, len + 1);
  return refuse_secrets(query, e);
}

/* `rest` is what stands behind "://". */
static int parse_bucket(const char *rest, uri *out, err *e) {
  int rc = 0;
  const char *query = find_query(rest);
  size_t whole = query ? (size_t)(query - rest) - 1 : strlen(rest), host = strcspn(rest, "/");
  if (host > whole) host = whole;
  if (memchr(rest, '@', host))
    return err_set(e, ERR_INVAL,
                   "a %s:// target with a user or password before @ is refused: give credentials "
                   "by the environment",
                   out->scheme);
  if (host == 0 || host >= sizeof out->host)
    return err_set(e, ERR_INVAL, "%s://: the bucket or name that follows is %s", out->scheme,
                   host ? "too long" : "missing");
  memcpy(out->host, rest, host);
  if (query && (rc = take_query(out, query, e)) < 0) return rc;
  char path[URI_MAX], behind[URI_MAX];
  memcpy(behind, rest + host, whole - host);
  behind[whole - host] = 0;
  rc = normalise("/", behind, path, sizeof path, e);
  if (rc == 0) memcpy(out->path, path + 1, strlen(path)); /* the NUL too */
  return rc;
}

int uri_parse(const char *text, uri *out, err *e) {
  memset(out, 0, sizeof *out);
  if (!text || !*text) return err_set(e, ERR_INVAL, "the target is empty: give a path or a URI");
  if (strlen(text) >= URI_MAX)
    return err_set(e, ERR_LIMIT, "the target is longer than %d bytes", URI_MAX - 1);
  if (text[0] == '~' && (text[1] == '/' || !text[1])) return refuse_home(text, e);
  const char *sep = strstr(text, "://");
  size_t len = sep ? (size_t)(sep - text) : 0;
  /* "a/b://c" is a path: a scheme has no slash. */
  if (!sep || memchr(text, '/', len)) {
    size_t head = strcspn(text, ":/");
    return head && text[head] == ':' ? refuse_spelling(text, head, e) : parse_file(text, out, e);
  }
  /* The part behind :// is not shown: it may hold a password. */
  int shown = len < 60 ? (int)len : 60;
  if (len == 0 || len >= sizeof out->scheme)
    return err_set(e, ERR_INVAL, "\"%.*s\" before :// is no scheme", shown, text);
  for (size_t i = 0; i < len; i++) {
    if (!isalnum((unsigned char)text[i]))
      return err_set(e, ERR_INVAL, "\"%.*s\" before :// is no scheme", shown, text);
    out->scheme[i] = (char)tolower((unsigned char)text[i]);
  }
  const char *rest = sep + 3;
  if (strcmp(out->scheme, "file") == 0) {
    if (strncmp(rest, "localhost/", 10) == 0) rest += 9;
    if (*rest != '/')
      return err_set(e, ERR_INVAL,
                     "a file URI names no host and has three slashes, as in file:///data/run");
    return parse_file(rest, out, e);
  }
  return parse_bucket(rest, out, e);
}

const char *uri_dir(const uri *u) {
  return strcmp(u->scheme, "file") == 0 ? u->path : NULL;
}

void uri_print(const uri *u, buf *out) {
  int file = strcmp(u->scheme, "file") == 0;
  buf_fmt(out, "%s://%s%s%s", u->scheme, u->host, file || !*u->path ? "" : "/", u->path);
}

void uri_print_below(const uri *u, const char *key, buf *out) {
  uri_print(u, out);
  buf_fmt(out, "%s%s", *key ? "/" : "", key);
  if (*u->query) buf_fmt(out, "?%s", u->query);
}

bool uri_same_place(const char *a, const char *b) {
  uri one, other;
  if (uri_parse(a, &one, NULL) < 0 || uri_parse(b, &other, NULL) < 0) return strcmp(a, b) == 0;
  return strcmp(one.scheme, other.scheme) == 0 && strcmp(one.host, other.host) == 0 &&
         strcmp(one.path, other.path) == 0;
}

int uri_expand(const char *text, buf *out, err *e) {
  if (!text) return err_set(e, ERR_INVAL, "the target is NULL");
  for (const char *at = text; *at; at++) {
    size_t len = *at == '{' ? strspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") : 0;
    if (len == 0 || at[1 + len] != '}' || isdigit((unsigned char)at[1])) {
      buf_add(out, at, 1);
      continue;
    }
    char name[256];
    if (len >= sizeof name) return err_set(e, ERR_INVAL, "the target: a {NAME} is too long");
    memcpy(name, at + 1, len);
    name[len] = 0;
    const char *value = getenv(name);
    if (!value || !*value)
      return err_set(e, ERR_INVAL,
                     "the target has {%s}, but the environment has no %s; set it, or name the "
                     "target without it",
                     name, name);
    buf_str(out, value);
    at += len + 1;
  }
  buf_add(out, "", 0);
  int rc = buf_failed(out);
  return rc < 0 ? err_set(e, rc, "the expanded target is too long") : 0;
}

int uri_path_within(const char *outer, const char *inner) {
  size_t len = strlen(outer);
  if (len == 1) return 1; /* the root */
  return strncmp(outer, inner, len) == 0 && (inner[len] == 0 || inner[len] == '/');
}
