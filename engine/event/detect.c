#include "detect.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect_model.h"

static const int64_t default_poll_ns = 5000000000;

/* --- events --- */

/* Looks at an event's path (lstat); false if it is gone, or has another name by now. */
static bool look(detect *d, const char *path, struct stat *st) {
  char absolute[FS_PATH_MAX];
  if (model_absolute(d, path, absolute, NULL) < 0) {
    model_say_far(d, path);
    return false;
  }
  return d->io->lstat(d->io, AT_FDCWD, absolute, st) >= 0;
}

/* True if something else has come to the name since. Then an event that tells so is still to be
 * read, and the known facts of `n` say nothing about it. */
static bool is_another(const node *n, const struct stat *st) {
  return n->type != node_type_of(st->st_mode) || (n->known && !node_is(n, st));
}

static void forget_closes(void *ctx, node *n) {
  (void)ctx;
  if (n->type == NODE_FILE && n->evidence == NODE_OPEN) n->evidence = NODE_SEEN;
}

/* Takes in an entry that stands at this name now, by CREATE or because another event told of it
 * first. */
static int appeared(detect *d, node *parent, const char *name, const watch_event *ev,
                    node_evidence evidence, err *e) {
  struct stat st;
  bool there = look(d, ev->path, &st);
  node *n = node_child(parent, name, strlen(name));
  node_type type = there ? node_type_of(st.st_mode) : ev->is_dir ? NODE_DIR : NODE_FILE;
  int rc = 0;
  if (!there && ev->is_dir) return 0; /* gone again, or a MOVED_FROM is on its way */
  if (n && (n->type != type || (type == NODE_DIR && !node_is(n, &st)))) {
    rc = model_remove(d, n, e);
    n = NULL;
  }
  if (rc == 0 && !n) {
    rc = model_add(d, parent, name, there ? &st : NULL, evidence, e);
    n = node_child(parent, name, strlen(name));
  } else if (rc == 0 && type != NODE_DIR) {
    if (there) node_set(n, &st);
    if (type == NODE_FILE) model_prove(d, n, evidence);
    model_note(d, n);
  }
  /* Files that were made in it before its watch have no event. */
  if (rc == 0 && n && type == NODE_DIR && !n->excluded) rc = list_tree(d, n, e);
  return rc;
}

static int modified(detect *d, node *parent, node *n, const char *name, const watch_event *ev,
                    err *e) {
  if (!n) return appeared(d, parent, name, ev, NODE_OPEN, e);
  if (n->type != NODE_FILE) return 0;
  model_prove(d, n, NODE_OPEN);
  model_note(d, n);
  return 0;
}

static int closed(detect *d, node *parent, node *n, const char *name, const watch_event *ev,
                  err *e) {
  struct stat st;
  if (!n) return appeared(d, parent, name, ev, NODE_CLOSED, e);
  if (n->type != NODE_FILE) return 0;
  bool there = look(d, ev->path, &st) && !is_another(n, &st);
  bool same = there && node_same(n, &st);
  /* Its size and times are unchanged: it was opened and closed for nothing, or this is the late
   * close of a file that was renamed while it was open. */
  bool idle = same && (n->evidence == NODE_CLOSED || n->evidence == NODE_UNPROVEN);
  if (there) node_set(n, &st);
  if (idle) {
    /* This is no new write, but the close shows that somebody was still at it. */
    if (unit_of(d, n)) unit_stir(d, unit_of(d, n));
    return 0;
  }
  int rc = unit_look_again(d, n, e);
  if (rc < 0) return rc;
  model_prove(d, n, NODE_CLOSED);
  model_note(d, n);
  return 0;
}

static int restamped(detect *d, node *n, const watch_event *ev) {
  struct stat st;
  if (!n || n->type == NODE_DIR || !look(d, ev->path, &st)) return 0;
  bool same = node_same(n, &st), known = n->known;
  if (is_another(n, &st)) return 0; /* its CREATE is on its way */
  node_set(n, &st);
  unit *u = unit_of(d, n);
  if (u) unit_stir(d, u);
  if (same || !known || !u || n->excluded) return 0;
  /* New times alone take no proof away: a copy gets the times of its original last. */
  bool renamed = u->renamed;
  model_note(d, n);
  u->renamed = renamed;
  return 0;
}

/* Forgets closes after a return: while it was away no close of its files was told. */
static void came_back(detect *d, node *n) {
  const unit *own = unit_of(d, n);
  node_walk(n, forget_closes, NULL);
  for (size_t i = 0; i < d->all.count; i++) {
    unit *u = d->all.at[i];
    if (u->state == DETECT_OPEN && (u == own || node_within(n, u->root))) unit_stir(d, u);
  }
}

