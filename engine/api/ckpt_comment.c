/* ckpt_comment: the part of the public API about the comment of our own job of Slurm's. It has a thread of
 * its own: a scontrol that does not answer must hold up neither the owner nor a save. */
#include "ckpt_state.h"

#include <stdlib.h>
#include <string.h>

#include "prims/pool.h"
#include "run/start/slurm.h"

struct ckpt_commenting {
  ckpt *engine;
  pool *thread;
  uint64_t job; /* of the one that is under way; 0: none is */
  char number[SLURM_OWN_MAX];
  bool admin;
  char *text;
  atomic_int stop;
  int rc;
  err error;
};

static void work(void *ctx) {
  ckpt_commenting *m = ctx;
  m->error = (err){0};
  m->rc = slurm_comment(m->engine->env.io, m->number, m->admin, m->text, &m->stop, &m->error);
}

static void done(void *ctx) {
  ckpt_commenting *m = ctx;
  ckpt_completion what = {.job = m->job,
                          .kind = CKPT_COMMENTED,
                          .status = m->rc,
                          .class_ = (uint32_t)err_class_of(m->rc),
                          .step = -1};
  m->job = 0;
  ckpt_tell(m->engine, &what, "", m->rc < 0 ? m->error.text : "");
}

static int need_thread(ckpt *c) {
  if (!c->commenting) {
    c->commenting = calloc(1, sizeof *c->commenting);
    if (!c->commenting) return err_set(&c->error, ERR_NOMEM, "comment: out of memory");
    c->commenting->engine = c;
  }
  return c->commenting->thread ? 0 : ckpt_pool_open(c, 1, 1, &c->commenting->thread);
}

static int begin(ckpt_commenting *m, uint32_t which, const char *text, err *e) {
  char *copy = strdup(text);
  if (!copy) return err_set(e, ERR_NOMEM, "comment: out of memory");
  free(m->text);
  m->text = copy;
  m->admin = which == CKPT_COMMENT_ADMIN;
  return pool_submit(m->thread, work, done, m, e);
}

int ckpt_comment(ckpt *c, uint32_t which, const char *text, uint64_t *job) {
  char number[SLURM_OWN_MAX];
  if (job) *job = 0;
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_need(c, text, "the text");
  if (rc == 0) rc = ckpt_need(c, job, "the job");
  if (rc < 0) return rc;
  if (which > CKPT_COMMENT_USER)
    return err_set(&c->error, ERR_INVAL, "comment %u is unknown", which);
  if (strncmp(text, SLURM_OURS, strlen(SLURM_OURS)) != 0 || text[strcspn(text, "\n\"'")])
    return err_set(&c->error, ERR_INVAL, "a comment of ours begins with \"%s\", and has no quotes",
                   SLURM_OURS);
  if (!ckpt_own_job(number))
    return err_set(&c->error, ERR_UNSUPPORTED,
                   "this is no job of Slurm's (SLURM_JOB_ID is not set): it has no comment");
  rc = need_thread(c);
  ckpt_commenting *m = c->commenting;
  if (rc == 0 && m->job) rc = err_set(&c->error, ERR_LIMIT, "the comment before is under way");
  if (rc < 0) return rc;
  memcpy(m->number, number, sizeof number);
  rc = begin(m, which, text, &c->error);
  if (rc == 0) m->job = *job = ++c->last_job;
  return rc;
}

void ckpt_comment_stop(ckpt *c) {
  if (ckpt_enter(c) < 0 || !c->commenting || !c->commenting->job) return;
  atomic_store(&c->commenting->stop, 1);
  pool_settle(c->commenting->thread, true);
  atomic_store(&c->commenting->stop, 0);
}

void ckpt_comment_settle(ckpt *c) {
  if (c->commenting && c->commenting->thread) pool_settle(c->commenting->thread, false);
}

void ckpt_comment_close(ckpt *c) {
  ckpt_commenting *m = c->commenting;
  if (!m) return;
  atomic_store(&m->stop, 1);
  pool_close(m->thread);
  free(m->text);
  free(m);
  c->commenting = NULL;
}
