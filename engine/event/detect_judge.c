#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "event/stamp.h"
#include "event/structure.h"
#include "detect_model.h"
#include "prims/proc.h"

static const int64_t try_again = 5000000000; /* after an error */

/* --- facts --- */

typedef struct tally {
  rule_facts *f;
  int64_t changed, made, data_mtime;
  uint64_t bytes, stamp, data_seq, again_seq;
  bool rewritten, left_over; /* old data that was, or was not, written since it was settled */
  const unit *u;
  const rules *rules;
  bool fine_times;
} tally;

static bool marker_at(const tally *t, const node *n) {
  bool top = t->u->kind == MATCH_DIR && n->parent == t->u->root && n->type == NODE_FILE;
  return top && rules_is_marker(t->rules, n->name);
}

/* Counts a file for the conditions that want so many parts. */
static void count_part(const tally *t, const node *n) {
  char name[FS_PATH_MAX];
  bool named = false;
  for (size_t i = 0; i < t->rules->test_count; i++) {
    const rules_test *test = &t->rules->tests[i];
    if (test->op != RULES_PARTS) continue;
    if (!named && unit_file_name(t->u, n, name, NULL) < 0) return;
    named = true;
    t->f->parts[i] += match_glob(test->name, name);
  }
}

static void count_file(void *ctx, node *n) {
  tally *t = ctx;
  if (n->type == NODE_DIR || n->type == NODE_OTHER) return;
  int64_t newest = n->mtime_ns > n->ctime_ns ? n->mtime_ns : n->ctime_ns;
  if (newest > t->changed) t->changed = newest;
  if (n->mtime_ns > t->made) t->made = n->mtime_ns;
  if (n->mtime_ns % 1000000000 != 0 || n->ctime_ns % 1000000000 != 0) t->fine_times = true;
  t->f->files++;
  if (n->type != NODE_FILE) return;
  t->bytes += n->size;
  t->stamp += stamp_of_file(n->size, n->mtime_ns, n->ino);
  if (n->evidence == NODE_OPEN) t->f->open_name = n->name;
  t->f->open += n->evidence == NODE_OPEN;
  t->f->seen += n->evidence == NODE_SEEN;
  t->f->unproven += n->evidence == NODE_UNPROVEN;
  count_part(t, n);
  if (marker_at(t, n)) return;
  if (n->mtime_ns > t->data_mtime) t->data_mtime = n->mtime_ns;
  if (n->seq > t->data_seq) t->data_seq = n->seq;
  if (n->again && n->seq > t->again_seq) t->again_seq = n->seq;
  bool again = n->old || t->u->remove_seq > t->u->settle_seq;
  t->rewritten = t->rewritten || (again && n->seq > t->u->settle_seq);
  t->left_over = t->left_over || (n->old && n->seq <= t->u->settle_seq);
}

/* A large model may be written for minutes under its temporary name without an event (mmap). */
static void count_temporary(void *ctx, node *n) {
  rule_facts *f = ctx;
  if (!n->excluded || (n->type == NODE_FILE && n->evidence == NODE_CLOSED)) return;
  f->temporary++;
  if (n->type != NODE_FILE || n->evidence != NODE_OPEN) return;
  f->open++;
  f->open_name = n->name;
}

static bool marker_is_old(bool newest, const node *n, const tally *t) {
  /* The data is written again, and the marker is still that of the time before. */
  if (t->rewritten && n->seq <= t->u->settle_seq) return true;
  /* Order of time stamps, or order of events where both were seen. */
  bool ordered = n->seq > t->data_seq && n->evidence == NODE_CLOSED;
  return newest && n->mtime_ns < t->data_mtime && !ordered;
}

static bool series_has(const series *s, const char *name) {
  return s && names_has(&s->files, name);
}

static bool is_signed(const rules_marker *m, const unit *u) {
  for (size_t i = 0; m->signature && i < u->root->count; i++) {
    const node *n = u->root->children[i];
    if (n->type == NODE_FILE && !n->excluded && match_glob(m->signature, n->name)) return true;
  }
  return false;
}

