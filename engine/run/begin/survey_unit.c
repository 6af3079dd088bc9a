/* survey_unit: what one unit of the directory is: held against the commits of its name, the journal and its own
 * structure. */
#include <stdio.h>
#include <string.h>

#include "job/restore/restore.h"
#include "run/begin/survey_unit.h"
#include "event/structure.h"
#include "job/move/transfer.h"
#include "job/move/unit_files.h"
#include "run/evidence/written.h"

/* A local unit that is held against the commits of its name. */
struct held {
  run *run;
  run_group *group;
  survey_unit *unit;
  unit_files local; /* once it was listed */
  bool listed;
  bool read_it; /* sizes and times are not enough */
  bool more;    /* it has files that the commit it was found to be was saved without */
  uint64_t is;  /* the commit that the journal says it is, as it is now; RUNLOG_NONE: of none */
  uint64_t
      differs; /* the commit of which it has our rank's part by names and sizes, and other bytes */
  char how[256];
};

static int list(const struct held *h, const rules *by, unit_files *out, err *e) {
  const run *r = h->run;
  unsigned how = r->ranks.world > 1 ? UNIT_FILES_EACH : 0;
  return unit_files_scan_as(r->env->io, r->places.dir, h->unit->path, h->unit->kind, by, how, out,
                            e);
}

/* Lists the unit when that is needed: most are known by the journal, and are never listed. */
static int list_local(struct held *h, err *e) {
  if (h->listed) return 0;
  int rc = list(h, h->run->rules, &h->local, e);
  h->listed = rc == 0;
  return rc;
}

/* Lists it as it was saved, where this commit alone was saved without some of its files. */
static int list_less(const struct held *h, const manifest *m, unit_files *less, err *e) {
  rules by = *h->run->rules;
  by.left = names_list(&m->left_globs);
  return list(h, &by, less, e);
}

/* True if the journal saw it whole as it is now. */
static bool seen_whole(const survey_unit *u, const journal_unit *known) {
  return known->state >= JOURNAL_COMPLETE && digest_equal(&known->fingerprint, &u->fingerprint);
}

/* Its bytes were checked when it was restored; nobody has listed it since. */
static bool just_restored(const journal_unit *known) {
  return known->state == JOURNAL_COMMITTED && known->fingerprint.len == 0;
}

/* Compares the local copy with this commit: names, sizes and times first; the bytes too, where
 * nothing but those speaks for it, since a crash may have lost some. If only the bytes differ, it
 * is damaged. */
static int compare_files(const struct held *h, const unit_files *local, const manifest *m,
                         recover_standing standing, err *e) {
  err why = {0};
  survey_unit *u = h->unit;
  const run_env *env = h->run->env;
  transfer t = {
      .io = env->io, .store = h->run->store, .pool = env->pool, .progress = env->progress};
  if (!unit_files_matches(local, m)) return 0;
  int rc = h->read_it ? transfer_check_local(&t, local, m, &why) : 0;
  if (rc == ERR_CORRUPT) {
    u->standing = RECOVER_TORN;
    snprintf(u->reason, sizeof u->reason, "%.255s", why.text);
    return 1;
  }
  if (rc < 0 && e) *e = why;
  if (rc == 0) u->standing = standing;
  u->by_manifest = rc == 0;
  return rc < 0 ? rc : 1;
}

/* What may make way for the commit is worth more than it: who reads why is to know. */
static void say_more(struct held *h, const unit_files *less) {
  const size_t more = h->local.regular - less->regular;
  const char *name = "";
  for (size_t i = 0; i < h->local.count && !*name; i++)
    if (h->local.files[i].type == MANIFEST_FILE && !unit_files_find(less, h->local.files[i].name))
      name = h->local.files[i].name;
  snprintf(h->unit->reason, sizeof h->unit->reason,
           "the copy there has %zu file%s that the commit was saved without: %.80s%s", more,
           more == 1 ? "" : "s", name, more > 1 ? ", ..." : "");
}

/* The copy here may have what was taken of that commit since: its table still tells of each byte. */
static int compare_whole(struct held *h, const runlog_commit *c, recover_standing standing,
                         err *e) {
  runlog_commit whole = *c;
  manifest m = {0};
  err why = {0};
  whole.thin = (runlog_thinned){0};
  int rc = restore_manifest(h->run->store, h->group->group.prefix, &whole, &m, &why);
  if (rc == 0) rc = compare_files(h, &h->local, &m, standing, &why);
  manifest_free(&m);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) return 0;
  return rc < 0 ? err_set(e, rc, "%s", why.text) : rc;
}

