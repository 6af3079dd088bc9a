/* catalog_verify: reads every byte of the checkpoints of a target, and compares. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog_impl.h"
#include "catalog/show.h"
#include "commit/companions_stored.h"
#include "commit/manifest_read.h"
#include "job/restore/restore.h"
#include "job/move/transfer.h"
#include "commit/verified.h"

struct verifying {
  const io *io;
  const log_sink *log;
  pool *pool;
  const progress_sink *progress;
  const char *name;
  catalog_verified *fn;
  void *ctx;
  int seen, bad;
  bool in_logs; /* they are of a target, not a copy */
  names found;  /* what is wrong with one, as far as there is room and memory */
  char first[ERR_TEXT_MAX];
};

static void on_finding(void *ctx, const char *name, const char *text) {
  enum { FOUND_MOST = 4096 };
  struct verifying *v = ctx;
  if (v->found.count < FOUND_MOST) names_add(&v->found, name);
  if (!*v->first) snprintf(v->first, sizeof v->first, "%.400s: %.600s", name, text);
}

/* Remembers the commit in the store. A user who may only read cannot; that is no fault of the
 * checkpoint. */
static void note_verified(const struct verifying *v, store *s, const catalog_item *item) {
  err why = {0};
  if (verified_note(s, item->group, item->commit->n, &why) < 0)
    log_say(v->log, LOG_DEBUG, "that %s verified is not remembered: %s", item->uri, why.text);
}

static int tell(struct verifying *v, store *s, const catalog_item *item, const manifest *m,
                const char *first, int findings, err *e) {
  enum { LINKS_MOST = 1000 };
  char *links = NULL;
  uint64_t count = 0;
  int rc = m ? show_links(m, LINKS_MOST, &count, &links, e) : 0;
  if (rc < 0) return rc;
  v->seen++;
  v->bad += findings > 0;
  if (findings == 0 && item->commit->n > 0) /* a copy has no entry in a log */
    note_verified(v, s, item);
  rc = v->fn(v->ctx, item, findings ? ERR_CORRUPT : 0, first, (unsigned)findings, links, count);
  free(links);
  return rc;
}

/* True if the log let it go while it was read, or files of it: they may be half deleted, and that is no
 * finding. */
static bool let_go_meanwhile(const struct verifying *v, store *s, const catalog_item *item) {
  runlog *log = NULL;
  if (runlog_open(s, item->group, &log, NULL) < 0) return false;
  const runlog_commit *c = runlog_find_commit(runlog_view(log), item->commit->n);
  bool dropped = c && c->life != RUNLOG_LIVE;
  bool thinned = c && !dropped && c->thin.globs.count && !item->commit->thin.globs.count;
  if (dropped) log_say(v->log, LOG_INFO, "%s was dropped while it was verified", item->uri);
  if (thinned) log_say(v->log, LOG_INFO, "files were taken of %s while it was verified", item->uri);
  runlog_close(log);
  return dropped || thinned;
}

/* Verifies the companions: they are put back with the checkpoint, so they have to be right, too.
 * Returns how many findings there were. */
static int verify_companions(struct verifying *v, const transfer *t, const manifest *unit,
                             const catalog_item *item, err *e) {
  const runlog_commit *c = item->commit;
  manifest m = {0};
  char key[STORE_KEY_MAX];
  err why = {0};
  if (c->companions.files == 0) return 0;
  const companions_units units = {unit, item->state};
  int rc =
      companions_manifest(t->store, item->group, c->attempt, &c->companions, &units, &m, key, &why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT || rc == ERR_LIMIT || rc == ERR_NOENT) {
    on_finding(v, "what was saved beside it", why.text);
    return 1;
  }
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  rc = transfer_verify(t, &m, key, on_finding, v, e);
  manifest_free(&m);
  return rc;
}

static bool is_taken(const manifest *m, const names *globs, const char *name) {
  const manifest_entry *entry = manifest_find(m, name);
  return entry && manifest_thin_means(m, entry, globs);
}

/* Says what mends it, where the note beside the table explains all `count` of the findings: their files were
 * taken, and the log has lost the entry that says so. */
static void explain(struct verifying *v, store *s, const manifest *m, const catalog_item *item,
                    int count) {
  manifest_thin_note note = {0};
  const size_t len = strlen(v->first);
  if (item->thin || item->commit->thin.globs.count) return; /* a copy, or told already */
  if (v->found.count != (size_t)count || manifest_read_note(s, item->key, m, &note, NULL) != 1)
    return;
  bool all = true;
  for (size_t i = 0; i < v->found.count; i++) all &= is_taken(m, &note.globs, v->found.at[i]);
  if (all)
    snprintf(v->first + len, sizeof v->first - len,
             "; a note there says that %s taken: `repair` makes the log say so",
             count == 1 ? "it was" : "all that is missing was");
  manifest_thin_free(&note);
}

