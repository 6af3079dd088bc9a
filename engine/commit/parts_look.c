/* parts_look: which records are there. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"
#include "prims/fs.h"

enum { PAGE = 1000 }; /* so many keys a listing tells at once */

struct look {
  parts_seen *seen;
  uint32_t world;
  bool *failed;
  int64_t newest_ns;
  bool all;      /* nothing but whether all are there is asked for */
  uint32_t next; /* the rank whose record has to come next then */
};

/* Of all below `world` the one behind `rank` in the order of their texts. */
static uint32_t behind(uint32_t rank, uint32_t world) {
  if (rank > 0 && (uint64_t)rank * 10 < world) return rank * 10;
  while (rank % 10 == 9 || rank + 1 >= world) {
    if (rank < 10) return world;
    rank /= 10;
  }
  return rank + 1;
}

/* Reads a name "12" or "12.failed"; any other name there is not ours. */
static int on_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  struct look *l = ctx;
  const char *name = fs_base(key);
  uint64_t rank = 0;
  size_t len = strspn(name, "0123456789");
  if (is_prefix || len == 0 || len > 9 || (len > 1 && *name == '0')) return 0;
  for (size_t i = 0; i < len; i++) rank = rank * 10 + (uint64_t)(name[i] - '0');
  if (rank >= l->world) return 0;
  if (strcmp(name + len, ".failed") == 0) l->failed[rank] = true;
  if (name[len]) return 0;
  if (l->all && rank != l->next) return 1;
  l->next = behind((uint32_t)rank, l->world);
  l->seen->count += !l->seen->there[rank];
  l->seen->there[rank] = true;
  bool older = object->mtime_ns < l->newest_ns;
  if (older || (object->mtime_ns == l->newest_ns && rank < l->seen->newest)) return 0;
  l->newest_ns = object->mtime_ns;
  l->seen->newest = (uint32_t)rank;
  return 0;
}

static int look(store *s, const runlog *log, const part *p, bool all, parts_seen *out, err *e) {
  char place[STORE_KEY_MAX];
  uint32_t world = p->ranks->world;
  *out = (parts_seen){.there = calloc(world, sizeof *out->there), .failed = world};
  struct look l = {.seen = out,
                   .world = world,
                   .failed = calloc(world, sizeof *l.failed),
                   .all = all && world > PAGE};
  int rc = out->there && l.failed ? runlog_key_parts(log, p->attempt, p->term, place, e)
                                  : err_set(e, ERR_NOMEM, "look for parts: out of memory");
  if (rc == 0) rc = s->ops->list(s, place, true, on_key, &l, e);
  if (rc > 0) rc = 0; /* one is missing */
  /* A rank may have put its part, lost the answer, and then have given up: the part is whole. */
  for (uint32_t i = world; rc == 0 && i-- > 0;)
    if (l.failed[i] && !out->there[i]) out->failed = i;
  free(l.failed);
  if (rc < 0) parts_seen_free(out);
  return rc;
}

int parts_look(store *s, const runlog *log, const part *p, parts_seen *out, err *e) {
  return look(s, log, p, false, out, e);
}

int parts_look_for_all(store *s, const runlog *log, const part *p, parts_seen *out, err *e) {
  return look(s, log, p, true, out, e);
}

void parts_seen_free(parts_seen *seen) {
  free(seen->there);
  *seen = (parts_seen){0};
}

void parts_missing(const parts_seen *seen, uint32_t world, char *out, size_t room) {
  enum { SOME = 64 };
  uint32_t numbers[SOME];
  size_t count = 0;
  for (uint32_t i = 0; i < world && count < SOME; i++)
    if (!seen->there[i]) numbers[count++] = i;
  ranks_list(numbers, count, world - seen->count, out, room);
}