/* The copy here may have what that commit was saved without: it is it all the same, and worth more. But
 * ranks have to go on from the same state, and not each of them may have these files. */
static int compare(struct held *h, const runlog_commit *c, const manifest *m,
                   recover_standing standing, err *e) {
  unit_files less;
  int rc = compare_files(h, &h->local, m, standing, e);
  if (rc != 0 || m->left_globs.count == 0 || h->run->ranks.world > 1) return rc;
  if (c->thin.globs.count) rc = compare_whole(h, c, standing, e);
  if (rc != 0) return rc;
  rc = list_less(h, m, &less, e);
  if (rc < 0) return rc;
  rc = compare_files(h, &less, m, standing, e);
  h->more = rc == 1 && h->unit->standing == standing;
  if (h->more && h->read_it) say_more(h, &less);
  unit_files_free(&less);
  return rc;
}

/* Compares it with the part that our rank had. The bytes of a file that several had are one
 * rank's in the manifest, and so is its time, which tells nothing here: they are read, unless the
 * journal speaks for them. Other bytes are another generation's, or damage: that one is not this one is all that it says. */
static int compare_part(struct held *h, const runlog_commit *c, recover_standing standing, err *e) {
  const manifest *part = NULL;
  err why = {0};
  survey_unit *u = h->unit;
  const run_env *env = h->run->env;
  transfer t = {
      .io = env->io, .store = h->run->store, .pool = env->pool, .progress = env->progress};
  int rc = run_part(h->run, h->group, c, &part, &why);
  if (rc == 0 && (!part || !unit_files_alike(&h->local, part))) return 0;
  if (rc == 0 && h->is != c->n) rc = transfer_check_copy(&t, &h->local, part, &why);
  if (rc == ERR_CORRUPT) {
    h->differs = c->n;
    snprintf(h->how, sizeof h->how, "%.255s", why.text);
    return 0;
  }
  if (rc < 0) {
    if (e) *e = why;
    return rc;
  }
  u->standing = standing;
  u->by_manifest = true;
  u->parts = h->run->ranks.world;
  return 1;
}

static void supersede(survey_unit *u, uint64_t commit) {
  u->commit = commit;
  snprintf(u->reason, sizeof u->reason, "it is what commit %llu has", (unsigned long long)commit);
}

static int compare_with(struct held *h, const runlog_commit *c, recover_standing standing, err *e) {
  const manifest *m = NULL;
  err why = {0};
  int rc = list_local(h, &why);
  if (rc == 0) rc = run_manifest(h->run, h->group, c, &m, &why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) return 0;
  if (rc < 0 && e) *e = why;
  if (rc < 0 || !m) return rc;
  rc = compare(h, c, m, standing, e);
  return rc == 0 && run_restores_parts(h->run) ? compare_part(h, c, standing, e) : rc;
}

/* True if the commit can have these files, or some of them, since it was made after them. It has a day
 * of grace: clocks of hosts differ. */
static bool can_hold(const runlog_commit *c, const unit_files *local) {
  const int64_t day = (int64_t)86400 * 1000000000;
  const bool same = c->files == local->regular && c->bytes == local->bytes;
  const bool less = c->left_out && c->files <= local->regular && c->bytes <= local->bytes;
  return (same || less) && c->time_ns > local->mtime_ns - day;
}

/* Looks for an older commit of its name that it is. There may be many: the log alone excludes
 * most. */
static int compare_older(struct held *h, const runlog_commit *newest, err *e) {
  const runlog_state *state = runlog_view(h->group->group.log);
  int rc = list_local(h, e);
  for (size_t i = state->commit_count; rc == 0 && i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->n >= newest->n || c->life == RUNLOG_DELETED || strcmp(c->unit, newest->unit) != 0 ||
        !can_hold(c, &h->local))
      continue;
    manifest m;
    err why = {0};
    rc = restore_manifest(h->run->store, h->group->group.prefix, c, &m, &why);
    if (rc == ERR_CORRUPT || rc == ERR_FORMAT) {
      rc = 0;
      continue;
    }
    if (rc < 0) {
      if (e) *e = why;
      break;
    }
    rc = compare(h, c, &m, RECOVER_SUPERSEDED, e);
    manifest_free(&m);
    if (rc == 1 && h->unit->standing == RECOVER_SUPERSEDED) supersede(h->unit, c->n);
  }
  return rc;
}