/* Takes in a departure. By the time that the event is read, its name may stand there again; or it
 * never left. An exchange is reported as two renames, one after the other: by the second one the
 * first entry leaves the place to which it has just come, and there it is in truth. No other event
 * tells. */
static int left(detect *d, node *n, const watch_event *ev, err *e) {
  struct stat st;
  if (!n) return 0;
  if (!ev->cookie) return model_remove(d, n, e);
  if (!n->known || !look(d, ev->path, &st) || is_another(n, &st))
    return model_leave(d, n, ev->cookie, e);
  n->stayed = true;
  came_back(d, n);
  int rc = limbo_doubt(d, ev->cookie, e);
  /* Its watches are marked as on their way, so they are set again. */
  return rc == 0 && n->type == NODE_DIR && !n->excluded ? list_tree(d, n, e) : rc;
}

/* Finds the other half of a departure, or returns the limbo's count. */
static size_t departure_of(const detect *d, uint32_t cookie) {
  size_t i = 0;
  while (i < d->limbo_count && (!cookie || d->limbo[i].cookie != cookie)) i++;
  return i;
}

/* Takes in a return: the entry stands where it stood before, and its departure was not believed, so
 * this proves nothing. */
static int is_back(detect *d, node *n, const char *name, const watch_event *ev,
                   const struct stat *st, err *e) {
  bool same = node_same(n, st);
  node *parent = n->parent;
  n->stayed = false;
  came_back(d, n);
  if (n->type == NODE_DIR) return list_arrived(d, parent, name, e);
  if (same) return 0;
  return appeared(d, parent, name, ev, NODE_SEEN, e);
}

static int arrived(detect *d, node *parent, const char *name, const watch_event *ev, err *e) {
  struct stat st;
  size_t at = departure_of(d, ev->cookie);
  bool known = at < d->limbo_count, there = look(d, ev->path, &st);
  /* The node of the old name may have come there after this entry left, and no event would put that
   * right: so the entry that stands here is taken instead, and may be in doubt. */
  if (known && there && d->limbo[at].n && is_another(d->limbo[at].n, &st)) {
    limbo_drop(d, at);
    return appeared(d, parent, name, ev, NODE_SEEN, e);
  }
  node *n = known ? limbo_take(d, at) : NULL;
  /* Nobody knows where it came from. */
  if (known && !n) return there ? appeared(d, parent, name, ev, NODE_SEEN, e) : 0;
  node *before = node_child(parent, name, strlen(name));
  if (!n && there && before && before->stayed && !is_another(before, &st))
    return is_back(d, before, name, ev, &st, e);
  if (!n) {
    node_type type = there ? node_type_of(st.st_mode) : ev->is_dir ? NODE_DIR : NODE_FILE;
    n = node_new(name, strlen(name), type);
    if (!n) return err_set(e, ERR_NOMEM, "watch: out of memory");
  }
  int rc = model_move(d, n, !known, parent, name, there ? &st : NULL, e);
  if (rc == 0 && ev->back && n->type == NODE_DIR) came_back(d, n);
  return rc == 0 ? list_arrived(d, parent, name, e) : rc;
}

/* Looks for another run's state directory: once it is filled, its files tell it from a
 * checkpoint. */
static void check_state(detect *d, node *dir) {
  if (!model_state_named(dir)) return;
  const node *lock = node_child(dir, "lock", 4), *journal = node_child(dir, "journal.jsonl", 13);
  if (!lock || !journal || lock->type != NODE_FILE || journal->type != NODE_FILE) return;
  model_exclude_state(d, dir);
}

static int take_entry_event(detect *d, const watch_event *ev, node *parent, node *n,
                            const char *name, err *e) {
  switch (ev->kind) {
  case WATCH_CREATE: return appeared(d, parent, name, ev, NODE_SEEN, e);
  case WATCH_MODIFY: return modified(d, parent, n, name, ev, e);
  case WATCH_CLOSE_WRITE: return closed(d, parent, n, name, ev, e);
  case WATCH_ATTRIB: return restamped(d, n, ev);
  case WATCH_MOVED_FROM: return left(d, n, ev, e);
  case WATCH_DELETE: return n ? model_remove(d, n, e) : 0;
  case WATCH_MOVED_TO: return arrived(d, parent, name, ev, e);
  case WATCH_OVERFLOW:
  case WATCH_GONE: break;
  }
  return 0;
}

