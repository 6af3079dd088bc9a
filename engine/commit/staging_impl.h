/* staging_impl: declarations that staging.c and staging_*.c share. */
#ifndef COMMIT_STAGING_IMPL_H
#define COMMIT_STAGING_IMPL_H

#include "staging.h"

typedef struct staging_seen {
  uint64_t term;
  char nonce[RUNLOG_NONCE_MAX];
  bool beside;  /* the directory of companions */
  bool gone;    /* it is being removed */
  int64_t made; /* when a name was last added to it; INT64_MIN: not known */
  char key[STORE_KEY_MAX];
} staging_seen;

typedef struct staging_list {
  staging_seen *at;
  size_t count, room;
} staging_list;

int staging_name(const char *prefix, uint64_t term, const char *nonce, staging *out, err *e);
/* Lists the directories there that have such a name; none where the store cannot publish(). */
int staging_look(store *s, const runlog *log, staging_list *out, err *e);
void staging_list_free(staging_list *l);
/* True if this user made it, and it is what we make. If not, the log says why. */
bool staging_is_ours(store *s, const char *key, const log_sink *sink);
/* Renames the directory, then removes it. It is fine if it is gone. */
int staging_remove(store *s, const char *key, err *e);

#endif
