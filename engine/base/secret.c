#include "secret.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Pieces come in powers of two, each behind a head. Those that were given back wait in a list for
 * the next of their size: their memory stays here. */
enum {
  LEAST = 7,  /* bits: 128 bytes */
  MOST = 17,  /* 128 KiB: a piece of SECRET_PIECE_MAX and its head */
  SLAB = 17,  /* what is opened for use at a time */
  REGION = 25 /* addresses alone are reserved: 32 MiB */
};

typedef struct piece {
  uint64_t bits; /* of its size; 0: it has pages of its own, `size` bytes */
  union {
    struct piece *next; /* while it waits */
    uint64_t size;
  };
} piece;

static struct {
  pthread_mutex_t lock;
  piece *waiting[MOST + 1];
  char *at, *end; /* of the region what was not used yet */
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *_Atomic region; /* for secret_owns(), which takes no lock */

static void *map(size_t size, int protection) {
  void *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (madvise(p, size, MADV_DONTDUMP) == 0) return p;
  munmap(p, size);
  return NULL;
}

/* A thread may hold the lock while another one forks. */
static void before_fork(void) {
  pthread_mutex_lock(&the.lock);
}
static void after_fork(void) {
  pthread_mutex_unlock(&the.lock);
}

/* Locks it, unless that would take much of what the host may lock. */
static void keep_from_swap(void *slab) {
  enum { SHARE = 8 };
  struct rlimit most;
  if (getrlimit(RLIMIT_MEMLOCK, &most) != 0) return;
  size_t used = (size_t)(the.at - region) + ((size_t)1 << SLAB);
  if (most.rlim_cur == RLIM_INFINITY || used <= most.rlim_cur / SHARE)
    mlock(slab, (size_t)1 << SLAB);
}

/* Opens the next slab and cuts it into pieces of that size. The lock is held. */
static bool open_slab(unsigned bits) {
  const size_t slab = (size_t)1 << SLAB, size = (size_t)1 << bits;
  if (!the.at) {
    the.at = map((size_t)1 << REGION, PROT_NONE);
    if (!the.at) return false;
    the.end = the.at + ((size_t)1 << REGION);
    region = the.at;
    pthread_atfork(before_fork, after_fork, after_fork);
  }
  if (the.at == the.end || mprotect(the.at, slab, PROT_READ | PROT_WRITE) != 0) return false;
  keep_from_swap(the.at);
  for (size_t i = 0; i < slab; i += size) {
    piece *p = (piece *)(void *)(the.at + i);
    *p = (piece){.bits = bits, .next = the.waiting[bits]};
    the.waiting[bits] = p;
  }
  the.at += slab;
  return true;
}

/* These begin a cache line into their first page, not 16 bytes: Zen 3 and 4 copy from whole pages,
 * as part buffers are, at a quarter of the speed to a place that is less than 32 bytes further. */
enum { PAGES_HEAD = 64 };

static void *take_pages(size_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  char *pages = map(PAGES_HEAD + size, PROT_READ | PROT_WRITE);
  if (!pages) return NULL;
  piece *p = (piece *)(void *)(pages + PAGES_HEAD);
  p[-1] = (piece){.size = size};
  return p;
}

void *secret_alloc(size_t size) {
  if (size > SECRET_PIECE_MAX) return take_pages(size);
  unsigned bits = LEAST;
  while (((size_t)1 << bits) < size + sizeof(piece)) bits++;
  pthread_mutex_lock(&the.lock);
  piece *p = the.waiting[bits] || open_slab(bits) ? the.waiting[bits] : NULL;
  if (p) the.waiting[bits] = p->next;
  pthread_mutex_unlock(&the.lock);
  if (!p) return take_pages(size);
  p->size = size;
  return p + 1;
}

void secret_free(void *mine) {
  if (!mine) return;
  piece *p = (piece *)mine - 1;
  if (p->bits == 0) {
    munmap((char *)mine - PAGES_HEAD, PAGES_HEAD + p->size);
    return;
  }
  explicit_bzero(mine, ((size_t)1 << p->bits) - sizeof *p);
  pthread_mutex_lock(&the.lock);
  p->next = the.waiting[p->bits];
  the.waiting[p->bits] = p;
  pthread_mutex_unlock(&the.lock);
}

void *secret_resize(void *old, size_t size) {
  if (!old) return secret_alloc(size);
  piece *p = (piece *)old - 1;
  if (p->bits && size <= ((size_t)1 << p->bits) - sizeof *p) {
    if (size < p->size) explicit_bzero((char *)old + size, p->size - size);
    p->size = size;
    return old;
  }
  void *fresh = secret_alloc(size);
  if (!fresh) return NULL;
  memcpy(fresh, old, size < p->size ? size : p->size);
  secret_free(old);
  return fresh;
}

char *secret_copy(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = secret_alloc(size);
  if (copy) memcpy(copy, text, size);
  return copy;
}

char **secret_copy_list(const char *const *list) {
  size_t count = 0, size = sizeof(char *);
  for (; list[count]; count++) size += sizeof(char *) + strlen(list[count]) + 1;
  char **copy = secret_alloc(size);
  if (!copy) return NULL;
  char *at = (char *)(copy + count + 1);
  for (size_t i = 0; i < count; i++) {
    copy[i] = at;
    at = stpcpy(at, list[i]) + 1;
  }
  return copy;
}

bool secret_owns(const void *p) {
  uintptr_t from = (uintptr_t)region, at = (uintptr_t)p;
  return from && at >= from && at < from + ((uintptr_t)1 << REGION);
}
