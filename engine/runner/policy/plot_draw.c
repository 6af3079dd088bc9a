/* How a plot is drawn: a lane for each trial, the time to the right. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "runner/cli/text.h"
#include "svg.h"

enum {
  WIDTH = 1000,
  MARGIN = 14,
  LEFT = 190, /* where the time begins, */
  SPAN = 780, /* and how wide it is */
  ROW = 16,
  LANE_HEAD = 24,
  COLUMNS_HEIGHT = 76,
  LANE_GAP = 10,
  TOP = 122,
  LABEL_MAX = 22, /* letters */
  LANE_MAX = 32,
  TITLE_MAX = 120
};

typedef struct drawing {
  const plot *p;
  const plot_head *head;
  FILE *out;
  double span_s;
  size_t *starts; /* the marks of a lane, in their order: order[starts[lane]] and on */
  size_t *order;
} drawing;

/* ---- times ---- */

/* The whole ones among so many units of time, which may be a hair below a whole one. */
static double whole(double units) {
  return units < 1e15 ? (double)(uint64_t)(units + 1e-9) : units;
}

/* Writes "1 h 10 min", "2 d 3 h", "45.5 s". */
static void put_time(FILE *out, double s) {
  const double minutes = whole(s / 60), hours = whole(s / 3600), days = whole(s / 86400);
  if (s < 60) {
    fprintf(out, "%.4g s", s);
  } else if (hours < 1) {
    fprintf(out, "%.0f min", minutes);
    if (s - minutes * 60 >= 0.5) fprintf(out, " %.0f s", s - minutes * 60);
  } else if (days < 1) {
    fprintf(out, "%.0f h", hours);
    if (minutes - hours * 60 >= 1) fprintf(out, " %.0f min", minutes - hours * 60);
  } else {
    fprintf(out, "%.0f d", days);
    if (hours - days * 24 >= 1) fprintf(out, " %.0f h", hours - days * 24);
  }
}

static void put_when(const drawing *d, const char *what, double t) {
  fputs(what, d->out);
  put_time(d->out, t - d->p->first);
}

static double x_of(const drawing *d, double t) {
  const double part = (t - d->p->first) / d->span_s;
  return LEFT + SPAN * (part < 0 ? 0 : part > 1 ? 1 : part);
}

static size_t column_of(const drawing *d, double t) {
  const double at = (x_of(d, t) - LEFT) * PLOT_COLUMNS / SPAN;
  return at >= PLOT_COLUMNS ? PLOT_COLUMNS - 1 : (size_t)at;
}

static double column_begins(const drawing *d, size_t at) {
  return d->p->first + (double)at * d->span_s / PLOT_COLUMNS;
}

/* ---- the head ---- */

static const char style[] =
    "<style>\n"
    "svg{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--dim:#57606a;--line:#d8dee4;"
    "--kept:#1a66d0;--dropped:#97a1ac;--unsaved:#b35900;--lost:#cf222e;--shade:.13}\n"
    "@media(prefers-color-scheme:dark){svg{--paper:#0f141a;--ink:#e6edf3;--dim:#9aa5b1;"
    "--line:#2b333d;--kept:#58a6ff;--dropped:#6e7985;--unsaved:#f0a04b;--lost:#ff6b63;"
    "--shade:.22}}\n"
    "text{font:12px system-ui,sans-serif;fill:var(--ink)}\n"
    ".h{font-size:17px;font-weight:600}.b{font-weight:600}.d{fill:var(--dim)}\n"
    ".e{text-anchor:end}.m{text-anchor:middle}tspan{font-weight:400}\n"
    ".paper{fill:var(--paper)}.grid{stroke:var(--line)}\n"
    ".kept{--own:var(--kept)}.dropped{--own:var(--dropped)}.unsaved,.unwanted{--own:"
    "var(--unsaved)}\n"
    ".lost{--own:var(--lost)}\n"
    ".bar{fill:var(--own)}.edge{stroke:var(--own);stroke-width:2}circle{fill:var(--own)}\n"
    ".wait{stroke:var(--own);stroke-width:1.2;stroke-dasharray:2 2}\n"
    ".unwanted circle,path{fill:none;stroke:var(--own);stroke-width:1.6}\n"
    ".shade{fill:var(--own);opacity:var(--shade)}\n"
    "</style>\n";

