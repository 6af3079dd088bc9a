#include "group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "commit/lease.h"
#include "commit/settle.h"

/* True for every rank but the first: it has no term of its own. Rank 0 alone asks who holds the
 * place, writes the lease, and settles earlier attempts. */
static bool follows(const group *g) {
  return g->env && g->env->ranks && g->env->ranks->rank > 0; /* a zeroed group has none */
}

/* Makes a run's id, with the group's path; a long path's digest stands for it. */
static int id_of(const group *g, const char *run_id, char out[RUNLOG_ID_MAX], err *e) {
  digest d;
  char hex[HASH_HEX_MAX];
  int len = snprintf(out, RUNLOG_ID_MAX, "%s%s%s", run_id, *g->prefix ? ":" : "", g->prefix);
  if (len < RUNLOG_ID_MAX) return 0;
  int rc = hash_bytes(HASH_XXH3_128, g->prefix, strlen(g->prefix), &d, e);
  if (rc < 0) return rc;
  digest_hex(&d, hex);
  if (snprintf(out, RUNLOG_ID_MAX, "%s:%s", run_id, hex) < RUNLOG_ID_MAX) return 0;
  return err_set(e, ERR_LIMIT, "the run id \"%.200s\" is too long: at most %d bytes", run_id,
                 RUNLOG_ID_MAX - 2 - (int)strlen(hex));
}

/* What a run asks for a group's place by. */
typedef struct claim {
  runlog_title title;
  char id[RUNLOG_ID_MAX], former[RUNLOG_ID_MAX];
} claim;

static int make_claim(const group *g, claim *c, err *e) {
  const char *former = g->env->former;
  c->title = (runlog_title){.id = c->id, .continue_run = g->env->continue_run};
  if (former && *former) c->title.former = c->former;
  int rc = id_of(g, g->env->run_id, c->id, e);
  return rc < 0 || !c->title.former ? rc : id_of(g, former, c->former, e);
}

/* True if the newest term was opened from the state directory whose lock we hold. */
static bool was_here(const group *g) {
  const runlog_writer *old = &runlog_view(g->log)->term.writer, *who = &g->env->writer;
  return *who->place && strcmp(who->place, old->place) == 0 && *who->boot &&
         strcmp(who->boot, old->boot) == 0 && strcmp(who->machine, old->machine) == 0;
}

/* A writer may be at work if its lease was renewed, or an attempt announced, within the life of a
 * lease. A dry run reads this machine's clock: the store's is told by a write. */
static int somebody_works(const group *g, bool writes, bool *out, err *e) {
  const runlog_state *st = runlog_view(g->log);
  const io *io = g->env->store->io;
  int64_t newest = INT64_MIN, now = io->now(io, IO_WALL);
  lease_seen lease = {0};
  *out = false;
  int rc = was_here(g) ? 0 : lease_look(g->env->store, g->prefix, st->term.n, &lease, e);
  if (rc == 0 && lease.present && !lease.released) newest = lease.renewed_ns;
  if (rc == 0 && st->attempt_count) {
    int64_t made = 0;
    rc = runlog_entry_time(g->log, st->attempts[st->attempt_count - 1].n, &made, e);
    if (rc == 0 && made > newest) newest = made;
  }
  if (rc == 0 && newest != INT64_MIN && writes)
    rc = lease_store_now(g->env->store, g->prefix, &now, e);
  *out = newest != INT64_MIN && newest > now - (int64_t)LEASE_LIFE_S * 1000000000;
  return rc;
}

/* A place in which nothing was ever committed, and nobody is at work, is nobody's: the first start
 * of a job often has a mistake in its command. */
static int find_vacancy(const group *g, bool writes, claim *c, err *e) {
  const runlog_state *st = runlog_view(g->log);
  bool busy = false;
  if (st->next == 0 || st->ended || runlog_newest_ever(st, NULL) ||
      runlog_check_run(g->log, &c->title, NULL) == 0)
    return 0;
  int rc = somebody_works(g, writes, &busy, e);
  if (rc == 0 && !busy) c->title.vacant = st->next;
  return rc;
}

