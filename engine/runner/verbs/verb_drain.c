/* `drain`: has a live run make durable what is complete now, and waits for that; the job goes on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "exit_json.h"
#include "runner/cli/clock.h"
#include "runner/cli/command.h"
#include "runner/cli/record.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "runner/job/ask.h"
#include "verbs.h"

/* Asks, and hands on what is answered; to be freed. */
static ask_result ask_line(const char *socket, const char *line, char **text, char *error) {
  size_t size = 0;
  *text = NULL;
  FILE *f = open_memstream(text, &size);
  ask_result result = f ? ask(socket, line, f, error) : ASK_FAILED;
  if (!f || fclose(f) != 0) {
    snprintf(error, ASK_ERROR_MAX, "out of memory");
    return ASK_FAILED;
  }
  return result;
}

/* A run that is about to end hangs up on who asks it: then nobody is there the next time. */
static ask_result ask_again(const char *socket, const char *line, char **text, char *error) {
  ask_result result = ask_line(socket, line, text, error);
  if (result != ASK_HUNG_UP) return result;
  free(*text);
  clock_pause(0.1);
  return ask_line(socket, line, text, error);
}

/* ---- a run that has ended ---- */

static json_t *read_end(const ckpt_place *place) {
  char *path = NULL, *text = NULL;
  json_t *end = NULL;
  if (*place->state && asprintf(&path, "%s/exit.json", place->state) < 0) path = NULL;
  if (path) text = exit_json_read(path);
  if (text && js_parse(text, strlen(text), "exit.json", &end, NULL) < 0) end = NULL;
  free(text);
  free(path);
  return end;
}