/* Returns the commit that the journal says it is, as it stands now: the newest of its name, or one
 * before; NULL: it says none. */
static const runlog_commit *known_commit(const survey_unit *u, const runlog_state *state,
                                         const journal_unit *known) {
  if (known->state != JOURNAL_COMMITTED || !seen_whole(u, known)) return NULL;
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->n == known->commit.n && strcmp(c->unit, u->name) == 0) return c;
  }
  return NULL;
}

static void stand_as(survey_unit *u, const runlog_commit *c, const runlog_commit *newest) {
  bool same = c == newest || digest_equal(&c->root, &newest->root);
  u->standing = same ? RECOVER_COMMITTED : RECOVER_SUPERSEDED;
  if (!same) supersede(u, c->n);
}

/* True if several ranks saved it: of it a directory may have one's files, which that one's journal
 * calls by its number. */
static bool is_shared(const runlog_state *state, const runlog_commit *c) {
  const runlog_attempt *a = runlog_find_attempt(state, c->attempt);
  return a && a->world > 1;
}

/* Compares it with all commits of its name. If the store has lost the newest one, a whole copy here
 * is saved again: it is as good as never committed. */
static int compare_all(struct held *h, const runlog_commit *newest, bool lost, err *e) {
  recover_standing standing = lost ? RECOVER_WHOLE : RECOVER_COMMITTED;
  int rc = 0;
  if (newest->life != RUNLOG_DELETED) rc = compare_with(h, newest, standing, e);
  return rc == 0 ? compare_older(h, newest, e) : rc;
}

/* True if these are one rank's files of the commit: ranks with directories of their own have only
 * their own files here. Times do not count: a file that several ranks have carries one rank's time
 * in the manifest. To a rank that is `alone` those of the others do, since it may have saved less
 * under that name since. */
static bool is_part(const unit_files *local, const manifest *m, bool alone) {
  for (size_t i = 0; i < local->count; i++) {
    const unit_file *f = &local->files[i];
    const manifest_entry *entry = manifest_find(m, f->name);
    if (!entry) return false;
    if (unit_files_was_link(f, entry)) continue;
    if (entry->type != f->type) return false;
    if (f->type == MANIFEST_FILE && !entry->outside && f->size != entry->size) return false;
    if (alone && entry->alone && f->mtime_ns != entry->mtime_ns) return false;
  }
  return local->count < m->count;
}

static void stand_as_part(survey_unit *u, const runlog_commit *c, const char *how) {
  u->standing = RECOVER_PART;
  u->commit = c->n;
  snprintf(u->reason, sizeof u->reason, "%.255s",
           how ? how : "it is the part of one rank; all of them have committed it");
}

/* True if it was made after the newest commit, and the journal knows it as none of this log: it has the name and
 * the sizes of an older one, as another job's has that was here meanwhile. Taken for that one it would stay, and
 * be saved after the newest. */
static bool is_later(const struct held *h, const runlog_commit *c) {
  const runlog_state *state = runlog_view(h->group->group.log);
  if (h->is != RUNLOG_NONE || run_newest_of_series(state, c)) return false;
  const runlog_commit *newest = runlog_newest(state, NULL);
  const int64_t made_ns = newest ? run_order_of_commit(h->run, h->group, newest) : 0;
  return made_ns && h->unit->made_ns > made_ns;
}

static int check_part(struct held *h, const runlog_commit *c, err *e) {
  const manifest *m = NULL;
  survey_unit *u = h->unit;
  if (h->run->ranks.world > 1 && is_later(h, c)) return 0;
  int rc = list_local(h, e);
  if (rc == 0) rc = run_manifest(h->run, h->group, c, &m, e);
  if (rc < 0) return rc == ERR_CORRUPT || rc == ERR_FORMAT ? 0 : rc;
  if (!m || !is_part(&h->local, m, h->run->ranks.world < 2)) return 0;
  stand_as_part(u, c, h->differs == c->n ? h->how : NULL);
  return 1;
}

/* True if our rank had the same of both: what is here is the good one's as well. */
static int is_equal_part(struct held *h, const runlog_commit *bad, const runlog_commit *good,
                         err *e) {
  const manifest *a = NULL, *b = NULL;
  err why = {0};
  if (!good || !run_restores_parts(h->run)) return 0;
  int rc = run_part(h->run, h->group, bad, &a, &why);
  if (rc == 0) rc = run_part(h->run, h->group, good, &b, &why);
  if (rc == 0) return a && b && manifest_same_bytes(a, b);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT) return 0; /* who compares with it says so */
  if (e) *e = why;
  return rc;
}

