/* ckpt_tree: the part of the public API about plain trees: each is a job of its own on a worker,
 * which tells its end as the saves of a run do. */
#include "ckpt_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "job/tree/tree.h"

struct ckpt_tree_job {
  ckpt_tree_job *next;
  ckpt *engine;
  uint64_t job;
  uint32_t kind;
  char *dir, *place; /* place: a URI, or where a copy goes */
  names excludes;
  io io; /* the engine's, with the environment of this transfer */
  bool merge, unfinished;
  int64_t begun;
  atomic_int cancel;
  _Atomic uint64_t done, total;
  int rc;
  err error;
  tree_moved moved;
};

static void job_free(ckpt_tree_job *j) {
  names_free(&j->excludes);
  io_lay_free(&j->io);
  free(j->dir);
  free(j->place);
  free(j);
}

/* ---- on a worker ---- */

static int carry_out(ckpt_tree_job *j, err *e) {
  ckpt *c = j->engine;
  const tree_job p = {.io = &j->io,
                      .log = &c->log,
                      .pool = c->pool,
                      .excludes = names_list(&j->excludes),
                      .merge = j->merge,
                      .unfinished = j->unfinished,
                      .cancel = &j->cancel,
                      .done = &j->done,
                      .total = &j->total};
  if (atomic_load(&j->cancel)) return err_set(e, ERR_CANCELED, "cancelled");
  switch (j->kind) {
  case CKPT_TREE_UPLOAD: return tree_upload(&p, j->dir, j->place, &j->moved, e);
  case CKPT_TREE_DOWNLOAD: return tree_download(&p, j->place, j->dir, &j->moved, e);
  case CKPT_TREE_COPY: return tree_copy(&p, j->dir, j->place, &j->moved, e);
  default: return tree_delete(&p, j->place, e);
  }
}

static void work(void *ctx) {
  ckpt_tree_job *j = ctx;
  j->rc = carry_out(j, &j->error);
}

/* ---- on the owner's thread ---- */

/* Slashes at the end would make another name of it. */
static char *copy_path(const char *path) {
  char *copy = strdup(path);
  size_t len = copy ? strlen(copy) : 0;
  while (len > 1 && copy[len - 1] == '/') copy[--len] = 0;
  return copy;
}

static int check(const ckpt_tree_options *o, err *e) {
  static const char *const needs[] = {"dir and uri", "dir and uri", "uri", "dir and to"};
  if (o->kind > CKPT_TREE_COPY) return err_set(e, ERR_INVAL, "tree: kind %u is unknown", o->kind);
  for (const char *const *at = o->environment; at && *at; at++)
    if (**at == '=' || !strchr(*at, '='))
      return err_set(e, ERR_INVAL, "tree: `environment`: number %zu is no NAME=VALUE",
                     (size_t)(at - o->environment) + 1);
  bool copy = o->kind == CKPT_TREE_COPY, removal = o->kind == CKPT_TREE_DELETE;
  const char *place = copy ? o->to : o->uri;
  if (place && *place && (removal || (o->dir && *o->dir))) return 0;
  return err_set(e, ERR_INVAL, "tree: it needs %s", needs[o->kind]);
}

static ckpt_tree_job *job_new(ckpt *c, const ckpt_tree_options *o) {
  ckpt_tree_job *j = calloc(1, sizeof *j);
  if (!j) return NULL;
  j->engine = c;
  j->kind = o->kind;
  j->merge = o->flags & CKPT_TREE_MERGE;
  j->unfinished = o->flags & CKPT_TREE_UNFINISHED;
  j->dir = copy_path(o->dir ? o->dir : "");
  j->place = o->kind == CKPT_TREE_COPY ? copy_path(o->to) : strdup(o->uri);
  j->begun = c->env.io->now(c->env.io, IO_MONO);
  if (j->dir && j->place && names_add_all(&j->excludes, o->excludes) &&
      io_lay(c->env.io, o->environment, &j->io) == 0)
    return j;
  job_free(j);
  return NULL;
}

static void tell(ckpt *c, const ckpt_tree_job *j) {
  const io *io = c->env.io;
  ckpt_completion what = {.job = j->job,
                          .kind = CKPT_TREE,
                          .status = j->rc,
                          .class_ = (uint32_t)err_class_of(j->rc),
                          .step = -1,
                          .files = j->moved.files,
                          .bytes = j->moved.bytes,
                          .seconds = (double)(io->now(io, IO_MONO) - j->begun) / 1e9};
  ckpt_tell(c, &what, j->kind == CKPT_TREE_DELETE ? j->place : j->dir,
            j->rc < 0 ? j->error.text : "");
}

static void done(void *ctx) {
  ckpt_tree_job *j = ctx, **at = &j->engine->trees;
  while (*at != j) at = &(*at)->next;
  *at = j->next;
  tell(j->engine, j);
  job_free(j);
}

int ckpt_tree(ckpt *c, const ckpt_tree_options *options, uint64_t *job) {
  ckpt_tree_options o;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, job, "job");
  if (rc < 0) return rc;
  *job = 0;
  rc = ckpt_take(&o, sizeof o, options, "ckpt_tree_options", &c->error);
  if (rc == 0) rc = check(&o, &c->error);
  if (rc == 0) rc = ckpt_need_pool(c);
  if (rc < 0) return rc;
  ckpt_tree_job *j = job_new(c, &o);
  if (!j) return err_set(&c->error, ERR_NOMEM, "tree: out of memory");
  rc = pool_submit(c->pool, work, done, j, &c->error);
  if (rc < 0) {
    job_free(j);
    return rc;
  }
  j->job = *job = ++c->last_job;
  j->next = c->trees;
  c->trees = j;
  return 0;
}

static ckpt_tree_job *find(const ckpt *c, uint64_t job) {
  ckpt_tree_job *j = c->trees;
  while (j && j->job != job) j = j->next;
  return j;
}

bool ckpt_trees_cancel(ckpt *c, uint64_t job) {
  ckpt_tree_job *j = find(c, job);
  if (j) atomic_store(&j->cancel, 1);
  return j != NULL;
}

int ckpt_tree_progress(ckpt *c, uint64_t job, uint64_t *done, uint64_t *total) {
  int rc = ckpt_enter(c);
  if (rc < 0) return rc;
  const ckpt_tree_job *j = find(c, job);
  if (!j) return err_set(&c->error, ERR_NOENT, "no job %llu is running", (unsigned long long)job);
  if (done) *done = atomic_load(&j->done);
  if (total) *total = atomic_load(&j->total);
  return 0;
}

void ckpt_trees_stop(ckpt *c) {
  for (ckpt_tree_job *j = c->trees; j; j = j->next) atomic_store(&j->cancel, 1);
}

void ckpt_trees_free(ckpt *c) {
  while (c->trees) {
    ckpt_tree_job *next = c->trees->next;
    job_free(c->trees);
    c->trees = next;
  }
}
