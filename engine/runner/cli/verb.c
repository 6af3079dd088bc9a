#include "verb.h"

#include <getopt.h>
#include <string.h>

#include "durations.h"
#include "run_flags.h"
#include "words.h"

/* All options of a verb, in the order of its help. */
enum { SPECS_MOST = RUN_FLAGS_MOST + 16 };

typedef struct spec_list {
  const option_spec *items[SPECS_MOST];
  size_t count;
} spec_list;

static void list_specs(const verb *v, spec_list *out) {
  out->count = 0;
  for (const option_spec *s = run_flags; s->takers; s++)
    if (s->takers & v->flags) out->items[out->count++] = s;
  for (const option_spec *const *s = v->options; s && *s; s++) out->items[out->count++] = *s;
  for (size_t i = 0; i < OPTIONS_COMMON; i++) out->items[out->count++] = &options_common[i];
}

void verb_list_options(const verb *v, FILE *out) {
  spec_list specs;
  list_specs(v, &specs);
  for (size_t i = 0; i < specs.count; i++) {
    const option_spec *s = specs.items[i];
    char left[64], letter[8] = "    ";
    if (s->letter) snprintf(letter, sizeof letter, "-%c%s", s->letter, s->name ? ", " : "");
    snprintf(left, sizeof left, "%s%s%s%s%s", letter, s->name ? "--" : "", s->name ? s->name : "",
             s->value ? " " : "", s->value ? s->value : "");
    fprintf(out, "  %-28s %s\n", left, s->help);
  }
}

const verb *verb_sub(const verb *v, const char *word) {
  size_t own = strlen(v->name) + 1;
  for (const verb *const *s = v->subs; s && *s; s++)
    if (strcmp((*s)->name + own, word) == 0) return *s;
  return NULL;
}

/* ---- options ---- */

typedef struct parser {
  const verb *verb;
  spec_list specs;
  options *o;
  char *error;
} parser;

#define FAIL(p, ...) OPTIONS_FAIL((p)->error, __VA_ARGS__)

static bool rests(const parser *p) {
  for (size_t i = 0; i < p->specs.count; i++)
    if (p->specs.items[i]->name && strcmp(p->specs.items[i]->name, "settle") == 0) return true;
  return false;
}

/* It was the rest time of files in 1.0, and is the long form of -q now, as everywhere else. */
static int quiet_with(parser *p, const char *time) {
  return FAIL(p, "%s: --quiet is -q, and takes no time; the rest time of files is --settle %s",
              p->verb->name, time);
}