static const char *plural(uint64_t count) {
  return count == 1 ? "" : "s";
}

static void put_title(const drawing *d) {
  const char *const *names = d->head->policies;
  fputs("What the policy ", d->out);
  if (!names || !names[0]) fputs("that is built in", d->out);
  for (size_t i = 0; names && names[i] && i < 4; i++) {
    if (i) fputs(", ", d->out);
    svg_put(d->out, i < 3 ? names[i] : "\xe2\x80\xa6", 40);
  }
  fputs(" would have saved and kept", d->out);
}

static void put_fate_sum(const drawing *d) {
  FILE *out = d->out;
  const ckpt_simulation *s = d->head->sum;
  const size_t all = d->p->mark_count;
  fprintf(out, "%zu checkpoint%s: %" PRIu64 " saved (", all, plural(all), s->saved);
  text_size(out, s->bytes_sent);
  fprintf(out, " sent), of which %" PRIu64 " kept to the end and %" PRIu64 " dropped (", s->kept,
          s->deleted);
  text_size(out, s->bytes_kept);
  fprintf(out, " in the store then); %" PRIu64 " not saved",
          (uint64_t)all > s->saved ? (uint64_t)all - s->saved : 0);
}

static void put_crash_sum(const drawing *d) {
  const ckpt_simulation *s = d->head->sum;
  const char *events = d->head->events;
  fprintf(d->out, "%" PRIu64 " crash%s, ", s->crashes, s->crashes == 1 ? "" : "es");
  put_time(d->out, s->lost_s);
  fputs(" of work lost; of the events in ", d->out);
  svg_put(d->out, strcmp(events, "-") == 0 ? "standard input" : events, 80);
}

static void put_legend(FILE *out) {
  const double y = 82, text = y + 4;
  fputs("<g class=\"kept\">", out);
  svg_dot(out, 20, y, 3);
  svg_line(out, "wait", 20, y, 36, y);
  svg_box(out, "bar", 36, y - 4, 28, 8);
  svg_text(out, "", 70, text, "complete, sent, saved and kept");
  fputs("</g>\n<g class=\"dropped\">", out);
  svg_box(out, "bar", 290, y - 4, 28, 8);
  svg_line(out, "edge", 318, y - 6, 318, y + 6);
  svg_text(out, "", 326, text, "saved, dropped later");
  fputs("</g>\n<g class=\"unwanted\">", out);
  svg_dot(out, 482, y, 4);
  svg_text(out, "", 492, text, "not saved: not wanted");
  fputs("</g>\n<g class=\"unsaved\">", out);
  svg_cross(out, 656, y);
  svg_text(out, "", 666, text, "wanted, not saved");
  fputs("</g>\n<g class=\"lost\">", out);
  svg_box(out, "shade", 806, y - 7, 24, 14);
  svg_line(out, "edge", 830, y - 7, 830, y + 7);
  svg_text(out, "", 838, text, "work lost | machine gone");
  fputs("</g>\n", out);
}

/* How far the times that are named lie apart: at most ten of them. */
static double step_of(double span_s) {
  static const double fine[] = {1,   2,    5,    10,   15,    30,    60,    120,   300,   600,
                                900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800};
  for (size_t i = 0; span_s > 5 && i < sizeof fine / sizeof *fine; i++)
    if (span_s / fine[i] <= 9) return fine[i];
  double ten = span_s > 5 ? 86400 : 1e-9;
  while (span_s / (ten * 10) > 9) ten *= 10;
  return span_s / ten <= 9         ? ten
         : span_s / (2 * ten) <= 9 ? 2 * ten
         : span_s / (5 * ten) <= 9 ? 5 * ten
                                   : 10 * ten;
}

static void put_axis(const drawing *d, double bottom) {
  FILE *out = d->out;
  const double step = step_of(d->span_s);
  for (int i = 0; i * step <= d->span_s * 1.000001 && i < 12; i++) {
    const double x = x_of(d, d->p->first + i * step);
    svg_line(out, "grid", x, TOP - 6, x, bottom + 4);
    for (int top = 0; top < 2; top++) {
      svg_begin_text(out, "d m", x, top ? TOP - 12 : bottom + 19);
      put_time(out, i * step);
      svg_end_text(out);
    }
  }
  svg_begin_text(out, "d m", LEFT + SPAN / 2.0, bottom + 38);
  fputs("time since the first event", out);
  if (d->p->first > 0) fprintf(out, " (t = %.9g)", d->p->first);
  svg_end_text(out);
}

