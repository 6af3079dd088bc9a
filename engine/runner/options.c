#include "options.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt.h"
#include "durations.h"

enum option_id {
  OPT_DIR,
  OPT_TO,
  OPT_STATE,
  OPT_RUN,
  OPT_CONTINUE_RUN,
  OPT_TAKE_OVER,
  OPT_LAUNCH_ID,
  OPT_RANKS,
  OPT_RANK,
  OPT_WORLD,
  OPT_RANK_WAIT,
  OPT_DIR_IS,
  OPT_RESTORE,
  OPT_RESUME_ARG,
  OPT_POLICY,
  OPT_SETTING,
  OPT_IN_PROCESS,
  OPT_UNIT,
  OPT_EXCLUDE,
  OPT_MARKER,
  OPT_QUIET,
  OPT_POLL,
  OPT_MAX_DELETE,
  OPT_NO_DELETE,
  OPT_GRACE_DELETE,
  OPT_SINGLE_WRITER,
  OPT_GRACE,
  OPT_USR1,
  OPT_REQUIRE_COMMIT,
  OPT_ON_FENCED,
  OPT_ALL,
  OPT_FOR,
  OPT_URI,
  OPT_WAIT,
  OPT_BAD_AFTER,
  OPT_ALONE,
  OPT_REASON,
  OPT_LINEAR,
  OPT_MARK,
  OPT_REMOVE,
  OPT_REMOVE_RUN,
  OPT_MAX_SIZE,
  OPT_MAX_ENTRIES,
  OPT_YES,
  OPT_JSON,
  OPT_DRY_RUN,
  OPT_LESS,
  OPT_MORE,
  OPT_HELP
};

enum {
  JOBS = VERB_RUN | VERB_WATCH,
  WRITERS = JOBS | VERB_SYNC,
  ASKS = VERB_NOTIFY | VERB_STATUS,
  DELETES = JOBS | VERB_PLAN,
  PRINTS = VERB_SYNC | VERB_RESTORE | VERB_LS | VERB_SHOW | VERB_LATEST | VERB_VERIFY | VERB_WHY |
           VERB_PLAN | VERB_RM | VERB_PIN | VERB_UNPIN | VERB_STATUS | VERB_VERSION | VERB_GC |
           VERB_MARK | VERB_BISECT,
  DRY = VERB_SYNC | VERB_RESTORE | VERB_RM | VERB_PIN | VERB_GC | VERB_MARK,
  COMMANDS = VERB_RUN | VERB_EXEC,
  ALL = (VERB_HELP << 1) - 1
};

