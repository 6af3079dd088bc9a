/* filled: a target that the core filled: four checkpoints, and a fifth in the group exp/T1. */
#ifndef SPEC_FILLED_H
#define SPEC_FILLED_H

#include "catalog/asked.h"
#include "world.h"

typedef struct filled {
  world *w;
  runlog *log, *group;
  char uri[600], at[700];
  char told[2000]; /* "dropped checkpoint-1, deleted checkpoint-1": what filled_note() was told */
} filled;

filled *filled_new(void);
void filled_free(filled *f);
/* These have the signature of cmocka's set-up and tear-down functions. */
int filled_set_up(void **state);
int filled_tear_down(void **state);

/* "<uri>/<name>"; f's memory. */
const char *filled_place(filled *f, const char *name);
/* Resolves the place that `uri` and `name` mean; fails the test if it is refused. */
asked *filled_ask(filled *f, const char *uri, const char *name, asked *out);
/* A catalog_fn for f as context. */
int filled_note(void *f, store *s, const catalog_item *item, err *e);

/* Every file of the target with its size and time. Free it. */
char *filled_picture(filled *f);
/* It still looks so; frees what was before. */
void filled_must_be(filled *f, char *before);
bool filled_has_data(filled *f, const char *name);

#endif
