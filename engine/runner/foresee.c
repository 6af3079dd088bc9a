/* `sync`, and what it would do: --dry-run. */
#include "command.h"
#include "progress.h"
#include "report.h"
#include "start.h"
#include "text.h"
#include "verbs.h"

typedef struct foresight {
  bool json;
  size_t count, unproven;
} foresight;

static void print_text(const ckpt_foreseen *u) {
  static const char *const whats[] = {[CKPT_WOULD_SAVE] = "would save  ",
                                      [CKPT_IS_THERE] = "is there    ",
                                      [CKPT_IS_OLDER] = "is older    ",
                                      [CKPT_IS_NOT_PROVEN] = "NOT PROVEN  "};
  fputs(whats[u->what], stdout);
  text_plain(stdout, u->unit);
  if (u->reason && *u->reason) {
    fputs(": ", stdout);
    text_plain(stdout, u->reason);
  }
  putchar('\n');
}

static void print_json(const ckpt_foreseen *u) {
  static const char *const whats[] = {[CKPT_WOULD_SAVE] = "committed",
                                      [CKPT_IS_THERE] = "there",
                                      [CKPT_IS_OLDER] = "older",
                                      [CKPT_IS_NOT_PROVEN] = "unproven"};
  printf("{\"dry_run\":true,\"result\":\"%s\",\"unit\":", whats[u->what]);
  text_json_name(stdout, u->unit);
  if (u->step >= 0)
    printf(",\"step\":%lld", (long long)u->step);
  else
    fputs(",\"step\":null", stdout);
  fputs(",\"reason\":", stdout);
  text_json(stdout, u->reason ? u->reason : "");
  puts("}");
}

static int take_foreseen(void *ctx, const ckpt_foreseen *u) {
  foresight *f = ctx;
  if (u->what > CKPT_IS_NOT_PROVEN) return 0; /* of a newer library */
  f->count++;
  f->unproven += u->what == CKPT_IS_NOT_PROVEN;
  if (f->json)
    print_json(u);
  else
    print_text(u);
  return 0;
}

static int foresee(const options *o) {
  ckpt *engine = NULL;
  progress progress;
  foresight f = {.json = o->json};
  ckpt_run_options options = start_options(o, NULL);
  int code = EXIT_DONE;
  progress_begin_here(&progress, o->level < 0);
  int rc = command_open_heard(&engine, o, progress_heard, &progress);
  if (rc == 0) rc = ckpt_foresee(engine, &options, take_foreseen, &f);
  if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (f.count == 0) {
    report_error("there is no complete checkpoint in %s", o->dir);
    code = EXIT_NOTHING;
  } else if (f.unproven > 0) {
    code = EXIT_PARTIAL;
  }
  ckpt_close(engine);
  return command_end(code);
}

int verb_sync(const options *o) {
  return o->dry_run ? foresee(o) : verb_run(o);
}
