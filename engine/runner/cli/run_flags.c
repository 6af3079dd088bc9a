#include "run_flags.h"

#include <string.h>

#include "durations.h"
#include "words.h"

/* ---- values of a kind of their own ---- */

/* A signal asks for an end, however long it may take: 30 years stand for one without. */
static int take_grace(options *o, const option_spec *spec, const char *value, char *error) {
  enum { MOST_S = 1000000000 };
  if (take_time(o, spec, value, error) != 0) return -1;
  o->graced = true;
  if (o->grace_s > MOST_S) o->grace_s = MOST_S;
  return 0;
}

static int take_share(options *o, const option_spec *spec, const char *value, char *error) {
  if (share_read(value, option_member(o, spec))) return 0;
  return OPTIONS_FAIL(error,
                      "--%s: '%s' is no share; say 25%% or 0.25 (nothing at all: --no-delete)",
                      spec->name, value);
}

/* A policy's setting has a name; the policy judges the value. */
static int take_setting(options *o, const option_spec *spec, const char *value, char *error) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value)
    return OPTIONS_FAIL(error, "--option: '%s' is not NAME=VALUE, e.g. -o keep=5", value);
  return take_list(o, spec, value, error);
}

static int take_policy(options *o, const option_spec *spec, const char *value, char *error) {
  const char *const *given = o->run.policies;
  if (given && (strcmp(value, "builtin") == 0 || strcmp(given[0], "builtin") == 0))
    return OPTIONS_FAIL(error, "--policy builtin means no policy at all: it stands alone");
  return take_list(o, spec, value, error);
}

static int take_restore(options *o, const option_spec *spec, const char *value, char *error) {
  (void)spec, (void)error;
  o->named = NULL;
  if (strcmp(value, "auto") == 0)
    o->restore = CKPT_RESTORE_AUTO;
  else if (strcmp(value, "never") == 0)
    o->restore = CKPT_RESTORE_NEVER;
  else if (strcmp(value, "required") == 0)
    o->restore = CKPT_RESTORE_REQUIRED;
  else {
    o->restore = CKPT_RESTORE_NAMED;
    o->named = value;
  }
  return 0;
}

static int take_bad_after(options *o, const option_spec *spec, const char *value, char *error) {
  if (take_count(o, spec, value, error) != 0)
    return OPTIONS_FAIL(error, "--bad-after: '%s' is no number of starts; say 3, or 0 for never",
                        value);
  if (o->run.bad_after == 0) o->run.bad_after = UINT32_MAX; /* 0 means the default to the engine */
  return 0;
}

static int take_rank(options *o, const option_spec *spec, const char *value, char *error) {
  o->ranked = true;
  return take_count(o, spec, value, error);
}

/* 0 is for an option that is not given. */
static int take_dir_is(options *o, const option_spec *spec, const char *value, char *error) {
  int rc = take_choice(o, spec, value, error);
  if (rc == 0) o->dir_is++;
  return rc;
}

static int take_fenced(options *o, const option_spec *spec, const char *value, char *error) {
  (void)spec;
  if (strcmp(value, "stop") != 0 && strcmp(value, "detach") != 0)
    return OPTIONS_FAIL(error, "--on-fenced is 'stop' or 'detach', not '%s'", value);
  o->detach = *value == 'd';
  return 0;
}

static int take_parts(options *o, const option_spec *spec, const char *value, char *error) {
  if (strcmp(value, "own") != 0 && strcmp(value, "all") != 0)
    return OPTIONS_FAIL(error, "--restore-parts is 'own' or 'all', not '%s'", value);
  return take_text(o, spec, value, error);
}

/* Checks the quotes here: the path is known only later, and a fault would show after a long
 * restore. */
static int take_resume_arg(options *o, const option_spec *spec, const char *value, char *error) {
  word_list words = {0};
  int rc = words_split(&words, value, "");
  word_list_free(&words);
  if (rc == -1) return OPTIONS_FAIL(error, "--resume-arg: a quote is not closed");
  return rc == 0 ? take_text(o, spec, value, error) : OPTIONS_FAIL(error, "out of memory");
}

