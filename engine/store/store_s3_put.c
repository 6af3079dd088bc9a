/* store_s3: puts small objects in one request, and runs the race that shows whether put-if-absent
 * holds here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_s3.h"

int s3_nonce_header(const s3_store *s, char out[64], err *e) {
  char nonce[33];
  int rc = io_nonce(s->base.io, nonce);
  if (rc < 0) return err_sys(e, rc, "make a nonce");
  snprintf(out, 64, "%s: %s", S3_NONCE, nonce);
  return 0;
}

const char *s3_nonce_of(const char header[64]) {
  return header + sizeof S3_NONCE + 1; /* the NUL of one stands for the colon of the other */
}

const char *s3_mark_header(const char *mark, char out[S3_MARK_LINE]) {
  if (!mark || !*mark) return NULL;
  snprintf(out, S3_MARK_LINE, "%s: %s", S3_MARK, mark);
  return out;
}

static int taken(const s3_store *s, const char *path, err *e) {
  return err_set(e, ERR_EXISTS, "%s/%.400s is there already", s->shown, path);
}

/* Looks before the put where the server does not arbitrate: by the user's word nobody else comes in
 * between. */
static int look_first(s3_store *s, const s3_object *o, err *e) {
  s3_head head;
  err why = {0};
  int rc = s3_look(s, o->path, o->cancel, &head, &why);
  if (rc == 0) return taken(s, o->path, e);
  return rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

/* ---- one put, in two halves, so that many can be under way ---- */

typedef struct put {
  s3_call call;
  const s3_object *o;
  char nonce[64], mark[S3_MARK_LINE];
  const char *headers[5];
} put;

static int put_start(put *p, s3_store *s, const s3_object *o, err *e) {
  p->o = o;
  int rc = s3_nonce_header(s, p->nonce, e);
  if (rc < 0) return rc;
  const char *mark = s3_mark_header(o->mark, p->mark);
  const char *only = o->if_absent && !s->base.single_writer ? "if-none-match: *" : o->if_match;
  size_t n = 0;
  p->headers[n++] = p->nonce;
  if (mark) p->headers[n++] = mark;
  if (o->digest) p->headers[n++] = o->digest;
  if (only) p->headers[n++] = only;
  s3_start(&p->call, s,
           &(s3_request){.verb = "put",
                         .method = "PUT",
                         .path = o->path,
                         .headers = p->headers,
                         .body = o->data,
                         .len = o->len,
                         .sum = S3_SUM_BODY,
                         .crc = o->crc,
                         .cancel = o->cancel,
                         .sent = o->sent});
  return 0;
}

/* True if the put was refused because of an object that we made ourselves, by a try whose answer
 * was lost. */
static bool ours_after_all(put *p, int rc) {
  s3_head head;
  return (rc == ERR_EXISTS || rc == ERR_CONFLICT) && p->call.doubtful &&
         s3_look(p->call.s, p->o->path, p->o->cancel, &head, NULL) == 0 &&
         strcmp(head.nonce, s3_nonce_of(p->nonce)) == 0;
}

static int put_finish(put *p, err *e) {
  err why = {0};
  int rc = s3_finish(&p->call, &why);
  if (rc < 0 && ours_after_all(p, rc)) rc = 0;
  if (rc == ERR_EXISTS && p->o->if_match)
    return err_set(e, ERR_CONFLICT, "%s/%.400s has been replaced by somebody else",
                   p->call.s->shown, p->o->path);
  if (rc == ERR_EXISTS) return taken(p->call.s, p->o->path, e);
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

static int put_once(s3_store *s, const s3_object *o, err *e) {
  put p = {0};
  int rc = put_start(&p, s, o, e);
  if (rc == 0) rc = put_finish(&p, e);
  s3_end(&p.call);
  return rc;
}

bool s3_is_absent(s3_store *s, const char *path, atomic_int *cancel) {
  s3_head head;
  return s3_look(s, path, cancel, &head, NULL) == ERR_NOENT;
}

/* A server that says that the object is there is not taken at its word once: where nothing stands,
 * it is put again. */
int s3_put_object(s3_store *s, const s3_object *o, err *e) {
  if (!o->if_absent) return put_once(s, o, e);
  if (s->base.single_writer) {
    int there = look_first(s, o, e);
    return there < 0 ? there : put_once(s, o, e);
  }
  int rc = put_once(s, o, e);
  for (int i = 0; i < S3_REFUSALS && rc == ERR_EXISTS && s3_is_absent(s, o->path, o->cancel); i++)
    rc = put_once(s, o, e);
  return rc;
}

int s3_put_marked(store *base, const char *key, const void *data, size_t len, store_how how,
                  const char *mark, err *e) {
  s3_store *s = (s3_store *)base;
  char path[S3_PATH_MAX];
  int rc = *key ? s3_path(s, key, path, e) : store_key_check(key, e);
  if (rc < 0) return rc;
  return s3_put_object(s,
                       &(s3_object){.path = path,
                                    .data = data,
                                    .len = len,
                                    .mark = mark,
                                    .if_absent = how == STORE_IF_ABSENT},
                       e);
}

int s3_put(store *base, const char *key, const void *data, size_t len, store_how how, err *e) {
  return s3_put_marked(base, key, data, len, how, NULL, e);
}

/* ---- the race ---- */

enum { RACERS = 16, ROUNDS = 5 };

typedef struct racer {
  put put;
  s3_object object;
  char text[48];
  int rc;
} racer;

/* Checks that the object is the one that the one winner put. */
static int check_winner(s3_store *s, const char *path, const racer *racers, err *e) {
  s3_call c;
  int winners = 0, winner = 0;
  for (int i = 0; i < RACERS; i++)
    if (racers[i].rc == 0) winner = i, winners++;
  if (winners != 1)
    return err_set(e, ERR_UNSUPPORTED,
                   "%s: of %d who made one object at once, each only if it is absent, %d were "
                   "told that they made it. This server cannot arbitrate between writers: where no "
                   "other one writes to this target, `single_writer` goes on without",
                   s->shown, RACERS, winners);
  int rc = s3_do(&c, s, &(s3_request){.verb = "get", .method = "GET", .path = path}, e);
  const char *text = racers[winner].text;
  if (rc == 0 &&
      (c.answer.body.len != strlen(text) || memcmp(c.answer.body.data, text, strlen(text)) != 0))
    rc = err_set(e, ERR_UNSUPPORTED,
                 "%s: of %d who made one object at once another one won than the one who was "
                 "told so. Where no other one writes to this target, `single_writer` goes on "
                 "without",
                 s->shown, RACERS);
  s3_end(&c);
  return rc;
}

static int run_round(s3_store *s, const char *key, racer *racers, err *e) {
  char path[S3_PATH_MAX];
  err first = {0};
  int rc = s3_path(s, key, path, e);
  if (rc < 0) return rc;
  memset(racers, 0, RACERS * sizeof *racers);
  for (int i = 0; i < RACERS; i++) {
    racer *r = &racers[i];
    snprintf(r->text, sizeof r->text, "racer %d of %d", i, RACERS);
    r->object =
        (s3_object){.path = path, .data = r->text, .len = strlen(r->text), .if_absent = true};
    r->rc = put_start(&r->put, s, &r->object, &first);
  }
  for (int i = 0; i < RACERS; i++) {
    err why = {0};
    /* The first failure for another reason than the race ends it: each of the other racers would
     * try for as long again, one after the other. */
    if (racers[i].rc == 0 && first.code == 0) racers[i].rc = put_finish(&racers[i].put, &why);
    s3_end(&racers[i].put.call);
    bool lost = racers[i].rc == ERR_EXISTS || racers[i].rc == ERR_CONFLICT;
    if (racers[i].rc < 0 && !lost && first.code == 0) first = why;
  }
  if (first.code == ERR_UNSUPPORTED)
    rc = err_set(e, ERR_UNSUPPORTED,
                 "%s: the server does not know a put that is made only if the object is absent "
                 "(%s). Where no other one writes to this target, `single_writer` goes on without",
                 s->shown, first.text);
  else if (first.code)
    rc = err_set(e, first.code, "%s", first.text);
  else
    rc = check_winner(s, path, racers, e);
  int gone = s3_remove(&s->base, key, rc == 0 ? e : NULL);
  /* A user who may not delete (--no-delete) leaves the object there: it lies below the store's own
   * prefix. */
  return rc < 0 ? rc : gone == ERR_ACCESS ? 0 : gone;
}

int s3_race(store *base, err *e) {
  s3_store *s = (s3_store *)base;
  char nonce[33], key[100];
  int rc = io_nonce(base->io, nonce);
  if (rc < 0) return err_sys(e, rc, "make a nonce");
  racer *racers = calloc(RACERS, sizeof *racers);
  if (!racers) return err_set(e, ERR_NOMEM, "no memory for %d racers", RACERS);
  for (int round = 0; rc == 0 && round < ROUNDS; round++) {
    snprintf(key, sizeof key, ".ckpt/tmp/race-%s-%d", nonce, round);
    rc = run_round(s, key, racers, e);
  }
  free(racers);
  return rc;
}
