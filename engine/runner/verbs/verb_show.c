/* `show`: shows everything that is known of one checkpoint. */
#include <string.h>

#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "links.h"
#include "verbs.h"

static void member(FILE *f, const char *key, const char *value) {
  if (value && *value) text_member(f, key, value);
}

/* Which one was shown, for a second question. */
struct shown {
  char name[8192];
};

/* What the job that failed from it said last. */
static void show_lines(FILE *f, const char *lines) {
  for (const char *at = lines; at && *at; at += *at == '\n') {
    size_t len = strcspn(at, "\n");
    char line[300];
    snprintf(line, sizeof line, "%.*s", (int)len, at);
    fputs(at == lines ? "it said    " : "           ", f);
    text_plain(f, line);
    fputc('\n', f);
    at += len;
  }
}

static void show_need(void *ctx, const char *name) {
  FILE *f = ctx;
  fputs("needs      ", f);
  text_plain(f, name);
  fputc('\n', f);
}

static void write_item(FILE *f, const ckpt_item *item, void *ctx) {
  struct shown *s = ctx;
  const char *group = item->group ? item->group : "";
  snprintf(s->name, sizeof s->name, "%s%s%s", group, *group ? "/" : "", item->dir);
  fputs("checkpoint ", f);
  item_name(f, item);
  fputc('\n', f);
  if (item->dir && item->name && strcmp(item->dir, item->name) != 0)
    member(f, "saved as", item->name);
  if (item->step >= 0) fprintf(f, "step       %lld\n", (long long)item->step);
  fprintf(f, "files      %llu, ", (unsigned long long)item->files);
  text_size(f, item->bytes);
  fputc('\n', f);
  if (item->left_out)
    fprintf(f, "left out   %llu file%s, by excludes%s: a restore does not bring %s back\n",
            (unsigned long long)item->left_out, item->left_out == 1 ? "" : "s",
            item->thin ? ", or taken since newer ones are there" : "",
            item->left_out == 1 ? "it" : "them");
  item_each_need(item, show_need, f);
  fputs("committed  ", f);
  text_time(f, item->time_ns);
  fputs(", ", f);
  text_age(f, (double)(command_wall_ns() - item->time_ns) / 1e9, 0);
  fprintf(f, " ago, entry %llu of the log\n", (unsigned long long)item->number);
  if (item->bad)
    member(f, "bad", item->bad_reason && *item->bad_reason ? item->bad_reason : "no reason given");
  show_lines(f, item->bad_lines);
  member(f, "policy", item->policy);
  member(f, "reason", item->reason);
  member(f, "metrics", item->metrics);
  member(f, "root", item->root);
  member(f, "uri", item->uri);
}

/* Shows as --json everything that log and manifest say, each file included. */
static int show_json(const options *o) {
  ckpt *engine = NULL;
  const char *json = NULL;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_show(engine, o->uri, o->name, &json);
  if (rc >= 0) {
    text_json_printed(stdout, json);
    fputc('\n', stdout);
  }
  return command_close(engine, rc, EXIT_DONE);
}

/* Names the first of what is left out; manifests of older versions have no names. */
static void show_left_out(const json_t *json) {
  const json_t *list = json_object_get(json, "left_names"), *item;
  const json_int_t all = json_integer_value(json_object_get(json, "left_out"));
  const json_int_t more = all - (json_int_t)json_array_size(list);
  size_t i;
  json_array_foreach(list, i, item) {
    fputs("left out   ", stdout);
    text_plain(stdout, json_string_value(item) ? json_string_value(item) : "");
    fputc('\n', stdout);
  }
  if (i > 0 && more > 0) printf("left out   and %lld more\n", (long long)more);
}

/* Says by whom, and why. */
static void show_taken(const json_t *json) {
  const json_t *taken = json_object_get(json, "taken");
  const char *policy = json_string_value(json_object_get(taken, "policy"));
  const char *reason = json_string_value(json_object_get(taken, "reason"));
  if (!policy && !reason) return;
  fputs("taken      by ", stdout);
  text_plain(stdout, policy ? policy : "a policy that is not known");
  if (reason) fputs(": ", stdout);
  if (reason) text_plain(stdout, reason);
  fputc('\n', stdout);
}

/* Names what only the manifest knows: what is left out, and its links that lead out. */
static int show_rest(const options *o, const char *name) {
  ckpt *engine = NULL;
  const char *text = NULL;
  json_t *json = NULL;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_show(engine, o->uri, name, &text);
  if (rc == 0 && js_parse_large(text, strlen(text), "the checkpoint", &json, NULL) == 0) {
    const json_t *links = json_object_get(json, "links");
    show_left_out(json);
    show_taken(json);
    links_write(stdout, "link       ", links, json_array_size(links));
  }
  json_decref(json);
  return command_close(engine, rc, EXIT_DONE);
}

static int run(const options *o) {
  struct shown s;
  if (o->json) return show_json(o);
  int code = command_newest(o, write_item, &s);
  return code == EXIT_DONE ? show_rest(o, s.name) : code;
}

static const char help[] =
    "Without NAME the newest. With --json each of its files too. Exit code: 4 there is none.\n";

const verb verb_show = {
    .name = "show",
    .synopsis = "show URI [NAME] [options]",
    .summary = "tell all about one checkpoint: who wanted it saved, why, its metrics",
    .text = help,
    .options = (const option_spec *const[]){&option_json, NULL},
    .words = {1, 2, "URI", {OF(uri), OF(name)}, 0, false},
    .run = run,
};
