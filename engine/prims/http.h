/* http: requests over libcurl, on one thread for the whole process (the transfer thread), however
 * many stores and engines use it. http_call.[ch] alone know libcurl.
 *
 * http_start() may be called from any thread and returns at once; http_wait() blocks until the
 * request is over. Request and response belong to the caller and must stay where they are in
 * between. Connections are kept and used again. There is no automatic retry but one (`resent`), no
 * redirect is followed, no proxy or credential file of libcurl's own is read but the *_proxy
 * variables.
 *
 * Limits: a connection has HTTP_CONNECT_S to be made; a transfer that moves less than 1 byte a
 * second for HTTP_STALL_S, or an answer that does not come for so long, ends with ERR_TIMEOUT. One
 * that trickles has five times as long, and a second more for each HTTP_SLOWEST bytes that it may
 * move. A
 * request whose `cancel` or `stop` becomes non-zero ends with ERR_CANCELED within 0.2 s.
 *
 * After a fork only the parent can go on with what it had: in the child each call here fails with
 * ERR_UNSUPPORTED at once, and http_close gives back nothing. A child of a process that held no
 * share at the time may open its own. */
#ifndef PRIMS_HTTP_H
#define PRIMS_HTTP_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum { HTTP_CONNECT_S = 10, HTTP_STALL_S = 60, HTTP_SLOWEST = 4096 };
enum { HTTP_HEADERS_MAX = 48, HTTP_TRANSFERS_MAX = 64 };
/* Without work for so long, the thread ends and all connections and buffers go; the next request
 * starts it again. An idle engine has no wake-ups. */
enum { HTTP_IDLE_MS = 30000 };

typedef struct http http;

/* Takes a share in the transfer thread, which starts with the first request and ends when the last
 * share is given back. */
int http_open(http **out, err *e);
void http_close(http *h); /* no request of this share may be running; NULL is fine */

typedef struct http_request {
  const char *method;         /* "GET", "HEAD", "PUT", "POST", "DELETE" */
  const char *url;            /* whole, every byte of it as it is to be sent */
  const char *const *headers; /* "Name: value", NULL ends; content-length is set from `len` */
  const void *body;           /* sent from here, not copied; NULL: none */
  size_t len;
  const char *ca_file;     /* PEM; NULL: the system's */
  atomic_int *cancel;      /* may be NULL */
  atomic_int *stop;        /* as `cancel`, for another who may end it; may be NULL */
  _Atomic uint64_t *moved; /* grows as the body is sent or received into `into`; may be NULL */
  bool direct;             /* past any proxy of the environment */
  unsigned stall_s; /* 0: HTTP_STALL_S; if less than HTTP_CONNECT_S, it is the limit of the connect
                     * too; five times as long is the limit of the whole, beside the time for the
                     * bytes */
} http_request;

typedef struct http_response {
  int status;       /* HTTP status; 0: none came */
  buf headers;      /* "name: value\n" lines, names in lower case; the caller sets its cap by
                       buf_init; the final answer's only */
  buf body;         /* cap by buf_init: a longer one is ERR_LIMIT. With `into` only for statuses of
                       300 and above */
  void *into;       /* where the body of a 2xx goes; NULL: to `body` */
  size_t room, got; /* of `into`: more is ERR_LIMIT */
  double seconds;
  bool resent; /* libcurl sends a request once more where a kept connection turns out to be dead: an
                  earlier copy may have had its effect */
} http_response;

/* Starts a request; `response` is cleared first. Any HTTP status is success: 0. Otherwise
 * http_start or http_wait returns ERR_TIMEOUT, ERR_IO (connection refused or lost, TLS; the text
 * names host and port, never a header or the query), ERR_CANCELED, ERR_LIMIT, ERR_ACCESS (the
 * certificate), ERR_NOMEM, ERR_INVAL (no URL of http or https, a header with a line end). */
/* An error's `sys` is HTTP_UNRESOLVED where the host's name could not be found out. */
enum { HTTP_UNRESOLVED = EADDRNOTAVAIL };
typedef struct http_call http_call;
int http_start(http *h, const http_request *request, http_response *response, http_call **out,
               err *e);
int http_wait(http_call *call, err *e); /* frees the call */
bool http_done(const http_call *call);

/* Asks the name servers once more: true if they say that no such host exists, false if they cannot
 * tell just now. Blocks for as long as the system's resolver does. */
bool http_no_such_host(const char *url);

/* For tests: sets another time than HTTP_IDLE_MS. Call it before the first request. */
void http_idle_after(int ms);

/* Puts the value of a header of the answer into `out`, or "" (returns false). `name` is in lower
 * case. */
bool http_header(const http_response *response, const char *name, char *out, size_t room);

#endif