/* Notes what the marker says of the order. A listing finds files in the order of their names, so where
 * closes were not seen the times have to tell. */
static void order_marker(const node *n, const tally *t) {
  rule_facts *f = t->f;
  bool by_events = f->seen == 0 && !f->blind && n->evidence == NODE_CLOSED;
  bool last = by_events ? n->seq > t->data_seq : n->mtime_ns >= t->data_mtime;
  f->marker_last = f->marker_last || last;
  f->marker_early = f->marker_early || t->data_mtime - n->mtime_ns > t->rules->marked_ns;
  bool behind = !n->listed && n->evidence == NODE_CLOSED && n->begun_seq > t->data_seq;
  if (behind && !f->blind) f->marker_behind = n->name;
  f->marker_moved = f->marker_moved || (behind && n->moved);
}

static void count_marker(const unit *u, const rules_marker *m, const series *s, const tally *t) {
  const node *n = node_child(u->root, m->name, strlen(m->name));
  bool by_user = rules_marker_by_user(m);
  rule_facts *f = t->f;
  if (n && n->type == NODE_FILE && (n->size > 0 || by_user)) {
    bool old = marker_is_old(m->newest, n, t);
    if (!f->marker || (old && !f->marker_old)) f->marker = m->name;
    f->marker_old = f->marker_old || old;
    f->marker_final = f->marker_final || (m->final && !old);
    f->mixed = f->mixed || t->again_seq > n->seq;
    order_marker(n, t);
  } else if (is_signed(m, u) || series_has(s, m->name)) {
    if (!f->needed || by_user) f->needed = m->name;
    f->needed_always = f->needed_always || by_user;
  }
}

/* Counts the marker that a policy's condition names; it may be empty. */
static void count_test(const unit *u, size_t at, const tally *t) {
  const rules_test *test = &t->rules->tests[at];
  if (test->op != RULES_MARKER) return;
  const node *n = node_child(u->root, test->name, strlen(test->name));
  if (!n || n->type != NODE_FILE) return;
  rule_facts *f = t->f;
  uint64_t bit = UINT64_C(1) << at;
  bool old = marker_is_old(test->newer, n, t);
  f->marked |= bit;
  if (old) f->marked_old |= bit;
  if (!rules_needs(t->rules, RULES_MARKER, test->name)) return;
  f->mixed = f->mixed || t->again_seq > n->seq;
  if (!old) order_marker(n, t);
}

/* Puts the step of this unit into `name`, in place of that of the unit before it: "model_10.pt". */
static void step_swapped(const char *name, int64_t was, int64_t is, char *out) {
  size_t at = 0;
  while (*name && at + 24 < FS_PATH_MAX) {
    size_t digits = strspn(name, "0123456789");
    if (digits == 0) {
      out[at++] = *name++;
    } else if (digits < 19 && strtoll(name, NULL, 10) == was) {
      at += (size_t)snprintf(out + at, FS_PATH_MAX - at, "%.*lld", (int)digits, (long long)is);
      name += digits;
    } else {
      for (; digits > 0 && at + 24 < FS_PATH_MAX; digits--) out[at++] = *name++;
    }
  }
  out[at] = '\0';
}

static bool holds(const unit *u, const char *name) {
  node *parent;
  const char *base;
  char member[FS_PATH_MAX];
  if (u->kind == MATCH_GROUP) {
    snprintf(member, sizeof member, "%s%s", unit_name(u), name);
    return node_child(u->root, member, strlen(member)) != NULL;
  }
  return node_find(u->root, name, &parent, &base) != NULL;
}

/* True for a name that is made of the content, or by chance (a sum, a UUID): the next save has
 * others. */
static bool is_named_anew(const char *name) {
  enum { SUM = 32 }; /* hexadecimal digits of the shortest */
  const char *base = strrchr(name, '/');
  base = base ? base + 1 : name;
  size_t len = strcspn(base, "."), dashes = 0;
  if (strspn(base, "0123456789abcdefABCDEF-") < len) return false;
  for (size_t i = 0; i < len; i++) dashes += base[i] == '-';
  return len - dashes >= SUM;
}