static int take(detect *d, const watch_event *ev, err *e) {
  node *parent;
  const char *name;
  if (ev->kind == WATCH_OVERFLOW) {
    d->missed = true;
    return 0;
  }
  if (ev->kind == WATCH_GONE) {
    root_lost(d);
    return 0;
  }
  node *n = node_find(d->top, ev->path, &parent, &name);
  if (!parent || !*name || d->lost) return 0; /* below an excluded name, or gone already */
  int rc = take_entry_event(d, ev, parent, n, name, e);
  if (rc == 0) check_state(d, parent);
  /* The root may be on its own way out. */
  if (d->top->count == 0) root_look_later(d);
  return rc;
}

static void on_event(void *ctx, const watch_event *ev) {
  detect *d = ctx;
  err e = {0};
  if (take(d, ev, &e) < 0) {
    if (!d->failed.code) d->failed = e;
    d->missed = true;
  }
}

/* --- taking in --- */

/* From here on no close may be coming for what is open. */
static void closes_are_lost(detect *d) {
  node_walk(d->top, forget_closes, NULL);
  for (size_t i = 0; i < d->limbo_count; i++)
    if (d->limbo[i].n) node_walk(d->limbo[i].n, forget_closes, NULL);
  for (size_t i = 0; i < d->all.count; i++)
    if (d->all.at[i]->state == DETECT_OPEN) unit_stir(d, d->all.at[i]);
}

static int relist(detect *d, bool lost_closes, err *e) {
  int rc = list_all(d, e);
  if (rc == ERR_NOENT) {
    root_lost(d);
    return 0;
  }
  if (rc == 0 && lost_closes) closes_are_lost(d);
  return rc;
}

static int take_in(detect *d, err *e) {
  int rc = 0;
  if (d->watch && !d->lost) {
    rc = watch_read(d->watch, on_event, d, e);
    if (rc < 0) d->missed = true;
  }
  if (d->failed.code) {
    if (rc >= 0 && e) *e = d->failed;
    if (rc >= 0) rc = d->failed.code;
    d->failed = (err){0};
  }
  return rc < 0 ? rc : 0;
}

static int catch_up(detect *d, err *e) {
  int64_t now = model_mono(d);
  bool due = d->missed || (d->polling && (d->watch || now >= d->next_poll));
  int rc = 0;
  if (!d->lost && (due || now >= d->root_due)) root_check(d);
  if (d->lost && !root_back(d, &rc, e)) return rc;
  bool missed = d->missed, switched = d->polling && d->watch;
  if (switched) list_start_polling(d);
  if (!missed && !switched && !(d->polling && now >= d->next_poll)) return 0;
  d->missed = false;
  d->next_poll = now + d->poll_ns;
  rc = relist(d, missed || switched, e);
  if (rc < 0) d->missed = missed;
  return rc;
}

/* A MOVED_FROM whose other half does not come left the tree. */
static void expire_limbo(detect *d) {
  int64_t now = model_mono(d);
  for (size_t i = d->limbo_count; i-- > 0;)
    if (now - d->limbo[i].since >= d->rules->settled_ns) limbo_drop(d, i);
}

int detect_run(detect *d, err *e) {
  int rc = judge_fresh(d, e);
  if (rc == 0) rc = take_in(d, e);
  if (rc == 0) rc = catch_up(d, e);
  expire_limbo(d);
  if (rc == 0) rc = judge_due(d, e);
  if (rc == ERR_NOENT) { /* of a listing, perhaps because the root has gone meanwhile */
    root_check(d);
    if (d->lost) rc = 0;
  }
  return rc;
}

int detect_feed(detect *d, const watch_event *event, err *e) {
  int rc = judge_fresh(d, e);
  if (rc == 0) rc = take(d, event, e);
  return rc == 0 ? catch_up(d, e) : rc;
}

int detect_list(detect *d, err *e) {
  int rc = judge_fresh(d, e);
  if (rc < 0 || !d->lost) return rc < 0 ? rc : relist(d, false, e);
  d->root_due = model_mono(d);
  return catch_up(d, e);
}

/* --- open and close --- */

static int first_listing(detect *d, const detect_options *o, err *e) {
  d->first = true;
  d->known = o->known;
  d->known_count = o->known_count;
  int rc = list_tree(d, d->top, e);
  d->first = false;
  d->known = NULL;
  d->known_count = 0;
  d->fresh = true;
  d->next_poll = model_mono(d) + d->poll_ns;
  return rc;
}

