/* What the sources of keys share: a request, its answer, times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "credentials_parts.h"
#include "prims/http.h"
#include "xml.h"

enum {
  STALL_S = 5,
  TRIES = 3,
  PAUSE_MS = 200,
  NAP_MS = 50,
  WORD_MAX = 300,
  HEADERS_MAX = 16 << 10
};

/* ---- times ---- */

/* Reads "+02:00", "-0700", "Z" or nothing, in seconds. False: it is none of these. */
static bool read_offset(const char *text, int64_t *out) {
  int hours = 0, minutes = 0, end = 0;
  *out = 0;
  if (!*text || strcmp(text, "Z") == 0 || strcmp(text, "z") == 0 || strcmp(text, "UTC") == 0)
    return true;
  if (*text != '+' && *text != '-') return false;
  bool colon = sscanf(text + 1, "%2d:%2d%n", &hours, &minutes, &end) == 2 && end > 0;
  if (!colon && (sscanf(text + 1, "%2d%2d%n", &hours, &minutes, &end) != 2 || end == 0))
    return false;
  if (text[1 + end] || hours < 0 || hours > 24 || minutes < 0 || minutes > 59) return false;
  *out = (*text == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  return true;
}

int64_t credentials_time(const char *text) {
  struct tm t = {0};
  int end = 0;
  char between = 0;
  int64_t offset;
  if (sscanf(text, "%4d-%2d-%2d%c%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &between,
             &t.tm_hour, &t.tm_min, &t.tm_sec, &end) != 7 ||
      end == 0 || !strchr("Tt ", between))
    return 0;
  if (t.tm_year < 1970 || t.tm_year > 2200 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 ||
      t.tm_mday > 31 || t.tm_hour < 0 || t.tm_hour > 24 || t.tm_min < 0 || t.tm_min > 59 ||
      t.tm_sec < 0 || t.tm_sec > 60)
    return 0;
  text += end;
  if (*text == '.') text += 1 + strspn(text + 1, "0123456789");
  if (!read_offset(text, &offset)) return 0;
  t.tm_year -= 1900;
  t.tm_mon--;
  return ((int64_t)timegm(&t) - offset) * 1000000000;
}

/* ---- requests ---- */

typedef struct refusal {
  char code[64], message[WORD_MAX];
} refusal;

/* Copies what a server says, so that it can be shown. */
static void take_word(const char *text, char *to, size_t room) {
  buf plain;
  buf_init(&plain, room);
  js_plain(text, room - 1, &plain);
  snprintf(to, room, "%s", plain.data ? plain.data : "");
  buf_free(&plain);
}

static int take_element(void *ctx, const char *path, const char *text) {
  refusal *r = ctx;
  const char *name = strrchr(path, '/');
  if (!name || !text) return 0;
  if (strcmp(name, "/Code") == 0) take_word(text, r->code, sizeof r->code);
  if (strcmp(name, "/Message") == 0) take_word(text, r->message, sizeof r->message);
  return 0;
}

static void take_member(const json_t *from, const char *const *names, char *to, size_t room) {
  for (; *names && !*to; names++) {
    const char *text = json_string_value(json_object_get(from, *names));
    if (text) take_word(text, to, room);
  }
}

static void take_refusal(const credentials_request *r, const buf *answer, refusal *out) {
  static const char *const codes[] = {"error", "Code", "code", "__type", NULL};
  static const char *const messages[] = {"error_description", "Message", "message", NULL};
  json_t *value = NULL;
  *out = (refusal){0};
  if (!answer->len) return;
  if (r->xml) {
    xml_walk_secret(answer->data, answer->len, "an answer", take_element, out, NULL);
  } else if (js_parse_secret(answer->data, answer->len, "an answer", &value, NULL) == 0) {
    take_member(value, codes, out->code, sizeof out->code);
    take_member(value, messages, out->message, sizeof out->message);
    json_decref(value);
  }
}

static int refused(const credentials_request *r, int status, const buf *answer, err *e) {
  refusal why;
  take_refusal(r, answer, &why);
  return err_set(e, status == 429 || status >= 500 ? ERR_IO : ERR_ACCESS, "%s: status %d%s%s%s%s",
                 r->what, status, *why.code ? " " : "", why.code, *why.message ? ": " : "",
                 why.message);
}

/* STS answers 400 where the one who vouches for a token did not answer it. */
static bool may_pass(const credentials_request *r, int rc, int status, const buf *answer) {
  refusal why;
  if (rc < 0) return rc == ERR_IO || rc == ERR_TIMEOUT;
  if (status == 429 || status >= 500) return true;
  if (status != 400 || !r->xml) return false;
  take_refusal(r, answer, &why);
  return strcmp(why.code, "IDPCommunicationError") == 0;
}

static bool is_over(const credentials_ask *a) {
  return (a->cancel && atomic_load(a->cancel)) || (a->stop && atomic_load(a->stop));
}

static bool pause_before(const credentials_ask *a, unsigned tries) {
  for (int64_t left = (int64_t)PAUSE_MS << tries; left > 0 && !is_over(a); left -= NAP_MS)
    a->io->sleep(a->io, (left < NAP_MS ? left : NAP_MS) * 1000000);
  return !is_over(a);
}

static int send_once(const credentials_ask *a, http *net, const credentials_request *r,
                     http_response *answer, err *e) {
  http_call *call = NULL;
  const http_request request = {.method = r->method,
                                .url = r->url,
                                .headers = r->headers,
                                .body = r->body ? r->body->data : NULL,
                                .len = r->body ? r->body->len : 0,
                                .ca_file = *a->places->ca_file ? a->places->ca_file : NULL,
                                .cancel = a->cancel,
                                .stop = a->stop,
                                .stall_s = r->stall_s ? r->stall_s : STALL_S,
                                .direct = r->direct};
  buf_clear(&answer->headers);
  buf_clear(&answer->body);
  int rc = http_start(net, &request, answer, &call, e);
  return rc < 0 ? rc : http_wait(call, e);
}

/* Puts what failed before the reason, whose code and errno stay. */
static int name_failure(const char *what, err *e) {
  err why = *e;
  err_set(e, why.code, "%s: %.800s", what, why.text);
  e->sys = why.sys;
  return why.code;
}

static int send_all(const credentials_ask *a, http *net, const credentials_request *r,
                    http_response *answer, err *e) {
  unsigned most = r->tries ? r->tries : TRIES;
  err why = {0};
  int rc;
  for (unsigned tries = 1;; tries++) {
    rc = send_once(a, net, r, answer, &why);
    if (tries == most || !may_pass(r, rc, answer->status, &answer->body)) break;
    if (!pause_before(a, tries - 1)) break;
  }
  if (rc < 0) rc = name_failure(r->what, &why);
  if (rc == 0 && answer->status != 200 && !r->lone)
    rc = refused(r, answer->status, &answer->body, &why);
  if (rc < 0 && e) *e = why;
  return rc;
}

int credentials_send(const credentials_ask *a, const credentials_request *r, buf *answer,
                     int *status, err *e) {
  http *net = NULL;
  http_response got = {0};
  if (is_over(a)) return err_set(e, ERR_CANCELED, "%s: cancelled", r->what);
  int rc = http_open(&net, e);
  if (rc < 0) return rc;
  buf_init_secret(&got.headers, HEADERS_MAX);
  buf_init_secret(&got.body, CREDENTIALS_ANSWER_MAX);
  rc = send_all(a, net, r, &got, e);
  if (status) *status = got.status;
  if (rc == 0 && got.body.len) buf_add(answer, got.body.data, got.body.len);
  if (rc == 0 && buf_failed(answer)) rc = err_set(e, buf_failed(answer), "%s: no memory", r->what);
  buf_free(&got.headers);
  buf_free(&got.body);
  http_close(net);
  return rc;
}

/* ---- answers ---- */

static int take_text(const json_t *from, const char *key, const char *what, char *to, size_t room,
                     err *e) {
  char where[256];
  const json_t *value = json_object_get(from, key);
  const char *text = json_string_value(value);
  *to = 0;
  if (!value || json_is_null(value)) return 0;
  snprintf(where, sizeof where, "%.160s: \"%s\"", what, key);
  if (!text || strlen(text) != json_string_length(value))
    return err_set(e, ERR_FORMAT, "%s is no text", where);
  return credentials_copy(to, room, text, where, e);
}

/* SSO tells milliseconds, others a text. */
static int take_expiration(const json_t *from, const credentials_names *names, const char *what,
                           int64_t *out, err *e) {
  const json_t *value = json_object_get(from, names->expiration);
  *out = 0;
  if (!value || json_is_null(value)) return 0;
  if (json_is_integer(value)) {
    json_int_t ms = json_integer_value(value);
    if (ms > 0 && ms < INT64_MAX / 1000000) *out = (int64_t)ms * 1000000;
  } else if (json_is_string(value)) {
    *out = credentials_time(json_string_value(value));
  }
  if (*out > 0) return 0;
  return err_set(e, ERR_FORMAT, "%s: \"%s\" is no time", what, names->expiration);
}

int credentials_of_json(const json_t *from, const credentials_names *names, const char *what,
                        credentials *out, err *e) {
  int rc = json_is_object(from) ? 0 : err_set(e, ERR_FORMAT, "%s is no JSON object", what);
  if (rc == 0) rc = take_text(from, names->access, what, out->access, sizeof out->access, e);
  if (rc == 0) rc = take_text(from, names->secret, what, out->secret, sizeof out->secret, e);
  if (rc == 0 && names->token)
    rc = take_text(from, names->token, what, out->token, sizeof out->token, e);
  if (rc == 0 && names->expiration) rc = take_expiration(from, names, what, &out->expires_ns, e);
  if (rc < 0) return rc;
  const char *missing = !*out->access                            ? names->access
                        : !*out->secret                          ? names->secret
                        : names->must_expire && !*out->token     ? names->token
                        : names->must_expire && !out->expires_ns ? names->expiration
                                                                 : NULL;
  return missing ? err_set(e, ERR_FORMAT, "%s has no \"%s\"", what, missing) : 0;
}
