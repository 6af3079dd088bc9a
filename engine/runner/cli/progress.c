#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "report.h"
#include "text.h"

/* A quick save is not worth a line that flickers. */
static const double patience = 1, redraw = 0.25, line_every = 30;

void progress_begin(progress *p, bool quiet, bool terminal, int columns) {
  *p = (progress){.quiet = quiet, .terminal = terminal, .columns = columns, .next_at = INFINITY};
}

void progress_begin_here(progress *p, bool quiet) {
  struct winsize size = {0};
  bool terminal = isatty(STDERR_FILENO);
  if (terminal) ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  progress_begin(p, quiet, terminal, size.ws_col);
}

/* ---- what moves ---- */

typedef struct sums {
  progress_sum sum;
  char *name, *waits_for, *holds;
} sums;

static bool is_wait(const char *reason) {
  static const char wait[] = "waiting for ";
  return reason && strncmp(reason, wait, sizeof wait - 1) == 0;
}

static void take(void *ctx, const ckpt_pending *p) {
  sums *s = ctx;
  if (!p->begun) {
    s->sum.waiting++;
    if (!s->waits_for && p->reason) s->waits_for = strdup(p->reason);
    return;
  }
  s->sum.begun++;
  s->sum.total += p->bytes;
  s->sum.done += p->bytes - (p->bytes_left < p->bytes ? p->bytes_left : p->bytes);
  if (!s->name && p->unit) s->name = strdup(p->unit);
  if (!s->holds && is_wait(p->reason)) s->holds = strdup(p->reason);
}

/* ---- rate ---- */

static progress_mark mark(uint64_t done, double now) {
  return (progress_mark){.done = done, .at = now};
}

/* Measures the rate over one to two minutes, or since the beginning. A store acknowledges many
 * mebibytes at once, and then nothing for seconds: what came lately says nothing. */
static void measure(progress *p, uint64_t done, double now) {
  const double window = 60;
  if (done < p->done) { /* a try failed, or the sum is of others: the old rate stands meanwhile */
    p->from = p->next = mark(done, now);
  } else if (now - p->next.at >= window) {
    p->from = p->next;
    p->next = mark(done, now);
  }
  if (done > p->from.done && now > p->from.at)
    p->rate = (double)(done - p->from.done) / (now - p->from.at);
  p->done = done;
}

/* ---- the line ---- */

static const char *doing(const char *what) {
  if (!what) return "saving ";
  if (strcmp(what, "restore") == 0) return "restoring ";
  return strcmp(what, "verify") == 0 ? "verifying " : "checking ";
}

static void write_line(FILE *f, const progress *p, const progress_sum *s) {
  fputs(doing(s->what), f);
  text_plain(f, s->name ? s->name : "?");
  if (s->begun > 1) fprintf(f, " and %u more", s->begun - 1);
  fputs(": ", f);
  text_size(f, s->done);
  fputs(" of ", f);
  text_size(f, s->total);
  if (s->total > 0) fprintf(f, " (%.0f%%)", floor(100 * (double)s->done / (double)s->total));
  if (s->holds && s->done >= s->total) { /* no rate tells for how long */
    fputs("; ", f);
    text_plain(f, s->holds);
  } else if (p->rate >= 1) {
    fputs(", ", f);
    text_size(f, (uint64_t)p->rate);
    fputs("/s, ", f);
    text_age(f, (double)(s->total - s->done) / p->rate, 0);
    fputs(" left", f);
  }
  if (s->waiting > 0) fprintf(f, "; %u waiting", s->waiting);
  if (s->waits_for) {
    fputs(" (", f);
    text_plain(f, s->waits_for);
    fputc(')', f);
  }
}

/* Cuts a line to `columns`, never within a character. A character counts as one column, which is
 * right for all but wide ones: those are cut a bit late, and the terminal wraps. */
static size_t cut(const char *text, int columns) {
  size_t n = 0;
  int width = 0;
  for (; text[n]; n++) {
    bool begins = ((unsigned char)text[n] & 0xc0) != 0x80;
    if (begins && width == columns) break;
    width += begins;
  }
  return n;
}

void progress_write(FILE *out, const progress *p, const progress_sum *sum, int columns) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  write_line(f, p, sum);
  if (fclose(f) == 0) fwrite(text, 1, columns > 0 ? cut(text, columns) : size, out);
  free(text);
}

static bool draws(const progress *p) {
  return p->terminal && !p->shared;
}

static void show(const progress *p, const progress_sum *sum) {
  enum { PREFIX = 11 }; /* "ckpt-lua: ", and the last column stays free */
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return;
  progress_write(f, p, sum, draws(p) && p->columns > PREFIX ? p->columns - PREFIX : 0);
  if (fclose(f) == 0) {
    if (draws(p))
      report_status(text);
    else
      report_info("%s", text);
  }
  free(text);
}

/* ---- when ---- */

static void stop(progress *p) {
  if (p->moving && draws(p)) report_status(NULL);
  p->moving = false;
  p->rate = 0;
  p->next_at = INFINITY;
}

void progress_share(progress *p, bool on) {
  stop(p);
  p->shared = on;
  report_share(on);
}

static bool is_due(const progress *p, double now) {
  return !p->quiet && (!p->moving || now >= p->next_at);
}

static void follow(progress *p, const progress_sum *sum, double now) {
  if (sum->begun == 0) {
    stop(p);
  } else if (!p->moving) {
    p->moving = true;
    p->begin_at = now;
    p->done = sum->done;
    p->from = p->next = mark(sum->done, now);
    p->next_at = now + (draws(p) ? patience : line_every);
  } else {
    measure(p, sum->done, now);
    show(p, sum);
    p->next_at = now + (draws(p) ? redraw : line_every);
  }
}

/* The end of a checkpoint takes its line away at once: the next message is about it, and may go to
 * the same terminal by stdout. */
void progress_take(progress *p, const ckpt_progress *told, double now) {
  progress_sum sum = {.what = told->what,
                      .begun = told->over ? 0 : 1,
                      .name = told->unit,
                      .done = told->bytes,
                      .total = told->total};
  if (told->over || is_due(p, now)) follow(p, &sum, now);
}

void progress_heard(void *ctx, const ckpt_progress *told) {
  progress_take(ctx, told, clock_s());
}

void progress_look(progress *p, ckpt_run *run, double now) {
  sums s = {0};
  if (!is_due(p, now)) return;
  ckpt_run_pending(run, take, &s);
  s.sum.name = s.name;
  s.sum.waits_for = s.waits_for;
  s.sum.holds = s.holds;
  follow(p, &s.sum, now);
  free(s.holds);
  free(s.name);
  free(s.waits_for);
}