int group_open(const group_env *env, const char *prefix, group *out, err *e) {
  *out = (group){.env = env, .prefix = strdup(prefix)};
  return out->prefix ? 0 : err_set(e, ERR_NOMEM, "open group %s: out of memory", prefix);
}

int group_read(group *g, err *e) {
  return g->log ? 0 : runlog_open(g->env->store, g->prefix, &g->log, e);
}

void group_release(group *g) {
  err why = {0};
  if (follows(g)) g->term = 0;
  if (g->term && lease_release(g->env->store, g->prefix, g->term, &g->env->writer, &why) < 0)
    log_say(g->env->log, LOG_DEBUG, "the lease stays until it expires: %s", why.text);
  else
    g->term = 0;
}

void group_close(group *g) {
  group_release(g);
  runlog_close(g->log);
  runlog_close(g->second);
  runlog_close(g->third);
  free(g->prefix);
  *g = (group){0};
}

static int look(group *g, bool writes, claim *c, err *e) {
  *c = (claim){0};
  int rc = group_read(g, e);
  if (rc < 0 || follows(g)) return rc; /* the launch tells that it is ours, not the directory */
  rc = make_claim(g, c, e);
  if (rc == 0) rc = find_vacancy(g, writes, c, e);
  return rc < 0 ? rc : runlog_check_run(g->log, &c->title, e);
}

int group_look(group *g, err *e) {
  claim c;
  return look(g, false, &c, e);
}

static int ask_lease(const group *g, err *e) {
  return lease_check(g->env->store, g->prefix, &runlog_view(g->log)->term, &g->env->writer,
                     g->env->take_over, g->env->wait, e);
}

static int find_lease(const group *g, uint64_t term, bool *found, err *e) {
  lease_seen lease = {0};
  int rc = lease_look(g->env->store, g->prefix, term, &lease, e);
  *found = lease.present && (lease.term == RUNLOG_NONE || lease.term >= term);
  return rc;
}

/* For how many seconds the lease of a term is still to be waited for that was opened at `made`. Those are times of
 * the store, whose clock may have been set back since: no term is younger than one of just now. */
static int64_t lateness_left(int64_t made, int64_t now) {
  enum { LATE_S = 10 };
  return made < now ? LATE_S - (now - made) / 1000000000 : LATE_S;
}

/* A writer opens its term, and then writes its lease: one that has none yet, and has only just begun, is waited for.
 * Else two that start at once would push each other aside. */
static int await_first_lease(const group *g, bool *came, err *e) {
  store *s = g->env->store;
  const runlog_term *term = &runlog_view(g->log)->term;
  int64_t made = 0, now = 0;
  *came = false;
  if (term->n == RUNLOG_NONE || g->env->take_over || lease_is_ours(&term->writer, &g->env->writer))
    return 0;
  int rc = find_lease(g, term->n, came, e);
  if (rc < 0 || *came) {
    *came = false; /* it was asked already */
    return rc;
  }
  rc = runlog_entry_time(g->log, term->n, &made, e);
  if (rc == 0) rc = lease_store_now(s, g->prefix, &now, e);
  int64_t left = rc == 0 ? lateness_left(made, now) : 0;
  if (left > 0)
    log_say(g->env->log, LOG_INFO,
            "waiting for up to %" PRId64 " s: a writer on %s has just begun, and may be about to "
            "write its lease",
            left, *term->writer.host ? term->writer.host : "an unknown host");
  for (; rc == 0 && left > 0 && !*came; left--) {
    if (s->cancel && atomic_load(s->cancel))
      return err_set(e, ERR_CANCELED, "canceled while the lease of another writer was waited for");
    s->io->sleep(s->io, 1000000000);
    rc = find_lease(g, term->n, came, e);
  }
  return rc;
}

