#include "report.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "flags_named.h"
#include "record.h"
#include "text.h"

static int level;

/* Counts completions, which are warnings of the runner's own; the engine counts its log lines. */
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

/* Who writes to it. LEFT: others did, and the end of what they wrote is not known yet. */
static enum { ALONE, SHARED, LEFT } company;

static int columns(void) {
  struct winsize size = {0};
  const char *term = getenv("TERM");
  if (!term || !*term || strcmp(term, "dumb") == 0 || !isatty(STDERR_FILENO)) return 0;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Goes to the beginning of a row in which nothing stands, wherever the cursor is: nobody tells us.
 * As many blanks as a row has lead to the next one from anywhere but its first column; from there
 * they fill it, and the cursor waits behind its last one. Shells do so before their prompt. */
static void take_row(FILE *f) {
  int width = company == ALONE ? 0 : columns();
  if (width > 0) fprintf(f, "%*s%s", width, "", erase);
  if (company == LEFT) company = ALONE;
}

void report_share(bool on) {
  pthread_mutex_lock(&terminal);
  company = on ? SHARED : company == SHARED ? LEFT : company;
  pthread_mutex_unlock(&terminal);
}

static void write_line(const char *kind, const char *text, void (*put)(FILE *, const char *)) {
  char *line = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&line, &size);
  if (!f) return;
  pthread_mutex_lock(&terminal);
  if (status) fputs(erase, f);
  take_row(f);
  fprintf(f, "ckpt-lua: %s", kind);
  put(f, text);
  fputc('\n', f);
  if (status) fprintf(f, "%s\r", status);
  if (fclose(f) == 0) write_all(line, size);
  pthread_mutex_unlock(&terminal);
  free(line);
}

static void draw(const char *line) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  take_row(f);
  fputs(erase, f);
  if (line) fprintf(f, "%s\r", line);
  if (fclose(f) == 0) write_all(text, size);
  free(text);
}

void report_status(const char *text) {
  char *line = NULL;
  if (text && asprintf(&line, "ckpt-lua: %s", text) < 0) return;
  pthread_mutex_lock(&terminal);
  if (status || line) draw(line);
  free(status);
  status = line;
  pthread_mutex_unlock(&terminal);
}

static void write_message(const char *kind, const char *fmt, va_list args) {
  char *text = NULL;
  if (vasprintf(&text, fmt, args) < 0) return;
  write_line(kind, text, text_prose);
  free(text);
}

/* ---- errors as JSON ---- */

/* What was said, and not shown yet; `keeping` is set before any thread starts. */
static struct {
  bool keeping;
  char **texts;
  size_t count, causes; /* behind the causes comes how the run stands */
} kept;

void report_errors_as_json(void) {
  kept.keeping = true;
}

static bool keep(const char *fmt, va_list args) {
  char *text = NULL;
  if (vasprintf(&text, fmt, args) < 0) return false;
  pthread_mutex_lock(&terminal);
  char **grown = realloc(kept.texts, (kept.count + 1) * sizeof *grown);
  if (grown) {
    kept.texts = grown;
    kept.texts[kept.count++] = text;
  }
  pthread_mutex_unlock(&terminal);
  if (!grown) free(text);
  return grown != NULL;
}

/* What a script may do about it. */
static const char *class_of_exit(int code) {
  switch (code) {
  case EXIT_USAGE: return "usage";
  case EXIT_GAVE_UP:
  case EXIT_DEADLINE: return "retryable";
  case EXIT_HELD:
  case EXIT_FENCED: return "held";
  case EXIT_FAILED: return "fatal";
  default: return "permanent";
  }
}

/* A cause ends with what to do next, behind a semicolon, where there is something. */
static size_t why_len(const char *cause) {
  const char *last = NULL;
  for (const char *at = cause; (at = strstr(at, "; ")); at++) last = at;
  return last ? (size_t)(last - cause) : strlen(cause);
}

/* The text's first `causes` bytes say what went wrong; the rest says how the run stands, which has
 * semicolons of its own. */
static void write_error(FILE *f, int code, const char *where, const char *text, size_t causes) {
  char *cause = strndup(text, causes);
  size_t n = cause ? why_len(cause) : 0;
  char *why = n > 0 ? strndup(cause, n) : NULL;
  record r = record_begin(f);
  fprintf(record_key(&r, "code"), "%d", code);
  record_text(&r, "class", class_of_exit(code));
  record_text(&r, "error", text);
  record_text(&r, "where", where);
  record_text(&r, "why", why ? why : text);
  record_text(&r, "next", cause && cause[n] ? cause + n + 2 : NULL);
  record_end_line(&r);
  free(why);
  free(cause);
}

void report_json_error(int code, const char *where) {
  char *line = NULL, *text = NULL;
  size_t size = 0, room = 0, causes = 0;
  kept.keeping = false;
  FILE *all = open_memstream(&text, &room);
  for (size_t i = 0; i < kept.count; i++) {
    char *said = flags_named(kept.texts[i]);
    if (code == EXIT_DONE) report_error("%s", kept.texts[i]);
    if (all) fprintf(all, "%s%s", i ? ". " : "", said ? said : kept.texts[i]);
    if (all && i < kept.causes && fflush(all) == 0) causes = room;
    free(said);
    free(kept.texts[i]);
  }
  bool whole = all && fclose(all) == 0;
  /* Where nothing was said, the answer itself says what is wrong. */
  FILE *f = code != EXIT_DONE && whole && kept.count ? open_memstream(&line, &size) : NULL;
  if (f) write_error(f, code, where, text, causes);
  if (f && fclose(f) == 0) write_all(line, size);
  free(line);
  free(text);
  free(kept.texts);
  kept.texts = NULL;
  kept.count = kept.causes = 0;
}

