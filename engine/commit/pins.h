/* pins: objects <prefix>/.ckpt/pins/<nonce> by which readers, and users, keep a commit's data from
 * being deleted.
 *
 * A reader puts its pin, then reads the log again and gives up if the commit is dropped: a deleter
 * has dropped it first, and lists the pins after that, so one of the two sees the other. A pin that
 * has expired counts no more, and the deleter removes it. The store's clock tells when a pin
 * expires: it lives, from the time of its object, as long as its own two times are apart, and at
 * least until the later one of those. */
#ifndef COMMIT_PINS_H
#define COMMIT_PINS_H

#include "commit/log/runlog.h"

enum { PINS_ID_MAX = 33, PINS_READER_S = 900 };

typedef struct pin {
  char id[PINS_ID_MAX]; /* 32 hex digits: the last part of its key */
  char *dir;            /* the commit's directory */
  uint64_t commit;
  char *host, *by;    /* its maker: a host, and "restore" or "user" */
  int64_t created_ns; /* by its maker's clock */
  int64_t expires_ns; /* by its maker's clock; 0: never */
  int64_t until_ns;   /* by the store's clock; INT64_MAX: never */
} pin;

typedef struct pins {
  pin *at;
  size_t count, room;
  size_t broken; /* objects there that cannot be read as pins: any commit may be pinned by them */
  char broken_key[STORE_KEY_MAX];
} pins;

/* Lists all pins that are there, expired ones too. Free it, on failure too. */
int pins_list(store *s, const char *prefix, pins *out, err *e);
void pins_free(pins *p);

/* Returns the commits that a pin holds at that time (by the store's clock; INT64_MIN: whatever the
 * time is): malloced, NULL when out of memory. */
uint64_t *pins_held(const pins *p, int64_t store_now_ns, size_t *count);

bool pin_expired(const pin *p, int64_t store_now_ns);

/* Puts a pin (STORE_IF_ABSENT), or renews the one with the same id (`renew`). life_ns 0: it never
 * expires. `by` is a word. ERR_ACCESS: this reader may not write. */
typedef struct pin_request {
  const char *dir, *by;
  uint64_t commit;
  int64_t life_ns;
} pin_request;
int pins_put(store *s, const char *prefix, const pin_request *request, char id[PINS_ID_MAX],
             bool renew, err *e);
/* Removes a pin. ERR_NOENT if there is none of that id. */
int pins_remove(store *s, const char *prefix, const char *id, err *e);

#endif
