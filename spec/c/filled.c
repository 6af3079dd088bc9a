#include "filled.h"
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void save(filled *f, runlog *log, const char *path, int64_t step) {
  make_unit(f->w, path, MATCH_DIR, (unsigned)step);
  job *j = job_for(f->w, log, path, MATCH_DIR, step, 0);
  j->metrics = strdup("{\"loss\":0.25}");
  snprintf(j->reason, sizeof j->reason, "complete");
  job_run(j);
  assert_int_equal(j->status, 0);
  job_free(j);
}

filled *filled_new(void) {
  filled *f = calloc(1, sizeof *f);
  f->w = world_new("file", world_io());
  f->log = world_begin(f->w->env.store, "", "one");
  f->group = world_begin(f->w->env.store, "exp/T1", "one");
  for (int i = 1; i <= 4; i++) {
    char name[40];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    save(f, f->log, name, i);
  }
  save(f, f->group, "exp/T1/checkpoint-9", 9);
  snprintf(f->uri, sizeof f->uri, "file://%s/root", f->w->place.dir);
  return f;
}

void filled_free(filled *f) {
  runlog_close(f->log);
  runlog_close(f->group);
  world_free(f->w);
  free(f);
}

int filled_set_up(void **state) {
  *state = filled_new();
  return 0;
}

int filled_tear_down(void **state) {
  filled_free(*state);
  return 0;
}

const char *filled_place(filled *f, const char *name) {
  snprintf(f->at, sizeof f->at, "%s/%s", f->uri, name);
  return f->at;
}

asked *filled_ask(filled *f, const char *uri, const char *name, asked *out) {
  err e = {0};
  if (asked_parse(f->w->env.io, NULL, uri, name, out, &e) != 0) fail_msg("%s", e.text);
  return out;
}

int filled_note(void *ctx, store *s, const catalog_item *item, err *e) {
  static const char *const lives[] = {"live", "dropped", "deleted"};
  filled *f = ctx;
  size_t len = strlen(f->told);
  (void)s, (void)e;
  snprintf(f->told + len, sizeof f->told - len, "%s%s %s", len ? ", " : "",
           lives[item->commit->life], item->commit->dir);
  return 0;
}

static int add_line(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  char *text = ctx;
  (void)is_prefix;
  size_t len = strlen(text);
  snprintf(text + len, (1 << 16) - len, "%s %llu %lld\n", key, (unsigned long long)object->size,
           (long long)object->mtime_ns);
  return 0;
}

char *filled_picture(filled *f) {
  char *text = calloc(1, 1 << 16);
  store *s = f->w->env.store;
  assert_int_equal(s->ops->list(s, "", false, add_line, text, NULL), 0);
  return text;
}

void filled_must_be(filled *f, char *before) {
  char *after = filled_picture(f);
  assert_string_equal(before, after);
  free(before);
  free(after);
}

bool filled_has_data(filled *f, const char *name) {
  char key[300];
  snprintf(key, sizeof key, "%s/model.bin", name);
  return store_holds(f->w->env.store, key);
}