static int may_begin(group *g, claim *c, err *e) {
  bool came;
  int rc = look(g, true, c, e);
  if (rc < 0 || follows(g) || FAULT("lease-not-asked")) return rc;
  rc = ask_lease(g, e);
  if (rc == 0) rc = await_first_lease(g, &came, e);
  return rc == 0 && came ? ask_lease(g, e) : rc;
}

int group_may_begin(group *g, err *e) {
  claim c;
  return may_begin(g, &c, e);
}

/* ERR_CONFLICT: another writer came between the question and the term. */
static int try_term(group *g, err *e) {
  claim c;
  int rc = runlog_refresh(g->log, e);
  if (rc == 0 && g->env->admit) rc = g->env->admit(g->env->admit_ctx, g, e);
  if (rc == 0) rc = g->env->admit ? look(g, true, &c, e) : may_begin(g, &c, e);
  if (rc < 0) return rc;
  c.title.asked = true;
  c.title.newest = runlog_view(g->log)->term.n;
  return runlog_begin_as(g->log, &c.title, &g->env->writer, e);
}

static int open_term(group *g, err *e) {
  enum { TRIES = 4 };
  int rc = group_read(g, e);
  if (rc < 0) return rc;
  for (int i = 0; (rc = try_term(g, e)) == ERR_CONFLICT && i < TRIES; i++) continue;
  if (rc == 0) g->term = runlog_view(g->log)->term.n;
  return rc;
}

static int write_lease(group *g, err *e) {
  err why = {0};
  bool needed = g->env->ranks && g->env->ranks->world > 1;
  int rc = lease_renew(g->env->store, g->prefix, g->term, &g->env->writer, &why);
  if (rc < 0 && needed)
    return err_set(e, rc, "the lease, which the other ranks wait for, could not be written: %s",
                   why.text);
  if (rc < 0) log_say(g->env->log, LOG_WARN, "the lease could not be written: %s", why.text);
  g->leased = true;
  return 0;
}

/* Follows rank 0. If that has not begun yet, this is no error here: a job of the group waits for
 * it. */
static int follow_term(group *g, err *e) {
  const ranks *us = g->env->ranks;
  err why = {0};
  int rc = group_read(g, e);
  if (rc < 0 || g->term) return rc; /* its jobs read on */
  /* An entry that is not there yet no earlier process of this rank has seen. */
  if (!g->unspoken) g->unspoken = runlog_view(g->log)->next;
  rc = runlog_follow(g->log, us->launch, us->world, &why);
  if (rc == 0) g->term = runlog_view(g->log)->term.n;
  return rc == 0 || rc == ERR_NOENT ? 0 : err_set(e, rc, "%s", why.text);
}

int group_begin(group *g, err *e) {
  if (follows(g)) return follow_term(g, e);
  int rc = g->term ? 0 : open_term(g, e);
  if (rc == 0 && !g->leased) rc = write_lease(g, e);
  if (rc == 0 && !g->settled) rc = settle_attempts(g->env->store, g->log, g->env->log, e);
  if (rc == 0) g->settled = true;
  return rc;
}

static int check_term(group *g, runlog **handle, uint64_t term, err *e) {
  int rc = *handle ? 0 : runlog_open(g->env->store, g->prefix, handle, e);
  if (rc < 0) return rc;
  runlog_claim(*handle, term);
  return runlog_refresh(*handle, e);
}

int group_check(group *g, uint64_t term, err *e) {
  return check_term(g, &g->third, term, e);
}

int group_renew(group *g, uint64_t term, err *e) {
  err why = {0};
  if (follows(g) || atomic_exchange(&g->renewing, 1)) return 0;
  int rc = check_term(g, &g->second, term, &why);
  if (rc == ERR_FENCED)
    err_set(e, rc, "%s", why.text);
  else /* a log that cannot be read just now is no reason to look dead */
    rc = lease_renew(g->env->store, g->prefix, term, &g->env->writer, e);
  atomic_store(&g->renewing, 0);
  return rc;
}