/* ---- a checkpoint in a row ---- */

static const char *class_of(const plot_mark *m) {
  if (m->saved >= 0) return m->gone >= 0 ? "dropped" : "kept";
  return m->wanted ? "unsaved" : "unwanted";
}

static void put_story(const drawing *d, const plot_mark *m) {
  FILE *out = d->out;
  fputs("<title>", out);
  svg_put(out, m->name, TITLE_MAX);
  put_when(d, ": complete at ", m->made);
  if (m->saved >= 0) {
    put_when(d, ", saved at ", m->saved);
    if (m->gone >= 0)
      put_when(d, ", dropped at ", m->gone);
    else
      fputs(", kept to the end", out);
  } else {
    fputs(m->wanted ? ", wanted, but not saved: let go, failed or lost on its way"
                    : ", not saved: the policy did not want it",
          out);
  }
  fputs("</title>", out);
}

static void put_life(const drawing *d, const plot_mark *m, double y) {
  const double made = x_of(d, m->made), saved = x_of(d, m->saved);
  const double end = m->gone >= 0 ? x_of(d, m->gone) : LEFT + SPAN;
  svg_line(d->out, "wait", made, y, saved, y);
  svg_dot(d->out, made, y, 3);
  svg_box(d->out, "bar", saved, y - 4, end - saved > 2 ? end - saved : 2, 8);
  if (m->gone >= 0) svg_line(d->out, "edge", end, y - 6, end, y + 6);
}

static void put_row(const drawing *d, const plot_mark *m, double y) {
  FILE *out = d->out;
  fprintf(out, "<g class=\"%s\">", class_of(m));
  put_story(d, m);
  svg_begin_text(out, "d e", LEFT - 10, y + 4);
  svg_put(out, m->name, LABEL_MAX);
  svg_end_text(out);
  if (m->saved >= 0)
    put_life(d, m, y);
  else if (m->wanted)
    svg_cross(out, x_of(d, m->made), y);
  else
    svg_dot(out, x_of(d, m->made), y, 4);
  fputs("</g>\n", out);
}

/* ---- many checkpoints, in columns ---- */

typedef struct column {
  uint64_t kept, dropped, unsaved;
} column;

/* Counts the checkpoints of a lane; returns how many the fullest column has, at least 1. */
static uint64_t count_columns(const drawing *d, size_t lane, column all[PLOT_COLUMNS]) {
  uint64_t most = 1;
  for (size_t i = d->starts[lane]; i < d->starts[lane + 1]; i++) {
    const plot_mark *m = &d->p->marks[d->order[i]];
    column *c = &all[column_of(d, m->made)];
    c->kept += m->saved >= 0 && m->gone < 0;
    c->dropped += m->saved >= 0 && m->gone >= 0;
    c->unsaved += m->saved < 0;
    const uint64_t sum = c->kept + c->dropped + c->unsaved;
    if (sum > most) most = sum;
  }
  return most;
}

static void put_column(const drawing *d, const column *c, size_t at, double bottom, uint64_t most) {
  static const char *const classes[] = {"kept", "dropped", "unsaved"};
  const uint64_t counts[] = {c->kept, c->dropped, c->unsaved};
  const double x = LEFT + (double)at * SPAN / PLOT_COLUMNS;
  double y = bottom;
  put_when(d, "<g class=\"column\"><title>from ", column_begins(d, at));
  fprintf(d->out,
          ": %" PRIu64 " kept to the end, %" PRIu64 " dropped, %" PRIu64 " not saved</title>",
          c->kept, c->dropped, c->unsaved);
  for (size_t i = 0; i < 3; i++) {
    const double height = (double)counts[i] * (COLUMNS_HEIGHT - 12) / (double)most;
    if (!counts[i]) continue;
    y -= height;
    fprintf(d->out, "<g class=\"%s\">", classes[i]);
    svg_box(d->out, "bar", x, y, (double)SPAN / PLOT_COLUMNS - 0.8, height);
    fputs("</g>", d->out);
  }
  fputs("</g>\n", d->out);
}

