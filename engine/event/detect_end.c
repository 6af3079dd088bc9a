/* detect_end: what the end of its writer means for a unit. */
#include "detect_model.h"

#include "event/structure.h"

/* The kernel closes a dying process's files just before its parent is told, and we read both a
 * little later. An event that lies further back than this was made by a writer that lived. A
 * process can take longer to die, so this is only believed where a marker came last. */
static const int64_t lived_ns = 200000000;
/* Without a unit before it nothing tells how many ranks write into it. A late one was seen to come
 * 0.3 s after the marker. */
static const int64_t lived_alone_ns = 1000000000;

typedef struct settling {
  bool proven;
  uint64_t since;
} settling;

static void settle_node(void *ctx, node *n) {
  const settling *s = ctx;
  n->old = true;
  n->again = false;
  if (n->type != NODE_FILE) return;
  if (s->proven)
    n->evidence = NODE_CLOSED;
  else if (n->seq > s->since || n->evidence != NODE_CLOSED)
    n->evidence = NODE_UNPROVEN;
}

void judge_settle(unit *u, bool proven) {
  unit_walk(u, settle_node, &(settling){.proven = proven, .since = u->settle_seq});
}

static void doubt_temporary(void *ctx, node *n) {
  (void)ctx;
  if (n->excluded && n->type == NODE_FILE) n->evidence = NODE_UNPROVEN;
}

/* Returns how long nothing was written into it while its writer lived. A listing sees a write late,
 * and the time stamps tell when it was, unless they come from another machine's clock. */
static int64_t quiet_of(const rule_facts *f) {
  bool stamps = f->blind && !f->foreign;
  return stamps && f->age > f->quiet ? f->age : f->quiet;
}

/* True if the marker that was begun after all the data was closed is whole itself, though the kernel
 * may have closed it. One that a user names may be empty: that it is there says all. */
static bool marker_is_whole(const detect *d, const unit *u, const rule_facts *f) {
  const rules_marker *m = rules_marker_named(d->rules, f->marker_behind);
  char path[FS_PATH_MAX], absolute[FS_PATH_MAX];
  structure found;
  if (!m || rules_marker_by_user(m) || f->marker_moved) return true;
  int rc = fs_join(path, u->path, m->name, NULL);
  if (rc == 0) rc = model_absolute(d, path, absolute, NULL);
  if (rc == 0) rc = structure_of_file(d->io, absolute, &found, NULL, 0, NULL);
  return rc == 0 && found == STRUCTURE_SOUND;
}

/* True if all of the unit was closed, a marker last, while the writer still lived. Each event in it
 * sets `last`, so in a unit without a recent event the kernel has closed nothing. If the marker was
 * begun after all the data was closed, no close by the kernel was of the data, however late. */
static bool outlives_writer(detect *d, unit *u, int64_t lag_ns) {
  rule_facts f;
  judge_gather(d, u, &f);
  bool still = f.open + f.unproven + f.temporary == 0;
  bool marked = d->rules->test_count > 0 ? f.marked > 0 : f.marker && !f.marker_old && !f.needed;
  bool proven = marked && f.marker_last && (!f.lacks || f.marker_final);
  bool one_save = !f.dead && !f.mixed && !f.removed && !f.shrinking;
  /* Other ranks may live on, or have died before they wrote anything: without a unit before it none of
   * them is missed. */
  bool counted = !f.alone || f.marker_final;
  if (!still || !proven || !one_save || ((f.foreign || f.several) && !counted)) return false;
  if (f.marker_behind && counted && !f.foreign && marker_is_whole(d, u, &f)) return true;
  return quiet_of(&f) - lag_ns >= (f.alone ? lived_alone_ns : lived_ns);
}

void judge_writer_died(detect *d, unit *u, int64_t lag_ns) {
  bool untouched = !u->touched && u->state != DETECT_OPEN;
  if (u->state == DETECT_COMPLETE || u->renamed || untouched) return;
  u->lived = outlives_writer(d, u, lag_ns);
  if (u->lived) return;
  judge_settle(u, false);
  if (u->kind == MATCH_DIR) node_walk(u->root, doubt_temporary, NULL);
  u->settle_seq = ++d->seq;
  u->dead = true;
}
