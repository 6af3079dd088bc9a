/* store_s3: many small objects at once. They are asked for side by side, as many as the transfer
 * thread carries: what waits for nothing but the way there and back is one wait, not many. */
#include <stdlib.h>

#include "store_s3.h"

typedef struct slot {
  s3_call call;
  char path[S3_PATH_MAX];
  store_ask *ask;
} slot;

static void start(s3_store *s, slot *at, store_ask *ask) {
  at->ask = ask;
  ask->rc =
      *ask->key ? s3_path(s, ask->key, at->path, &ask->why) : store_key_check(ask->key, &ask->why);
  at->call = (s3_call){0};
  if (ask->rc < 0) return;
  s3_start(
      &at->call, s,
      &(s3_request){
          .verb = "get", .method = "GET", .path = at->path, .room = ask->out.max - ask->out.len});
}

static void finish(s3_store *s, slot *at) {
  store_ask *ask = at->ask;
  if (ask->rc == 0) ask->rc = s3_finish(&at->call, &ask->why);
  if (ask->rc == 0) ask->rc = s3_body(s, &at->call, &ask->out, &ask->why);
  s3_end(&at->call);
}

/* All of one round are answered before the next one begins, so that the number of rounds follows from
 * that of the objects. */
static void ask_round(s3_store *s, slot *slots, store_ask *asks, size_t count) {
  for (size_t i = 0; i < count; i++) start(s, &slots[i], &asks[i]);
  for (size_t i = 0; i < count; i++) finish(s, &slots[i]);
}

void s3_get_many(store *base, store_ask *asks, size_t count) {
  s3_store *s = (s3_store *)base;
  const size_t width = count < S3_WIDE ? count : S3_WIDE;
  slot *slots = calloc(width, sizeof *slots);
  for (size_t i = 0; !slots && i < count; i++)
    asks[i].rc = base->ops->get(base, asks[i].key, &asks[i].out, &asks[i].why);
  for (size_t i = 0; slots && i < count; i += width)
    ask_round(s, slots, asks + i, count - i < width ? count - i : width);
  free(slots);
}
