#include "uri.h"

#include <ctype.h>
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

/* What stands behind a "?" of the form NAME= would become part of every key. A question mark alone
 * is a character like others. */
static int refuse_query(const char *scheme, const char *rest, err *e) {
  const char *at = rest;
  while ((at = strchr(at, '?'))) {
    size_t name = strspn(++at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-");
    if (name == 0 || at[name] != '=') continue;
    return err_set(e, ERR_INVAL,
                   "a %s:// target has no query: leave out \"?%.*s=...\"; a region, an endpoint "
                   "and keys are given by the environment (AWS_REGION, AWS_ENDPOINT_URL)",
                   scheme, name < 60 ? (int)name : 60, at);
  }
  return 0;
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
  if (refuse_query(out->scheme, rest, e) < 0) return ERR_INVAL;
  size_t host = strcspn(rest, "/");
  if (memchr(rest, '@', host))
    return err_set(e, ERR_INVAL,
                   "a %s:// target with a user or password before @ is refused: give credentials "
                   "by the environment",
                   out->scheme);
  if (host == 0 || host >= sizeof out->host)
    return err_set(e, ERR_INVAL, "%s://: the bucket or name that follows is %s", out->scheme,
                   host ? "too long" : "missing");
  memcpy(out->host, rest, host);
  char path[URI_MAX];
  int rc = normalise("/", rest + host, path, sizeof path, e);
  if (rc == 0) memcpy(out->path, path + 1, strlen(path)); /* the NUL too */
  return rc;
}

const char *uri_dir(const uri *u) {
  return strcmp(u->scheme, "file") == 0 ? u->path : NULL;
}

void uri_print(const uri *u, buf *out) {
  int file = strcmp(u->scheme, "file") == 0;
  buf_fmt(out, "%s://%s%s%s", u->scheme, u->host, file || !*u->path ? "" : "/", u->path);
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
