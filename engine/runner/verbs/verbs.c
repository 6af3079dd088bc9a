#include "verbs.h"

#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/words.h"

enum { VERBS_MOST = 64 };

/* One a line: two who add one do not meet. */
/* clang-format off */
const verb *const verbs[] = {
  &verb_run,
  &verb_watch,
  &verb_sync,
  &verb_restore,
  &verb_ls,
  &verb_show,
  &verb_latest,
  &verb_verify,
  &verb_drill,
  &verb_doctor,
  &verb_why,
  &verb_plan,
  &verb_policy,
  &verb_rm,
  &verb_gc,
  &verb_repair,
  &verb_pin,
  &verb_unpin,
  &verb_mark,
  &verb_bisect,
  &verb_notify,
  &verb_status,
  &verb_drain,
  &verb_pack,
  &verb_unpack,
  &verb_exec,
  &verb_version,
  &verb_help,
  NULL,
};
/* clang-format on */

const verb *verbs_find(const char *name) {
  for (size_t i = 0; verbs[i]; i++)
    if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
  return NULL;
}

/* What other tools (restic, rclone, rsync, git) call what ours do. */
static const struct {
  const char *theirs, *ours;
} peers[] = {
    {"list", "ls"},
    {"snapshots", "ls"},
    {"lsf", "ls"},
    {"lsl", "ls"},
    {"lsjson", "ls --json"},
    {"stats", "ls"},
    {"size", "ls"},
    {"info", "show"},
    {"cat", "show"},
    {"stat", "show"},
    {"backup", "sync"},
    {"save", "sync"},
    {"push", "sync"},
    {"upload", "sync"},
    {"copy", "sync DIR --to URI (or restore URI --dir DIR)"},
    {"cp", "sync DIR --to URI (or restore URI --dir DIR)"},
    {"move", "sync DIR --to URI (and remove DIR yourself)"},
    {"download", "restore"},
    {"pull", "restore"},
    {"get", "restore"},
    {"dump", "restore"},
    {"check", "verify"},
    {"cryptcheck", "verify"},
    {"hashsum", "verify"},
    {"delete", "rm"},
    {"remove", "rm"},
    {"deletefile", "rm"},
    {"forget", "rm (a policy's `keep` does it by itself; plan shows it)"},
    {"prune", "gc"},
    {"cleanup", "gc"},
    {"clean", "gc"},
    {"purge", "gc --remove-run"},
    {"tag", "mark (or pin)"},
    {"keep", "pin"},
    {"find", "why"},
    {"diff", "verify"},
    {"daemon", "watch"},
    {"flush", "drain"},
    {"evict", "drain"},
    {"start", "run"},
    {"tar", "pack"},
    {"untar", "unpack"},
    {"extract", "unpack"},
};

static const struct {
  const char *theirs, *hint;
} absent[] = {
    {"mount", "the files of a checkpoint lie at the target as they are; latest --uri says where"},
    {"init", "a target needs no setting up: the first run makes it"},
    {"unlock", "a lease ends by itself after 15 minutes; run --take-over does not wait for that"},
    {"config", "there is no file of settings: options, AWS_* variables and policies are all"},
    {"serve", "ckpt-lua has no server: targets are directories and buckets"},
};

/* Returns false if no other tool that we know of calls something so. */
static bool name_ours(const char *name) {
  for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
    if (strcmp(name, peers[i].theirs) == 0) {
      report_error("there is no verb '%s'; here it is: ckpt-lua %s", name, peers[i].ours);
      return true;
    }
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    if (strcmp(name, absent[i].theirs) == 0) {
      report_error("there is no verb '%s': %s", name, absent[i].hint);
      return true;
    }
  return false;
}

int verbs_unknown(const char *name) {
  if (name_ours(name)) return EXIT_USAGE;
  const char *names[VERBS_MOST];
  size_t count = 0;
  for (; verbs[count] && count < VERBS_MOST; count++) names[count] = verbs[count]->name;
  const char *near = words_nearest(name, names, count);
  if (near)
    report_error("there is no verb '%s'; did you mean %s?", name, near);
  else
    report_error("there is no verb '%s'; see: ckpt-lua help", name);
  return EXIT_USAGE;
}

int verbs_unknown_sub(const verb *v, const char *name) {
  const char *names[VERBS_MOST];
  size_t count = 0, own = strlen(v->name) + 1;
  for (; v->subs[count] && count < VERBS_MOST; count++) names[count] = v->subs[count]->name + own;
  const char *near = name ? words_nearest(name, names, count) : NULL;
  if (!name)
    report_error("%s: what is to be done? See: ckpt-lua help %s", v->name, v->name);
  else if (near)
    report_error("%s: there is no '%s'; did you mean %s?", v->name, name, near);
  else
    report_error("%s: there is no '%s'; see: ckpt-lua help %s", v->name, name, v->name);
  return EXIT_USAGE;
}

void verbs_list(FILE *out) {
  fputs("usage: ckpt-lua VERB ...\n\n", out);
  for (size_t i = 0; verbs[i]; i++) fprintf(out, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
  fputs("\nThe beginning: ckpt-lua run --dir out --to /backup/job1 -- python train.py\n"
        "More: ckpt-lua help VERB\n",
        out);
}

int verbs_explain(const verb *v) {
  if (v) {
    printf("usage: ckpt-lua %s\n\n%s\n\n", v->synopsis, v->summary);
    for (const verb *const *s = v->subs; s && *s; s++)
      printf("  %-16s %s\n", (*s)->name, (*s)->summary);
    if (v->subs) puts("");
    verb_list_options(v, stdout);
    if (v->text) printf("\n%s", v->text);
  } else {
    verbs_list(stdout);
  }
  return command_end(EXIT_DONE);
}
