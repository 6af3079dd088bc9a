/* `why`: what became of a checkpoint or a file, and for which one reason it is not in the store. A
 * run that is alive is asked; else its files tell, or the target. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ask.h"
#include "command.h"
#include "report.h"
#include "text.h"
#include "verbs.h"

/* ---- the answer ---- */

/* What was found is told after the cause, which comes last: it is collected. */
typedef struct story {
  FILE *out;
  char *text;
  size_t size;
  bool json;
  unsigned count;
} story;

static int take_finding(void *ctx, const ckpt_finding *f) {
  story *s = ctx;
  if (s->json) {
    fputs(s->count++ ? ",{\"topic\":" : "{\"topic\":", s->out);
    text_json(s->out, f->topic);
    fputs(",\"text\":", s->out);
    text_json(s->out, f->text);
    fputs(",\"time\":", s->out);
    if (f->time_ns) fputc('"', s->out);
    if (f->time_ns) text_time(s->out, f->time_ns);
    fputs(f->time_ns ? "\"}" : "null}", s->out);
    return 0;
  }
  fputs("  ", s->out);
  if (f->time_ns)
    text_time(s->out, f->time_ns);
  else
    fprintf(s->out, "%-20s", "");
  fprintf(s->out, "  %-9s  ", f->topic);
  text_plain(s->out, f->text);
  fputc('\n', s->out);
  return 0;
}

static void print_json(FILE *out, const char *name, const char *cause, const char *text,
                       const char *findings) {
  fputs("{\"name\":", out);
  text_json_name(out, name);
  fputs(",\"cause\":", out);
  text_json(out, cause);
  fputs(",\"text\":", out);
  text_json(out, text);
  fprintf(out, ",\"findings\":[%s]}\n", findings);
}

static void print_text(FILE *out, const char *name, const char *cause, const char *text,
                       const char *findings) {
  text_plain(out, name);
  fprintf(out, ": %s\n  ", cause);
  text_plain(out, text);
  fprintf(out, "\n%s", findings);
}

/* Asks the run, or where there is none the files. */
static int tell(ckpt *engine, ckpt_run *run, const ckpt_why_options *o, bool json, FILE *out) {
  story s = {.json = json};
  const char *cause = "", *text = "";
  s.out = open_memstream(&s.text, &s.size);
  if (!s.out) return CKPT_ENOMEM;
  int rc = run ? ckpt_run_why(run, o->name, take_finding, &s, &cause, &text)
               : ckpt_why(engine, o, take_finding, &s, &cause, &text);
  if (fclose(s.out) != 0 && rc >= 0) rc = CKPT_ENOMEM;
  if (rc >= 0) (json ? print_json : print_text)(out, o->name, cause, text, s.text);
  free(s.text);
  return rc;
}

int why_answer(ckpt_run *run, const char *name, bool json, FILE *out) {
  ckpt_why_options o = {.size = sizeof o, .name = name};
  return tell(NULL, run, &o, json, out);
}

/* ---- the question ---- */

static bool is_there(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0;
}

/* The path with its directory resolved; its last part is what the question is about. NULL: it is
 * not there. */
static char *resolved(const char *name) {
  const char *slash = strrchr(name, '/');
  char *parent = slash ? strndup(name, slash > name ? (size_t)(slash - name) : 1) : strdup(".");
  char *real = parent && is_there(name) ? realpath(parent, NULL) : NULL, *path = NULL;
  const char *base = slash ? slash + 1 : name;
  if (real && asprintf(&path, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base) < 0) path = NULL;
  free(real);
  free(parent);
  return path;
}

/* The run has another working directory: a path that is there, and leads into the watched directory
 * or is clearly none below it, is asked for as a whole. NULL: the name as it stands. */
static char *whole_path(const char *name, const char *dir) {
  char *real = dir ? realpath(dir, NULL) : NULL, *path = resolved(name), *below = NULL;
  size_t len = real ? strlen(real) : 0;
  bool inside = path && real && strncmp(path, real, len) == 0 && (path[len] == '/' || !path[len]);
  if (real && asprintf(&below, "%s/%s", real, name) < 0) below = NULL;
  bool outside = !inside && strchr(name, '/') && !(below && is_there(below));
  if (!inside && !outside) {
    free(path);
    path = NULL;
  }
  free(below);
  free(real);
  return path;
}

/* The directory that is meant: that of --dir, else the one that the path is in. */
static const char *find_dir(const options *o, char *room, size_t size) {
  ckpt *engine = NULL;
  ckpt_options quiet = {.size = sizeof quiet};
  if (o->dir || o->state) return o->dir;
  bool found = ckpt_open(&engine, &quiet) == 0 && ckpt_find_dir(engine, o->name, room, size) == 0;
  ckpt_close(engine);
  return found ? room : NULL;
}

static ask_result ask_run(const options *o, const char *dir, char error[ASK_ERROR_MAX]) {
  ckpt_place place;
  options with_dir = *o;
  with_dir.dir = dir;
  ask_result result = ask_find(&with_dir, &place, error);
  if (result != ASK_DONE) return result;
  char *path = whole_path(o->name, dir);
  result = ask_question(place.socket, "why", path ? path : o->name, o->json, stdout, error);
  free(path);
  return result;
}

int verb_why(const options *o) {
  char room[PATH_MAX], error[ASK_ERROR_MAX];
  const char *dir = find_dir(o, room, sizeof room);
  /* Without a directory it may be a name that only a target knows. */
  bool place = dir || o->state || (!o->to && getenv("CKPT_SOCKET"));
  ask_result result = place ? ask_run(o, dir, error) : ASK_NOBODY;
  if (result == ASK_DONE) return command_end(EXIT_DONE);
  if (result != ASK_NOBODY) {
    report_error("%s", error);
    return ask_exit_code(result);
  }
  ckpt *engine = NULL;
  ckpt_why_options options = {
      .size = sizeof options, .name = o->name, .dir = dir, .state = o->state, .to = o->to};
  int rc = command_open(&engine, o);
  if (rc == 0) rc = tell(engine, NULL, &options, o->json, stdout);
  int code = rc < 0 ? command_failed(engine, rc) : EXIT_DONE;
  ckpt_close(engine);
  return command_end(code);
}