static void put_columns(const drawing *d, size_t lane, double top) {
  FILE *out = d->out;
  column all[PLOT_COLUMNS] = {0};
  const uint64_t most = count_columns(d, lane, all);
  const double bottom = top + COLUMNS_HEIGHT;
  svg_line(out, "grid", LEFT, bottom, LEFT + SPAN, bottom);
  svg_begin_text(out, "d e", LEFT - 10, top + 16);
  fprintf(out, "%" PRIu64, most);
  svg_end_text(out);
  svg_begin_text(out, "d e", LEFT - 10, bottom - 30);
  fputs("checkpoints in ", out);
  put_time(out, d->span_s / PLOT_COLUMNS);
  svg_end_text(out);
  svg_text(out, "d e", LEFT - 10, bottom + 1, "0");
  for (size_t i = 0; i < PLOT_COLUMNS; i++)
    if (all[i].kept + all[i].dropped + all[i].unsaved > 0) put_column(d, &all[i], i, bottom, most);
}

/* ---- lost work ---- */

static void put_lost(const drawing *d, double from, double to, double top, double height) {
  const double x = x_of(d, to), left = x_of(d, from);
  if (x > left) svg_box(d->out, "shade", left, top, x - left, height);
  svg_line(d->out, "edge", x, top, x, top + height);
  fputs("</g>\n", d->out);
}

static void put_each_loss(const drawing *d, size_t lane, double top, double height) {
  for (size_t i = 0; i < d->p->loss_count; i++) {
    const plot_loss *loss = &d->p->losses[i];
    if (loss->lane != lane) continue;
    put_when(d, "<g class=\"lost\"><title>machine gone at ", loss->t);
    fputs(": ", d->out);
    put_time(d->out, loss->lost_s);
    fputs(" of work lost</title>", d->out);
    put_lost(d, loss->t - loss->lost_s, loss->t, top, height);
  }
}

static void put_counted_losses(const drawing *d, size_t lane, double top, double height) {
  struct {
    uint64_t count;
    double lost_s;
  } all[PLOT_COLUMNS] = {0};
  for (size_t i = 0; i < d->p->loss_count; i++) {
    const plot_loss *loss = &d->p->losses[i];
    if (loss->lane != lane) continue;
    all[column_of(d, loss->t)].count++;
    all[column_of(d, loss->t)].lost_s += loss->lost_s;
  }
  for (size_t i = 0; i < PLOT_COLUMNS; i++) {
    if (!all[i].count) continue;
    fprintf(d->out, "<g class=\"lost\"><title>machine gone %" PRIu64 " time%s, ", all[i].count,
            plural(all[i].count));
    put_time(d->out, all[i].lost_s);
    put_when(d, " of work lost, from ", column_begins(d, i));
    fputs("</title>", d->out);
    put_lost(d, column_begins(d, i), column_begins(d, i + 1), top, height);
  }
}

/* ---- lanes ---- */

static void put_fates(FILE *out, const plot_lane *lane) {
  fprintf(out, "%" PRIu64 " kept, %" PRIu64 " dropped, %" PRIu64 " not saved",
          lane->saved - lane->gone, lane->gone, lane->made - lane->saved);
  if (!lane->losses) return;
  fprintf(out, "; its machine went %" PRIu64 " time%s, ", lane->losses, plural(lane->losses));
  put_time(out, lane->lost_s);
  fputs(" of work lost", out);
}

static void put_lane_head(const drawing *d, const plot_lane *lane, bool rows, double y) {
  FILE *out = d->out;
  svg_begin_text(out, "b", MARGIN, y);
  svg_put(out, *lane->name ? lane->name : "the run", LANE_MAX);
  fputs("<tspan class=\"d\" dx=\"10\">", out);
  put_fates(out, lane);
  if (!rows) fputs("; counted by when complete", out);
  if (lane->losses > PLOT_LOSSES) fputs("; red: when it went", out);
  fputs("</tspan>", out);
  svg_end_text(out);
}

static void put_lane(const drawing *d, size_t at, bool rows, double top, double inner) {
  const plot_lane *l = &d->p->lanes[at];
  const double from = top + LANE_HEAD;
  put_lane_head(d, l, rows, top + 15);
  if (l->losses > PLOT_LOSSES)
    put_counted_losses(d, at, from, inner);
  else
    put_each_loss(d, at, from, inner);
  for (size_t i = d->starts[at]; rows && i < d->starts[at + 1]; i++)
    put_row(d, &d->p->marks[d->order[i]], from + ROW / 2.0 + (double)(i - d->starts[at]) * ROW);
  if (!rows) put_columns(d, at, from);
}