/* Finds the first file that the unit before it has and this one lacks. */
static const char *lacking(const unit *u, const series *s) {
  char swapped[FS_PATH_MAX];
  for (size_t i = 0; s && u->kind != MATCH_FILE && i < s->files.count; i++) {
    const char *name = s->files.at[i];
    if (is_named_anew(name) || structure_is_shard(name) || holds(u, name)) continue;
    if (s->step < 0 || u->step < 0) return s->files.at[i];
    step_swapped(s->files.at[i], s->step, u->step, swapped);
    if (!holds(u, swapped)) return s->files.at[i];
  }
  return NULL;
}

void judge_gather(detect *d, unit *u, rule_facts *f) {
  const series *s = series_find(d, u);
  tally t = {.f = f, .u = u, .rules = d->rules};
  *f = (rule_facts){.renamed = u->renamed,
                    .removed = u->remove_seq > u->write_seq && u->remove_seq > u->settle_seq,
                    .dead = u->dead,
                    .above = u->above,
                    .lived = u->lived,
                    .touched = u->touched,
                    .blind = d->polling,
                    .interval = d->polling ? d->poll_ns : 0,
                    .foreign = d->foreign,
                    .several = d->several,
                    /* Another task may still add a file to the first group of its kind. */
                    .provable =
                        u->kind == MATCH_FILE || (u->kind == MATCH_GROUP && !(d->several && !s)),
                    .proof = u->proof_touches == u->touches ? u->proof : RULE_UNLOOKED,
                    .ended = d->clean || d->dead};
  unit_walk(u, count_file, &t);
  if (u->kind == MATCH_DIR) node_walk(u->root, count_temporary, f);
  for (size_t i = 0; u->kind == MATCH_DIR && i < d->rules->marker_count; i++)
    count_marker(u, &d->rules->markers[i], s, &t);
  for (size_t i = 0; u->kind == MATCH_DIR && i < d->rules->test_count; i++) count_test(u, i, &t);
  f->lacks = lacking(u, s);
  f->before = s ? s->unit : NULL;
  f->alone = !s;
  f->mixed = f->mixed || (t.rewritten && t.left_over);
  f->shrinking = u->shrink_seq > u->write_seq;
  f->clean = d->clean && u->touched && u->write_seq <= d->end_seq && u->shrink_seq <= d->end_seq;
  int64_t wall = d->io->now(d->io, IO_WALL);
  f->age = wall - t.changed;
  f->grain = t.fine_times ? 10000000 : 2000000000;
  /* A unit that was there before us has been quiet since its newest time stamp. */
  if (!u->touched) u->last = model_mono(d) - (f->age > 0 ? f->age : 0);
  f->quiet = model_mono(d) - u->last;
  u->lacking = (f->lacks && !f->marker_final && !f->renamed) || f->removed;
  u->alone = f->alone && u->kind == MATCH_DIR && !f->marker && !f->marked;
  u->files = f->files;
  u->bytes = t.bytes;
  u->stamp = t.stamp;
  u->changed = t.changed;
  u->made = t.made;
}

/* --- fingerprint --- */

typedef struct printing {
  const unit *u;
  hash *h;
  int rc;
  err *e;
} printing;

static void print_node(void *ctx, node *n) {
  printing *p = ctx;
  char name[FS_PATH_MAX];
  if (p->rc < 0) return;
  p->rc = unit_file_name(p->u, n, name, p->e);
  if (p->rc < 0) return;
  /* A directory's own times change with each temporary file in it. */
  bool dir = n->type == NODE_DIR;
  uint64_t facts[] = {n->type, dir ? 0 : n->size, dir ? 0 : (uint64_t)n->mtime_ns,
                      dir ? 0 : n->ino};
  p->rc = hash_add(p->h, name, strlen(name) + 1, p->e);
  if (p->rc == 0) p->rc = hash_add(p->h, facts, sizeof facts, p->e);
}