static int verify_files(struct verifying *v, store *s, const manifest *m, const catalog_item *item,
                        err *e) {
  transfer t = {.io = v->io, .store = s, .pool = v->pool, .progress = v->progress};
  *v->first = 0;
  names_free(&v->found);
  int found = transfer_verify(&t, m, item->key, on_finding, v, e);
  if (found > 0) explain(v, s, m, item, found);
  int beside = found < 0 ? 0 : verify_companions(v, &t, m, item, e);
  found = beside < 0 ? beside : found + beside;
  if (found > 0 && let_go_meanwhile(v, s, item)) return v->seen++, 0;
  return found < 0 ? found : tell(v, s, item, m, v->first, found, e);
}

static int verify_item(void *ctx, store *s, const catalog_item *item, err *e) {
  struct verifying *v = ctx;
  manifest m = {0};
  err why = {0};
  if (!catalog_is_asked(v->name, item->group, item->commit)) return 0;
  int rc = restore_manifest(s, item->group, item->commit, &m, &why);
  if (rc == ERR_CORRUPT || rc == ERR_FORMAT)
    return let_go_meanwhile(v, s, item) ? (v->seen++, 0) : tell(v, s, item, NULL, why.text, 1, e);
  if (rc < 0) return err_set(e, rc, "%s", why.text);
  rc = verify_files(v, s, &m, item, e);
  manifest_free(&m);
  return rc;
}

/* Verifies a checkpoint that was named itself, or a copy of one. */
static int verify_pick(struct verifying *v, const log_sink *log, const char *where, err *e) {
  catalog_pick pick;
  runlog_commit c;
  int rc = catalog_find(v->io, log, where, &pick, e);
  if (rc == 0) {
    catalog_item item = catalog_item_of(&pick, &c);
    rc = verify_files(v, pick.store, &pick.manifest, &item, e);
  }
  catalog_drop(&pick);
  return rc;
}

/* Reads each entry of a log, also those before its snapshots, and says what nothing proves. */
static int prove_log(void *ctx, const catalog_place *at, runlog *log, err *e) {
  const log_sink *sink = ctx;
  const char *prefix = runlog_prefix(log);
  runlog *whole = NULL;
  int rc = runlog_open_whole(at->store, prefix, &whole, e);
  if (rc < 0) return rc;
  runlog_proven p = runlog_tell_proven(whole);
  if (p.unproven > 0)
    log_say(sink, LOG_WARN,
            "%s%s%llu of the log's %llu entries are unproven: 1.0 wrote them, without digests",
            prefix, *prefix ? ": " : "", (unsigned long long)p.unproven,
            (unsigned long long)p.entries);
  if (p.behind > 0)
    log_say(sink, LOG_INFO,
            "%s%sthe log's last %llu entries came after the commit that its head names: that no "
            "later one was lost is unproven",
            prefix, *prefix ? ": " : "", (unsigned long long)p.behind);
  rc = runlog_check_damage(whole, e);
  runlog_close(whole);
  return rc;
}

static int check_log(void *ctx, const catalog_place *at, runlog *log, err *e) {
  (void)ctx;
  (void)at;
  return runlog_check_damage(log, e);
}

int catalog_check_logs(const io *io, const log_sink *log, const char *where, err *e) {
  return catalog_logs(io, log, where, check_log, NULL, e);
}

int catalog_verify(const io *io, const log_sink *log, pool *pool, const progress_sink *progress,
                   const char *where, const char *name, catalog_verified *fn, void *ctx, err *e) {
  struct verifying v = {
      .io = io, .log = log, .pool = pool, .progress = progress, .name = name, .fn = fn, .ctx = ctx};
  int rc = catalog_each(io, log, where, verify_item, &v, e);
  v.in_logs = rc == 0;
  if (v.seen == 0 && (rc == 0 || catalog_is_absent(rc))) {
    if (!name)
      rc = verify_pick(&v, log, where, e);
    else if (rc == 0)
      rc = catalog_nothing_found(where, name, e);
  }
  names_free(&v.found);
  if (rc == 0 && v.bad == 0 && !name && v.in_logs)
    rc = catalog_logs(io, log, where, prove_log, (void *)log, e);
  return rc < 0 ? rc : v.bad;
}
