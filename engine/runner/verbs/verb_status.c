/* `status`: shows how a run stands: asks the run itself while it is alive, else reads the outcome
 * that it left. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "exit_json.h"
#include "runner/job/ask.h"
#include "verbs.h"

static int print_last(const options *o, const ckpt_place *place, const char *nobody) {
  char *path = NULL, *text = NULL;
  if (*place->state && asprintf(&path, "%s/exit.json", place->state) < 0) path = NULL;
  if (path) text = exit_json_read(path);
  int code = EXIT_DONE;
  if (!text) {
    report_error("%s%s%s%s", nobody, path ? ", and no run has ended there: " : "", path ? path : "",
                 path && errno != ENOENT ? " cannot be read" : "");
    code = EXIT_NOTHING;
  } else if (o->json) {
    text_json_printed(stdout, text);
  } else {
    json_t *last = NULL;
    js_parse(text, strlen(text), "exit.json", &last, NULL);
    const char *summary = json_string_value(json_object_get(last, "summary"));
    const char *target = json_string_value(json_object_get(last, "target"));
    fputs("no run is alive; the last one ended with: ", stdout);
    text_plain(stdout, summary ? summary : text);
    fputc('\n', stdout);
    if (target) text_member(stdout, "target", target);
    json_decref(last);
  }
  free(text);
  free(path);
  return code;
}

static bool has_ended(const ckpt_place *place) {
  char *path = NULL;
  bool there = asprintf(&path, "%s/exit.json", place->state) >= 0 && access(path, F_OK) == 0;
  free(path);
  return there;
}

/* True if somebody holds the lock, and nobody listens yet. A run that has written its outcome is
 * only letting go. */
static bool is_starting(const ckpt_place *place) {
  return place->held && (*place->waits || !has_ended(place));
}

static int print_starting(const options *o, const ckpt_place *place) {
  if (o->json) { /* "alive" tells who answers */
    record r = record_begin(stdout);
    record_bool(&r, "starting", true);
    record_text(&r, "waits", place->waits);
    record_end_line(&r);
    return EXIT_DONE;
  }
  text_member(stdout, "state", place->state);
  fputs("starting   ", stdout);
  if (*place->waits) fputs("waits for ", stdout);
  text_plain(stdout, *place->waits ? place->waits : "the run is alive, and does not listen yet");
  fputc('\n', stdout);
  return EXIT_DONE;
}

/* Outside of a job nothing says which run is meant. */
static bool names_a_run(const options *o) {
  const char *socket = getenv("CKPT_SOCKET");
  return o->dir || o->state || (socket && *socket);
}

static int run(const options *o) {
  ckpt_place place;
  char error[ASK_ERROR_MAX];
  if (!names_a_run(o)) {
    report_error("status: DIR is missing, and this is no part of a job (CKPT_SOCKET is not set); "
                 "usage: ckpt-lua %s",
                 verb_status.synopsis);
    return EXIT_NOTHING;
  }
  ask_result result = ask_find(o, &place, error);
  if (result == ASK_DONE)
    result = ask_question(place.socket, "status", NULL, o->json, stdout, error);
  if (result == ASK_NOBODY && is_starting(&place)) return command_end(print_starting(o, &place));
  if (result == ASK_NOBODY && (o->dir || o->state || *place.socket))
    return command_end(print_last(o, &place, error));
  if (result != ASK_DONE) report_error("%s", error);
  return command_end(ask_exit_code(result));
}

static const char help[] =
    "The run that watches DIR; inside of a job its own. Exit code: 4 there was none.\n";

const verb verb_status = {
    .name = "status",
    .synopsis = "status [DIR] [options]",
    .summary = "say how a run stands, or how the last one ended",
    .text = help,
    .options = (const option_spec *const[]){&ask_dir, &ask_state, &option_json, NULL},
    .words = {0, 1, NULL, {OF(dir)}, 0, false},
    .run = run,
};
