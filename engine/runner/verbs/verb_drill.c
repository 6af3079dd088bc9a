/* `drill`: restores the newest checkpoint of each run to a scratch directory, and times it: the proof
 * that a restart would find them. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "runner/cli/command.h"
#include "runner/cli/progress.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "scratch.h"
#include "verbs.h"

/* A checkpoint to be restored: the newest of its group, or with --all each. */
typedef struct task {
  char *group, *dir, *uri, *root;
  uint64_t files, bytes;
} task;

typedef struct drill {
  const options *o;
  ckpt *engine;
  task *tasks;
  size_t count;
  char place[PATH_MAX]; /* the scratch */
  unsigned good, failed;
  int status; /* of the first failure */
  int logs;   /* how they are: a job that is started again reads them, too */
  uint64_t bytes;
  double seconds;
} drill;

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- what there is ---- */

static void task_free(task *t) {
  free(t->group);
  free(t->dir);
  free(t->uri);
  free(t->root);
}

static bool task_set(task *t, const ckpt_item *item) {
  task_free(t);
  *t = (task){.group = strdup(item->group),
              .dir = strdup(item->dir),
              .uri = strdup(item->uri),
              .root = strdup(item->root),
              .files = item->files,
              .bytes = item->bytes};
  return t->group && t->dir && t->uri && t->root;
}

/* They come group by group, the oldest first. */
static int take_item(void *ctx, const ckpt_item *item) {
  drill *d = ctx;
  if (item->bad) return 0;
  bool same = d->count && strcmp(d->tasks[d->count - 1].group, item->group) == 0;
  if (!same || d->o->all) {
    task *more = realloc(d->tasks, (d->count + 1) * sizeof *more);
    if (!more) return CKPT_ENOMEM;
    d->tasks = more;
    d->tasks[d->count++] = (task){0};
  }
  return task_set(&d->tasks[d->count - 1], item) ? 0 : CKPT_ENOMEM;
}

/* ---- the scratch ---- */

/* One checkpoint at a time stands there, and a little more. */
static int check_room(const drill *d) {
  enum { SPARE = 16 << 20 };
  struct statvfs v;
  uint64_t most = 0;
  for (size_t i = 0; i < d->count; i++)
    if (d->tasks[i].bytes > most) most = d->tasks[i].bytes;
  if (statvfs(d->place, &v) < 0) return 0;
  uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
  if (room >= most + SPARE) return 0;
  report_error("%s has %llu MB free, and the largest checkpoint has %llu MB: name a larger place "
               "(--scratch DIR)",
               d->place, (unsigned long long)(room / 1000000),
               (unsigned long long)(most / 1000000));
  return EXIT_STORE;
}

/* ---- one ---- */

static double rate_of(uint64_t bytes, double seconds) {
  return seconds > 0 ? (double)bytes / seconds / 1e6 : 0;
}

static void print_json(const task *t, int rc, double seconds, const char *reason) {
  record r = record_begin(stdout);
  record_bool(&r, "ok", rc == CKPT_OK);
  record_text(&r, "status", ckpt_status_name(rc));
  record_prose(&r, "wrong", reason);
  record_name(&r, "group", t->group);
  record_name(&r, "dir", t->dir);
  record_text(&r, "uri", t->uri);
  record_count(&r, "files", t->files);
  record_count(&r, "bytes", t->bytes);
  fprintf(record_key(&r, "seconds"), "%.3f", seconds);
  fprintf(record_key(&r, "mb_per_s"), "%.1f", rate_of(t->bytes, seconds));
  record_end_line(&r);
}

static void print_one(const drill *d, const task *t, int rc, double seconds) {
  const char *reason = rc == CKPT_OK ? "" : ckpt_error(d->engine);
  if (d->o->json) {
    print_json(t, rc, seconds, reason);
    return;
  }
  printf("%s ", rc == CKPT_OK ? "ok  " : "BAD ");
  if (*t->group) {
    text_plain(stdout, t->group);
    fputc('/', stdout);
  }
  text_plain(stdout, t->dir);
  if (rc == CKPT_OK) {
    fputs(" (", stdout);
    text_size(stdout, t->bytes);
    printf(" in %.2f s, %.1f MB/s)", seconds, rate_of(t->bytes, seconds));
  } else {
    fputs(": ", stdout);
    text_prose(stdout, reason);
  }
  fputc('\n', stdout);
}

