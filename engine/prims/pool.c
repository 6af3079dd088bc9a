#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { WORKERS_MAX = 64, DEPTH_MAX = 1 << 20 };

typedef struct task {
  struct task *next;
  pool_fn *work, *done; /* done: NULL: nothing is to be settled */
  void *ctx;
} task;

/* First in, first out. */
typedef struct line {
  task *first, **end;
} line;

/* A pool_each that runs. It lives on its caller's stack and not in the queue: a helper that waited
 * in the queue behind tasks which themselves wait for their helpers would never come. */
typedef struct each {
  struct each *next;
  int (*fn)(void *ctx, size_t i);
  void *ctx;
  size_t at, n;           /* the next item, and the end; at == n: nothing more to hand out */
  unsigned active, width; /* threads at work on it, the caller is one of them */
  int rc;
  pthread_cond_t idle; /* active became 0 */
} each;

struct pool {
  pthread_mutex_t lock;   /* guards all below */
  pthread_cond_t work;    /* a task, an item, or the end */
  pthread_cond_t arrived; /* a task has ended that is to be settled */
  line queue, ended;
  size_t depth, waiting; /* waiting: in `queue` */
  int event;             /* an eventfd; constant */
  each *eachs;           /* oldest first */
  bool closing, left;
  unsigned workers; /* constant once pool_open has returned */
  unsigned living;  /* of a pool that was left: threads that have not ended */
  pthread_t threads[WORKERS_MAX];
};

static void line_add(line *l, task *t) {
  t->next = NULL;
  *l->end = t;
  l->end = &t->next;
}

static task *line_take(line *l) {
  task *t = l->first;
  if (!t) return NULL;
  l->first = t->next;
  if (!l->first) l->end = &l->first;
  return t;
}

static void line_free(line *l) {
  for (task *t; (t = line_take(l));) free(t);
}

static each *each_that_wants(const pool *p) {
  each *e = p->eachs;
  while (e && (e->at == e->n || e->active >= e->width)) e = e->next;
  return e;
}

/* Runs one item. The lock is held before and after, not during. */
static void run_item(pool *p, each *e) {
  size_t i = e->at++;
  pthread_mutex_unlock(&p->lock);
  int rc = e->fn(e->ctx, i);
  pthread_mutex_lock(&p->lock);
  if (rc < 0 && e->rc == 0) {
    e->rc = rc;
    e->at = e->n;
  }
}

static void run_task(pool *p) {
  static const uint64_t one = 1;
  task *t = line_take(&p->queue);
  p->waiting--;
  /* This worker may just have left a pool_each: its place there is free for a worker that
   * sleeps. */
  if (each_that_wants(p)) pthread_cond_signal(&p->work);
  pthread_mutex_unlock(&p->lock);
  t->work(t->ctx);
  pthread_mutex_lock(&p->lock);
  if (!t->done) {
    free(t);
    return;
  }
  line_add(&p->ended, t);
  pthread_cond_signal(&p->arrived);
  (void)!write(p->event, &one, sizeof one); /* full: it is readable already */
}