static const struct spec {
  enum option_id id;
  const char *name; /* NULL: it has a letter only */
  char letter;
  const char *value; /* how the help calls it; NULL: the option takes none */
  unsigned verbs;
  const char *help;
} specs[] = {
    {OPT_DIR, "dir", 0, "DIR", WRITERS, "the directory in which the job writes its checkpoints"},
    {OPT_TO, "to", 0, "URI", WRITERS, "where they are kept: a path, file://..., s3://BUCKET/..."},
    {OPT_DIR, "dir", 0, "DIR", VERB_UNPACK, "where to put it: absent, or an empty directory"},
    {OPT_MAX_SIZE, "max-size", 0, "SIZE", VERB_UNPACK,
     "what it may grow to, e.g. 20GiB (default: 1TiB)"},
    {OPT_MAX_ENTRIES, "max-entries", 0, "N", VERB_UNPACK,
     "how many it may hold (default: 4194304)"},
    {OPT_DIR, "dir", 0, "DIR", VERB_RESTORE, "where to put it; nothing there is replaced"},
    {OPT_DIR, "dir", 0, "DIR", VERB_BISECT, "where candidates are restored, one at a time"},
    {OPT_DIR, "dir", 0, "DIR", ASKS | VERB_WHY, "the directory that the run watches"},
    {OPT_TO, "to", 0, "URI", VERB_WHY, "the target, for what this machine does not know"},
    {OPT_STATE, "state", 0, "DIR", WRITERS | ASKS | VERB_WHY,
     "for our own files (default: DIR.ckpt beside DIR)"},
    {OPT_RUN, "run", 0, "ID", WRITERS, "name of the run (default: made of command and DIR)"},
    {OPT_CONTINUE_RUN, "continue-run", 0, NULL, WRITERS, "go on in a target of another run"},
    {OPT_TAKE_OVER, "take-over", 0, NULL, WRITERS, "push a writer aside that may be alive"},
    {OPT_LAUNCH_ID, "launch-id", 0, "ID", WRITERS,
     "names this launch; the same ID takes over at once"},
    {OPT_RANKS, "ranks", 0, "WHAT", JOBS,
     "who of several tasks saves: auto (default), off, node or task"},
    {OPT_RANK, "rank", 0, "N", JOBS, "which of the --world this one is, if no launcher says it"},
    {OPT_WORLD, "world", 0, "N", JOBS, "how many save together, each its own DIR"},
    {OPT_RANK_WAIT, "rank-wait", 0, "TIME", JOBS, "how long to wait for others (default: 10m)"},
    {OPT_DIR_IS, "dir-is", 0, "WHAT", JOBS,
     "shared by all hosts, or local to each (default: by its file system)"},
    {OPT_RESTORE, "restore", 0, "WHAT", VERB_RUN,
     "auto (default), never, required, or a checkpoint: NAME or URI"},
    {OPT_BAD_AFTER, "bad-after", 0, "N", VERB_RUN,
     "failed starts until an older one is taken (default: 3; 0: never)"},
    {OPT_ALONE, "alone", 0, NULL, VERB_RESTORE, "without what was saved beside it (`with`)"},
    {OPT_REASON, "reason", 0, "TEXT", VERB_MARK, "why, for those who read it later"},
    {OPT_LINEAR, "linear", 0, NULL, VERB_BISECT, "try the newest first, then the one before it"},
    {OPT_MARK, "mark", 0, NULL, VERB_BISECT, "mark those bad that are newer than the one found"},
    {OPT_RESUME_ARG, "resume-arg", 0, "'STR {}'", VERB_RUN,
     "added to COMMAND when there is a checkpoint; {} is its path"},
    {OPT_POLICY, "policy", 'p', "NAME|PATH", WRITERS | VERB_PLAN,
     "what to save and keep; repeatable (default: default; builtin: none)"},
    {OPT_SETTING, "option", 'o', "NAME=VALUE", WRITERS | VERB_PLAN,
     "an option of the policies; repeatable"},
    {OPT_IN_PROCESS, "policy-in-process", 0, NULL, WRITERS | VERB_PLAN,
     "run policies that you trust without a helper process"},
    {OPT_UNIT, "unit", 0, "GLOB", WRITERS,
     "what one checkpoint is, e.g. 'checkpoint-{step}/'; repeatable"},
    {OPT_EXCLUDE, "exclude", 0, "GLOB", WRITERS, "files that are no part of one; repeatable"},
    {OPT_MARKER, "marker", 0, "NAME", WRITERS, "a file that each complete one has; repeatable"},
    {OPT_QUIET, "quiet", 0, "TIME", WRITERS, "closed files count after this rest (default: 30s)"},
    {OPT_POLL, "poll", 0, NULL, JOBS, "list DIR now and then; do not trust inotify"},
    {OPT_MAX_DELETE, "max-delete", 0, "N%", DELETES,
     "share that one pass may stop keeping (default: 25%, at least one)"},
    {OPT_NO_DELETE, "no-delete", 0, NULL, DELETES,
     "what is no longer kept is hidden; its data stays"},
    {OPT_GRACE_DELETE, "grace-delete", 0, "TIME", DELETES | VERB_RM | VERB_GC,
     "from no longer kept to deleted (default: 24h)"},
    {OPT_SINGLE_WRITER, "single-writer", 0, NULL, WRITERS,
     "nobody else writes to this target: the store need not arbitrate"},
    {OPT_GRACE, "grace", 0, "TIME", WRITERS, "time from a signal to the end (default: 30s)"},
    {OPT_USR1, "usr1", 0, NULL, VERB_RUN,
     "SIGUSR1 is a warning too: pass it on; it starts no grace"},
    {OPT_REQUIRE_COMMIT, "require-commit", 0, NULL, VERB_RUN, "exit 4 if this run saved nothing"},
    {OPT_ON_FENCED, "on-fenced", 0, "WHAT", VERB_RUN,
     "a newer run writes here: stop (default) or detach (go on unsaved)"},
    {OPT_ALL, "all", 0, NULL, VERB_RM, "every checkpoint, the newest too"},
    {OPT_REMOVE, "remove", 0, "KEY", VERB_GC, "only that, which gc named as left"},
    {OPT_REMOVE_RUN, "remove-run", 0, NULL, VERB_GC,
     "remove the runs there whole; only their logs stay"},
    {OPT_YES, "yes", 0, NULL, VERB_GC, "with --remove-run: do it"},
    {OPT_FOR, "for", 0, "TIME", VERB_PIN, "how long, e.g. 7d (default: until it is unpinned)"},
    {OPT_URI, "uri", 0, NULL, VERB_LATEST, "print where it is, for other tools"},
    {OPT_WAIT, "wait", 0, NULL, VERB_NOTIFY, "return when nothing waits to be saved any more"},
    {OPT_JSON, "json", 0, NULL, PRINTS, "one JSON object for each line"},
    {OPT_DRY_RUN, "dry-run", 'n', NULL, DRY, "say what would be done, and write nothing"},
    {OPT_LESS, NULL, 'q', NULL, ALL, "errors and the last line only"},
    {OPT_MORE, "verbose", 'v', NULL, ALL, "say more"},
    {OPT_HELP, "help", 'h', NULL, ALL, "this text"},
};
enum { SPECS = sizeof specs / sizeof *specs };

