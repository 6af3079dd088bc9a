#include "http.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/secret.h"
#include "http_call.h"

enum { TICK_MS = 50 }; /* how often a cancel is looked for */

struct http {
  pid_t owner;
};

/* The transfer thread, as the others see it. */
static struct {
  pthread_mutex_t lock; /* guards all below */
  pthread_cond_t ended;
  unsigned shares;
  enum {
    NONE,
    RUNS,
    ENDED
  } state; /* ENDED: it touches nothing here any more, and is to be joined */
  pthread_t thread;
  CURLM *multi;             /* while it RUNS: to wake it */
  http_call *first, **last; /* requests that it has not taken yet */
  bool ready;               /* libcurl's own state is set up, for the rest of the process */
  int64_t idle_ns;
} the = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .ended = PTHREAD_COND_INITIALIZER,
         .last = &the.first,
         .idle_ns = HTTP_IDLE_MS * INT64_C(1000000)};

/* The process that has the shares, or 0. A forked child must not touch the lock above: a thread
 * that the child does not have may hold it. */
static _Atomic pid_t owner;

static int not_ours(err *e) {
  return err_set(e, ERR_UNSUPPORTED,
                 "the process that opened this store was forked; its child cannot use it: start "
                 "the child's own program, or open the store only there");
}

static int64_t now_ns(void) {
  return io_system()->now(io_system(), IO_MONO);
}

/* ---- on the thread ---- */

typedef struct loop {
  CURLM *multi;
  http_call *active;
  size_t count;                    /* of those */
  CURL *spare[HTTP_TRANSFERS_MAX]; /* they keep the sessions of TLS */
  size_t spares;
  int64_t idle_since; /* 0: at work */
} loop;

/* After this the call may be gone. */
static void finish(http_call *call, int rc) {
  pthread_mutex_lock(&the.lock);
  call->rc = rc;
  atomic_store(&call->done, true);
  pthread_cond_signal(&call->over);
  pthread_mutex_unlock(&the.lock);
}

static void begin(loop *l, http_call *call) {
  CURL *easy = l->spares ? l->spare[--l->spares] : curl_easy_init();
  int rc = easy ? http_call_begin(call, easy, &call->error)
                : err_set(&call->error, ERR_NOMEM, "no memory for a request over HTTP");
  if (rc == 0 && curl_multi_add_handle(l->multi, easy) != CURLM_OK)
    rc = http_call_end(call, CURLE_OUT_OF_MEMORY, &call->error);
  if (rc == 0) {
    call->next = l->active;
    l->active = call;
    l->count++;
    return;
  }
  curl_easy_cleanup(easy);
  finish(call, rc);
}

/* Takes a call out of the list of the active ones. */
static void end(loop *l, http_call **link, CURLcode code, bool canceled) {
  http_call *call = *link;
  *link = call->next;
  l->count--;
  CURL *easy = call->easy;
  curl_multi_remove_handle(l->multi, easy);
  int rc = http_call_end(call, code, &call->error);
  if (canceled) rc = http_call_cancel(call, &call->error);
  curl_easy_reset(easy);
  l->spare[l->spares++] = easy; /* there is room: active and spare are 64 together */
  finish(call, rc);
}

static void work(loop *l) {
  int running = 0, left = 0;
  CURLMcode broken = curl_multi_perform(l->multi, &running);
  CURLMsg *m;
  while ((m = curl_multi_info_read(l->multi, &left))) {
    http_call **link = &l->active;
    while (*link && (*link)->easy != m->easy_handle) link = &(*link)->next;
    if (*link) end(l, link, m->data.result, false);
  }
  for (http_call **link = &l->active; *link;) {
    if (http_call_canceled(*link))
      end(l, link, CURLE_ABORTED_BY_CALLBACK, true);
    else if (broken)
      end(l, link, CURLE_OUT_OF_MEMORY, false);
    else
      link = &(*link)->next;
  }
}

/* Takes as many requests from the queue as there is room for, and those that are cancelled. The
 * lock is held before and after. */