int detect_open(const detect_options *o, detect **out, err *e) {
  *out = NULL;
  detect *d = calloc(1, sizeof *d);
  if (!d) return err_set(e, ERR_NOMEM, "watch %s: out of memory", o->root);
  d->io = o->io;
  d->log = o->log;
  d->rules = o->rules;
  d->has_writer = o->has_writer;
  d->agree = o->agree;
  d->agree_ctx = o->agree_ctx;
  d->several = o->agree != NULL;
  d->mode = o->mode;
  d->polling = o->mode == DETECT_FED && o->poll_ns > 0;
  d->poll_ns = o->poll_ns > 0 ? o->poll_ns : default_poll_ns;
  /* Listings follow no link, not at the root either. */
  d->root = o->mode == DETECT_FED ? strdup(o->root) : realpath(o->root, NULL);
  d->top = node_new("", 0, NODE_DIR);
  int rc = 0;
  if (!d->root && o->mode != DETECT_FED)
    rc = err_set(e, ERR_NOENT, "watch %s: there is no such directory", o->root);
  else if (!d->top || !d->root)
    rc = err_set(e, ERR_NOMEM, "watch %s: out of memory", o->root);
  if (rc == 0) rc = root_open(d, e);
  if (rc == 0) rc = first_listing(d, o, e);
  if (rc < 0) {
    detect_close(d);
    return rc;
  }
  *out = d;
  return 0;
}

void detect_close(detect *d) {
  if (!d) return;
  for (size_t i = d->queue_head; i < d->queue.count;
       i++) /* units that are gone stand in no other list */
    if (d->queue.at[i]->state == DETECT_GONE) unit_free(d->queue.at[i]);
  for (size_t i = 0; i < d->all.count; i++) unit_free(d->all.at[i]);
  for (size_t i = 0; i < d->away.count; i++) unit_free(d->away.at[i]);
  for (size_t i = 0; i < d->limbo_count; i++) node_free(d->limbo[i].n);
  free(d->all.at);
  free(d->away.at);
  free(d->active.at);
  free(d->queue.at);
  free(d->limbo);
  free(d->index);
  unit_free(d->out);
  series_free_all(d);
  node_free(d->top);
  watch_close(d->watch);
  free(d->root);
  free(d->example);
  free(d);
}

/* --- asking --- */

int detect_fd(const detect *d) {
  return d->watch && !d->polling && !d->lost ? watch_fd(d->watch) : -1;
}

bool detect_polling(const detect *d) {
  return d->polling;
}

int64_t detect_due(const detect *d) {
  int64_t due = d->root_due;
  if (d->lost) return due;
  if (d->fresh || d->missed || (d->polling && d->watch)) return model_mono(d);
  if (d->polling && d->next_poll < due) due = d->next_poll;
  for (size_t i = 0; i < d->active.count; i++)
    if (d->active.at[i]->due < due) due = d->active.at[i]->due;
  for (size_t i = 0; i < d->limbo_count; i++) {
    int64_t end = d->limbo[i].since + d->rules->settled_ns;
    if (end < due) due = end;
  }
  return due;
}

static void show(detect *d, const unit *u, detect_unit *out) {
  unit_group(u, d->group);
  *out = (detect_unit){.path = u->path,
                       .group = d->group,
                       .name = unit_name(u),
                       .kind = u->kind,
                       .step = u->step,
                       .state = u->state,
                       .reason = u->reason,
                       .aside = u->aside,
                       .cause = u->cause,
                       .generation = u->generation,
                       .in_place = u->generation > 0 || !u->numbered,
                       .reused = !u->numbered,
                       .lacking = u->lacking,
                       .alone = u->alone,
                       .above = u->above,
                       .files = u->files,
                       .bytes = u->bytes,
                       .stamp = u->stamp,
                       .fingerprint = u->fingerprint,
                       .changed_ns = u->changed,
                       .stirred_at = u->last,
                       .made_ns = u->made};
}

/* Judges the units that detect_open found, when one is first asked for: detect_learn may come
 * before. An error there comes again with the next detect_run. */
static void judge_first(detect *d) {
  err e = {0};
  if (judge_fresh(d, &e) < 0) log_say(d->log, LOG_ERROR, "%s", e.text);
}

int detect_next(detect *d, detect_unit *out) {
  judge_first(d);
  unit_free(d->out);
  d->out = NULL;
  while (d->queue_head < d->queue.count) {
    unit *u = d->queue.at[d->queue_head++];
    u->queued = false;
    if (u->state == DETECT_GONE) {
      d->out = u;
    } else {
      bool news =
          !u->handed || u->state != u->handed_state || u->generation != u->handed_generation;
      if (!news) continue;
      u->handed = true;
      u->handed_state = u->state;
      u->handed_generation = u->generation;
    }
    show(d, u, out);
    return 1;
  }
  d->queue.count = d->queue_head = 0;
  return 0;
}