static bool say_or_keep(const char *fmt, va_list args) {
  va_list again;
  va_copy(again, args);
  bool kept_it = kept.keeping && keep(fmt, args);
  if (!kept_it) write_message("", fmt, again);
  va_end(again);
  return kept_it;
}

void report_error(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  if (say_or_keep(fmt, args)) kept.causes = kept.count;
  va_end(args);
}

void report_last_word(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  say_or_keep(fmt, args);
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
  write_line(log_level == CKPT_LOG_WARN ? "warning: " : "", text, text_prose);
}

static void write_counted(void *ctx, log_level at, const char *text) {
  report_log(ctx, (int)at, text);
}

static log_sink counting(log_fn *fn) {
  if (!counts.io) log_counts_init(&counts, io_system());
  return (log_sink){.fn = fn, .min = (log_level)report_log_level(), .counts = &counts};
}

void report_counted(ckpt *engine) {
  log_sink own = counting(write_counted);
  if (engine) ckpt_log_counted(engine);
  log_counts_say(&own);
}

/* A line that is put together piece by piece, of names and reasons of the user's. */
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
  if (fclose(l->f) == 0) write_line("", l->text, text_plain);
  free(l->text);
}

static void write_warning(void *ctx, log_level at, const char *text) {
  (void)ctx, (void)at;
  write_line("warning: ", text, text_plain);
}

static void line_end_warning(line *l, const char *kind) {
  log_sink own = counting(write_warning);
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

/* Returns the reason without the name: the engine's texts often begin with it, and the line has it
 * already. */
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
  if (c->is_copy) fprintf(l.f, ", %s", c->reason ? c->reason : "a copy");
  line_end(&l);
}

static void report_known_copy(const ckpt_completion *c) {
  line l;
  if (level < 0 || !line_begin(&l)) return;
  fputs(reason_of(c), l.f);
  line_end(&l);
}

/* True for a new reason: each is said once, since a policy that takes every tenth would say it nine
 * times of ten. Numbers in it change, so they do not count. */
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

/* True if this very line was said: of a name that is overwritten one goes every minute. */
static bool is_repeated(const ckpt_completion *c) {
  enum { LINES = 32, LENGTH = 512 };
  static char said[LINES][LENGTH];
  static unsigned count;
  char one[LENGTH];
  if (level != 0 || (c->kind != CKPT_EXPIRED && c->kind != CKPT_DELETED)) return false;
  snprintf(one, sizeof one, "%u %s %s", c->kind, c->unit ? c->unit : "", reason_of(c));
  for (int i = 0; i < LINES; i++)
    if (strcmp(said[i], one) == 0) return true;
  snprintf(said[count++ % LINES], LENGTH, "%s", one);
  return false;
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
  if (c->kind == CKPT_RETIRED && c->is_copy) {
    report_known_copy(c);
    return;
  }
  if (c->kind >= sizeof kinds / sizeof *kinds || !kinds[c->kind].what) return;
  if (level < kinds[c->kind].at || is_repeated(c) || !line_begin(&l)) return;
  if (c->kind != CKPT_FENCED) {
    add_unit(l.f, c);
    bool sentence = c->kind >= CKPT_UNPROVEN;
    fputs(sentence ? " " : ": ", l.f);
  }
  bool turned_away =
      c->kind == CKPT_FENCED && (c->status == CKPT_EHELD || c->status == CKPT_EOTHER_RUN);
  fputs(turned_away ? "nothing is saved here any more" : kinds[c->kind].what, l.f);
  /* What is no longer kept has a reason of the policy's. */
  const char *reason = reason_of(c);
  char *named = c->status < 0 ? flags_named(reason) : NULL;
  if (*reason) fprintf(l.f, ": %s", named ? named : reason);
  free(named);
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
  record r = record_begin(out);
  record_text(&r, "result", kinds[c->kind]);
  record_name(&r, "unit", c->unit);
  record_step(&r, "step", c->step);
  record_count(&r, "files", c->files);
  record_count(&r, "bytes", c->bytes);
  record_text(&r, "status", ckpt_status_name(c->status));
  /* The reason of what was saved, or not wanted, is the policy's. */
  if (c->status < 0)
    record_prose(&r, "reason", c->reason);
  else
    record_text(&r, "reason", c->reason ? c->reason : "");
  record_end_line(&r);
}

void report_unmatched(const ckpt_run_status *s) {
  report_warning(
      "nothing was saved: %llu file%s written that belong%s to no checkpoint, for example "
      "%s; say what a checkpoint looks like with --unit, e.g. --unit 'checkpoint-{step}/'",
      (unsigned long long)s->unmatched, s->unmatched == 1 ? " was" : "s were",
      s->unmatched == 1 ? "s" : "", s->unmatched_example ? s->unmatched_example : "(unknown)");
}
