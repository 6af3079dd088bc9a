/* run_reload: other policies in the middle of a run, when somebody asks for them. Their files are read by a
 * thread that nobody waits for; the chain is checked, and takes the place of the one before, which goes on ruling what
 * is kept until its grace is over. A file that was edited is never taken by itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "decision/policy_check.h"
#include "run/policies/compare.h"
#include "run/policies/edits.h"
#include "run/policies/origin.h"
#include "run/policies/reading.h"
#include "run/run_state.h"

static const int64_t read_every_ns = 20 * INT64_C(1000000), read_for_ns = 10 * SECOND_NS;

struct run_reload {
  origin made; /* of what the chain was */
  /* The one that is asked for. */
  reading *reading; /* NULL: none is */
  names asked_settings;
  uint64_t job;
  int64_t since; /* IO_MONO */
  bool dry;
  /* What came of the last one; `job` 0: there was none. */
  int status;
  char *policies, *replaced, text[ERR_TEXT_MAX];
  char *stays;       /* the keys that the new ones do not name */
  char *newest_only; /* what older checkpoints lose by the new ones */
  char *beside; /* the names of those that rule beside the newest one, as they were last told */
  changes changes;
  uint64_t uncompared; /* commits that there was no time for */
  /* What the newest chain would let go and an older one keeps, by what was last asked. */
  changes told;
  edits edits;
};

static int64_t now_of(const run *r) {
  return r->env->io->now(r->env->io, IO_MONO);
}

void run_reload_told(run *r, const run_group *g, const policy_item *items, size_t count,
                     const policy_kept *newest, const policy_kept *others) {
  if (!r->reload) return;
  changes_clear(&r->reload->told, g->group.prefix);
  for (size_t i = 0; i < count; i++)
    if (!newest[i].keep && others[i].keep)
      changes_add(&r->reload->told, g->group.prefix, &items[i], &others[i], &newest[i]);
}

/* ---- opening and closing ---- */

static policy_options chain_options(run *r, const char *id, const policy_files *files,
                                    const names *settings) {
  policy_options o = origin_options(&r->reload->made, files, settings);
  o.io = r->env->io;
  o.log = r->env->log;
  o.link = r->env->policies;
  o.id = id;
  return o;
}

static void say_notes(const run *r) {
  const char *note;
  for (size_t i = 0; (note = policy_note(r->policy, i)); i++)
    log_say(r->env->log, LOG_INFO, "policy %s: %s", policy_names(r->policy), note);
}

/* Reads the policies first of all: nothing is made for a run whose rules are wrong. */
int run_open_policy(run *r, const run_options *o, err *e) {
  char id[33];
  int rc = io_nonce(r->env->io, id);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  struct run_reload *l = r->reload = calloc(1, sizeof *l);
  if (!l) return err_set(e, ERR_NOMEM, "read the policies: out of memory");
  rc = origin_read(&l->made,
                   &(policy_options){.io = r->env->io,
                                     .names = o->policies,
                                     .settings = o->settings,
                                     .dir = o->policy_dir,
                                     .units = o->units,
                                     .excludes = o->excludes,
                                     .markers = o->markers,
                                     .quiet_ns = o->quiet_ns},
                   e);
  if (rc < 0) return rc;
  const policy_options options = chain_options(r, id, &l->made.files, &l->made.settings);
  rc = policy_open(&options, &r->policy, e);
  if (rc < 0) return rc;
  r->rules = policy_rules(r->policy);
  say_notes(r);
  return 0;
}

void run_reload_leave(run *r) {
  struct run_reload *l = r->reload;
  if (!l) return;
  reading_drop(l->reading);
  l->reading = NULL;
  edits_drop(&l->edits);
}

void run_reload_free(run *r) {
  struct run_reload *l = r->reload;
  if (r->policy != r->replaced.first) policy_close(r->policy);
  ruling_close(&r->replaced);
  r->policy = NULL;
  if (!l) return;
  run_reload_leave(r);
  origin_free(&l->made);
  names_free(&l->asked_settings);
  changes_free(&l->changes);
  changes_free(&l->told);
  free(l->policies);
  free(l->replaced);
  free(l->stays);
  free(l->newest_only);
  free(l->beside);
  free(l);
  r->reload = NULL;
}

/* ---- asking ---- */

/* What the policies remember is a part of what they keep: the new chain begins with it, and the one before goes on
 * with a copy. */