/* The words behind the options. `run` and `exec` (COMMANDS) take a command, whose options are its
 * own. */
static const struct places {
  unsigned verbs;
  int least, most;
  const char *missing;
} places[] = {
    {VERB_RESTORE | VERB_VERIFY | VERB_SHOW | VERB_RM, 1, 2, "URI"},
    {VERB_LS | VERB_LATEST | VERB_PLAN | VERB_GC, 1, 1, "URI"},
    {VERB_PIN, 2, 2, "URI and NAME"},
    {VERB_PACK, 2, 2, "DIR and FILE"},
    {VERB_UNPACK, 1, 1, "FILE"},
    {VERB_MARK, 2, 3, "WORD (bad or good) and URI"},
    {VERB_BISECT, 1, INT_MAX, "URI"},
    {VERB_UNPIN, 2, 2, "URI and NAME, or the pin's ID"},
    {VERB_WHY, 1, 1, "NAME or PATH"},
    {VERB_SYNC | VERB_STATUS | VERB_HELP, 0, 1, ""},
    {VERB_NOTIFY, 1, 256, "KEY=VALUE"},
    {ALL, 0, 0, ""},
};

void options_free(options *o) {
  word_list_free(&o->units);
  word_list_free(&o->excludes);
  word_list_free(&o->markers);
  word_list_free(&o->policies);
  word_list_free(&o->settings);
}

const char *const *options_policies(const options *o) {
  static const char *const implied[] = {"default", NULL};
  if (o->policies.count == 0) return implied;
  return strcmp(o->policies.items[0], "builtin") == 0 ? NULL
                                                      : (const char *const *)o->policies.items;
}

/* ---- parsing ---- */

typedef struct parser {
  options *o;
  const char *verb;
  char *error;
  bool ranked; /* --rank was given: 0 is one, too */
} parser;

#define FAIL(p, ...) (snprintf((p)->error, OPTIONS_ERROR_MAX, __VA_ARGS__), -1)

/* A signal asks for an end, however long it may take: 30 years stand for one without. */
enum { GRACE_MOST_S = 1000000000 };

static int take_time(parser *p, const char *name, const char *text, double *out) {
  if (duration_read(text, out)) return 0;
  return FAIL(p, "--%s: '%s' is no time; say 30s, 5m, 24h, 7d or inf", name, text);
}

static int take_share(parser *p, const char *name, const char *text, double *out) {
  if (share_read(text, out)) return 0;
  return FAIL(p, "--%s: '%s' is no share; say 25%% or 0.25 (nothing at all: --no-delete)", name,
              text);
}

/* A policy's setting has a name; what it may be is for the policy to say. */
static int take_setting(parser *p, const char *text) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text)
    return FAIL(p, "--option: '%s' is not NAME=VALUE, e.g. -o keep=5", text);
  return word_list_add(&p->o->settings, text) ? 0 : FAIL(p, "out of memory");
}

