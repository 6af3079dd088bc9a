#include "options.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt.h"

enum option_id {
  OPT_DIR,
  OPT_TO,
  OPT_STATE,
  OPT_RUN,
  OPT_CONTINUE_RUN,
  OPT_TAKE_OVER,
  OPT_LAUNCH_ID,
  OPT_RESTORE,
  OPT_RESUME_ARG,
  OPT_UNIT,
  OPT_EXCLUDE,
  OPT_MARKER,
  OPT_QUIET,
  OPT_POLL,
  OPT_GRACE,
  OPT_USR1,
  OPT_REQUIRE_COMMIT,
  OPT_ON_FENCED,
  OPT_INTO,
  OPT_JSON,
  OPT_LESS,
  OPT_MORE,
  OPT_HELP
};

enum { BOTH = VERB_RUN | VERB_WATCH, LISTS = VERB_RESTORE | VERB_LS | VERB_VERIFY };
enum { ALL = BOTH | LISTS | VERB_VERSION | VERB_HELP };

static const struct spec {
  enum option_id id;
  const char *name; /* NULL: it has a letter only */
  char letter;
  const char *value; /* how the help calls it; NULL: the option takes none */
  unsigned verbs;
  const char *help;
} specs[] = {
    {OPT_DIR, "dir", 0, "DIR", BOTH, "the directory in which the job writes its checkpoints"},
    {OPT_TO, "to", 0, "URI", BOTH, "where they are kept: a path, file://... or mem://..."},
    {OPT_INTO, "dir", 0, "DIR", VERB_RESTORE, "where to put it; nothing there is replaced"},
    {OPT_STATE, "state", 0, "DIR", BOTH, "for our own files (default: DIR.ckpt beside DIR)"},
    {OPT_RUN, "run", 0, "ID", BOTH, "name of the run (default: made of command and DIR)"},
    {OPT_CONTINUE_RUN, "continue-run", 0, NULL, BOTH, "go on in a target of another run"},
    {OPT_TAKE_OVER, "take-over", 0, NULL, BOTH, "push a writer aside that may be alive"},
    {OPT_LAUNCH_ID, "launch-id", 0, "ID", BOTH,
     "names this launch; the same ID takes over at once"},
    {OPT_RESTORE, "restore", 0, "WHAT", VERB_RUN,
     "auto (default), never, required, or a checkpoint: NAME or URI"},
    {OPT_RESUME_ARG, "resume-arg", 0, "'STR {}'", VERB_RUN,
     "added to COMMAND when there is a checkpoint; {} is its path"},
    {OPT_UNIT, "unit", 0, "GLOB", BOTH,
     "what one checkpoint is, e.g. 'checkpoint-{step}/'; repeatable"},
    {OPT_EXCLUDE, "exclude", 0, "GLOB", BOTH, "files that are no part of one; repeatable"},
    {OPT_MARKER, "marker", 0, "NAME", BOTH, "a file that each complete one has; repeatable"},
    {OPT_QUIET, "quiet", 0, "SECONDS", BOTH, "closed files count after this rest (default: 30)"},
    {OPT_POLL, "poll", 0, NULL, BOTH, "list DIR now and then; do not trust inotify"},
    {OPT_GRACE, "grace", 0, "SECONDS", BOTH, "time from a signal to the end (default: 30)"},
    {OPT_USR1, "usr1", 0, NULL, VERB_RUN,
     "SIGUSR1 is a warning too: pass it on; it starts no grace"},
    {OPT_REQUIRE_COMMIT, "require-commit", 0, NULL, VERB_RUN, "exit 4 if this run saved nothing"},
    {OPT_ON_FENCED, "on-fenced", 0, "WHAT", VERB_RUN,
     "a newer run writes here: stop (default) or detach (go on unsaved)"},
    {OPT_JSON, "json", 0, NULL, LISTS | VERB_VERSION, "one JSON object for each line"},
    {OPT_LESS, NULL, 'q', NULL, ALL, "errors and the last line only"},
    {OPT_MORE, "verbose", 'v', NULL, ALL, "say more"},
    {OPT_HELP, "help", 'h', NULL, ALL, "this text"},
};
enum { SPECS = sizeof specs / sizeof *specs };

