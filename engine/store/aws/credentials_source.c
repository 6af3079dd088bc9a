/* The keys of a store: found once, shared by its threads, fetched again in time. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "credentials_parts.h"
#include "prims/pool.h"

/* How long before their end keys are fetched beside the requests, and how long in their way. After a
 * fetch that failed nobody asks again for a while. */
enum { BESIDE_S = 15 * 60, FIRST_S = 10 * 60, BESIDE_PART = 4, FIRST_PART = 6, AGAIN_S = 30 };
static const int64_t second = 1000000000;

typedef struct set {
  credentials keys; /* first: callers have its address */
  unsigned users;
  int64_t fetched_ns;      /* IO_WALL */
  int64_t fetched_mono_ns; /* IO_MONO */
} set;

struct credentials_source {
  const io *io;
  log_sink log;
  pthread_mutex_t lock;
  pthread_cond_t ended; /* a fetch has */
  set *now;             /* never NULL */
  bool fetching;        /* one at a time; in the background, too */
  unsigned fetches;     /* that have ended */
  int64_t failed_ns;    /* IO_MONO of the last one that failed; 0: it did not */
  pool *beside;         /* made when keys first expire */
  atomic_int stop;
};

/* ---- one set ---- */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void drop(set *s) {
  if (s && --s->users == 0) secret_free(s);
}

static int fetch(const io *io, atomic_int *cancel, atomic_int *stop, set **out, err *e) {
  set *s = secret_alloc(sizeof *s);
  *out = NULL;
  if (!s) return err_set(e, ERR_NOMEM, "no memory for keys");
  int rc = credentials_look(io, cancel, stop, &s->keys, e);
  if (rc < 0) {
    secret_free(s);
    return rc;
  }
  s->users = 1;
  s->fetched_ns = io->now(io, IO_WALL);
  s->fetched_mono_ns = io->now(io, IO_MONO);
  *out = s;
  return 0;
}

uint64_t credentials_print(const credentials *keys) {
  uint64_t print = UINT64_C(14695981039346656037);
  const char *const texts[] = {keys->access, keys->token};
  for (int i = 0; i < 2; i++)
    for (const char *c = texts[i]; *c; c++)
      print = (print ^ (unsigned char)*c) * UINT64_C(1099511628211);
  return print;
}

/* ---- fetching; the lock is held before and after ---- */

/* Fetches while the lock is not held. The new keys are others if their print is. */
static int fetch_again(credentials_source *s, atomic_int *cancel, err *e) {
  set *fresh = NULL;
  s->fetching = true;
  pthread_mutex_unlock(&s->lock);
  err why = {0};
  int rc = fetch(s->io, cancel, &s->stop, &fresh, &why);
  pthread_mutex_lock(&s->lock);
  /* What gave keys before, and is now as if it were not there, is away for a while. */
  if (rc == ERR_ACCESS && strcmp(s->now->keys.from, CREDENTIALS_INSTANCE) == 0)
    why.code = rc = ERR_IO;
  if (rc < 0 && e) *e = why;
  s->fetching = false;
  s->fetches++;
  if (rc == 0) {
    drop(s->now);
    s->now = fresh;
    s->failed_ns = 0;
  } else if (rc != ERR_CANCELED) {
    s->failed_ns = s->io->now(s->io, IO_MONO);
  }
  pthread_cond_broadcast(&s->ended);
  return rc;
}

static void fetch_beside(void *arg) {
  credentials_source *s = arg;
  err why = {0};
  pthread_mutex_lock(&s->lock);
  int rc = fetch_again(s, NULL, &why);
  pthread_mutex_unlock(&s->lock);
  if (rc < 0 && rc != ERR_CANCELED)
    log_say(&s->log, LOG_WARN, "the keys for S3 expire soon, and there are no new ones yet: %s",
            why.text);
}

static bool may_try(const credentials_source *s) {
  return !s->failed_ns || s->io->now(s->io, IO_MONO) - s->failed_ns > AGAIN_S * second;
}

/* Without a thread for it the next request fetches them. */
static void begin_beside(credentials_source *s) {
  if (s->fetching || !may_try(s)) return;
  if (!s->beside && pool_open(&s->beside, 1, 1, NULL) < 0) return;
  s->fetching = true;
  if (pool_submit(s->beside, fetch_beside, NULL, s, NULL) < 0) s->fetching = false;
}

static bool is_over(const credentials_source *s, const atomic_int *cancel) {
  return atomic_load(&s->stop) || (cancel && atomic_load(cancel));
}