/* Returns 1 if it is a commit that was marked bad. A checkpoint that was saved anew under the name
 * is another one, and so is equal content that was committed again. */
static int check_bad(struct held *h, const runlog_state *state, const journal_unit *known,
                     const runlog_commit *good, err *e) {
  survey_unit *u = h->unit;
  int rc = 0;
  for (size_t i = state->commit_count; rc == 0 && i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (!c->bad || c->life != RUNLOG_LIVE || strcmp(c->unit, u->name) != 0 ||
        (good && digest_equal(&good->root, &c->root)))
      continue;
    rc = is_equal_part(h, c, good, e);
    if (rc > 0) {
      rc = 0;
      continue;
    }
    if (rc == 0 && known->state == JOURNAL_COMMITTED && known->commit.n == c->n &&
        seen_whole(u, known)) {
      u->standing = RECOVER_BAD;
      rc = 1;
    } else if (rc == 0) {
      rc = compare_with(h, c, RECOVER_BAD, e);
    }
    if (rc != 1 || u->standing != RECOVER_BAD) continue;
    u->commit = c->n;
    snprintf(u->reason, sizeof u->reason, "%.200s",
             c->bad_reason ? c->bad_reason : "no reason was given");
  }
  return rc;
}

/* Compares it with `c`, the newest good commit of its name; NULL: there is none. */
static int check_good(struct held *h, const runlog_state *state, const journal_unit *known,
                      const runlog_commit *c, err *e) {
  survey_unit *u = h->unit;
  bool live = c != NULL;
  if (!c) c = run_no_longer_kept(state, u->name);
  if (!c) return 0;
  u->commit = c->n;
  /* The journal of a rank knows its own part alone, and the next launch may number ranks
   * otherwise, or have one. */
  bool alone = h->run->ranks.world < 2;
  /* A single rank cannot save a lost commit either: it is restored, or passed over for the one
   * before. */
  bool lost = alone && run_is_lost(h->group, c->n);
  const runlog_commit *was = alone ? known_commit(u, state, known) : NULL;
  bool of_ranks = was && is_shared(state, was);
  int rc = was && !of_ranks && !lost ? 1 : compare_all(h, c, lost, e);
  if (was && !of_ranks && !lost) stand_as(u, was, c);
  if (rc == 1 && !live && u->standing == RECOVER_COMMITTED) {
    u->standing = RECOVER_SUPERSEDED;
    supersede(u, c->n);
  }
  if (rc == 0 && c->life != RUNLOG_DELETED && (!alone || is_shared(state, c)))
    rc = check_part(h, c, e);
  if (rc != 0 || !of_ranks) return rc;
  stand_as_part(u, was, NULL);
  return 1;
}

/* Returns 1 if the commits of its name tell its standing. */
static int check_commit(run *r, survey_unit *u, const journal_unit *known, err *e) {
  run_group *g = run_group_find(r, u->group);
  if (r->anyway) return run_anyway_standing(r, u, known, e);
  if (!g || !g->group.log || g->foreign) return 0;
  const runlog_state *state = runlog_view(g->group.log);
  const runlog_commit *c = runlog_newest(state, u->name);
  /* What ranks go on from is to be the same to the byte: no journal speaks for that one. */
  bool resumes = r->ranks.world > 1 && c && run_newest_of_series(state, c);
  struct held h = {.run = r,
                   .group = g,
                   .unit = u,
                   .read_it = (resumes || !seen_whole(u, known)) && !just_restored(known)};
  h.differs = RUNLOG_NONE;
  h.is = known->state == JOURNAL_COMMITTED && !h.read_it ? known->commit.n : RUNLOG_NONE;
  int rc = check_bad(&h, state, known, c, e);
  if (rc == 0) rc = check_good(&h, state, known, c, e);
  u->more = h.more && h.read_it;
  unit_files_free(&h.local);
  return rc;
}