/* ---- the table ---- */

enum {
  RUN = FLAGS_RUN,
  JOBS = FLAGS_RUN | FLAGS_WATCH,
  SAVES = JOBS | FLAGS_SYNC,
  JUDGES = SAVES | FLAGS_PLAN,
  DELETES = JOBS | FLAGS_PLAN,
  RANKS_MOST = 65536
};

/* Values of members of `run` are checked by the engine. */
const option_spec run_flags[RUN_FLAGS_MOST] = {
    {"dir", "DIR", "the directory in which the job writes its checkpoints", take_place,
     .at = OF(run.dir), .needed = true, .takers = SAVES},
    {"to", "URI", "where they are kept: a path, file://, s3:// or gs://...", take_place,
     .at = OF(run.to), .needed = true, .takers = SAVES},
    {"state", "DIR", "for our own files (default: DIR.ckpt beside DIR)", take_place,
     .at = OF(run.state), .takers = SAVES},
    {"run", "ID", "name of the run (default: made of the program and DIR)", take_place,
     .at = OF(run.run_id), .takers = SAVES},
    {"continue-run", NULL, "go on in a target of another run", take_bit, .at = OF(run.flags),
     .bit = CKPT_CONTINUE_RUN, .takers = SAVES},
    {"take-over", NULL, "push a writer aside that may be alive", take_bit, .at = OF(run.flags),
     .bit = CKPT_TAKE_OVER, .takers = SAVES},
    {"wait-lease", "TIME", "wait for another writer to end, instead of ending with 11", take_time,
     .at = OF(run.wait_lease_s), .takers = SAVES},
    {"launch-id", "ID", "names this launch; the same ID takes over at once", take_text,
     .at = OF(run.launch), .takers = SAVES},
    {"ranks", "WHAT", "who of several tasks saves: auto (default), off, node or task", take_choice,
     .at = OF(ranks), .says = "auto|off|node|task", .takers = JOBS},
    {"rank", "N", "which of the --world this one is, if no launcher says it", take_rank,
     .at = OF(run.rank), .most = RANKS_MOST - 1, .takers = JOBS},
    {"world", "N", "how many save together, each its own DIR", take_count, .at = OF(run.world),
     .most = RANKS_MOST, .takers = JOBS},
    {"tasks", "N", "how many of a launch write into DIR (default: as the launcher says)",
     take_count, .at = OF(run.tasks), .most = RANKS_MOST, .takers = JOBS},
    {"rank-wait", "TIME", "how long to wait for others (default: 10m)", take_time,
     .at = OF(run.rank_wait_s), .initial = 600, .says = "no time at all is too short",
     .takers = JOBS},
    {"dir-is", "WHAT", "shared by all hosts, or local to each (default: by its file system)",
     take_dir_is, .at = OF(dir_is), .says = "shared|local", .takers = JOBS},
    {"owns-dir", NULL, "nobody else restores to DIR: where DIR.ckpt cannot be", take_bit,
     .at = OF(run.flags), .bit = CKPT_OWNS_DIR, .takers = JOBS},
    {"restore", "WHAT", "auto (default), never, required, or a checkpoint: NAME or URI",
     take_restore, .at = OF(restore), .takers = RUN},
    {"restore-parts", "WHAT", "all (default), or own: of ranks each gets back what it had",
     take_parts, .at = OF(run.restore_parts), .takers = RUN},
    {"fresh", NULL, "ranks begin anew at a new target, whatever whole checkpoints are here",
     take_bit, .at = OF(run.flags), .bit = CKPT_FRESH, .takers = RUN},
    {"start-wait", "TIME", "wait for a silent store (default: 2m; 15s at a new place)",
     take_time_or_none, .at = OF(run.start_wait_s), .takers = SAVES},
    {"start-anyway", NULL, "begin without the store, from what is surely its newest", take_bit,
     .at = OF(run.flags), .bit = CKPT_START_ANYWAY, .takers = RUN},
    {"bad-after", "N", "failed starts until an older one is taken (default: 3; 0: never)",
     take_bad_after, .at = OF(run.bad_after), .most = 1000000, .takers = RUN},
    {"resume-arg", "'STR {}'", "added to COMMAND when there is a checkpoint; {} is its path",
     take_resume_arg, .at = OF(resume_arg), .takers = RUN},
    {"policy", "NAME|PATH", "what to save and keep; repeatable (default: default; builtin: none)",
     take_policy, .at = OF(run.policies), .letter = 'p', .takers = JUDGES},
    {"option", "NAME=VALUE", "an option of the policies; repeatable", take_setting,
     .at = OF(run.settings), .letter = 'o', .takers = JUDGES | FLAGS_CHECK},
    {"policy-in-process", NULL, "run policies that you trust without a helper process", take_set,
     .at = OF(policy_in_process), .takers = JUDGES | FLAGS_CHECK},
    {"record", "FILE", "add what happens to it, for policy simulate", take_place,
     .at = OF(run.record), .takers = JOBS},
    {"unit", "GLOB", "what one checkpoint is, e.g. 'checkpoint-{step}/'; repeatable", take_list,
     .at = OF(run.units), .takers = SAVES},
    {"exclude", "GLOB", "files that are no part of one; repeatable", take_list,
     .at = OF(run.excludes), .takers = SAVES},
    {"marker", "NAME", "a file that each complete one has; repeatable", take_list,
     .at = OF(run.markers), .takers = SAVES},
    {"settle", "TIME", "closed files count after this rest (default: 30s)", take_time_or_none,
     .at = OF(run.quiet_s), .takers = SAVES},
    {"in-place-every", "TIME", "a name without a number is saved once in it (default: 1m)",
     take_time_or_none, .at = OF(run.in_place_every_s), .takers = JOBS},
    {"poll", NULL, "list DIR now and then; do not trust inotify", take_bit, .at = OF(run.flags),
     .bit = CKPT_POLL, .takers = JOBS},
    {"max-delete", "N%", "share that one pass may stop keeping (default: 25%, at least one)",
     take_share, .at = OF(run.max_delete), .takers = DELETES},
    {"no-delete", NULL, "what is no longer kept is hidden; its data stays", take_bit,
     .at = OF(run.flags), .bit = CKPT_NO_DELETE, .takers = DELETES},
    {"grace-delete", "TIME", "from no longer kept to deleted (default: 24h)", take_time_or_none,
     .at = OF(run.grace_delete_s), .takers = DELETES | FLAGS_REMOVAL},
    {"single-writer", NULL, "nobody else writes to this target: the store need not arbitrate",
     take_bit, .at = OF(run.flags), .bit = CKPT_SINGLE_WRITER, .takers = SAVES},
    {"trust", NULL, "save as it stands what nothing proves to be whole", take_bit,
     .at = OF(run.flags), .bit = CKPT_TRUST, .takers = FLAGS_SYNC},
    {"grace", "TIME", "from a signal to the end (default: what the launcher leaves, or 30s)",
     take_grace, .at = OF(grace_s), .initial = 30, .takers = SAVES},
    {"deadline", "TIME", "how long the job has; policies see it (default: as Slurm says)",
     take_time, .at = OF(run.deadline_s), .says = "0 is over already; say inf if there is none",
     .takers = JOBS},
    {"usr1", NULL, "SIGUSR1 is a warning too: pass it on; it starts no grace", take_set,
     .at = OF(usr1), .takers = RUN},
    {"requeue", NULL, "have Slurm start the job again when it was told to end", take_set,
     .at = OF(requeue), .takers = RUN},
    {"slurm-comment", "WHICH", "cost to evict in a comment of the Slurm job: off, admin or user",
     take_choice, .at = OF(slurm_comment), .says = "off|admin|user", .takers = JOBS},
    {"require-commit", NULL, "exit 4 if nothing is committed: nothing to save, or not wanted",
     take_set, .at = OF(require_commit), .takers = SAVES},
    {"on-fenced", "WHAT", "a newer run writes here: stop (default) or detach (go on unsaved)",
     take_fenced, .at = OF(detach), .takers = RUN},
    {0},
};