static int check_memory(const run *r, err *e) {
  for (size_t i = 0; i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    if (g->remembers == MEMORY_BROKEN)
      return err_set(
          e, ERR_HELD,
          "what the policies remember of \"%s\" cannot be read, so other policies are not "
          "taken: remove .ckpt/memory there if it is of no use any more, start the run "
          "again, and ask again",
          g->group.prefix);
    if (g->remembers == MEMORY_UNREAD)
      return err_set(e, ERR_HELD,
                     "what the policies remember is not known while the store does not answer: ask "
                     "again when it does");
  }
  if (run_anyway_unmet(r))
    return err_set(e, ERR_HELD, "the store has not answered yet: ask again when it does");
  return 0;
}

static int check_run(const run *r, err *e) {
  if (!r->started)
    return err_set(e, ERR_HELD, "the run has not started yet: ask again when it has");
  if (run_follows(r))
    return err_set(
        e, ERR_UNSUPPORTED,
        "this is rank %u of %u, which asks no policies: rank 0 decides for all. Ask its run",
        r->ranks.rank, r->ranks.world);
  if (r->fenced)
    return err_set(e, ERR_FENCED, "this run saves no more, so its policies rule nothing");
  if (r->closing || r->preempted || r->writer_gone)
    return err_set(e, ERR_CANCELED,
                   "the run is ending: the next one reads the files that its command names");
  if (r->replaced.count == RULING_MOST)
    return err_set(e, ERR_HELD,
                   "%d chains of policies that were replaced rule still what is kept: ask again "
                   "when the grace of the first of them is over",
                   RULING_MOST);
  return check_memory(r, e);
}

int run_reload_ask(run *r, const run_reload_options *o, uint64_t *job, err *e) {
  struct run_reload *l = r->reload;
  const bool named = o->policies && o->policies[0];
  reading *begun = NULL;
  names settings = {0};
  int rc = check_run(r, e);
  if (rc < 0) return rc;
  if (!l || l->made.files.count == 0)
    return err_set(
        e, ERR_UNSUPPORTED,
        "this run began without a policy, and has not read what policies remember: start it "
        "again with `policies`");
  if (l->reading) return err_set(e, ERR_HELD, "other policies are being read already");
  const char *const *keep = o->settings || named ? o->settings : names_list(&l->made.settings);
  if (!names_add_all(&settings, keep)) {
    names_free(&settings);
    return err_set(e, ERR_NOMEM, "read the policies: out of memory");
  }
  rc = reading_begin(r->lasting, l->made.dir, named ? o->policies : names_list(&l->made.paths),
                     &begun, e);
  if (rc < 0) {
    names_free(&settings);
    return rc;
  }
  names_free(&l->asked_settings);
  l->asked_settings = settings;
  l->reading = begun;
  l->since = now_of(r);
  l->dry = o->dry;
  *job = ++l->job;
  return 0;
}

/* ---- taking ---- */

/* The run stands still meanwhile. */
static int compare(run *r, policy *fresh, compared *out, err *e) {
  const int64_t until = seconds_later(now_of(r), r->compare_ns);
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < r->group_count; i++) {
    const run_group *g = r->groups[i];
    const compare_list list = {.group = g->group.prefix,
                               .memory = g->memory,
                               .items = g->listed,
                               .count = g->listed_count};
    if (now_of(r) < until)
      rc = compare_add(out, &r->replaced, r->policy, fresh, &list, e);
    else
      out->left += list.count;
  }
  return rc;
}

static int remember(const run *r, ruling_memories *out, err *e) {
  for (size_t i = 0; i < r->group_count; i++)
    if (!ruling_remember(out, r->groups[i]->group.prefix, r->groups[i]->memory)) {
      ruling_forget(out);
      return err_set(e, ERR_NOMEM, "take other policies: out of memory");
    }
  return 0;
}

/* All groups have the new chain, or none: there is one for all of them. */
static int replace(run *r, policy *fresh, err *e) {
  const int64_t now = now_of(r);
  ruling_memories memories = {0};
  int rc = remember(r, &memories, e);
  if (rc == 0)
    rc = ruling_add(&r->replaced, r->policy, seconds_later(now, r->limits.grace_ns), &memories, e);
  ruling_forget(&memories);
  if (rc < 0) return rc;
  r->policy = fresh;
  run_note_rules(r);
  return 0;
}

/* What would go of the new chain alone, until it rules alone. */
static void tell_changes(run *r, compared *c) {
  struct run_reload *l = r->reload;
  changes_free(&l->told);
  l->told = c->go;
  c->go = (changes){0};
  for (size_t i = 0; i < l->told.count; i++) {
    const change *one = &l->told.at[i];
    log_say(r->env->log, LOG_INFO,
            "%s would be let go (%s); it stays as long as the policies before rule (%s)", one->name,
            one->after.reason, one->before.reason);
  }
}