/* Judges a unit that is no commit of ours. */
static int check_alone(run *r, survey_unit *u, const detect_unit *facts, const journal_unit *known,
                       surroundings *around, err *e) {
  structure found;
  if (seen_whole(u, known)) {
    u->standing = RECOVER_WHOLE;
    return 0;
  }
  int rc = structure_of_unit(r->env->io, r->places.dir, u->path, u->kind, r->rules, &found,
                             u->reason, sizeof u->reason, e);
  if (rc < 0) return rc;
  bool torn = facts->state == DETECT_BROKEN || found == STRUCTURE_TORN;
  int open = 0;
  if (torn) open = written(&around->writers, r->env->io, r->places.dir, u->path, u->kind, e);
  if (open < 0) return open;
  /* Other ranks and tasks may have to write a part of it. */
  bool alone = r->ranks.world < 2 && r->task_count < 2;
  int vouched_for = 0;
  if (!torn && alone && known->watched)
    vouched_for = vouched(&around->vouchers, r->env->io, r->places.dir, r->rules, facts, e);
  if (vouched_for < 0) return vouched_for;
  if (torn)
    u->standing = open ? RECOVER_UNPROVEN : RECOVER_TORN;
  else if (facts->state == DETECT_COMPLETE)
    u->standing = RECOVER_WHOLE;
  else if (found == STRUCTURE_SOUND && !facts->lacking && !facts->alone)
    u->standing = RECOVER_WHOLE;
  else
    u->standing = r->trust && facts->state == DETECT_UNPROVEN ? RECOVER_WHOLE : RECOVER_UNPROVEN;
  if (found != STRUCTURE_TORN) snprintf(u->reason, sizeof u->reason, "%s", facts->reason);
  if (vouched_for) {
    u->standing = RECOVER_WHOLE;
    snprintf(u->reason, sizeof u->reason, "its framework wrote of it when all of it was there");
  }
  return 0;
}

/* The commit tells nothing of the files that it was saved without, and a crash may have lost some of their
 * bytes: they have to be whole by themselves, or it counts as what it is without the commit. */
static int check_more(run *r, survey_unit *u, const detect_unit *facts, const journal_unit *known,
                      surroundings *around, err *e) {
  const recover_standing standing = u->standing;
  char more[sizeof u->reason], why[sizeof u->reason];
  if (!u->more || (standing != RECOVER_COMMITTED && standing != RECOVER_WHOLE)) return 0;
  memcpy(more, u->reason, sizeof more);
  u->reason[0] = 0;
  int rc = check_alone(r, u, facts, known, around, e);
  if (rc == 0 && u->standing == RECOVER_WHOLE) {
    u->standing = standing;
    return 0;
  }
  u->by_manifest = false;
  memcpy(why, u->reason, sizeof why);
  snprintf(u->reason, sizeof u->reason, "%.90s; %.160s", why, more);
  return rc;
}

static void stand_alone(const run *r, survey_unit *u, const journal_unit *known) {
  const char *log = known->commit.log;
  const journal_log *from = *log ? journal_known_log(r->journal, log) : NULL;
  const bool elsewhere = from && strcmp(from->target, r->places.target_text) != 0;
  u->standing = RECOVER_ALONE;
  u->parts = run_others_parts(r, known, &u->fingerprint);
  if (u->parts)
    snprintf(u->reason, sizeof u->reason, "it is one of %u ranks' parts%s%.190s",
             (unsigned)u->parts, elsewhere ? ", and was saved to " : "",
             elsewhere ? from->target : "");
  else if (elsewhere)
    snprintf(u->reason, sizeof u->reason, "it was saved to %.200s", from->target);
  else
    snprintf(u->reason, sizeof u->reason, "it was not committed by all ranks");
}

int survey_unit_judge(run *r, survey_unit *u, const detect_unit *facts, surroundings *around,
                      err *e) {
  err why = {0};
  journal_unit known = journal_find(r->journal, u->path);
  u->seen = seen_whole(u, &known);
  int rc = check_commit(r, u, &known, &why);
  if (rc == 0)
    rc = check_alone(r, u, facts, &known, around, &why);
  else if (rc > 0)
    rc = check_more(r, u, facts, &known, around, &why);
  if (rc == 0 && u->standing == RECOVER_WHOLE &&
      (r->ranks.world > 1 || run_others_parts(r, &known, &u->fingerprint)))
    stand_alone(r, u, &known);
  /* Beside a job that runs (`watch`) a unit may go; one that is too deep to save stops no other. */
  if (rc == ERR_RETIRED || rc == ERR_NOENT || rc == ERR_LIMIT) {
    u->standing = RECOVER_UNPROVEN;
    snprintf(u->reason, sizeof u->reason, "%.255s", why.text);
    rc = 0;
  }
  if (rc < 0 && e) *e = why;
  return rc < 0 ? rc : 0;
}
