/* Coroutines, the simulated time, and the io vtable that shows it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "sim.h"

enum { STACK_BYTES = 1 << 20 };

static actor actors[ACTORS_MAX];
static void *stacks[ACTORS_MAX];
static ucontext_t home, contexts[ACTORS_MAX];
static actor *running;
static uint64_t random_state, current_seed;

int64_t sim_now;
uint64_t sim_steps;
bool sim_tracing;

/* splitmix64 */
static uint64_t next(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void sim_seed(uint64_t seed) {
  current_seed = random_state = seed;
  sim_now = INT64_C(1893456000) * SECOND; /* 2030: after the times of the real files */
  sim_steps = 0;
}

uint64_t sim_roll(uint64_t sides) {
  return next(&random_state) % sides;
}

bool sim_chance(unsigned of_1000) {
  return sim_roll(1000) < of_1000;
}

void sim_trace(const char *fmt, ...) {
  char text[1024];
  va_list args;
  if (!sim_tracing) return;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  printf("%6llu %9.3f %-10s %s\n", (unsigned long long)sim_steps,
         (double)(sim_now - INT64_C(1893456000) * SECOND) / 1e9, running ? running->name : "-",
         text);
}

_Noreturn void sim_violation(const char *fmt, ...) {
  char text[1024];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  printf("violation: seed %llu, step %llu, %s: %s\n", (unsigned long long)current_seed,
         (unsigned long long)sim_steps, running ? running->name : "at the end", text);
  fflush(stdout);
  _exit(3);
}

actor *actor_running(void) {
  return running;
}

actor *actor_at(int i) {
  return actors[i].used ? &actors[i] : NULL;
}

/* ---- clocks ---- */

/* What waits for a time must come to its end when its process is dead, too. */
static int64_t clock_now(const io *io, io_clock which) {
  actor *a = io->ctx;
  if (a->dead) a->spent += 60 * SECOND;
  return sim_now + a->spent + (which == IO_WALL ? a->wall : a->mono);
}

void actor_sleep(actor *a, int64_t ns) {
  if (a->dead) {
    a->spent += ns;
    return;
  }
  a->wake = sim_now + (ns > 0 ? ns : 0);
  actor_yield();
}

void actor_freeze(actor *a, int64_t ns) {
  const int64_t due = a->wake > sim_now ? a->wake : sim_now;
  const int64_t until = sim_now + ns;
  if (until <= due) return;
  a->paused += until - due;
  a->wake = until;
}

static void clock_sleep(const io *io, int64_t ns) {
  sim_trace("sleeps %.3f s", (double)ns / 1e9);
  actor_sleep(io->ctx, ns);
}

static int seeded_random(const io *io, void *to, size_t len) {
  (void)io;
  unsigned char *at = to;
  while (len-- > 0) *at++ = (unsigned char)sim_roll(256);
  return 0;
}

/* What is flushed here proves nothing, and takes time. */
static int no_flush(const io *io, int fd) {
  (void)io, (void)fd;
  return 0;
}

/* ---- turns ---- */

static void body(unsigned index) {
  actor *a = &actors[index];
  a->main(a);
  a->done = true;
  running = NULL;
  swapcontext(&contexts[index], &home);
}

static void make_context(int i) {
  if (!stacks[i]) {
    stacks[i] = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks[i] == MAP_FAILED) abort();
    mprotect(stacks[i], 4096, PROT_NONE);
  }
  getcontext(&contexts[i]);
  contexts[i].uc_stack.ss_sp = stacks[i];
  contexts[i].uc_stack.ss_size = STACK_BYTES;
  contexts[i].uc_link = NULL;
  makecontext(&contexts[i], (void (*)(void))body, 1, (unsigned)i);
}

actor *actor_start(const char *name, actor_main *main, int launch, int rank) {
  int i = 0;
  while (i < ACTORS_MAX && actors[i].used) i++;
  if (i == ACTORS_MAX) return NULL;
  actor *a = &actors[i];
  *a =
      (actor){.id = i, .main = main, .used = true, .wake = sim_now, .launch = launch, .rank = rank};
  a->born = sim_steps;
  snprintf(a->name, sizeof a->name, "%s", name);
  a->io = *io_system();
  a->io.ctx = a;
  a->io.now = clock_now;
  a->io.sleep = clock_sleep;
  a->io.random = seeded_random;
  a->io.fsync = a->io.fdatasync = no_flush;
  a->wall = ((int64_t)sim_roll(7) - 3) * SECOND;
  a->mono = (int64_t)sim_roll(1000000) * SECOND;
  link_open(a);
  make_context(i);
  sim_trace("%s begins", a->name);
  return a;
}

void actor_yield(void) {
  actor *a = running;
  if (a->dead) return;
  running = NULL;
  swapcontext(&contexts[a->id], &home);
}

static void turn(actor *a) {
  running = a;
  a->steps++;
  sim_steps++;
  swapcontext(&home, &contexts[a->id]);
  running = NULL;
  if (!a->done) return;
  sim_trace("%s is over", a->name);
  a->used = false;
}

bool actor_step(void) {
  actor *ready[ACTORS_MAX];
  uint64_t count = 0;
  for (int i = 0; i < ACTORS_MAX; i++)
    if (actors[i].used && actors[i].wake <= sim_now) ready[count++] = &actors[i];
  if (count == 0) return false;
  turn(ready[sim_roll(count)]);
  return true;
}

bool actor_wait(void) {
  int64_t first = INT64_MAX;
  for (int i = 0; i < ACTORS_MAX; i++)
    if (actors[i].used && actors[i].wake < first) first = actors[i].wake;
  if (first == INT64_MAX) return false;
  if (first > sim_now) sim_now = first;
  return true;
}

void actor_unwind(actor *a) {
  if (!a->used) return;
  a->dead = true;
  turn(a);
  if (a->used) sim_violation("%s did not come to its end", a->name);
}

void actors_end(void) {
  for (int i = 0; i < ACTORS_MAX; i++)
    if (actors[i].used) actor_unwind(&actors[i]);
}
