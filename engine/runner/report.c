#include "report.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "text.h"

static int level;

/* Completions are warnings of the runner's own; the engine counts what it logs. */
static log_counts counts;

void report_level(int wanted) {
  level = wanted;
}

uint32_t report_log_level(void) {
  return level > 0 ? CKPT_LOG_DEBUG : level == 0 ? CKPT_LOG_WARN : CKPT_LOG_ERROR;
}

int exit_code_of(int status) {
  switch (status) {
  case CKPT_OK: return EXIT_DONE;
  case CKPT_EINVAL:
  case CKPT_EPOLICY:
  case CKPT_EUNSUPPORTED: return EXIT_USAGE;
  case CKPT_ENOENT: return EXIT_NOTHING;
  case CKPT_ECORRUPT:
  case CKPT_EFORMAT: return EXIT_CORRUPT;
  case CKPT_EACCESS:
  case CKPT_ENOSPACE: return EXIT_STORE;
  case CKPT_ENOSTORE: return EXIT_NO_STORE;
  case CKPT_EOTHER_RUN:
  case CKPT_EHELD: return EXIT_HELD;
  case CKPT_EFENCED: return EXIT_FENCED;
  default: return ckpt_class(status) == CKPT_CLASS_RETRYABLE ? EXIT_GAVE_UP : EXIT_FAILED;
  }
}