/* `typed`: the whole argument; NULL: the letter in optopt, perhaps one of several after a dash. */
static int unknown(parser *p, const char *typed) {
  const char *names[SPECS_MOST], *verb = p->verb->name;
  size_t count = 0;
  char word[64];
  if (!typed) return FAIL(p, "%s: unknown option '-%c'; see: ckpt-lua help %s", verb, optopt, verb);
  snprintf(word, sizeof word, "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
  for (size_t i = 0; i < p->specs.count; i++) {
    const char *name = p->specs.items[i]->name;
    if (!name) continue;
    if (strcmp(name, word) == 0 && strcmp(name, "quiet") == 0 && rests(p))
      return quiet_with(p, strchr(typed, '=') + 1);
    if (strcmp(name, word) == 0) /* it is known, so its value is wrong */
      return FAIL(p, "%s: --%s takes no value", verb, word);
    names[count++] = name;
  }
  const char *near = words_nearest(word, names, count);
  if (near) return FAIL(p, "%s: unknown option '--%s'; did you mean --%s?", verb, word, near);
  return FAIL(p, "%s: unknown option '--%s'; see: ckpt-lua help %s", verb, word, verb);
}

/* True for an abbreviation: getopt takes "--res" for "--restore" as long as nothing else begins so.
 * A script that uses it would break with the next option that we add. */
static bool abbreviated(const char *typed, const option_spec *spec) {
  size_t n = strlen(spec->name);
  return strncmp(typed + 2, spec->name, n) != 0 || (typed[2 + n] && typed[2 + n] != '=');
}

enum { FIRST = 256 }; /* what getopt returns for the first option: above every letter */

static void long_options(const spec_list *specs, struct option *longs) {
  for (size_t i = 0; i < specs->count; i++) {
    const option_spec *s = specs->items[i];
    if (s->name)
      *longs++ = (struct option){s->name, s->value ? required_argument : no_argument, NULL,
                                 FIRST + (int)i};
  }
  *longs = (struct option){0};
}

/* Makes the list of letters. "+" is for a command of its own: the first word that is no option
 * begins it. ":" tells a missing value from an unknown option. */
static void short_options(const parser *p, char letters[2 * SPECS_MOST + 3]) {
  if (p->verb->words.command) *letters++ = '+';
  *letters++ = ':';
  for (size_t i = 0; i < p->specs.count; i++) {
    const option_spec *s = p->specs.items[i];
    if (!s->letter) continue;
    *letters++ = s->letter;
    if (s->value) *letters++ = ':';
  }
  *letters = 0;
}

static const option_spec *find_spec(const spec_list *specs, int c) {
  if (c >= FIRST) return specs->items[c - FIRST];
  for (size_t i = 0; i < specs->count; i++)
    if (c == specs->items[i]->letter) return specs->items[i];
  return NULL;
}

static int take(parser *p, const option_spec *spec, const char *value) {
  /* --dir "$UNSET" is a mistake that would otherwise end somewhere else. */
  if (spec->value && !*value) return FAIL(p, "--%s: the value is empty", spec->name);
  return spec->take(p->o, spec, value, p->error);
}

static int parse_options(parser *p, int argc, char **argv) {
  struct option longs[SPECS_MOST + 1];
  char letters[2 * SPECS_MOST + 3];
  long_options(&p->specs, longs);
  short_options(p, letters);
  opterr = 0;
  optind = 0; /* also starts glibc's getopt anew */
  while (!p->o->help) {
    int c = getopt_long(argc, argv, letters, longs, NULL);
    if (c == -1) break;
    if (c == ':') return FAIL(p, "%s: %s needs a value", p->verb->name, argv[optind - 1]);
    /* A letter is a char, which may be negative; within a cluster of letters the word before stands
     * at optind - 1. */
    if (c == '?') return unknown(p, optopt != 0 && optopt < FIRST ? NULL : argv[optind - 1]);
    const option_spec *spec = find_spec(&p->specs, c);
    if (!spec) return FAIL(p, "%s: unknown option", p->verb->name);
    if (c >= FIRST) {
      const char *typed = argv[optind - (optarg && optarg == argv[optind - 1] ? 2 : 1)];
      if (abbreviated(typed, spec)) return unknown(p, typed);
    }
    double seconds;
    bool quiet = spec->name && strcmp(spec->name, "quiet") == 0 && c >= FIRST;
    if (quiet && rests(p) && optind < argc && duration_read(argv[optind], &seconds))
      return quiet_with(p, argv[optind]);
    if (take(p, spec, optarg ? optarg : "") != 0) return -1;
  }
  return 0;
}

/* ---- words ---- */

static int take_words(parser *p, int count, char **words) {
  const verb *v = p->verb;
  int placed = 0;
  if (count < v->words.least)
    return FAIL(p, "%s: which %s? See: ckpt-lua help %s", v->name, v->words.missing, v->name);
  if (count > v->words.most)
    return FAIL(p, "%s: '%s' is one word too many; see: ckpt-lua help %s", v->name,
                words[v->words.most], v->name);
  /* A command's own words may be empty. */
  int ours = v->words.rest == OF(command) && count > 2 ? 2 : count;
  for (int i = 0; i < ours; i++)
    if (!*words[i]) return FAIL(p, "%s: an argument is empty", v->name);
  for (; placed < count && placed < VERB_WORDS && v->words.at[placed]; placed++) {
    const char **member = (const char **)((char *)p->o + v->words.at[placed]);
    if (*member) /* an option has set it */
      return FAIL(p, "%s: DIR is given twice, as %s and as %s", v->name, *member, words[placed]);
    *member = words[placed];
  }
  if (v->words.rest && placed < count) *(char ***)((char *)p->o + v->words.rest) = words + placed;
  return 0;
}

/* Names what lacks in the words of the usage: DIR is one of the words of some verbs. */
static int say_missing(parser *p, const option_spec *s) {
  const verb *v = p->verb;
  if (v->words.at[0] == s->at)
    return FAIL(p, "%s: %s is missing; usage: ckpt-lua %s", v->name, s->value, v->synopsis);
  return FAIL(p, "%s: --%s is missing; usage: ckpt-lua %s", v->name, s->name, v->synopsis);
}

/* Checks rules over several options. */
static int check(parser *p) {
  const options *o = p->o;
  const char *name = p->verb->name;
  for (size_t i = 0; i < p->specs.count; i++) {
    const option_spec *s = p->specs.items[i];
    if (s->needed && !*(const char **)option_member(p->o, s)) return say_missing(p, s);
  }
  if (p->verb->check && p->verb->check(o, p->error) != 0) return -1;
  if (o->ranked != (o->run.world > 0)) return FAIL(p, "%s: --rank and --world go together", name);
  if (o->run.world > 0 && o->run.rank >= o->run.world)
    return FAIL(p, "%s: --rank %u of --world %u: ranks count from 0", name, o->run.rank,
                o->run.world);
  if (o->run.settings && !options_policies(o))
    return FAIL(p, "--option: -p builtin has no options");
  return 0;
}

int verb_parse(const verb *v, options *o, int argc, char **argv, char error[OPTIONS_ERROR_MAX]) {
  parser p = {.verb = v, .o = o, .error = error};
  *o = (options){0};
  *error = 0;
  list_specs(v, &p.specs);
  for (size_t i = 0; i < p.specs.count; i++)
    if (p.specs.items[i]->initial > 0)
      *(double *)option_member(o, p.specs.items[i]) = p.specs.items[i]->initial;
  if (parse_options(&p, argc, argv) != 0) return -1;
  if (o->help) return 0;
  if (!v->words.command) {
    if (take_words(&p, argc - optind, argv + optind) != 0) return -1;
    return check(&p);
  }
  if (check(&p) != 0) return -1;
  if (optind >= argc || !*argv[optind]) return FAIL(&p, "%s: which %s", v->name, v->words.missing);
  o->command = argv + optind;
  return 0;
}