int judge_measure(detect *d, unit *u, err *e) {
  rule_facts f;
  printing p = {.u = u, .e = e};
  judge_gather(d, u, &f);
  int rc = hash_begin(HASH_XXH3_128, &p.h, e);
  if (rc < 0) return rc;
  unit_walk(u, print_node, &p);
  rc = hash_end(p.h, &u->fingerprint, e);
  return p.rc < 0 ? p.rc : rc;
}

/* --- verdicts --- */

/* All processes are looked at once for a pass over the units, not once for each of them. If
 * somebody opens a file after that and changes it, an event tells, or the next listing. */
static bool writes_path(detect *d, const char *path) {
  char absolute[FS_PATH_MAX];
  if (model_absolute(d, path, absolute, NULL) < 0) return true;
  if (d->has_writer) return d->has_writer(absolute);
  if (!d->writers) d->writers = proc_writers_take(d->root);
  return !d->writers || proc_writers_has(d->writers, absolute);
}

static void forget_writers(detect *d) {
  proc_writers_free(d->writers);
  d->writers = NULL;
}

typedef struct asking {
  detect *d;
  bool found;
} asking;

static void ask_member(void *ctx, node *n) {
  asking *a = ctx;
  char path[FS_PATH_MAX];
  if (a->found) return;
  a->found = node_path(n, path, NULL) < 0 || writes_path(a->d, path);
}

static bool has_writer(detect *d, const unit *u) {
  asking a = {.d = d};
  if (u->kind != MATCH_GROUP) return writes_path(d, u->path);
  unit_walk(u, ask_member, &a);
  return a.found;
}

typedef struct naming {
  const unit *u;
  names names;
  bool failed;
} naming;

static void name_node(void *ctx, node *n) {
  naming *a = ctx;
  char name[FS_PATH_MAX];
  if (n->type != NODE_FILE || a->failed) return;
  a->failed = unit_file_name(a->u, n, name, NULL) < 0 || !names_add(&a->names, name);
}

static void learn_from(detect *d, const unit *u) {
  char group[FS_PATH_MAX];
  naming a = {.u = u};
  if (u->kind == MATCH_FILE) return;
  unit_walk(u, name_node, &a);
  unit_group(u, group);
  if (a.failed ||
      series_learn(d, group, unit_name(u), names_list(&a.names), a.names.count, NULL) < 0)
    log_say(d->log, LOG_WARN, "%s: no memory for its file names", u->path);
  names_free(&a.names);
}

void judge_complete(detect *d, unit *u, const char *reason) {
  judge_settle(u, true);
  u->settle_seq = ++d->seq;
  u->dead = false;
  u->cause = NULL;
  learn_from(d, u);
  unit_set(d, u, DETECT_COMPLETE, reason);
  unit_rest(d, u);
  log_say(d->log, LOG_INFO, "%s is complete: %s", u->path, u->reason);
}

/* Looks at the files themselves; `why` has room for RULE_TEXT_MAX. Returns 1 if it could not, and
 * the verdict says so. A file that vanishes meanwhile makes an event of its own. */
static int look_inside(detect *d, unit *u, rule_verdict *v, structure *found, char *why, err *e) {
  err ours = {0};
  int rc = structure_of_unit(d->io, d->root, u->path, u->kind, d->rules, found, why, RULE_TEXT_MAX,
                             &ours);
  /* A unit that cannot be read, or lies too deep, must not stop the others. */
  bool closed_to_us = rc == ERR_ACCESS || rc == ERR_LIMIT;
  if (rc == ERR_NOENT || rc == ERR_RETIRED || closed_to_us) {
    v->state = closed_to_us ? DETECT_UNPROVEN : DETECT_OPEN;
    v->wait = closed_to_us ? RULE_NEVER : d->rules->settled_ns;
    v->cause = closed_to_us ? "unreadable" : "open";
    snprintf(v->reason, sizeof v->reason, "%.*s", RULE_TEXT_MAX - 1, ours.text);
    return 1;
  }
  if (rc < 0 && e) *e = ours;
  return rc;
}

