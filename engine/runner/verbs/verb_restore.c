/* `restore`: copies checkpoints back, each in one step. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runner/cli/command.h"
#include "runner/cli/progress.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"
#include "verbs.h"

typedef struct restored {
  const options *o;
  size_t count, in_the_way;
} restored;

static char *path_of(const options *o, const ckpt_item *item) {
  const char *group = item->group ? item->group : "";
  char *path = NULL;
  int n =
      asprintf(&path, "%s/%s%s%s", o->dir, group, *group ? "/" : "", item->name ? item->name : "");
  return n < 0 ? NULL : path;
}

#define LOST "left out of it when it was saved, or taken since newer ones are there"

static void say(const options *o, const ckpt_item *item, const char *done) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  fprintf(f, "%s %s", done, o->only ? "what fits --only of " : "");
  item_name(f, item);
  item_size(f, item);
  fprintf(f, " to %s", o->dir);
  if (item->left_out) /* a job that goes on from it may begin its optimizer anew, or fail */
    fprintf(f, ", without %llu file%s that %s", (unsigned long long)item->left_out,
            item->left_out == 1 ? "" : "s",
            !item->thin           ? "excludes left out of it when it was saved"
            : item->left_out == 1 ? "was " LOST
                                  : "were " LOST);
  if (item->foreign) fputs(": another tool wrote it, so nothing tells whether it is whole", f);
  if (fclose(f) == 0) report_info("%s", text);
  free(text);
}

/* A dry run must foretell what would stop the real one. */
static bool is_in_the_way(restored *r, const char *path) {
  struct stat st;
  if (!r->o->dry_run || lstat(path, &st) != 0) return false;
  r->in_the_way++;
  report_error("%s exists already, and nothing is replaced: move it away, or restore elsewhere",
               path);
  return true;
}

static void add_chosen(record *line, const ckpt_item *item) {
  record_count(line, "restored_files", item->chosen_files);
  record_count(line, "restored_bytes", item->chosen_bytes);
  record_count(line, "left_files", item->files - item->chosen_files);
  record_count(line, "left_bytes", item->bytes - item->chosen_bytes);
}

/* stdout gets the path, for scripts: path=$(ckpt-lua restore ...). */
static int print_restored(void *ctx, const ckpt_item *item) {
  restored *r = ctx;
  char *path = path_of(r->o, item);
  if (!path) return CKPT_ENOMEM;
  r->count++;
  if (!is_in_the_way(r, path)) {
    if (r->o->json) {
      record line = record_begin(stdout);
      record_name(&line, "path", path);
      record_bool(&line, "dry_run", r->o->dry_run);
      if (r->o->only) add_chosen(&line, item);
      item_json_line(&line, item);
    } else {
      text_path(stdout, path);
      fputc('\n', stdout);
    }
    say(r->o, item, r->o->dry_run ? "would restore" : "restored");
  }
  free(path);
  return 0;
}

static int run(const options *o) {
  ckpt *engine = NULL;
  progress progress;
  restored r = {.o = o};
  ckpt_restore_options options = {.size = sizeof options,
                                  .uri = o->uri,
                                  .name = o->name,
                                  .dir = o->dir,
                                  .only = o->only,
                                  .flags = (o->dry_run ? CKPT_DRY_RUN : 0u) |
                                           (o->alone ? CKPT_RESTORE_ALONE : 0u)};
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&engine, o, progress_heard, &progress);
  if (rc == 0) rc = ckpt_restore(engine, &options, print_restored, &r);
  int code = r.in_the_way > 0 ? exit_code_of(CKPT_EEXISTS) : r.count > 0 ? EXIT_DONE : EXIT_NOTHING;
  return command_close(engine, rc, code);
}

static const option_spec opt_dir = {
    "dir",     "DIR",         "where to put it; nothing there is replaced",
    take_text, .at = OF(dir), .needed = true};
static const option_spec opt_alone = {"alone", NULL, "without what was saved beside it (`with`)",
                                      take_set, .at = OF(alone)};
static const option_spec opt_only = {
    "only", "GLOB", "of its files those alone; repeatable, and nothing from beside it", take_list,
    .at = OF(only)};

static const char help[] =
    "URI is what --to was, or a checkpoint in it. Without NAME the newest of each group.\n"
    "What another tool wrote at URI comes as it is, and that is said.\n"
    "Prints the path of each one. Exit code: 4 there is none, 5 it is damaged.\n";

const verb verb_restore = {
    .name = "restore",
    .synopsis = "restore URI [NAME] --dir DIR [options]",
    .summary = "copy a checkpoint back, every byte compared",
    .text = help,
    .options = (const option_spec *const[]){&opt_dir, &opt_alone, &opt_only, &option_json,
                                            &option_dry_run, NULL},
    .words = {1, 2, "URI", {OF(uri), OF(name)}, 0, false},
    .run = run,
};
