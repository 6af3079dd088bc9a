/* http_call: one request as libcurl sees it: how a handle is set up, where the bytes come from and
 * go to, and what a libcurl error means. All of it runs on the transfer thread. */
#ifndef PRIMS_HTTP_CALL_H
#define PRIMS_HTTP_CALL_H

#include <pthread.h>
#include <sys/types.h>

#include <curl/curl.h>

#include "http.h"

struct http_call {
  http_call *next; /* in the queue, or among the active ones */
  const http_request *request;
  http_response *response;
  CURL *easy;
  struct curl_slist *headers;
  size_t at, farthest; /* how much of the body was handed to libcurl */
  unsigned sendings;   /* how often the request went out */
  bool whole_head;     /* the empty line behind the headers has come */
  int failure;         /* why a callback gave up: ERR_LIMIT or ERR_NOMEM */
  char detail[CURL_ERROR_SIZE];
  /* The owner waits for these, which the lock of http.c guards. */
  pid_t owner;
  pthread_cond_t over;
  atomic_bool done;
  int rc;
  err error;
};

/* ERR_INVAL or ERR_LIMIT for a request that must not go out. Called by the caller's thread. */
int http_call_check(const http_request *request, err *e);
/* Sets up the handle `easy` (fresh or reset), which it then holds. */
int http_call_begin(http_call *call, CURL *easy, err *e);
/* Takes the result down, and frees the headers. The handle is the caller's again. */
int http_call_end(http_call *call, CURLcode code, err *e);
bool http_call_canceled(const http_call *call);
int http_call_cancel(const http_call *call, err *e); /* ERR_CANCELED with its text */

#endif