static void add_lane(plot_lane *sum, const plot_lane *lane) {
  sum->made += lane->made;
  sum->saved += lane->saved;
  sum->gone += lane->gone;
  sum->losses += lane->losses;
  sum->lost_s += lane->lost_s;
}

/* Draws the first lanes, if `draw`; returns where they end. What is left out is counted. */
static double lanes(const drawing *d, bool draw, plot_lane *sum, size_t *left) {
  size_t rows_left = PLOT_ROWS_ALL, drawn = 0;
  double y = TOP;
  *left = 0;
  *sum = (plot_lane){0};
  for (size_t i = 0; i < d->p->lane_count; i++) {
    const plot_lane *l = &d->p->lanes[i];
    if (!l->name) continue;
    if (drawn++ >= PLOT_LANES) {
      ++*left;
      add_lane(sum, l);
      continue;
    }
    const bool rows = l->made <= PLOT_ROWS && l->made <= rows_left;
    const double inner = !rows ? COLUMNS_HEIGHT : ROW * (l->made ? (double)l->made : 1);
    if (rows) rows_left -= (size_t)l->made;
    if (draw) put_lane(d, i, rows, y, inner);
    y += LANE_HEAD + inner + LANE_GAP;
  }
  return y;
}

/* ---- all of it ---- */

static void put_left_out(const drawing *d, const plot_lane *sum, size_t left, double y) {
  FILE *out = d->out;
  if (d->p->forgotten) {
    svg_begin_text(out, "b", MARGIN, y - 22);
    fprintf(out, "%" PRIu64 " more losses of a machine are in the sums alone", d->p->forgotten);
    svg_end_text(out);
  }
  if (!left) return;
  svg_begin_text(out, "b", MARGIN, y);
  fprintf(out, "%zu more trial%s are left out here: ", left, plural(left));
  put_fates(out, sum);
  svg_end_text(out);
}

static void put_head(const drawing *d, double height) {
  FILE *out = d->out;
  fprintf(out,
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
          "viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\" role=\"img\">\n<title>",
          WIDTH, height, WIDTH, height);
  put_title(d);
  fputs("</title>\n<desc>", out);
  put_fate_sum(d);
  fputs(". ", out);
  put_crash_sum(d);
  fputs("</desc>\n", out);
  fputs(style, out);
  svg_box(out, "paper", 0, 0, WIDTH, height);
  svg_begin_text(out, "h", MARGIN, 27);
  put_title(d);
  svg_end_text(out);
  svg_begin_text(out, "d", MARGIN, 47);
  put_fate_sum(d);
  svg_end_text(out);
  svg_begin_text(out, "d", MARGIN, 63);
  put_crash_sum(d);
  svg_end_text(out);
  put_legend(out);
}

static void put_all(const drawing *d) {
  plot_lane sum;
  size_t left;
  const double bottom = lanes(d, false, &sum, &left);
  put_head(d, bottom + 52 + (left ? 24 : 0));
  put_axis(d, bottom);
  lanes(d, true, &sum, &left);
  put_left_out(d, &sum, left, bottom + 62);
  fputs("</svg>\n", d->out);
}

/* Sorts the marks by their lanes; within one they stay in their order. */
static bool sort(drawing *d) {
  const plot *p = d->p;
  d->starts = calloc(p->lane_count + 2, sizeof *d->starts);
  d->order = calloc(p->mark_count + 1, sizeof *d->order);
  if (!d->starts || !d->order) return false;
  for (size_t i = 0; i < p->mark_count; i++) d->starts[p->marks[i].lane + 2]++;
  for (size_t i = 2; i < p->lane_count + 2; i++) d->starts[i] += d->starts[i - 1];
  for (size_t i = 0; i < p->mark_count; i++) d->order[d->starts[p->marks[i].lane + 1]++] = i;
  return true;
}

bool plot_draw(const plot *p, const plot_head *head, FILE *out) {
  drawing d = {.p = p, .head = head, .out = out, .span_s = p->last - p->first};
  if (!(d.span_s > 0)) d.span_s = 1;
  const bool good = sort(&d);
  if (good) put_all(&d);
  free(d.starts);
  free(d.order);
  return good;
}
