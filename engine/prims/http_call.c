#include "http_call.h"

#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

enum {
  /* libcurl's buffer for a body that is sent: each handle has one, so they count 64 times. */
  UPLOAD_ROOM = 256 << 10,
  DOWNLOAD_ROOM = 256 << 10,
  SMALL = 64 << 10,
  WHERE_MAX = 300,
  DEADLINE_MAX = 7 * 24 * 3600, /* seconds; libcurl takes less than 25 days */
};

/* "https://host:port" of a URL: all that an error may show of it. */
static void where(const char *url, char out[WHERE_MAX]) {
  const char *host = strstr(url, "://");
  host = host ? host + 3 : url;
  size_t len = strcspn(host, "/?#");
  for (size_t i = 0; i < len; i++) {
    if (host[i] != '@') continue;
    host += i + 1;
    len -= i + 1;
    i = (size_t)-1;
  }
  int scheme = strncmp(url, "https:", 6) == 0 ? 5 : 4;
  snprintf(out, WHERE_MAX, "%.*s://%.*s", scheme, "https", (int)(len < 256 ? len : 256), host);
}

int http_call_check(const http_request *request, err *e) {
  if (strncmp(request->url, "http://", 7) != 0 && strncmp(request->url, "https://", 8) != 0)
    return err_set(e, ERR_INVAL, "not a URL of http or https");
  size_t count = 0;
  for (const char *const *h = request->headers; h && *h; h++) {
    size_t name = strcspn(*h, ":");
    /* A line end would let a key or a token write headers of its own. */
    if (!(*h)[name] || name == 0 || strpbrk(*h, "\r\n"))
      return err_set(e, ERR_INVAL, "header %zu of a request has no name or has a line end", count);
    if (++count > HTTP_HEADERS_MAX)
      return err_set(e, ERR_LIMIT, "a request with more than %d headers", HTTP_HEADERS_MAX);
  }
  return 0;
}

/* ---- what libcurl calls back ---- */

static size_t send_body(char *to, size_t size, size_t n, void *arg) {
  http_call *call = arg;
  size_t room = size * n, len = call->request->len - call->at;
  if (len > room) len = room;
  if (len) memcpy(to, (const char *)call->request->body + call->at, len);
  call->at += len;
  if (call->at <= call->farthest) return len;
  /* Bytes that go out a second time are no progress. */
  if (call->request->moved)
    atomic_fetch_add(call->request->moved, (uint64_t)(call->at - call->farthest));
  call->farthest = call->at;
  return len;
}

static int rewind_body(void *arg, curl_off_t offset, int origin) {
  http_call *call = arg;
  if (origin != SEEK_SET || offset < 0 || (size_t)offset > call->request->len)
    return CURL_SEEKFUNC_FAIL;
  call->at = (size_t)offset;
  return CURL_SEEKFUNC_OK;
}

/* Called when a connection stands and the request goes out, for the first time or once more. */
static int count_sending(void *arg, char *a, char *b, int c, int d) {
  (void)a, (void)b, (void)c, (void)d;
  ((http_call *)arg)->sendings++;
  return CURL_PREREQFUNC_OK;
}

/* A return value other than `len` makes libcurl give the transfer up. */
static size_t taken(http_call *call, const buf *b, size_t len) {
  call->failure = buf_failed(b);
  return call->failure ? 0 : len;
}

static size_t take_header(char *line, size_t size, size_t n, void *arg) {
  http_call *call = arg;
  buf *out = &call->response->headers;
  size_t len = size * n, name = 0;
  if (len > 5 && memcmp(line, "HTTP/", 5) == 0) {
    long status = 0;
    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    call->response->status = (int)status;
    call->whole_head = false;
    buf_clear(out); /* the headers so far belong to a "100 Continue" */
    return len;
  }
  if (line[0] == '\r' || line[0] == '\n') call->whole_head = true;
  while (name < len && line[name] != ':') name++;
  if (name == 0 || name == len) return len; /* the empty line at the end; garbage */
  size_t from = name + 1, to = len;
  while (to > from && isspace((unsigned char)line[to - 1])) to--;
  while (from < to && isspace((unsigned char)line[from])) from++;
  char *lower = buf_reserve(out, name);
  if (lower) {
    for (size_t i = 0; i < name; i++) lower[i] = (char)tolower((unsigned char)line[i]);
    buf_grown(out, name);
  }
  buf_str(out, ": ");
  buf_add(out, line + from, to - from);
  buf_str(out, "\n");
  return taken(call, out, len);
}