static const char *member(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static void put_word(const options *o, const char *word, const char *status) {
  if (o->json) {
    record r = record_begin(stdout);
    record_text(&r, "drained", word);
    record_text(&r, "status", status);
    record_end_line(&r);
    return;
  }
  fputs("drained    ", stdout);
  for (const char *p = word; *p; p++) fputc(*p == '_' ? ' ' : *p, stdout);
  fputc('\n', stdout);
}

/* At its end a run saves what it can, and says in exit.json how that went. */
static int by_its_end(const options *o, const ckpt_place *place, const char *nobody) {
  json_t *end = read_end(place);
  const char *summary = member(end, "summary"), *standing = member(end, "standing");
  int code = EXIT_DONE;
  if (!summary || !standing) {
    report_error("%s, and it ended without a word on what is durable; ckpt-lua ls lists what the "
                 "target has",
                 nobody);
    put_word(o, "not_durable", "NOENT");
    code = EXIT_NOTHING;
  } else if (strcmp(standing, "not_durable") == 0 || strcmp(standing, "not_proven") == 0) {
    const bool unproven = strcmp(standing, "not_proven") == 0;
    report_error(unproven
                     ? "the run has ended, and nothing proves that the newest checkpoint is whole"
                     : "the run has ended before the newest checkpoint was durable");
    report_last_word("%s", summary);
    put_word(o, standing, unproven ? "OK" : "TIMEOUT");
    code = unproven ? EXIT_PARTIAL : EXIT_DEADLINE;
  } else {
    report_info("the run has ended: %s", summary);
    put_word(o, standing, "OK");
  }
  json_decref(end);
  return code;
}

static int nobody_there(const ckpt_place *place, const char *nobody) {
  json_t *end = read_end(place);
  const char *summary = member(end, "summary");
  report_error("%s%s", nobody, place->held ? ", but one begins, or ends, just now" : "");
  if (summary && !place->held) report_last_word("the last one has ended: %s", summary);
  json_decref(end);
  return EXIT_NOTHING;
}

/* ---- how it stands ---- */

/* Takes the first line of an answer. Returns true if it is over; *code and the error are its own. */
static bool is_over(const options *o, char *text, double took_s, int *code) {
  json_t *head = NULL;
  char *end = strchr(text, '\n');
  if (!end || js_parse(text, (size_t)(end - text), "the answer", &head, NULL) != 0) {
    report_error("the run gave no answer that is understood here: the programs are of different "
                 "versions");
    *code = EXIT_FAILED;
    return true;
  }
  bool over = json_is_true(json_object_get(head, "over"));
  const char *late = json_string_value(json_object_get(head, "late"));
  if (over) {
    *code = (int)json_integer_value(json_object_get(head, "code"));
    fputs(end + 1, stdout);
  }
  const char *status = json_string_value(json_object_get(head, "status"));
  /* What is too late already has no time that could be up. */
  if (over && took_s >= o->drain_s && status && strcmp(status, "TIMEOUT") == 0)
    report_error("time was up (%g s) before it was durable: %s", o->drain_s, late ? late : "?");
  else if (over && *code != EXIT_DONE)
    report_error("not durable: %s", late ? late : "?");
  json_decref(head);
  return over;
}

static int follow(const options *o, const ckpt_place *place, unsigned long long number) {
  const double first_s = 0.05, last_s = 0.5, patience_s = 10, begun = clock_s();
  char line[128], error[ASK_ERROR_MAX], *text;
  int code = EXIT_DONE;
  snprintf(line, sizeof line, "{\"$ckpt\":\"drained\",\"drain\":%llu,\"json\":%s}", number,
           o->json ? "true" : "false");
  for (double pause = first_s;; pause = pause < last_s ? pause * 1.5 : last_s) {
    ask_result result = ask_again(place->socket, line, &text, error);
    const double took_s = clock_s() - begun;
    bool over = result == ASK_DONE && is_over(o, text, took_s, &code);
    free(text);
    if (over) return code;
    if (result == ASK_NOBODY) return by_its_end(o, place, error);
    /* A run that ends, or stands still for a while, has nobody who answers: its end is waited for. */
    if (result != ASK_DONE && (result == ASK_REFUSED || took_s > o->drain_s + patience_s)) {
      report_error("%s", error);
      return EXIT_FAILED;
    }
    clock_pause(pause);
  }
}

/* In the words of the socket, which has whole numbers alone: without end is long enough. */
static long long milliseconds(double seconds) {
  const double most = 1e15;
  return (long long)(seconds * 1000 < most ? seconds * 1000 : most);
}

static int run(const options *o) {
  ckpt_place place;
  char line[64], error[ASK_ERROR_MAX], *text = NULL;
  snprintf(line, sizeof line, "{\"$ckpt\":\"drain\",\"ms\":%lld}", milliseconds(o->drain_s));
  ask_result result = ask_find(o, &place, error);
  if (result == ASK_DONE) result = ask_again(place.socket, line, &text, error);
  unsigned long long number = result == ASK_DONE ? strtoull(text, NULL, 10) : 0;
  free(text);
  if (result == ASK_NOBODY) return nobody_there(&place, error);
  if (result == ASK_DONE) return command_end(follow(o, &place, number));
  report_error("%s", error);
  return EXIT_FAILED;
}

static const option_spec opt_for = {
    "for",        "TIME", "how long it may take (default 30s)", take_time, .at = OF(drain_s),
    .initial = 30};

static const char help[] =
    "The run that watches DIR; inside of a job its own. What is complete now is saved, in the "
    "order\n"
    "in which it was complete, and the job goes on. Exit code: 0 durable, nothing to save, or not\n"
    "wanted; 13 time was up before the newest was durable; 3 nothing proves it whole; 4 no run is\n"
    "alive.\n";

const verb verb_drain = {
    .name = "drain",
    .synopsis = "drain [DIR] [--for TIME] [options]",
    .summary = "make durable what is complete now; the job goes on",
    .text = help,
    .options = (const option_spec *const[]){&ask_dir, &ask_state, &opt_for, &option_json, NULL},
    .words = {0, 1, NULL, {OF(dir)}, 0, false},
    .run = run,
};