static void discard(pool *p) {
  line_free(&p->queue);
  line_free(&p->ended);
  if (p->event >= 0) close(p->event);
  pthread_cond_destroy(&p->arrived);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

/* Queued tasks go first: a pool_each moves on by its caller alone, a task has nobody else. */
static void *work(void *arg) {
  pool *p = arg;
  pthread_mutex_lock(&p->lock);
  for (;;) {
    each *e = NULL;
    if (p->waiting > 0) {
      run_task(p);
    } else if ((e = each_that_wants(p))) {
      e->active++;
      run_item(p, e);
      /* Signalled under the lock: after it the caller may return and `e` is no more. */
      if (--e->active == 0) pthread_cond_signal(&e->idle);
    } else if (p->closing) {
      break;
    } else {
      pthread_cond_wait(&p->work, &p->lock);
    }
  }
  const bool last = p->left && --p->living == 0;
  pthread_mutex_unlock(&p->lock);
  if (last) discard(p);
  return NULL;
}

/* Starts the threads with all signals blocked; they inherit the mask. */
static int start(pool *p, unsigned workers, err *e) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int rc = 0;
  while (p->workers < workers && rc == 0) {
    rc = pthread_create(&p->threads[p->workers], NULL, work, p);
    if (rc == 0) pthread_setname_np(p->threads[p->workers++], "ckpt-worker");
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (rc == 0) return 0;
  return err_set(e, ERR_LIMIT,
                 "cannot start worker thread %u of %u: the limit of processes (ulimit -u, the "
                 "cgroup's pids.max) or of memory is reached; ask for fewer workers",
                 p->workers + 1, workers);
}

int pool_open(pool **out, unsigned workers, size_t depth, err *e) {
  *out = NULL;
  if (workers < 1 || workers > WORKERS_MAX || depth < 1 || depth > DEPTH_MAX)
    return err_set(e, ERR_INVAL, "a pool of %u workers and a queue of %zu: 1 to %d and 1 to %d",
                   workers, depth, WORKERS_MAX, DEPTH_MAX);
  pool *p = calloc(1, sizeof *p);
  if (!p) return err_set(e, ERR_NOMEM, "no memory for a pool of %u workers", workers);
  p->queue.end = &p->queue.first;
  p->ended.end = &p->ended.first;
  p->depth = depth;
  pthread_mutex_init(&p->lock, NULL); /* none can fail on Linux with default attributes */
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->arrived, NULL);
  p->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int rc = p->event < 0 ? err_sys(e, errno, "make the descriptor of a pool") : 0;
  if (rc == 0) rc = start(p, workers, e);
  if (rc < 0) {
    pool_close(p);
    return rc;
  }
  *out = p;
  return 0;
}

int pool_submit(pool *p, pool_fn *work, pool_fn *done, void *ctx, err *e) {
  task *t = malloc(sizeof *t);
  if (!t) return err_set(e, ERR_NOMEM, "no memory for a task of the worker pool");
  *t = (task){.work = work, .done = done, .ctx = ctx};
  pthread_mutex_lock(&p->lock);
  const bool full = p->waiting == p->depth;
  if (!full) {
    line_add(&p->queue, t);
    p->waiting++;
    pthread_cond_signal(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
  if (!full) return 0;
  free(t);
  return err_set(e, ERR_LIMIT, "the queue of the worker pool is full (%zu tasks)", p->depth);
}

int pool_fd(const pool *p) {
  return p->event;
}

/* Takes one at a time: what comes behind may be settled inside of its `done`. */
static task *take_ended(pool *p, bool wait) {
  pthread_mutex_lock(&p->lock);
  while (wait && !p->ended.first) pthread_cond_wait(&p->arrived, &p->lock);
  task *t = line_take(&p->ended);
  pthread_mutex_unlock(&p->lock);
  return t;
}

bool pool_settle(pool *p, bool wait) {
  uint64_t ignored;
  /* First: what ends from here on makes it readable again. */
  bool any = !wait && read(p->event, &ignored, sizeof ignored) > 0;
  for (task *t; (t = take_ended(p, wait)); wait = false) {
    const task ended = *t;
    free(t);
    ended.done(ended.ctx);
    any = true;
  }
  return any;
}

int pool_each(pool *p, size_t n, unsigned width, int (*fn)(void *ctx, size_t i), void *ctx) {
  each self = {.fn = fn, .ctx = ctx, .n = n, .active = 1, .width = width};
  pthread_cond_init(&self.idle, NULL);
  pthread_mutex_lock(&p->lock);
  each **link = &p->eachs;
  while (*link) link = &(*link)->next;
  *link = &self;
  if (n > 1 && width > 1) pthread_cond_broadcast(&p->work);
  while (self.at < self.n) run_item(p, &self);
  self.active--;
  /* A thread that still works on it is inside an item: this wait ends when that item does. */
  while (self.active > 0) pthread_cond_wait(&self.idle, &p->lock);
  for (link = &p->eachs; *link != &self;) link = &(*link)->next;
  *link = self.next;
  pthread_mutex_unlock(&p->lock);
  pthread_cond_destroy(&self.idle);
  return self.rc;
}

unsigned pool_workers(const pool *p) {
  return p->workers;
}

void pool_close(pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->closing = true;
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
  for (unsigned i = 0; i < p->workers; i++) pthread_join(p->threads[i], NULL);
  discard(p);
}

void pool_leave(pool *p) {
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->closing = p->left = true;
  p->living = p->workers;
  for (unsigned i = 0; i < p->workers; i++) pthread_detach(p->threads[i]);
  pthread_cond_broadcast(&p->work);
  pthread_mutex_unlock(&p->lock);
}