static int take_policy(parser *p, const char *text) {
  word_list *list = &p->o->policies;
  if (list->count > 0 && (strcmp(text, "builtin") == 0 || strcmp(list->items[0], "builtin") == 0))
    return FAIL(p, "--policy builtin means no policy at all: it stands alone");
  return word_list_add(list, text) ? 0 : FAIL(p, "out of memory");
}

static int take_restore(parser *p, const char *text) {
  p->o->named = NULL;
  if (strcmp(text, "auto") == 0)
    p->o->restore = CKPT_RESTORE_AUTO;
  else if (strcmp(text, "never") == 0)
    p->o->restore = CKPT_RESTORE_NEVER;
  else if (strcmp(text, "required") == 0)
    p->o->restore = CKPT_RESTORE_REQUIRED;
  else {
    p->o->restore = CKPT_RESTORE_NAMED;
    p->o->named = text;
  }
  return 0;
}

static int take_bad_after(parser *p, const char *text) {
  char *end;
  unsigned long n = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || n > 1000000)
    return FAIL(p, "--bad-after: '%s' is no number of starts; say 3, or 0 for never", text);
  p->o->bad_after = n ? (unsigned)n : UINT_MAX; /* 0 means the default to the engine */
  return 0;
}

/* "auto|off|node|task": the place of `text` in the list, or -1. */
static int take_choice(parser *p, const char *name, const char *choices, const char *text,
                       unsigned *out) {
  size_t len = strlen(text);
  *out = 0;
  for (const char *at = choices; *at; ++*out) {
    size_t size = strcspn(at, "|");
    if (size == len && memcmp(at, text, len) == 0) return 0;
    at += size + (at[size] == '|');
  }
  return FAIL(p, "--%s is one of %s, not '%s'", name, choices, text);
}

static int take_count(parser *p, const char *name, const char *text, unsigned most, unsigned *out) {
  char *end;
  unsigned long n = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || n > most)
    return FAIL(p, "--%s: '%s' is no number from 0 to %u", name, text, most);
  *out = (unsigned)n;
  return 0;
}

static int take_rank(parser *p, const struct spec *spec, const char *value) {
  enum { RANKS_MOST = 65536 };
  options *o = p->o;
  switch (spec->id) {
  case OPT_RANKS: return take_choice(p, spec->name, "auto|off|node|task", value, &o->ranks);
  case OPT_RANK:
    p->ranked = true;
    return take_count(p, spec->name, value, RANKS_MOST - 1, &o->rank);
  case OPT_WORLD: return take_count(p, spec->name, value, RANKS_MOST, &o->world);
  case OPT_RANK_WAIT:
    if (take_time(p, spec->name, value, &o->rank_wait_s) != 0) return -1;
    return o->rank_wait_s > 0 ? 0 : FAIL(p, "--rank-wait: no time at all is too short");
  default:
    if (take_choice(p, spec->name, "shared|local", value, &o->dir_is) != 0) return -1;
    o->dir_is++; /* 0 is for what is not given */
    return 0;
  }
}

static int take_fenced(parser *p, const char *text) {
  if (strcmp(text, "stop") != 0 && strcmp(text, "detach") != 0)
    return FAIL(p, "--on-fenced is 'stop' or 'detach', not '%s'", text);
  p->o->detach = *text == 'd';
  return 0;
}

static int take_word(parser *p, word_list *list, const char *text) {
  return word_list_add(list, text) ? 0 : FAIL(p, "out of memory");
}

/* A path that is given only once the words are known could fail after a long restore: the quotes
 * are looked at here. */
static int take_resume_arg(parser *p, const char *text) {
  word_list words = {0};
  int rc = words_split(&words, text, "");
  word_list_free(&words);
  p->o->resume_arg = text;
  return rc == 0 ? 0 : FAIL(p, rc == -1 ? "--resume-arg: a quote is not closed" : "out of memory");
}