/* It comes into a directory of its own, which goes at once: the next one needs the room. */
static void drill_one(drill *d, const task *t) {
  char to[PATH_MAX];
  unsigned flags = d->o->record ? CKPT_RESTORE_RECORD : 0;
  snprintf(to, sizeof to, "%.4000s/restored", d->place);
  ckpt_restore_options options = {.size = sizeof options, .uri = t->uri, .dir = to, .flags = flags};
  double begun = now_s();
  int rc = ckpt_restore(d->engine, &options, NULL, NULL);
  double seconds = now_s() - begun;
  print_one(d, t, rc, seconds);
  scratch_clear(to);
  if (rc < 0) {
    if (d->failed++ == 0) d->status = rc;
    return;
  }
  d->good++;
  d->bytes += t->bytes;
  d->seconds += seconds;
}

/* ---- the command ---- */

static void print_end(const drill *d) {
  if (d->o->json) {
    record r = record_begin(stdout);
    record_bool(&r, "ok", d->failed == 0 && d->logs == 0);
    record_prose(&r, "wrong", d->logs < 0 ? ckpt_error(d->engine) : "");
    record_count(&r, "restored", d->good);
    record_count(&r, "failed", d->failed);
    record_count(&r, "bytes", d->bytes);
    fprintf(record_key(&r, "seconds"), "%.3f", d->seconds);
    fprintf(record_key(&r, "mb_per_s"), "%.1f", rate_of(d->bytes, d->seconds));
    record_end_line(&r);
    return;
  }
  printf("%u of %u would be restored, every byte compared: ", d->good, d->good + d->failed);
  text_size(stdout, d->bytes);
  printf(" in %.2f s, %.1f MB/s\n", d->seconds, rate_of(d->bytes, d->seconds));
}

/* The error of the logs is said last: it is the engine's newest. */
static int drill_all(drill *d) {
  int code = scratch_make("drill", d->o->dir, d->place, sizeof d->place);
  if (code) return code;
  code = check_room(d);
  for (size_t i = 0; code == 0 && i < d->count; i++) drill_one(d, &d->tasks[i]);
  scratch_remove(d->place);
  if (code) return code;
  d->logs = ckpt_check_logs(d->engine, d->o->uri);
  print_end(d);
  if (d->logs < 0) report_error("%s", ckpt_error(d->engine));
  if (d->failed == 0) d->status = d->logs;
  return d->status < 0 ? exit_code_of(d->status) : EXIT_DONE;
}

static int run(const options *o) {
  progress progress;
  drill d = {.o = o};
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&d.engine, o, progress_heard, &progress), code = EXIT_DONE;
  if (rc == 0) rc = ckpt_list(d.engine, o->uri, take_item, &d);
  if (rc < 0) {
    code = command_failed(d.engine, rc);
  } else if (d.count == 0) {
    report_error("no checkpoint was committed at %s", o->uri);
    code = EXIT_NOTHING;
  } else {
    code = drill_all(&d);
  }
  for (size_t i = 0; i < d.count; i++) task_free(&d.tasks[i]);
  free(d.tasks);
  ckpt_close(d.engine);
  return command_end(code);
}

static const option_spec opt_scratch = {
    "scratch", "DIR", "where it is restored to (default: $TMPDIR); it is removed again", take_text,
    .at = OF(dir)};
static const option_spec opt_all = {
    "all", NULL, "each checkpoint, not the newest of each run alone", take_set, .at = OF(all)};
static const option_spec opt_record = {"record", NULL,
                                       "let the target remember what was restored as verified",
                                       take_set, .at = OF(record)};

static const char help[] = "Exit code: 0 if all of them would be restored; else that of the first "
                           "that would not. 5 too where a\n"
                           "log has lost entries: the job would not begin.\n";

const verb verb_drill = {
    .name = "drill",
    .synopsis = "drill URI [options]",
    .summary = "restore the newest of each run to a scratch directory, compare, and time it",
    .text = help,
    .options =
        (const option_spec *const[]){&opt_scratch, &opt_all, &opt_record, &option_json, NULL},
    .words = {1, 1, "URI", {OF(uri)}, 0, false},
    .run = run,
};