static void say_names(char **to, const char *from) {
  free(*to);
  *to = strdup(from); /* out of memory it is not told */
}

/* No comparison asks it: it lets no checkpoint go. */
static void say_newest_only(const run *r, const policy *fresh, char **to) {
  const policy_newest_only *n = policy_newest(fresh);
  buf text;
  buf_init(&text, (size_t)1 << 20);
  for (size_t i = 0; i < n->globs.count && !r->limits.no_delete; i++)
    buf_fmt(&text, "%s%s", i ? ", " : "", n->globs.at[i]);
  if (text.len) buf_fmt(&text, " (%" PRIu64 " keep them)", n->newest);
  say_names(to, text.len ? text.data : "");
  buf_free(&text);
}

static int open_fresh(run *r, reading *reading, policy **out, err *e) {
  struct run_reload *l = r->reload;
  char id[33];
  int rc = reading_status(reading, e);
  if (rc < 0) return rc;
  rc = io_nonce(r->env->io, id);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  policy_options options = chain_options(r, id, reading_files(reading), &l->asked_settings);
  options.untried = true; /* it is tried below: what fails is no warning here */
  rc = policy_open(&options, out, e);
  if (rc == 0) rc = policy_take_shape(*out, r->policy, &options, e);
  if (rc == 0) rc = policy_check_chain(*out, e);
  if (rc < 0) {
    policy_close(*out);
    *out = NULL;
  }
  return rc;
}

/* Policies before rule no more: what they alone have kept may go. */
static void on_ended(run *r) {
  if (r->replaced.count == 0 && r->reload) changes_clear(&r->reload->told, NULL);
  run_keep_ask_all(r);
  for (size_t i = 0; i < r->group_count; i++) {
    run_keep_judge(r, r->groups[i]);
    run_local_sweep(r, r->groups[i]);
  }
}

/* A unit that was held back may be wanted now. What is in the queue already stays there. */
static void ask_anew(run *r) {
  for (size_t i = 0; i < r->group_count; i++) {
    run_group *g = r->groups[i];
    if (!g->save && !run_keep_busy(g)) run_keep_list(r, g);
    run_keep_judge(r, g);
  }
  run_event(r, false);
  run_reconsider(r, "time");
  if (r->replaced.count == 0) on_ended(r);
}

/* The chain that rules, read anew, is that one. */
static int take_fresh(run *r, reading *reading, policy *fresh, compared *c, err *e) {
  struct run_reload *l = r->reload;
  names paths = {0};
  const bool same = policy_same(fresh, r->policy);
  int rc = origin_paths(reading_files(reading), &paths)
               ? 0
               : err_set(e, ERR_NOMEM, "take other policies: out of memory");
  if (rc == 0 && !same) rc = replace(r, fresh, e);
  if (rc < 0 || same) policy_close(fresh);
  if (rc < 0) {
    names_free(&paths);
    return rc;
  }
  edits_drop(&l->edits); /* it looks at the files before */
  origin_take(&l->made, reading_files(reading), &paths, &l->asked_settings);
  if (same) return 0;
  say_notes(r);
  tell_changes(r, c);
  ruling_end(&r->replaced, now_of(r)); /* without a grace it rules at once */
  ask_anew(r);
  return 0;
}

static int take_once(run *r, reading *reading, err *e) {
  struct run_reload *l = r->reload;
  policy *fresh = NULL;
  compared c = {0};
  int rc = check_run(r, e);
  if (rc == 0) rc = open_fresh(r, reading, &fresh, e);
  if (rc < 0) return rc;
  say_names(&l->policies, policy_names(fresh));
  say_names(&l->replaced, policy_names(r->policy));
  say_names(&l->stays, policy_stays(fresh));
  say_newest_only(r, fresh, &l->newest_only);
  rc = compare(r, fresh, &c, e);
  if (rc < 0 || l->dry)
    policy_close(fresh);
  else
    rc = take_fresh(r, reading, fresh, &c, e);
  if (rc == 0) {
    l->changes = c.all;
    l->uncompared = c.left;
    c.all = (changes){0};
  }
  compared_free(&c);
  return rc;
}

/* True if there is no process any more that could be asked; policies in our own have none. */
static bool is_lost(const policy_link *link, int rc) {
  return rc == ERR_POLICY && policy_link_generation(link) > 0 && policy_link_pid(link) == 0;
}

/* That the policies' process died meanwhile is no word of the new ones: another one is asked, once. */
static int take(run *r, reading *reading, err *e) {
  const policy_link *link = r->env->policies;
  int rc = take_once(r, reading, e);
  if (!is_lost(link, rc)) return rc;
  const uint64_t before = policy_link_generation(link);
  rc = take_once(r, reading, e);
  const bool rests = is_lost(link, rc) && policy_link_generation(link) == before;
  return rests ? err_set(e, ERR_HELD, "%s. Ask again then", e->text) : rc;
}