bool word_list_add(word_list *list, const char *word) {
  char **items = realloc(list->items, (list->count + 2) * sizeof *items);
  if (!items) return false;
  list->items = items;
  items[list->count] = strdup(word);
  items[list->count + 1] = NULL;
  return items[list->count++] != NULL;
}

void word_list_free(word_list *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i]);
  free(list->items);
  *list = (word_list){0};
}

void options_free(options *o) {
  word_list_free(&o->units);
  word_list_free(&o->excludes);
  word_list_free(&o->markers);
}

/* ---- words ---- */

int options_words(word_list *out, const char *text, const char *path) {
  char *word = NULL;
  size_t room = 0;
  char quote = 0;
  FILE *f = NULL; /* the word that is being read */
  int rc = 0;
  for (const char *p = text; rc == 0; p++) {
    bool blank = *p == ' ' || *p == '\t' || *p == '\n';
    if (*p == 0 && quote) {
      rc = -1;
    } else if (*p == 0 || (blank && !quote)) {
      if (f) {
        bool whole = fclose(f) == 0;
        if (!whole || !word_list_add(out, word)) rc = -2;
        free(word);
        f = NULL;
        word = NULL;
      }
      if (*p == 0) break;
    } else {
      if (!f) f = open_memstream(&word, &room);
      if (!f)
        rc = -2;
      else if (*p == quote)
        quote = 0;
      else if (!quote && (*p == '\'' || *p == '"'))
        quote = *p;
      else if (p[0] == '{' && p[1] == '}')
        fputs(path, f), p++;
      else if (*p == '\\' && p[1] && (!quote || (quote == '"' && (p[1] == '"' || p[1] == '\\'))))
        fputc(*++p, f);
      else
        fputc(*p, f);
    }
  }
  if (f) {
    fclose(f);
    free(word);
  }
  return rc;
}

/* ---- did you mean ---- */

/* The edit distance between two words, at most WORD_MAX characters of each. */
static size_t distance(const char *a, const char *b) {
  enum { WORD_MAX = 31 };
  size_t row[WORD_MAX + 1];
  size_t n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);
  for (size_t j = 0; j <= m; j++) row[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t best = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[m];
}

const char *options_nearest(const char *word, const char *const *words, size_t count) {
  const char *nearest = NULL;
  size_t best = 3; /* further away it would be a guess */
  for (size_t i = 0; i < count; i++) {
    size_t d = distance(word, words[i]);
    if (d < best && d < strlen(words[i])) {
      best = d;
      nearest = words[i];
    }
  }
  return nearest;
}

/* ---- parsing ---- */

typedef struct parser {
  options *o;
  const char *verb;
  char *error;
} parser;

#define FAIL(p, ...) (snprintf((p)->error, OPTIONS_ERROR_MAX, __VA_ARGS__), -1)

/* "2.5", "30s", "5m", "1h". */
static int take_seconds(parser *p, const char *name, const char *text, double *out) {
  char *end;
  double value = strtod(text, &end);
  double unit = 1;
  if (end != text && *end && !end[1]) {
    unit = *end == 's' ? 1 : *end == 'm' ? 60 : *end == 'h' ? 3600 : 0;
    end++;
  }
  if (end == text || *end || unit == 0 || !isfinite(value) || value < 0 || value * unit > 1e9)
    return FAIL(p, "--%s: '%s' is no number of seconds", name, text);
  *out = value * unit;
  return 0;
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
  int rc = options_words(&words, text, "");
  word_list_free(&words);
  p->o->resume_arg = text;
  return rc == 0 ? 0 : FAIL(p, rc == -1 ? "--resume-arg: a quote is not closed" : "out of memory");
}