static int take(parser *p, const struct spec *spec, const char *value) {
  options *o = p->o;
  /* --dir "$UNSET" is a mistake that would otherwise end somewhere else. */
  if (spec->value && !*value) return FAIL(p, "--%s: the value is empty", spec->name);
  switch (spec->id) {
  case OPT_DIR: o->dir = value; break;
  case OPT_TO: o->to = value; break;
  case OPT_STATE: o->state = value; break;
  case OPT_RUN: o->run_id = value; break;
  case OPT_CONTINUE_RUN: o->continue_run = true; break;
  case OPT_TAKE_OVER: o->take_over = true; break;
  case OPT_LAUNCH_ID: o->launch = value; break;
  case OPT_RANKS:
  case OPT_RANK:
  case OPT_WORLD:
  case OPT_RANK_WAIT:
  case OPT_DIR_IS: return take_rank(p, spec, value);
  case OPT_RESTORE: return take_restore(p, value);
  case OPT_RESUME_ARG: return take_resume_arg(p, value);
  case OPT_UNIT: return take_word(p, &o->units, value);
  case OPT_EXCLUDE: return take_word(p, &o->excludes, value);
  case OPT_MARKER: return take_word(p, &o->markers, value);
  case OPT_QUIET:
    if (take_time(p, spec->name, value, &o->quiet_s) != 0) return -1;
    if (o->quiet_s == 0) o->quiet_s = -1; /* 0 means the default to the engine */
    break;
  case OPT_GRACE_DELETE:
    if (take_time(p, spec->name, value, &o->grace_delete_s) != 0) return -1;
    if (o->grace_delete_s == 0) o->grace_delete_s = -1; /* the same */
    break;
  case OPT_MAX_DELETE: return take_share(p, spec->name, value, &o->max_delete);
  case OPT_NO_DELETE: o->no_delete = true; break;
  case OPT_SINGLE_WRITER: o->single_writer = true; break;
  case OPT_POLICY: return take_policy(p, value);
  case OPT_SETTING: return take_setting(p, value);
  case OPT_IN_PROCESS: o->policy_in_process = true; break;
  case OPT_FOR:
    if (take_time(p, spec->name, value, &o->pin_s) != 0) return -1;
    return o->pin_s > 0 ? 0 : FAIL(p, "--for: a pin for no time at all keeps nothing");
  case OPT_ALL: o->all = true; break;
  case OPT_MAX_SIZE:
    if (size_read(value, &o->size_max)) return 0;
    return FAIL(p, "--max-size: '%s' is no size; say 500MiB or 20GiB", value);
  case OPT_MAX_ENTRIES:
    if (size_read(value, &o->entries_max)) return 0;
    return FAIL(p, "--max-entries: '%s' is no number above 0", value);
  case OPT_REMOVE: o->remove = value; break;
  case OPT_REMOVE_RUN: o->remove_run = true; break;
  case OPT_YES: o->yes = true; break;
  case OPT_URI: o->uri_only = true; break;
  case OPT_WAIT: o->wait = true; break;
  case OPT_BAD_AFTER: return take_bad_after(p, value);
  case OPT_ALONE: o->alone = true; break;
  case OPT_REASON: o->reason = value; break;
  case OPT_LINEAR: o->linear = true; break;
  case OPT_MARK: o->mark = true; break;
  case OPT_DRY_RUN: o->dry_run = true; break;
  case OPT_POLL: o->poll = true; break;
  case OPT_GRACE:
    if (take_time(p, spec->name, value, &o->grace_s) != 0) return -1;
    if (o->grace_s > GRACE_MOST_S) o->grace_s = GRACE_MOST_S;
    break;
  case OPT_USR1: o->usr1 = true; break;
  case OPT_REQUIRE_COMMIT: o->require_commit = true; break;
  case OPT_ON_FENCED: return take_fenced(p, value);
  case OPT_JSON: o->json = true; break;
  case OPT_LESS: o->level = -1; break;
  case OPT_MORE: o->level = 1; break;
  case OPT_HELP: o->help = true; break;
  }
  return 0;
}