static void take(loop *l) {
  http_call *mine = NULL, **tail = &mine;
  size_t count = l->count;
  for (http_call **link = &the.first; *link;) {
    http_call *call = *link;
    if (count == HTTP_TRANSFERS_MAX && !http_call_canceled(call)) {
      link = &call->next;
      continue;
    }
    if (!http_call_canceled(call)) count++;
    *link = call->next;
    if (!*link) the.last = link;
    *tail = call;
    tail = &call->next;
    call->next = NULL;
  }
  pthread_mutex_unlock(&the.lock);
  while (mine) {
    http_call *call = mine;
    mine = call->next;
    if (l->count == HTTP_TRANSFERS_MAX || http_call_canceled(call))
      finish(call, http_call_cancel(call, &call->error));
    else
      begin(l, call);
  }
  pthread_mutex_lock(&the.lock);
}

/* Returns how long to sleep, in ms; -1: there is no work, and none will come. The lock is held. */
static int rest(loop *l) {
  if (l->count || the.first) {
    l->idle_since = 0;
    return TICK_MS;
  }
  int64_t now = now_ns();
  if (!l->idle_since) l->idle_since = now;
  int64_t left = the.idle_ns - (now - l->idle_since);
  if (left <= 0 || the.shares == 0) return -1;
  return left / 1000000 < INT_MAX ? (int)(left / 1000000) + 1 : INT_MAX;
}

static void *transfer(void *arg) {
  loop l = {.multi = arg};
  pthread_mutex_lock(&the.lock);
  for (;;) {
    take(&l);
    int ms = rest(&l);
    if (ms < 0) break;
    pthread_mutex_unlock(&the.lock);
    size_t before = l.count;
    if (before) work(&l);
    /* A place that came free is for a request that waits in the queue: no time to sleep. */
    if (l.count < before) ms = 0;
    /* A poll that fails returns at once: without a pause that would be a busy loop. */
    if (curl_multi_poll(l.multi, NULL, 0, ms, NULL) != CURLM_OK)
      io_system()->sleep(io_system(), TICK_MS * INT64_C(1000000));
    pthread_mutex_lock(&the.lock);
  }
  the.state = ENDED;
  the.multi = NULL;
  pthread_cond_broadcast(&the.ended);
  pthread_mutex_unlock(&the.lock);
  while (l.spares) curl_easy_cleanup(l.spare[--l.spares]);
  curl_multi_cleanup(l.multi);
  return NULL;
}

/* ---- for the callers; the lock is held ---- */

static void reap(void) {
  if (the.state != ENDED) return;
  pthread_join(the.thread, NULL);
  the.state = NONE;
}

/* The thread starts with all signals blocked, which it inherits: the host's handlers run on the
 * host's threads. */
static int spawn(err *e) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = pthread_create(&the.thread, NULL, transfer, the.multi);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (rc != 0)
    return err_set(e, ERR_LIMIT,
                   "cannot start the transfer thread: the limit of processes "
                   "(ulimit -u, the cgroup's pids.max) or of memory is reached");
  pthread_setname_np(the.thread, "ckpt-transfer");
  return 0;
}

static void *many(size_t count, size_t size) {
  return size && count > SIZE_MAX / size ? NULL : secret_alloc(count * size);
}

/* What libcurl holds of requests and answers has tokens in it, and keys: its strings, its buffers.
 * Where the host has set it up before us, this changes nothing, and its memory is common. */
static CURLcode set_up(void) {
  return curl_global_init_mem(CURL_GLOBAL_DEFAULT, secret_alloc, secret_free, secret_resize,
                              secret_copy, many);
}

