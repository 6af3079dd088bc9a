/* `restore`: checkpoints are copied back, each in one step. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "command.h"
#include "progress.h"
#include "report.h"
#include "text.h"
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

static void say(const options *o, const ckpt_item *item, const char *done) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  fprintf(f, "%s ", done);
  item_name(f, item);
  item_size(f, item);
  fprintf(f, " to %s", o->dir);
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

/* stdout gets the path, for scripts: path=$(ckpt-lua restore ...). */
static int print_restored(void *ctx, const ckpt_item *item) {
  restored *r = ctx;
  char *path = path_of(r->o, item);
  if (!path) return CKPT_ENOMEM;
  r->count++;
  if (!is_in_the_way(r, path)) {
    if (r->o->json) {
      fputs("{\"path\":", stdout);
      text_json_name(stdout, path);
      fprintf(stdout, ",\"dry_run\":%s,", r->o->dry_run ? "true" : "false");
      item_json(stdout, item);
      fputs("}\n", stdout);
    } else {
      text_path(stdout, path);
      fputc('\n', stdout);
    }
    say(r->o, item, r->o->dry_run ? "would restore" : "restored");
  }
  free(path);
  return 0;
}

int verb_restore(const options *o) {
  ckpt *engine = NULL;
  progress progress;
  restored r = {.o = o};
  ckpt_restore_options options = {.size = sizeof options,
                                  .uri = o->uri,
                                  .name = o->name,
                                  .dir = o->dir,
                                  .flags = (o->dry_run ? CKPT_DRY_RUN : 0u) |
                                           (o->alone ? CKPT_RESTORE_ALONE : 0u)};
  int code = EXIT_DONE;
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&engine, o, progress_heard, &progress);
  if (rc == 0) rc = ckpt_restore(engine, &options, print_restored, &r);
  if (rc < 0)
    code = command_failed(engine, rc);
  else if (r.in_the_way > 0)
    code = exit_code_of(CKPT_EEXISTS);
  else if (r.count == 0)
    code = EXIT_NOTHING;
  ckpt_close(engine);
  return command_end(code);
}