static size_t take_body(char *data, size_t size, size_t n, void *arg) {
  http_call *call = arg;
  http_response *r = call->response;
  size_t len = size * n;
  if (!r->into || r->status < 200 || r->status >= 300) {
    buf_add(&r->body, data, len);
    return taken(call, &r->body, len);
  }
  if (len > r->room - r->got) {
    call->failure = ERR_LIMIT;
    return 0;
  }
  memcpy((char *)r->into + r->got, data, len);
  r->got += len;
  if (call->request->moved) atomic_fetch_add(call->request->moved, (uint64_t)len);
  return len;
}

/* ---- set-up ---- */

static bool add_header(http_call *call, const char *line) {
  struct curl_slist *longer = curl_slist_append(call->headers, line);
  if (longer) call->headers = longer;
  return longer != NULL;
}

/* libcurl drops a header without a value, unless its name ends with a semicolon. */
static bool add_given(http_call *call, const char *line) {
  size_t name = strcspn(line, ":");
  if (line[name + 1 + strspn(line + name + 1, " \t")]) return add_header(call, line);
  char bare[256];
  if ((size_t)snprintf(bare, sizeof bare, "%.*s;", (int)name, line) >= sizeof bare) return false;
  return add_header(call, bare);
}

static bool set_headers(http_call *call) {
  /* libcurl adds these headers otherwise: each costs bytes with each small object, and "Expect" a
   * round trip, too. */
  bool ok = add_header(call, "Expect:") && add_header(call, "Accept:");
  for (const char *const *h = call->request->headers; ok && h && *h; h++) ok = add_given(call, *h);
  return ok && curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers) == CURLE_OK;
}

static bool set_method(http_call *call) {
  const http_request *r = call->request;
  bool ok = curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, r->method) == CURLE_OK;
  if (strcmp(r->method, "HEAD") == 0) {
    curl_easy_setopt(call->easy, CURLOPT_NOBODY, 1L);
  } else if (r->body || strcmp(r->method, "PUT") == 0 || strcmp(r->method, "POST") == 0) {
    /* A POST is sent as an upload, too: libcurl's own POST adds the content type of a web form. */
    curl_easy_setopt(call->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(call->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->len);
    curl_easy_setopt(call->easy, CURLOPT_UPLOAD_BUFFERSIZE,
                     (long)(r->len > SMALL ? UPLOAD_ROOM : SMALL));
  }
  if (call->response->into && call->response->room > SMALL)
    curl_easy_setopt(call->easy, CURLOPT_BUFFERSIZE, (long)DOWNLOAD_ROOM);
  return ok;
}

static void set_callbacks(http_call *call) {
  CURL *easy = call->easy;
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->detail);
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, send_body);
  curl_easy_setopt(easy, CURLOPT_READDATA, call);
  curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, rewind_body);
  curl_easy_setopt(easy, CURLOPT_SEEKDATA, call);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, count_sending);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, call);
}

/* The limit in seconds for the whole transfer: the limit on silence does not see a server that
 * sends a byte a second. */
static long deadline(const http_call *call, long stall) {
  const http_response *r = call->response;
  size_t most = call->request->len + (r->into ? r->room : r->body.max);
  size_t bytes_s = most / HTTP_SLOWEST;
  return 5 * stall + (bytes_s < DEADLINE_MAX ? (long)bytes_s : DEADLINE_MAX);
}

static bool set_limits(http_call *call) {
  CURL *easy = call->easy;
  long stall = call->request->stall_s ? (long)call->request->stall_s : HTTP_STALL_S;
  curl_easy_setopt(easy, CURLOPT_TIMEOUT, deadline(call, stall));
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, stall < HTTP_CONNECT_S ? stall : HTTP_CONNECT_S);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, stall);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  /* A cancel must not wait for a name server that does not answer. */
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  /* A password in a URL would end up in its user's logs. */
  curl_easy_setopt(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (call->request->direct) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
}

static bool set_tls(http_call *call) {
  CURL *easy = call->easy;
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
  bool ok = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L) == CURLE_OK &&
            curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L) == CURLE_OK;
  if (!call->request->ca_file || !*call->request->ca_file) return ok;
  /* Without the second option the system's certificates would be accepted, too. */
  return ok && curl_easy_setopt(easy, CURLOPT_CAINFO, call->request->ca_file) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