static void finish(run *r, int status, const char *text) {
  struct run_reload *l = r->reload;
  reading_drop(l->reading);
  l->reading = NULL;
  l->status = status;
  snprintf(l->text, sizeof l->text, "%s", text);
  if (status < 0 && !l->dry)
    log_say(r->env->log, LOG_WARN, "other policies are not taken, those before go on: %s", text);
  else if (!l->dry)
    log_say(r->env->log, LOG_INFO, "policies are now %s, in place of %s",
            l->policies ? l->policies : "?", l->replaced ? l->replaced : "?");
  if (status == 0 && !l->dry && l->newest_only && *l->newest_only)
    log_say(r->env->log, LOG_INFO,
            "older checkpoints lose files by newest_only once these policies rule alone: %s",
            l->newest_only);
}

static int64_t read_step(run *r, int64_t now) {
  struct run_reload *l = r->reload;
  err e = {0};
  if (!l->reading) return INT64_MAX;
  if (reading_is_over(l->reading)) {
    changes_free(&l->changes);
    int rc = take(r, l->reading, &e);
    finish(r, rc, rc < 0 ? e.text : "");
    return INT64_MAX;
  }
  if (now - l->since < read_for_ns) return seconds_later(now, read_every_ns);
  changes_clear(&l->changes, NULL);
  finish(r, ERR_TIMEOUT,
         "the files did not come within 10 s: does the file system below them answer?");
  return INT64_MAX;
}

/* One who asks no policies has none that could be edited. */
static int64_t look_step(run *r, int64_t now) {
  struct run_reload *l = r->reload;
  if (run_follows(r)) return INT64_MAX;
  return edits_step(&l->edits, r->lasting, &l->made.files, now, r->env->log, r->places.dir);
}

int64_t run_reload_step(run *r, int64_t now) {
  if (!r->reload || r->closing) return INT64_MAX;
  if (ruling_end(&r->replaced, now) > 0) on_ended(r);
  int64_t due = read_step(r, now);
  const int64_t others[] = {look_step(r, now),
                            ruling_due(&r->replaced)}; /* it may be a new one's */
  for (size_t i = 0; i < 2; i++)
    if (others[i] < due) due = others[i];
  return due;
}

/* ---- what came of it ---- */

static int tell_all(const changes *all, run_changed_fn *fn, void *ctx) {
  int rc = 0;
  for (size_t i = 0; fn && rc == 0 && i < all->count; i++) {
    const change *c = &all->at[i];
    rc = fn(ctx, &(run_changed){.group = c->group,
                                .name = c->name,
                                .commit = c->commit,
                                .step = c->step,
                                .before = &c->before,
                                .after = &c->after});
  }
  return rc;
}

int run_reloaded(run *r, uint64_t job, run_reload_result *out, run_changed_fn *fn, void *ctx,
                 err *e) {
  struct run_reload *l = r->reload;
  *out = (run_reload_result){.over = true,
                             .policies = policy_names(r->policy),
                             .stays = "",
                             .newest_only = "",
                             .max_drop = r->limits.max_drop};
  const int64_t last = ruling_last(&r->replaced);
  out->left_ns = last == INT64_MAX ? INT64_MAX : last ? last - now_of(r) : 0;
  if (job == 0) {
    buf names;
    buf_init(&names, 4096);
    ruling_names(&r->replaced, &names);
    if (l) say_names(&l->beside, names.data ? names.data : "");
    buf_free(&names);
    out->replaced = l && l->beside ? l->beside : "";
    out->changes = l ? changes_all(&l->told) : 0;
    return l ? tell_all(&l->told, fn, ctx) : 0;
  }
  if (!l || job != l->job)
    return err_set(e, ERR_NOENT, "no reload %" PRIu64 " is known: only the last one is", job);
  out->over = !l->reading;
  out->dry = l->dry;
  out->status = l->status;
  out->text = l->text;
  if (!out->over || l->status < 0) return 0;
  if (l->dry) out->left_ns = r->limits.grace_ns;
  out->policies = l->policies ? l->policies : "";
  out->replaced = l->replaced ? l->replaced : "";
  out->stays = l->stays ? l->stays : "";
  out->newest_only = l->newest_only ? l->newest_only : "";
  out->changes = changes_all(&l->changes);
  out->uncompared = l->uncompared;
  return tell_all(&l->changes, fn, ctx);
}