int exit_code_of_wait(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- lines ---- */

/* If stderr is closed or full there is nobody to tell, and no reason to end a job. */
static void write_all(const char *text, size_t size) {
  while (size > 0) {
    ssize_t n = write(STDERR_FILENO, text, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text += n;
    size -= (size_t)n;
  }
}

/* Engine threads write lines too, and the status has to be taken away and put back around each. */
static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER;
static char *status;

static const char erase[] = "\r\033[K";

static void write_line(const char *kind, const char *text) {
  char *line = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&line, &size);
  if (!f) return;
  pthread_mutex_lock(&terminal);
  if (status) fputs(erase, f);
  fprintf(f, "ckpt-lua: %s", kind);
  text_plain(f, text);
  fputc('\n', f);
  if (status) fprintf(f, "%s\r", status);
  if (fclose(f) == 0) write_all(line, size);
  pthread_mutex_unlock(&terminal);
  free(line);
}

void report_status(const char *text) {
  char *line = NULL;
  if (text && asprintf(&line, "ckpt-lua: %s", text) < 0) return;
  pthread_mutex_lock(&terminal);
  if (status || line) write_all(erase, sizeof erase - 1);
  if (line) {
    write_all(line, strlen(line));
    write_all("\r", 1);
  }
  free(status);
  status = line;
  pthread_mutex_unlock(&terminal);
}

static void write_message(const char *kind, const char *fmt, va_list args) {
  char *text = NULL;
  if (vasprintf(&text, fmt, args) < 0) return;
  write_line(kind, text);
  free(text);
}

void report_error(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  write_message("", fmt, args);
  va_end(args);
}

void report_warning(const char *fmt, ...) {
  va_list args;
  if (level < 0) return;
  va_start(args, fmt);
  write_message("warning: ", fmt, args);
  va_end(args);
}

void report_info(const char *fmt, ...) {
  va_list args;
  if (level < 0) return;
  va_start(args, fmt);
  write_message("", fmt, args);
  va_end(args);
}

void report_debug(const char *fmt, ...) {
  va_list args;
  if (level < 1) return;
  va_start(args, fmt);
  write_message("", fmt, args);
  va_end(args);
}

void report_log(void *ctx, int log_level, const char *text) {
  (void)ctx;
  if ((uint32_t)log_level < report_log_level()) return;
  write_line(log_level == CKPT_LOG_WARN ? "warning: " : "", text);
}

static void write_counted(void *ctx, log_level at, const char *text) {
  report_log(ctx, (int)at, text);
}

static log_sink counting(void) {
  if (!counts.io) log_counts_init(&counts, io_system());
  return (log_sink){.fn = write_counted, .min = (log_level)report_log_level(), .counts = &counts};
}

void report_counted(ckpt *engine) {
  log_sink own = counting();
  if (engine) ckpt_log_counted(engine);
  log_counts_say(&own);
}

/* A line that is put together piece by piece. */
typedef struct line {
  FILE *f;
  char *text;
  size_t size;
} line;

static bool line_begin(line *l) {
  *l = (line){0};
  l->f = open_memstream(&l->text, &l->size);
  return l->f != NULL;
}

static void line_end(line *l) {
  if (fclose(l->f) == 0) write_line("", l->text);
  free(l->text);
}

static void line_end_warning(line *l, const char *kind) {
  log_sink own = counting();
  if (fclose(l->f) == 0) log_tell(&own, kind, LOG_WARN, l->text);
  free(l->text);
}

static const char *plural(uint64_t n) {
  return n == 1 ? "" : "s";
}

static void add_unit(FILE *f, const ckpt_completion *c) {
  fputs(c->unit ? c->unit : "a checkpoint", f);
  if (c->step >= 0) fprintf(f, " (step %lld)", (long long)c->step);
}

/* The engine's texts often begin with the name, which the line has already. */
static const char *reason_of(const ckpt_completion *c) {
  const char *reason = c->reason ? c->reason : "";
  size_t n = c->unit ? strlen(c->unit) : 0;
  bool named = n > 0 && strncmp(reason, c->unit, n) == 0 && strncmp(reason + n, ": ", 2) == 0;
  return named ? reason + n + 2 : reason;
}

static void report_committed(const ckpt_completion *c) {
  line l;
  if (level < 0 || !line_begin(&l)) return;
  fprintf(l.f, "committed %s (", c->unit ? c->unit : "a checkpoint");
  if (c->step >= 0) fprintf(l.f, "step %lld, ", (long long)c->step);
  fprintf(l.f, "%llu file%s, ", (unsigned long long)c->files, plural(c->files));
  text_size(l.f, c->bytes);
  fputs(" in ", l.f);
  text_age(l.f, c->seconds, 1);
  fputc(')', l.f);
  line_end(&l);
}

/* A policy that takes every tenth would say so nine times of ten: each reason once. The numbers in
 * it change, so that they do not count. */
static bool is_news(const char *reason) {
  enum { REASONS = 32, LENGTH = 160 };
  static char seen[REASONS][LENGTH];
  static int count;
  char kind[LENGTH];
  size_t n = 0;
  for (const char *p = reason; *p && n + 1 < sizeof kind; p++)
    if (*p < '0' || *p > '9') kind[n++] = *p;
  kind[n] = 0;
  for (int i = 0; i < count; i++)
    if (strcmp(seen[i], kind) == 0) return false;
  if (count == REASONS) return false;
  memcpy(seen[count++], kind, n + 1);
  return true;
}

static void report_skipped(const ckpt_completion *c) {
  line l;
  const char *reason = reason_of(c);
  if (level < 0 || (level == 0 && !is_news(reason)) || !line_begin(&l)) return;
  add_unit(l.f, c);
  fputs(" was skipped", l.f);
  if (*reason) fprintf(l.f, ": %s", reason);
  if (level == 0) fputs(" (said once; ckpt-lua why NAME tells of each)", l.f);
  line_end(&l);
}

void report_completion(const ckpt_completion *c) {
  static const struct {
    int at; /* the level from which on it is said; -1: always */
    bool warning;
    const char *what;
  } kinds[] = {
      [CKPT_DROPPED] = {1, false, "let go, a newer one took its place"},
      [CKPT_RETIRED] = {1, false, "changed while it was read; it is taken again when it rests"},
      [CKPT_FAILED] = {-1, false, "could not be saved"},
      [CKPT_RETRYING] = {0, true, "could not be saved yet; trying again"},
      [CKPT_FENCED] = {-1, false, "a newer run writes to this target; nothing more is saved here"},
      [CKPT_UNPROVEN] = {0, true, "was not saved"},
      [CKPT_EXPIRED] = {0, false, "is no longer kept in the store"},
      [CKPT_DELETED] = {0, false, "was deleted from the store"},
  };
  line l;
  if (c->kind == CKPT_COMMITTED) {
    report_committed(c);
    return;
  }
  if (c->kind == CKPT_SKIPPED) {
    report_skipped(c);
    return;
  }
  if (c->kind >= sizeof kinds / sizeof *kinds || !kinds[c->kind].what) return;
  if (level < kinds[c->kind].at || !line_begin(&l)) return;
  if (c->kind != CKPT_FENCED) {
    add_unit(l.f, c);
    bool sentence = c->kind >= CKPT_UNPROVEN;
    fputs(sentence ? " " : ": ", l.f);
  }
  fputs(kinds[c->kind].what, l.f);
  const char *reason = reason_of(c);
  if (*reason) fprintf(l.f, ": %s", reason);
  if (kinds[c->kind].warning)
    line_end_warning(&l, kinds[c->kind].what);
  else
    line_end(&l);
}

void completion_json(FILE *out, const ckpt_completion *c) {
  static const char *const kinds[] = {[CKPT_COMMITTED] = "committed",
                                      [CKPT_DROPPED] = "let-go",
                                      [CKPT_FAILED] = "failed",
                                      [CKPT_UNPROVEN] = "unproven",
                                      [CKPT_SKIPPED] = "skipped"};
  if (c->kind >= sizeof kinds / sizeof *kinds || !kinds[c->kind]) return;
  fprintf(out, "{\"result\":\"%s\",\"unit\":", kinds[c->kind]);
  text_json_name(out, c->unit ? c->unit : "");
  if (c->step >= 0)
    fprintf(out, ",\"step\":%lld", (long long)c->step);
  else
    fputs(",\"step\":null", out);
  fprintf(out, ",\"files\":%llu,\"bytes\":%llu,\"status\":\"%s\",\"reason\":",
          (unsigned long long)c->files, (unsigned long long)c->bytes, ckpt_status_name(c->status));
  text_json(out, c->reason ? c->reason : "");
  fputs("}\n", out);
}

void report_unmatched(const ckpt_run_status *s) {
  report_warning(
      "nothing was saved: %llu file%s written that belong%s to no checkpoint, for example "
      "%s; say what a checkpoint looks like with --unit, e.g. --unit 'checkpoint-{step}/'",
      (unsigned long long)s->unmatched, s->unmatched == 1 ? " was" : "s were",
      s->unmatched == 1 ? "s" : "", s->unmatched_example ? s->unmatched_example : "(unknown)");
}