int http_call_begin(http_call *call, CURL *easy, err *e) {
  call->easy = easy;
  set_callbacks(call);
  if (set_limits(call) && set_tls(call) && set_method(call) && set_headers(call) &&
      curl_easy_setopt(easy, CURLOPT_URL, call->request->url) == CURLE_OK)
    return 0;
  curl_slist_free_all(call->headers);
  call->headers = NULL;
  char place[WHERE_MAX];
  where(call->request->url, place);
  return err_set(e, ERR_NOMEM,
                 "%s: libcurl cannot set up the request: no memory, or built without "
                 "what it needs",
                 place);
}

/* ---- the end ---- */

static int code_of(CURLcode code) {
  switch (code) {
  case CURLE_OPERATION_TIMEDOUT: return ERR_TIMEOUT;
  case CURLE_OUT_OF_MEMORY: return ERR_NOMEM;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_ISSUER_ERROR: return ERR_ACCESS;
  case CURLE_URL_MALFORMAT:
  case CURLE_LOGIN_DENIED: return ERR_INVAL; /* the second: a user's name in the URL */
  default: return ERR_IO;
  }
}

static const char *hint(CURLcode code) {
  switch (code) {
  case CURLE_COULDNT_RESOLVE_HOST: return "; is the name right, and is there a network?";
  case CURLE_COULDNT_RESOLVE_PROXY: return "; check the *_proxy variables";
  case CURLE_COULDNT_CONNECT: return "; does the server run, and is the port right?";
  case CURLE_PEER_FAILED_VERIFICATION: return "; for a CA of your own set AWS_CA_BUNDLE";
  case CURLE_SSL_CACERT_BADFILE: return "; does the file exist, and is it PEM?";
  case CURLE_SSL_CONNECT_ERROR: return "; does this port speak TLS?";
  default: return "";
  }
}

int http_call_end(http_call *call, CURLcode code, err *e) {
  curl_off_t us = 0;
  curl_easy_getinfo(call->easy, CURLINFO_TOTAL_TIME_T, &us);
  call->response->seconds = (double)us / 1e6;
  call->response->resent = call->sendings > 1;
  curl_slist_free_all(call->headers);
  call->headers = NULL;
  if (code == CURLE_OK && call->whole_head) return 0;
  char place[WHERE_MAX];
  where(call->request->url, place);
  /* libcurl takes a head that is cut for a whole one; without the length even a body that is cut.
   */
  if (code == CURLE_OK)
    return err_set(e, ERR_IO, "%s: the connection was closed in the middle of the answer's head",
                   place);
  if (call->failure == ERR_LIMIT)
    return err_set(e, ERR_LIMIT, "%s: the answer is larger than it may be", place);
  if (call->failure) return err_set(e, call->failure, "%s: no memory for the answer", place);
  /* Here libcurl may repeat the URL, with its query. */
  bool repeats = code == CURLE_URL_MALFORMAT || code == CURLE_LOGIN_DENIED;
  const char *what = call->detail[0] && !repeats ? call->detail : curl_easy_strerror(code);
  int rc = err_set(e, code_of(code), "%s: %s%s", place, what, hint(code));
  if (e && code == CURLE_COULDNT_RESOLVE_HOST) e->sys = HTTP_UNRESOLVED;
  return rc;
}

bool http_no_such_host(const char *url) {
  char place[WHERE_MAX];
  struct addrinfo *found = NULL;
  where(url, place);
  char *host = strstr(place, "://") + 3;
  if (*host == '[') return false; /* an address */
  host[strcspn(host, ":")] = 0;
  int rc = getaddrinfo(host, NULL, NULL, &found);
  if (rc == 0) freeaddrinfo(found);
  return rc == EAI_NONAME;
}

bool http_call_canceled(const http_call *call) {
  const http_request *r = call->request;
  return (r->cancel && atomic_load(r->cancel)) || (r->stop && atomic_load(r->stop));
}

int http_call_cancel(const http_call *call, err *e) {
  char place[WHERE_MAX];
  where(call->request->url, place);
  return err_set(e, ERR_CANCELED, "%s: the request was cancelled", place);
}