/* Waits for the fetch of another thread. */
static void await_fetch(credentials_source *s) {
  unsigned before = s->fetches;
  while (s->fetching && s->fetches == before) pthread_cond_wait(&s->ended, &s->lock);
}

/* ---- for the requests ---- */

typedef enum urgency { GOOD, SOON, NOW, EXPIRED } urgency;

static urgency urgency_of(const credentials_source *s, int64_t ahead_ns) {
  const set *at = s->now;
  int64_t expires = at->keys.expires_ns, lives = expires - at->fetched_ns - ahead_ns;
  int64_t left = expires - s->io->now(s->io, IO_WALL) - ahead_ns;
  if (expires == 0) return GOOD;
  if (left <= 0) return EXPIRED;
  if (left <= least(FIRST_S * second, lives / FIRST_PART)) return NOW;
  return left <= least(BESIDE_S * second, lives / BESIDE_PART) ? SOON : GOOD;
}

/* Keys that have not expired are better than none. */
static int make_good(credentials_source *s, int64_t ahead_ns, atomic_int *cancel, err *e) {
  for (;;) {
    urgency how = urgency_of(s, ahead_ns);
    if (how == SOON) begin_beside(s);
    if (how < NOW || (how == NOW && !s->fetching && !may_try(s))) return 0;
    if (is_over(s, cancel)) return err_set(e, ERR_CANCELED, "keys for S3: cancelled");
    if (s->fetching) {
      await_fetch(s);
      continue;
    }
    err why = {0};
    int rc = fetch_again(s, cancel, &why);
    if (rc == 0 && urgency_of(s, ahead_ns) == EXPIRED)
      rc = err_set(&why, ERR_ACCESS,
                   "%s gives keys for S3 that have expired already: is this "
                   "machine's clock right?",
                   s->now->keys.from);
    if (rc == 0 || (rc != ERR_CANCELED && urgency_of(s, ahead_ns) == NOW)) return 0;
    if (e) *e = why;
    return rc;
  }
}

const credentials *credentials_take(credentials_source *s, int64_t ahead_ns, atomic_int *cancel,
                                    err *e) {
  set *taken = NULL;
  pthread_mutex_lock(&s->lock);
  if (make_good(s, ahead_ns, cancel, e) == 0) {
    taken = s->now;
    taken->users++;
  }
  pthread_mutex_unlock(&s->lock);
  return taken ? &taken->keys : NULL;
}

void credentials_give(credentials_source *s, const credentials *keys) {
  if (!keys) return;
  pthread_mutex_lock(&s->lock);
  drop((set *)keys);
  pthread_mutex_unlock(&s->lock);
}

/* Files are read again at any time; a server is not asked for each request that it refuses. */
static bool is_fresh(const credentials_source *s) {
  const set *at = s->now;
  return at->keys.expires_ns &&
         s->io->now(s->io, IO_MONO) - at->fetched_mono_ns < CREDENTIALS_REST_S * second;
}

bool credentials_renew(credentials_source *s, uint64_t print, atomic_int *cancel, err *e) {
  pthread_mutex_lock(&s->lock);
  while (s->fetching) await_fetch(s);
  bool other = credentials_print(&s->now->keys) != print;
  if (!other && !is_fresh(s) && !is_over(s, cancel) && fetch_again(s, cancel, e) == 0)
    other = credentials_print(&s->now->keys) != print;
  pthread_mutex_unlock(&s->lock);
  return other;
}

/* ---- the handle ---- */

static void copy_places(const credentials *from, credentials *to) {
  *to = (credentials){.path_style = from->path_style, .anonymous = from->anonymous};
  memcpy(to->region, from->region, sizeof to->region);
  memcpy(to->endpoint, from->endpoint, sizeof to->endpoint);
  memcpy(to->ca_file, from->ca_file, sizeof to->ca_file);
  memcpy(to->from, from->from, sizeof to->from);
}

int credentials_open(const io *io, const log_sink *log, credentials *places,
                     credentials_source **out, err *e) {
  *out = NULL;
  credentials_source *s = calloc(1, sizeof *s);
  if (!s) return err_set(e, ERR_NOMEM, "no memory for a store");
  s->io = io;
  if (log) s->log = *log;
  int rc = fetch(io, NULL, NULL, &s->now, e);
  if (rc < 0) {
    free(s);
    return rc;
  }
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->ended, NULL);
  if (places) copy_places(&s->now->keys, places);
  *out = s;
  return 0;
}

void credentials_close(credentials_source *s) {
  if (!s) return;
  atomic_store(&s->stop, 1);
  pool_close(s->beside);
  drop(s->now);
  pthread_cond_destroy(&s->ended);
  pthread_mutex_destroy(&s->lock);
  free(s);
}