static int run(err *e) {
  reap();
  if (the.state == RUNS) return 0;
  if (!the.ready && set_up() != CURLE_OK)
    return err_set(e, ERR_NOMEM, "libcurl cannot be set up: no memory?");
  the.ready = true;
  the.multi = curl_multi_init();
  if (!the.multi) return err_set(e, ERR_NOMEM, "no memory for transfers over HTTP");
  curl_multi_setopt(the.multi, CURLMOPT_MAXCONNECTS, (long)HTTP_TRANSFERS_MAX);
  curl_multi_setopt(the.multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
  int rc = spawn(e);
  if (rc == 0) {
    the.state = RUNS;
    return 0;
  }
  curl_multi_cleanup(the.multi);
  the.multi = NULL;
  return rc;
}

/* ---- the calls ---- */

int http_open(http **out, err *e) {
  *out = NULL;
  pid_t self = getpid(), nobody = 0;
  if (!atomic_compare_exchange_strong(&owner, &nobody, self) && nobody != self) return not_ours(e);
  http *h = calloc(1, sizeof *h);
  if (!h) return err_set(e, ERR_NOMEM, "no memory for a store over HTTP");
  h->owner = self;
  pthread_mutex_lock(&the.lock);
  the.shares++;
  atomic_store(&owner, self); /* the last http_close may have come between */
  pthread_mutex_unlock(&the.lock);
  *out = h;
  return 0;
}

void http_close(http *h) {
  if (!h) return;
  pid_t opened_by = h->owner;
  free(h);
  if (opened_by != getpid()) return;
  pthread_mutex_lock(&the.lock);
  if (--the.shares == 0) {
    if (the.state == RUNS) curl_multi_wakeup(the.multi);
    /* Another thread may take a share meanwhile: then the thread goes on for that one. */
    while (the.state == RUNS && the.shares == 0) pthread_cond_wait(&the.ended, &the.lock);
    reap();
    if (the.shares == 0) atomic_store(&owner, 0);
  }
  pthread_mutex_unlock(&the.lock);
}

static void free_call(http_call *call) {
  pthread_cond_destroy(&call->over);
  free(call);
}

int http_start(http *h, const http_request *request, http_response *response, http_call **out,
               err *e) {
  *out = NULL;
  buf_clear(&response->headers);
  buf_clear(&response->body);
  response->status = 0;
  response->got = 0;
  response->seconds = 0;
  response->resent = false;
  if (h->owner != getpid()) return not_ours(e);
  int rc = http_call_check(request, e);
  if (rc < 0) return rc;
  http_call *call = calloc(1, sizeof *call);
  if (!call) return err_set(e, ERR_NOMEM, "no memory for a request over HTTP");
  call->request = request;
  call->response = response;
  call->owner = h->owner;
  pthread_cond_init(&call->over, NULL);
  pthread_mutex_lock(&the.lock);
  rc = run(e);
  if (rc == 0) {
    *the.last = call;
    the.last = &call->next;
    curl_multi_wakeup(the.multi);
    *out = call;
  }
  pthread_mutex_unlock(&the.lock);
  if (rc < 0) free_call(call);
  return rc;
}

int http_wait(http_call *call, err *e) {
  if (call->owner != getpid()) return not_ours(e);
  pthread_mutex_lock(&the.lock);
  while (!atomic_load(&call->done)) pthread_cond_wait(&call->over, &the.lock);
  pthread_mutex_unlock(&the.lock);
  int rc = call->rc;
  if (rc < 0 && e) *e = call->error;
  free_call(call);
  return rc;
}

bool http_done(const http_call *call) {
  return atomic_load(&call->done);
}

bool http_header(const http_response *response, const char *name, char *out, size_t room) {
  size_t len = strlen(name);
  out[0] = 0;
  for (const char *line = response->headers.data; line && *line; line = strchr(line, '\n') + 1) {
    if (strncmp(line, name, len) != 0 || strncmp(line + len, ": ", 2) != 0) continue;
    const char *value = line + len + 2;
    size_t n = strcspn(value, "\n");
    if (n >= room) return false; /* half a value is none */
    memcpy(out, value, n);
    out[n] = 0;
    return true;
  }
  return false;
}

void http_idle_after(int ms) {
  pthread_mutex_lock(&the.lock);
  the.idle_ns = ms * INT64_C(1000000);
  pthread_mutex_unlock(&the.lock);
}