/* `typed`: the whole argument; NULL: the letter in optopt, perhaps one of several after a dash. */
static int unknown(parser *p, const char *typed) {
  const char *names[SPECS];
  size_t count = 0;
  char word[64];
  if (!typed)
    return FAIL(p, "%s: unknown option '-%c'; see: ckpt-lua help %s", p->verb, optopt, p->verb);
  snprintf(word, sizeof word, "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
  for (size_t i = 0; i < SPECS; i++) {
    if (!(specs[i].verbs & p->o->verb) || !specs[i].name) continue;
    if (strcmp(specs[i].name, word) == 0) /* known, so it is its value that is wrong */
      return FAIL(p, "%s: --%s takes no value", p->verb, word);
    names[count++] = specs[i].name;
  }
  const char *near = words_nearest(word, names, count);
  if (near) return FAIL(p, "%s: unknown option '--%s'; did you mean --%s?", p->verb, word, near);
  return FAIL(p, "%s: unknown option '--%s'; see: ckpt-lua help %s", p->verb, word, p->verb);
}

/* The one of this verb: --dir means something else to others. */
static const struct spec *find_spec(unsigned verb, int c, int first) {
  for (int i = 0; i < SPECS; i++)
    if (c == first + i || (c < first && c == specs[i].letter && specs[i].verbs & verb))
      return &specs[i];
  return NULL;
}

/* getopt takes "--res" for "--restore" as long as nothing else begins so. A script that says that
 * would break with the next option that we add. */
static bool abbreviated(const char *typed, const struct spec *spec) {
  size_t n = strlen(spec->name);
  return strncmp(typed + 2, spec->name, n) != 0 || (typed[2 + n] && typed[2 + n] != '=');
}

static void long_options(unsigned verb, int first, struct option *longs) {
  for (int i = 0; i < SPECS; i++)
    if (specs[i].verbs & verb && specs[i].name)
      *longs++ = (struct option){specs[i].name, specs[i].value ? required_argument : no_argument,
                                 NULL, first + i};
  *longs = (struct option){0};
}

/* "+" for a command of its own: the first word that is no option begins it. ":" tells a missing
 * value from an unknown option. */
static void short_options(unsigned verb, char letters[2 * SPECS + 3]) {
  if (verb & COMMANDS) *letters++ = '+';
  *letters++ = ':';
  for (int i = 0; i < SPECS; i++) {
    if (!(specs[i].verbs & verb) || !specs[i].letter) continue;
    *letters++ = specs[i].letter;
    if (specs[i].value) *letters++ = ':';
  }
  *letters = 0;
}

static int parse_options(parser *p, int argc, char **argv) {
  enum { FIRST = 256 }; /* above every letter */
  struct option longs[SPECS + 1];
  long_options(p->o->verb, FIRST, longs);
  char letters[2 * SPECS + 3];
  short_options(p->o->verb, letters);
  opterr = 0;
  optind = 0; /* also starts glibc's getopt anew */
  while (!p->o->help) {
    int c = getopt_long(argc, argv, letters, longs, NULL);
    if (c == -1) break;
    if (c == ':') return FAIL(p, "%s: %s needs a value", p->verb, argv[optind - 1]);
    /* A letter is a char, which may be negative; within a cluster of letters the word before stands
     * at optind - 1. */
    if (c == '?') return unknown(p, optopt != 0 && optopt < FIRST ? NULL : argv[optind - 1]);
    const struct spec *spec = find_spec(p->o->verb, c, FIRST);
    if (!spec) return FAIL(p, "%s: unknown option", p->verb);
    if (c >= FIRST) {
      const char *typed = argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
      if (abbreviated(typed, spec)) return unknown(p, typed);
    }
    if (take(p, spec, optarg ? optarg : "") != 0) return -1;
  }
  return 0;
}

static void place(options *o, int count, char **words) {
  const char *first = count > 0 ? words[0] : NULL;
  if (o->verb == VERB_NOTIFY)
    o->words = words;
  else if (o->verb & (VERB_HELP | VERB_WHY))
    o->name = first;
  else if (o->verb & (VERB_SYNC | VERB_STATUS))
    o->dir = first ? first : o->dir;
  else if (o->verb == VERB_PACK) {
    o->dir = first;
    o->file = count > 1 ? words[1] : NULL;
  } else if (o->verb == VERB_UNPACK) {
    o->file = first;
  } else if (o->verb == VERB_MARK) {
    o->word = first;
    o->uri = count > 1 ? words[1] : NULL;
    o->name = count > 2 ? words[2] : NULL;
  } else if (o->verb == VERB_BISECT) {
    o->uri = first;
    o->command = count > 1 ? words + 1 : NULL;
  } else {
    o->uri = first;
    o->name = count > 1 ? words[1] : NULL;
  }
}

static int take_words(parser *p, int count, char **words) {
  const struct places *s = places;
  while (!(s->verbs & p->o->verb)) s++;
  if (count < s->least)
    return FAIL(p, "%s: which %s? See: ckpt-lua help %s", p->verb, s->missing, p->verb);
  if (count > s->most)
    return FAIL(p, "%s: '%s' is one word too many; see: ckpt-lua help %s", p->verb, words[s->most],
                p->verb);
  for (int i = 0; i < count && (p->o->verb != VERB_BISECT || i < 2); i++)
    if (!*words[i]) return FAIL(p, "%s: an argument is empty", p->verb);
  if (p->o->verb & (VERB_SYNC | VERB_STATUS) && count > 0 && p->o->dir)
    return FAIL(p, "%s: DIR is given twice, as %s and as %s", p->verb, p->o->dir, words[0]);
  place(p->o, count, words);
  return 0;
}

/* What no single option can say. */
static int check(parser *p) {
  const options *o = p->o;
  if (o->verb & (WRITERS | VERB_RESTORE | VERB_UNPACK) && !o->dir)
    return FAIL(p, "%s: --dir is missing", p->verb);
  if (o->verb & WRITERS && !o->to) return FAIL(p, "%s: --to is missing", p->verb);
  if (o->verb == VERB_MARK && o->word && strcmp(o->word, "bad") != 0 &&
      strcmp(o->word, "good") != 0)
    return FAIL(p, "mark: '%s' is neither bad nor good", o->word);
  if (o->verb == VERB_RM && !o->name && !o->all)
    return FAIL(p, "rm: which NAME? (--all: every checkpoint, the newest too)");
  if (o->verb == VERB_RM && o->name && o->all) return FAIL(p, "rm: either NAME or --all, not both");
  if (o->verb == VERB_GC && o->remove_run && !o->yes && !o->dry_run)
    return FAIL(p,
                "gc --remove-run removes every checkpoint of %s; if that is meant: --yes (to "
                "look first: --dry-run)",
                o->uri);
  if (o->remove && o->remove_run) return FAIL(p, "gc: --remove or --remove-run, not both");
  if (o->yes && !o->remove_run) return FAIL(p, "gc: --yes goes with --remove-run");
  if (p->ranked != (o->world > 0)) return FAIL(p, "%s: --rank and --world go together", p->verb);
  if (o->world > 0 && o->rank >= o->world)
    return FAIL(p, "%s: --rank %u of --world %u: ranks count from 0", p->verb, o->rank, o->world);
  if (o->settings.count > 0 && !options_policies(o))
    return FAIL(p, "--option: -p builtin has no options");
  return 0;
}

int options_parse(options *o, unsigned verb, int argc, char **argv, char error[OPTIONS_ERROR_MAX]) {
  *o = (options){.verb = verb, .grace_s = 30, .rank_wait_s = 600};
  parser p = {.o = o, .verb = argv[0], .error = error};
  *error = 0;
  if (parse_options(&p, argc, argv) != 0) return -1;
  if (o->help) return 0;
  if (!(verb & COMMANDS)) {
    if (take_words(&p, argc - optind, argv + optind) != 0) return -1;
    return check(&p);
  }
  if (check(&p) != 0) return -1;
  if (optind >= argc || !*argv[optind])
    return verb == VERB_RUN
               ? FAIL(&p, "run: which command? ckpt-lua run --dir DIR --to URI -- COMMAND...")
               : FAIL(&p, "exec: which FILE? ckpt-lua exec FILE [ARGS...]");
  o->command = argv + optind;
  return 0;
}

void options_help(FILE *out, unsigned verb) {
  for (size_t i = 0; i < SPECS; i++) {
    const struct spec *s = &specs[i];
    char left[64], letter[8] = "    ";
    if (!(s->verbs & verb)) continue;
    if (s->letter) snprintf(letter, sizeof letter, "-%c%s", s->letter, s->name ? ", " : "");
    snprintf(left, sizeof left, "%s%s%s%s%s", letter, s->name ? "--" : "", s->name ? s->name : "",
             s->value ? " " : "", s->value ? s->value : "");
    fprintf(out, "  %-28s %s\n", left, s->help);
  }
}
