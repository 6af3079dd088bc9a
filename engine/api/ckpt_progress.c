/* ckpt_progress: carries the progress of a transfer from the threads that move the data to the
 * host's function. */
#include <stdatomic.h>

#include "ckpt_state.h"

/* Called with the mutex held. */
static void tell(ckpt_teller *t) {
  t->now.bytes = atomic_load(&t->moved);
  t->fn(t->ctx, &t->now);
}

static bool is_due(ckpt_teller *t, int64_t now) {
  return now >= atomic_load(&t->next_ns);
}

/* A host that takes its time holds up the one thread that told it; the others move on. */
static void tell_if_due(ckpt_teller *t) {
  const int64_t gap = 250000000;
  int64_t now = t->io->now(t->io, IO_MONO);
  if (!is_due(t, now) || pthread_mutex_trylock(&t->mutex) != 0) return;
  if (is_due(t, now)) { /* still: another thread may have been faster */
    tell(t);
    atomic_store(&t->next_ns, t->io->now(t->io, IO_MONO) + gap);
  }
  pthread_mutex_unlock(&t->mutex);
}

static void on_begin(void *ctx, const char *what, const manifest *m) {
  ckpt_teller *t = ctx;
  pthread_mutex_lock(&t->mutex);
  atomic_store(&t->moved, 0);
  t->now = (ckpt_progress){.size = sizeof t->now,
                           .what = what,
                           .unit = m->unit,
                           .total = manifest_bytes(m),
                           .files = manifest_files(m)};
  pthread_mutex_unlock(&t->mutex);
  tell_if_due(t);
}

static void on_moved(void *ctx, uint64_t bytes) {
  ckpt_teller *t = ctx;
  atomic_fetch_add(&t->moved, bytes);
  tell_if_due(t);
}

/* The end is told at any time: a host that draws has to know when to stop. */
static void on_end(void *ctx) {
  ckpt_teller *t = ctx;
  pthread_mutex_lock(&t->mutex);
  t->now.over = 1;
  tell(t);
  pthread_mutex_unlock(&t->mutex);
}

void ckpt_teller_open(ckpt_teller *t, const io *io, ckpt_progress_fn *fn, void *ctx) {
  *t = (ckpt_teller){.fn = fn,
                     .ctx = ctx,
                     .io = io,
                     .sink = {.begin = on_begin, .end = on_end, .moved = on_moved, .ctx = t},
                     .next_ns = INT64_MIN};
  pthread_mutex_init(&t->mutex, NULL);
}

void ckpt_teller_close(ckpt_teller *t) {
  pthread_mutex_destroy(&t->mutex);
}

const progress_sink *ckpt_teller_sink(const ckpt_teller *t) {
  return t->fn ? &t->sink : NULL;
}
