/* comment: puts the cost to evict into the comment of our job of Slurm's, where the user asked for it. */
#ifndef RUNNER_JOB_COMMENT_H
#define RUNNER_JOB_COMMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt.h"

/* --slurm-comment */
enum { COMMENT_OFF, COMMENT_ADMIN, COMMENT_USER };

typedef struct comment {
  unsigned where; /* COMMENT_* */
  double next_at; /* clock_s(): when to put what has changed; INFINITY: nothing has */
  double put_at;  /* -INFINITY: it was not put yet */
  bool changed;
} comment;

void comment_init(comment *c, unsigned where, uint32_t rank);
/* What it costs is another thing now. */
void comment_note(comment *c);
/* Puts it, two minutes apart at least: each time Slurm is asked, and told. Never waits for Slurm. */
void comment_look(comment *c, ckpt *engine, ckpt_run *run, double now);
/* Takes in how that went. */
void comment_take(comment *c, const ckpt_completion *what);

#endif
