/* store_s3: the part buffers of the process, memory straight from the kernel, kept while there are
 * writers. */
#include <sys/mman.h>

#include "store_s3.h"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static unsigned writers, taken;                           /* taken: counted in parts */
static void *idle[S3_BUFFERS];
static unsigned idle_count;

static void *from_kernel(size_t size) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* An object so large that one part exceeds all buffers together is still allowed that part. */
static unsigned share_of(size_t size) {
  size_t n = (size + S3_PART - 1) / S3_PART;
  return n < S3_BUFFERS ? (unsigned)n : S3_BUFFERS;
}

void s3_buffers_join(void) {
  pthread_mutex_lock(&guard);
  writers++;
  pthread_mutex_unlock(&guard);
}

void s3_buffers_leave(void) {
  pthread_mutex_lock(&guard);
  writers--;
  while (writers == 0 && idle_count) munmap(idle[--idle_count], S3_PART);
  pthread_mutex_unlock(&guard);
}

void *s3_buffer_take(size_t size, bool need) {
  void *p = NULL;
  unsigned share = share_of(size);
  pthread_mutex_lock(&guard);
  if (need || taken + share <= S3_BUFFERS) {
    p = size == S3_PART && idle_count ? idle[--idle_count] : from_kernel(size);
    if (p) taken += share;
  }
  pthread_mutex_unlock(&guard);
  return p;
}

void s3_buffer_give(void *buffer, size_t size) {
  if (!buffer) return;
  pthread_mutex_lock(&guard);
  taken -= share_of(size);
  bool keep = size == S3_PART && taken + idle_count < S3_BUFFERS;
  if (keep) idle[idle_count++] = buffer;
  pthread_mutex_unlock(&guard);
  if (!keep) munmap(buffer, size);
}