int detect_find(detect *d, const char *path, detect_unit *out) {
  judge_first(d);
  unit *u = unit_at(d, path);
  if (u) judge_figures(d, u);
  if (u) show(d, u, out);
  return u != NULL;
}

int detect_each(detect *d, detect_unit_fn *fn, void *ctx) {
  detect_unit shown;
  int rc = 0;
  judge_first(d);
  for (size_t i = 0; rc == 0 && i < d->all.count; i++) {
    show(d, d->all.at[i], &shown);
    rc = fn(ctx, &shown);
  }
  return rc;
}

uint64_t detect_unmatched(const detect *d, const char **example) {
  if (example) *example = d->example;
  return d->unmatched;
}

bool detect_saw_file(const detect *d) {
  return d->saw_file;
}

/* --- what the caller knows --- */

static void look_for_open(void *ctx, node *n) {
  if (n->type == NODE_FILE && n->evidence == NODE_OPEN) *(bool *)ctx = true;
}

int detect_prove(detect *d, const char *path, const digest *fingerprint, const char *reason,
                 err *e) {
  bool changed, open = false;
  judge_first(d);
  unit *u = unit_at(d, path);
  if (!u || (u->state != DETECT_UNPROVEN && u->state != DETECT_OPEN)) return 0;
  int rc = list_unit(d, u, &changed, e);
  if (rc < 0 || changed) return rc;
  unit_walk(u, look_for_open, &open);
  if (open) return 0;
  rc = judge_measure(d, u, e);
  if (rc < 0 || u->files == 0) return rc;
  if (fingerprint && !digest_equal(&u->fingerprint, fingerprint)) return rc;
  judge_complete(d, u, reason);
  return 1;
}

/* A group's files are handed in by their whole names; here they are known by what follows its own.
 */
static bool all_have_stem(const char *stem, const char *const *names, size_t count) {
  size_t len = strlen(stem), i = 0;
  while (i < count && strncmp(names[i], stem, len) == 0 && names[i][len] == '.') i++;
  return count > 0 && i == count;
}

int detect_learn(detect *d, const char *group, const char *unit_name, const char *const *names,
                 size_t count, err *e) {
  if (!all_have_stem(unit_name, names, count))
    return series_learn(d, group, unit_name, names, count, e);
  const char **tails = calloc(count, sizeof *tails);
  if (!tails) return err_set(e, ERR_NOMEM, "watch: out of memory");
  for (size_t i = 0; i < count; i++) tails[i] = names[i] + strlen(unit_name);
  int rc = series_learn(d, group, unit_name, tails, count, e);
  free(tails);
  return rc;
}

/* A writer's last changes may still wait to be read, or to be listed. */
static void take_last(detect *d) {
  err e = {0};
  judge_first(d);
  d->missed = d->missed || d->polling;
  if (d->lost) d->root_due = model_mono(d);
  int rc = take_in(d, &e);
  if (rc == 0) rc = catch_up(d, &e);
  if (rc < 0) log_say(d->log, LOG_ERROR, "%s", e.text);
}

/* Judges what is open anew, and at once. */
static void wake_open(detect *d, bool died, int64_t lag_ns) {
  for (size_t i = 0; i < d->all.count; i++) {
    unit *u = d->all.at[i];
    if (died) judge_writer_died(d, u, lag_ns);
    if (u->state == DETECT_OPEN) unit_wake(d, u, model_mono(d));
  }
  for (size_t i = 0; i < d->away.count; i++) {
    if (died) judge_writer_died(d, d->away.at[i], lag_ns);
    if (d->away.at[i]->state == DETECT_OPEN) d->away.at[i]->due = model_mono(d);
  }
}

void detect_writer_gone(detect *d, bool clean) {
  take_last(d);
  d->clean = clean;
  d->dead = !clean;
  d->end_seq = d->seq;
  wake_open(d, !clean, 0);
}

void detect_writer_died(detect *d, int64_t lag_ns) {
  take_last(d);
  wake_open(d, true, lag_ns);
}

void detect_several(detect *d, bool several) {
  d->several = several;
}

void detect_doubt(detect *d, const char *why) {
  snprintf(d->doubt, sizeof d->doubt, "%s", why);
}

void detect_writer_new(detect *d) {
  d->dead = d->clean = false;
  *d->doubt = 0;
}