static int take(parser *p, const struct spec *spec, const char *value) {
  options *o = p->o;
  /* --dir "$UNSET" is a mistake that would otherwise end somewhere else. */
  if (spec->value && !*value) return FAIL(p, "--%s: the value is empty", spec->name);
  switch (spec->id) {
  case OPT_DIR:
  case OPT_INTO: o->dir = value; break;
  case OPT_TO: o->to = value; break;
  case OPT_STATE: o->state = value; break;
  case OPT_RUN: o->run_id = value; break;
  case OPT_CONTINUE_RUN: o->continue_run = true; break;
  case OPT_TAKE_OVER: o->take_over = true; break;
  case OPT_LAUNCH_ID: o->launch = value; break;
  case OPT_RESTORE: return take_restore(p, value);
  case OPT_RESUME_ARG: return take_resume_arg(p, value);
  case OPT_UNIT: return take_word(p, &o->units, value);
  case OPT_EXCLUDE: return take_word(p, &o->excludes, value);
  case OPT_MARKER: return take_word(p, &o->markers, value);
  case OPT_QUIET:
    if (take_seconds(p, spec->name, value, &o->quiet_s) != 0) return -1;
    if (o->quiet_s == 0) o->quiet_s = -1; /* 0 means the default to the engine */
    break;
  case OPT_POLL: o->poll = true; break;
  case OPT_GRACE: return take_seconds(p, spec->name, value, &o->grace_s);
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
  const char *near = options_nearest(word, names, count);
  if (near) return FAIL(p, "%s: unknown option '--%s'; did you mean --%s?", p->verb, word, near);
  return FAIL(p, "%s: unknown option '--%s'; see: ckpt-lua help %s", p->verb, word, p->verb);
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

static int parse_options(parser *p, int argc, char **argv) {
  enum { FIRST = 256 }; /* above every letter */
  struct option longs[SPECS + 1];
  long_options(p->o->verb, FIRST, longs);
  /* Of `run` the first word that is no option begins the command, whose options are its own. */
  const char *letters = p->o->verb == VERB_RUN ? "+:hqv" : ":hqv";
  opterr = 0;
  optind = 0; /* also starts glibc's getopt anew */
  while (!p->o->help) {
    int c = getopt_long(argc, argv, letters, longs, NULL);
    if (c == -1) break;
    if (c == ':') return FAIL(p, "%s: %s needs a value", p->verb, argv[optind - 1]);
    if (c == '?') return unknown(p, optopt > 0 && optopt < FIRST ? NULL : argv[optind - 1]);
    const struct spec *spec = NULL;
    for (int i = 0; i < SPECS && !spec; i++)
      if (c == FIRST + i || (c < FIRST && c == specs[i].letter)) spec = &specs[i];
    if (!spec) return FAIL(p, "%s: unknown option", p->verb);
    if (c >= FIRST) {
      const char *typed = argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
      if (abbreviated(typed, spec)) return unknown(p, typed);
    }
    if (take(p, spec, optarg ? optarg : "") != 0) return -1;
  }
  return 0;
}

static int take_positionals(parser *p, int count, char **words) {
  options *o = p->o;
  int least = o->verb & LISTS ? 1 : 0;
  int most = o->verb & (VERB_RESTORE | VERB_VERIFY) ? 2 : o->verb & (VERB_LS | VERB_HELP) ? 1 : 0;
  if (count < least) return FAIL(p, "%s: which URI? See: ckpt-lua help %s", p->verb, p->verb);
  if (count > most)
    return FAIL(p, "%s: '%s' is one word too many; see: ckpt-lua help %s", p->verb, words[most],
                p->verb);
  for (int i = 0; i < count; i++)
    if (!*words[i]) return FAIL(p, "%s: an argument is empty", p->verb);
  if (o->verb == VERB_HELP)
    o->name = count > 0 ? words[0] : NULL;
  else {
    o->uri = count > 0 ? words[0] : NULL;
    o->name = count > 1 ? words[1] : NULL;
  }
  return 0;
}

int options_parse(options *o, unsigned verb, int argc, char **argv, char error[OPTIONS_ERROR_MAX]) {
  *o = (options){.verb = verb, .grace_s = 30};
  parser p = {.o = o, .verb = argv[0], .error = error};
  *error = 0;
  if (parse_options(&p, argc, argv) != 0) return -1;
  if (o->help) return 0;
  if (verb & (BOTH | VERB_RESTORE) && !o->dir) return FAIL(&p, "%s: --dir is missing", p.verb);
  if (verb & BOTH && !o->to) return FAIL(&p, "%s: --to is missing", p.verb);
  if (verb != VERB_RUN) return take_positionals(&p, argc - optind, argv + optind);
  if (optind >= argc || !*argv[optind])
    return FAIL(&p, "run: which command? ckpt-lua run --dir DIR --to URI -- COMMAND...");
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
