/* `notify`: tells the run that watches this job something, from inside the job or beside it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/clock.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "runner/job/ask.h"
#include "verbs.h"

/* True for a number as JSON has it; other forms that C reads (0x10, inf, 1., +1, 01) stay texts. */
static bool is_number(const char *text) {
  const char *p = text + (*text == '-');
  size_t whole = strspn(p, "0123456789");
  if (whole == 0 || (whole > 1 && *p == '0')) return false;
  p += whole;
  if (*p == '.') {
    size_t digits = strspn(p + 1, "0123456789");
    if (digits == 0) return false;
    p += 1 + digits;
  }
  if (*p == 'e' || *p == 'E') {
    p += 1 + (p[1] == '-' || p[1] == '+');
    size_t digits = strspn(p, "0123456789");
    if (digits == 0) return false;
    p += digits;
  }
  /* 1e999 is a number to the letter, and to no reader. */
  return *p == 0 && isfinite(strtod(text, NULL));
}

/* Python prints nan and inf, its json NaN and Infinity. */
static const char *no_number(const char *text) {
  static const char *const names[][2] = {{"nan", "NaN"},        {"NaN", "NaN"},
                                         {"inf", "Infinity"},   {"Infinity", "Infinity"},
                                         {"-inf", "-Infinity"}, {"-Infinity", "-Infinity"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(text, names[i][0]) == 0) return names[i][1];
  return NULL;
}

static void write_value(FILE *f, const char *value) {
  if (no_number(value)) value = no_number(value);
  if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0 || is_number(value))
    fputs(value, f);
  else
    text_json(f, value);
}

/* Writes KEY=VALUE ... as one JSON object. Returns the exit code of a fault in it, after it said
 * that. */
static int write_pairs(FILE *f, char **words) {
  fputc('{', f);
  for (char **w = words; *w; w++) {
    const char *equals = strchr(*w, '=');
    if (!equals || equals == *w) {
      report_error("notify: '%s' is not KEY=VALUE, e.g. loss=0.2", *w);
      return EXIT_USAGE;
    }
    for (char **other = words; other < w; other++)
      if (strncmp(*other, *w, (size_t)(equals - *w) + 1) == 0) {
        report_error("notify: %.*s is given twice", (int)(equals - *w), *w);
        return EXIT_USAGE;
      }
    char *key = strndup(*w, (size_t)(equals - *w));
    if (!key) return EXIT_FAILED;
    if (w > words) fputc(',', f);
    text_json(f, key);
    fputc(':', f);
    write_value(f, equals + 1);
    free(key);
  }
  fputc('}', f);
  return EXIT_DONE;
}

/* Writes one word that begins with a brace as it stands: the run says what is wrong with it. But a
 * line's end would make two of it. */
static int write_json(FILE *f, const char *text) {
  for (const char *p = text; *p; p++) fputc(*p == '\n' || *p == '\r' ? ' ' : *p, f);
  return EXIT_DONE;
}

static const char *value_of(char **words, const char *key) {
  size_t n = strlen(key);
  for (; *words; words++)
    if (strncmp(*words, key, n) == 0 && (*words)[n] == '=') return *words + n + 1;
  return NULL;
}

/* ---- --wait ---- */

/* Asks again and again, less and less often. The run ends only when all is saved or given up; by
 * then it cannot be asked any more. */
static int wait_until_saved(const char *socket, const char *name) {
  char error[ASK_ERROR_MAX];
  for (double pause = 0.05;; pause = pause < 1 ? pause * 1.5 : 1) {
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return EXIT_FAILED;
    ask_result result = ask_question(socket, "wait", name, false, f, error);
    bool whole = fclose(f) == 0;
    if (whole && size > 0 && text[size - 1] == '\n') text[size - 1] = 0;
    bool waiting = result == ASK_DONE && whole && strncmp(text, "waiting: ", 9) == 0;
    bool failed = result == ASK_DONE && whole && strncmp(text, "failed: ", 8) == 0;
    if (failed) report_error("not saved: %s", text + 8);
    free(text);
    if (result != ASK_DONE) {
      report_error("%s", error);
      return ask_exit_code(result);
    }
    if (failed) return EXIT_FAILED;
    if (!waiting) return EXIT_DONE;
    clock_pause(pause);
  }
}

static int run(const options *o) {
  ckpt_place place;
  char error[ASK_ERROR_MAX], *line = NULL;
  size_t size = 0;
  bool json = o->words[0][0] == '{' && !o->words[1];
  ask_result result = ask_find(o, &place, error);
  FILE *f = open_memstream(&line, &size);
  int code = !f ? EXIT_FAILED : json ? write_json(f, o->words[0]) : write_pairs(f, o->words);
  if (f && fclose(f) != 0) code = EXIT_FAILED;
  if (code == EXIT_DONE && result == ASK_DONE) result = ask(place.socket, line, NULL, error);
  free(line);
  if (code == EXIT_DONE && result != ASK_DONE) {
    report_error("%s", error);
    code = ask_exit_code(result);
  }
  if (code == EXIT_DONE && o->wait)
    code = wait_until_saved(place.socket, json ? NULL : value_of(o->words, "checkpoint"));
  return code;
}

static const option_spec opt_wait_saved = {
    "wait", NULL, "return when nothing waits to be saved any more", take_set, .at = OF(wait)};

static const char help[] =
    "Numbers, true and false are sent as such, all else as text. checkpoint=NAME says which\n"
    "checkpoint is meant. The run is that of $CKPT_SOCKET, or of --dir.\n"
    "Exit code: 0 taken (whatever a policy then does with it), 1 refused, or with --wait not\n"
    "saved; 4 no run is alive.\n";

const verb verb_notify = {
    .name = "notify",
    .synopsis = "notify KEY=VALUE... | notify '{\"json\":...}' [options]",
    .summary = "tell the run a result, from inside the job",
    .text = help,
    .options = (const option_spec *const[]){&ask_dir, &ask_state, &opt_wait_saved, NULL},
    .words = {1, 256, "KEY=VALUE", {0}, OF(words), false},
    .run = run,
};