static int check_structure(detect *d, unit *u, rule_verdict *v, err *e) {
  char why[RULE_TEXT_MAX];
  structure found;
  int rc = look_inside(d, u, v, &found, why, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  if (found != STRUCTURE_TORN) return 0;
  v->state = DETECT_BROKEN;
  v->cause = "torn";
  snprintf(v->reason, sizeof v->reason, "%s", why);
  return 0;
}

/* Decides where the policy's conditions hang on the structure. */
static int decide_sound(detect *d, unit *u, rule_facts *f, rule_verdict *v, err *e) {
  char why[RULE_TEXT_MAX];
  structure found;
  int rc = look_inside(d, u, v, &found, why, e);
  if (rc != 0) return rc < 0 ? rc : 0;
  f->sound = found == STRUCTURE_SOUND ? RULE_SOUND : RULE_UNSOUND;
  f->unsound = why;
  rule_decide(d->rules, f, v);
  f->unsound = NULL;
  return 0;
}

/* It is the last question before a unit is complete, since it costs others a listing. */
static void ask_others(const detect *d, const unit *u, rule_verdict *v) {
  if (*d->doubt && (v->state == DETECT_COMPLETE || v->state == DETECT_UNPROVEN)) {
    *v = (rule_verdict){.state = DETECT_UNPROVEN, .wait = RULE_NEVER, .cause = "tasks"};
    snprintf(v->reason, sizeof v->reason, "%s", d->doubt);
  } else if (v->state == DETECT_COMPLETE && d->agree) {
    char why[RULE_TEXT_MAX];
    int64_t wait = 0;
    if (d->agree(d->agree_ctx, u->path, u->kind, u->stamp, why, sizeof why, &wait)) return;
    *v = (rule_verdict){.state = DETECT_OPEN, .wait = wait, .cause = "tasks"};
    snprintf(v->reason, sizeof v->reason, "%s", why);
  }
}

static int conclude(detect *d, unit *u, rule_verdict *v, err *e) {
  int rc = 0;
  if (v->state != DETECT_OPEN) rc = judge_measure(d, u, e);
  if (rc == 0 && (v->state == DETECT_COMPLETE || v->state == DETECT_UNPROVEN))
    rc = check_structure(d, u, v, e);
  if (rc < 0) return rc;
  ask_others(d, u, v);
  if (v->state == DETECT_COMPLETE) {
    judge_complete(d, u, v->reason);
    return 0;
  }
  u->cause = v->cause;
  unit_set(d, u, v->state, v->reason);
  unit_wake(d, u, v->wait == RULE_NEVER ? INT64_MAX : seconds_later(model_mono(d), v->wait));
  return 0;
}

/* Looks, once after each change, whether the structure of a file, or of a group of them, that is closed
 * and quiet proves it whole. The listing that follows finds out if it was written meanwhile. One that
 * cannot be read has to wait. */
static void look_for_proof(const detect *d, unit *u, rule_facts *f) {
  char path[FS_PATH_MAX];
  structure_proof proof = STRUCTURE_PROVES_NOTHING;
  bool doubted = f->dead || f->unproven > 0 || f->open > 0 || f->files == 0;
  if (!f->provable || f->proof != RULE_UNLOOKED || doubted || f->renamed) return;
  if (f->quiet < rule_proof_after(d->rules, f)) return;
  if (u->kind == MATCH_GROUP)
    structure_proves_group(d->io, d->root, u->path, d->rules, &proof, NULL);
  else if (model_absolute(d, u->path, path, NULL) == 0)
    structure_proves(d->io, path, &proof, NULL);
  structure_proof need = f->foreign                ? STRUCTURE_PROVES_WHOLE
                         : f->blind || f->seen > 0 ? STRUCTURE_PROVES_CLOSED
                                                   : STRUCTURE_PROVES_LENGTH;
  f->proof = u->proof = proof >= need ? RULE_SOUND : RULE_UNSOUND;
  u->proof_touches = u->touches;
}

int judge(detect *d, unit *u, err *e) {
  rule_facts f;
  rule_verdict v;
  bool changed;
  int64_t now = model_mono(d);
  judge_gather(d, u, &f);
  look_for_proof(d, u, &f);
  rule_decide(d->rules, &f, &v);
  if (v.state == DETECT_COMPLETE) {
    int rc = list_unit(d, u, &changed, e);
    /* Once it has changed it may be gone, also where the listing failed after that. */
    if (rc < 0 && !changed) unit_wake(d, u, now + try_again);
    if (rc < 0 || changed) return rc;
    judge_gather(d, u, &f);
    rule_decide(d->rules, &f, &v);
  }
  if (v.ask_writer) {
    f.writer = has_writer(d, u) ? RULE_SOMEBODY : RULE_NOBODY;
    /* The quiet time begins when nobody has it open any more. */
    if (f.writer == RULE_SOMEBODY && u->touched) u->last = now;
    rule_decide(d->rules, &f, &v);
  }
  int rc = 0;
  if (v.state == DETECT_COMPLETE && v.ask_sound) rc = decide_sound(d, u, &f, &v, e);
  if (rc == 0) rc = conclude(d, u, &v, e);
  if (rc < 0) unit_wake(d, u, now + try_again);
  return rc;
}

void judge_figures(detect *d, unit *u) {
  rule_facts f;
  rule_verdict v;
  if (u->state != DETECT_OPEN || !u->cause || strcmp(u->cause, "not-quiet") != 0) return;
  judge_gather(d, u, &f);
  rule_decide(d->rules, &f, &v);
  if (v.state != DETECT_OPEN || v.ask_writer || !v.cause || strcmp(v.cause, u->cause) != 0) return;
  snprintf(u->reason, sizeof u->reason, "%s", v.reason);
}

int judge_due(detect *d, err *e) {
  int64_t now = model_mono(d);
  int rc = 0;
  for (bool again = true; again && rc == 0;) {
    again = false;
    for (size_t i = 0; rc == 0 && i < d->active.count;) {
      unit *u = d->active.at[i];
      if (u->due > now) {
        i++;
        continue;
      }
      /* It may go while it is judged; if it stays, it has a later due time. */
      rc = judge(d, u, e);
      again = true;
      if (i < d->active.count && d->active.at[i] == u) i++;
    }
  }
  forget_writers(d);
  return rc;
}

/* Judging one lists it, which may make another one go. */
typedef struct waiting {
  unit *u;
  uint64_t id;
  char *path;
  int64_t made, step;
} waiting;

static int by_age(const void *a, const void *b) {
  const waiting *x = a, *y = b;
  if (x->made != y->made) return x->made < y->made ? -1 : 1;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return strcmp(x->path, y->path);
}

int judge_fresh(detect *d, err *e) {
  size_t count = d->all.count, done = 0;
  rule_facts f;
  if (!d->fresh) return 0;
  d->fresh = false;
  waiting *list = calloc(count + 1, sizeof *list);
  int rc = list ? 0 : err_set(e, ERR_NOMEM, "watch: out of memory");
  for (; rc == 0 && done < count; done++) {
    unit *u = d->all.at[done];
    judge_gather(d, u, &f);
    list[done] = (waiting){u, u->id, strdup(u->path), u->made, u->step};
    if (!list[done].path) rc = err_set(e, ERR_NOMEM, "watch: out of memory");
  }
  if (rc == 0) qsort(list, count, sizeof *list, by_age);
  for (size_t i = 0; rc == 0 && i < count; i++) {
    unit *u = list[i].u;
    if (unit_still(d, u, list[i].id, list[i].path) && u->active) rc = judge(d, u, e);
  }
  forget_writers(d);
  for (size_t i = 0; i < done; i++) free(list[i].path);
  free(list);
  return rc;
}
