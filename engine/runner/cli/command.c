#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"
#include "text.h"

int command_open(ckpt **engine, const options *o) {
  return command_open_heard(engine, o, NULL, NULL);
}

int command_open_heard(ckpt **engine, const options *o, ckpt_progress_fn *fn, void *ctx) {
  ckpt_options options = {.size = sizeof options,
                          .log_level = report_log_level(),
                          .log = report_log,
                          .flags = o->policy_in_process ? CKPT_POLICY_IN_PROCESS : 0,
                          .progress = fn,
                          .progress_ctx = ctx};
  int rc = ckpt_open(engine, &options);
  if (rc < 0)
    report_error("cannot start the engine: %s",
                 *engine ? ckpt_error(*engine) : ckpt_status_name(rc));
  return rc;
}

int command_failed(const ckpt *engine, int status) {
  report_error("%s", ckpt_error(engine));
  return exit_code_of(status);
}

int command_end(int code) {
  errno = 0;
  bool bad = fflush(stdout) != 0 || ferror(stdout);
  if (!bad) return code;
  report_error("cannot write the output: %s", errno ? strerror(errno) : "write error");
  return code == EXIT_DONE ? EXIT_FAILED : code;
}

int command_close(ckpt *engine, int status, int code) {
  if (status < 0) code = command_failed(engine, status);
  ckpt_close(engine);
  return command_end(code);
}

int64_t command_wall_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- one checkpoint ---- */

void item_name(FILE *f, const ckpt_item *item) {
  if (item->group && *item->group) {
    text_plain(f, item->group);
    fputc('/', f);
  }
  text_plain(f, item->dir ? item->dir : "?");
}

void item_size(FILE *f, const ckpt_item *item) {
  fprintf(f, " (%llu file%s, ", (unsigned long long)item->files, item->files == 1 ? "" : "s");
  text_size(f, item->bytes);
  fputc(')', f);
}

/* Adds a member, or leaves it out rather than empty: older entries of a log do not have it. */
static void add_known(record *r, const char *key, const char *text) {
  if (text && *text) record_text(r, key, text);
}

/* Returns a malloced copy of the first of these names, and goes on to the next one; NULL: there is none. */
static char *take_name(const char **names) {
  size_t len = *names ? strcspn(*names, "/") : 0;
  char *name = len ? strndup(*names, len) : NULL;
  if (name) *names += len + ((*names)[len] == '/');
  return name;
}

void item_each_need(const ckpt_item *item, item_need *fn, void *ctx) {
  const char *at = item->needs;
  char *name;
  while ((name = take_name(&at))) {
    fn(ctx, name);
    free(name);
  }
}

struct list {
  FILE *out;
  bool more;
};

static void add_need(void *ctx, const char *name) {
  struct list *l = ctx;
  fputs(l->more ? "," : "", l->out);
  text_json_name(l->out, name);
  l->more = true;
}

static void add_needs(record *r, const ckpt_item *item) {
  if (!item->needs || !*item->needs) return;
  struct list l = {.out = record_key(r, "needs")};
  fputc('[', l.out);
  item_each_need(item, add_need, &l);
  fputc(']', l.out);
}

void item_json(record *r, const ckpt_item *item) {
  static const char *const lives[] = {"live", "dropped", "deleted"};
  record_name(r, "group", item->group);
  record_name(r, "name", item->name);
  record_name(r, "dir", item->dir);
  record_step(r, "step", item->step);
  record_count(r, "files", item->files);
  record_count(r, "bytes", item->bytes);
  if (item->foreign) { /* no log knows it */
    record_text(r, "uri", item->uri ? item->uri : "");
    record_bool(r, "foreign", true);
    return;
  }
  if (item->above) record_bool(r, "above", true);
  if (item->left_out) record_count(r, "left_out", item->left_out);
  if (item->thin) record_bool(r, "thin", true);
  add_needs(r, item);
  fprintf(record_key(r, "time_ns"), "%lld", (long long)item->time_ns);
  record_time(r, "committed", item->time_ns);
  record_count(r, "number", item->number);
  record_text(r, "root", item->root ? item->root : "");
  record_text(r, "uri", item->uri ? item->uri : "");
  add_known(r, "policy", item->policy);
  add_known(r, "reason", item->reason);
  if (item->metrics && *item->metrics) text_json_printed(record_key(r, "metrics"), item->metrics);
  if (item->life >= sizeof lives / sizeof *lives) return;
  record_text(r, "life", lives[item->life]);
  if (item->bad) record_bool(r, "bad", true);
  add_known(r, "bad_reason", item->bad_reason);
  add_known(r, "bad_lines", item->bad_lines);
  if (item->life == CKPT_LIVE) return;
  add_known(r, "drop_policy", item->drop_policy);
  add_known(r, "drop_reason", item->drop_reason);
  record_time(r, "dropped", item->drop_ns);
}

void item_json_line(record *r, const ckpt_item *item) {
  item_json(r, item);
  record_end_line(r);
}

static const char *within_group(const char *name, const char *group) {
  size_t n = strlen(group);
  return n > 0 && strncmp(name, group, n) == 0 && name[n] == '/' ? name + n + 1 : name;
}

bool item_is_asked(const ckpt_item *item, const char *name) {
  if (!name) return true;
  name = within_group(name, item->group ? item->group : "");
  return (item->name && strcmp(name, item->name) == 0) ||
         (item->dir && strcmp(name, item->dir) == 0);
}

/* ---- the newest of all ---- */

typedef struct newest {
  const options *o;
  item_writer *write;
  void *ctx;
  int64_t time_ns;
  char *text, *group; /* of the newest so far */
  bool bad;           /* it is marked bad */
  size_t all_bad;     /* how many are marked so, as long as no other was seen; the last of them: */
  char bad_name[256];
} newest;

/* Within a group the log's order holds, whatever clocks the writers had. */
static bool is_newer(const newest *n, const ckpt_item *item) {
  if (!n->text || item->time_ns >= n->time_ns) return true;
  return n->group && strcmp(n->group, item->group ? item->group : "") == 0;
}

/* True if it is better than the newest so far. One that is marked bad is the newest only of those
 * that were named, and if all of them are. */
static bool is_better(const newest *n, const ckpt_item *item) {
  if (item->above && !n->o->name) return false; /* it is no checkpoint */
  if (item->bad && (!n->o->name || (n->text && !n->bad))) return false;
  return is_newer(n, item) || (n->bad && !item->bad);
}

static void count_bad(newest *n, const ckpt_item *item) {
  if (!item->bad || item->above) return;
  n->all_bad++;
  snprintf(n->bad_name, sizeof n->bad_name, "%s", item->dir ? item->dir : "?");
}

static int take_item(void *ctx, const ckpt_item *item) {
  newest *n = ctx;
  char *text = NULL;
  size_t size = 0;
  count_bad(n, item);
  if (!item_is_asked(item, n->o->name) || !is_better(n, item)) return 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return CKPT_ENOMEM;
  n->write(f, item, n->ctx);
  if (fclose(f) != 0) return CKPT_ENOMEM;
  free(n->text);
  free(n->group);
  n->text = text;
  n->group = strdup(item->group ? item->group : "");
  n->time_ns = item->time_ns;
  n->bad = item->bad;
  return n->group ? 0 : CKPT_ENOMEM;
}

int command_newest(const options *o, item_writer *write, void *ctx) {
  ckpt *engine = NULL;
  newest n = {.o = o, .write = write, .ctx = ctx};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = ckpt_list(engine, o->uri, take_item, &n);
  if (rc == CKPT_ENOMEM) {
    report_error("out of memory");
    code = EXIT_FAILED;
  } else if (rc < 0) {
    code = command_failed(engine, rc);
  } else if (n.text) {
    fputs(n.text, stdout);
  } else {
    code = EXIT_NOTHING;
    if (o->name)
      report_error("%s has no checkpoint %s (ckpt-lua ls shows what there is)", o->uri, o->name);
    else if (n.all_bad)
      report_error(
          "%s has %zu checkpoint%s, and no good one: %s%s marked bad (ckpt-lua ls shows why, "
          "ckpt-lua mark good takes it back)",
          o->uri, n.all_bad, n.all_bad == 1 ? "" : "s", n.bad_name,
          n.all_bad == 1 ? " is" : " and all others are");
    else
      report_error("%s has no checkpoint yet", o->uri);
  }
  free(n.text);
  free(n.group);
  ckpt_close(engine);
  return command_end(code);
}

/* ---- tables ---- */

/* One stream has the cells of all rows, for a stream costs more than what is written to it. A row has
 * all columns there: a head may be set after the first rows. */
void table_add(table *t, cell_writer *write, const void *ctx) {
  if (!t->cells) t->cells = open_memstream(&t->text, &t->size);
  for (int i = 0; t->cells && i < TABLE_COLUMNS; i++) {
    if (t->heads[i]) write(t->cells, i, ctx);
    fputc(0, t->cells);
  }
  if (!t->cells || fflush(t->cells) != 0 || ferror(t->cells))
    t->failed = true;
  else
    t->count++;
}

static void widen(int *widths, const char *const *row) {
  for (int i = 0; i < TABLE_COLUMNS; i++) {
    int width = row[i] ? (int)strlen(row[i]) : 0;
    if (width > widths[i]) widths[i] = width;
  }
}

static void print_row(const table *t, const int *widths, const char *const *row, FILE *out) {
  int owed = 0; /* blanks before the next cell that is not empty: no line ends in blanks */
  for (int i = 0; i < TABLE_COLUMNS && t->heads[i]; i++) {
    int pad = widths[i] - (int)strlen(row[i]);
    bool left = t->left >> i & 1;
    if (!left) owed += pad;
    if (*row[i]) {
      fprintf(out, "%*s%s", owed, "", row[i]);
      owed = 0;
    }
    owed += 2 + (left ? pad : 0);
  }
  fputc('\n', out);
}

/* Cuts the row that begins at `at`, and returns where the next one does. */
static const char *cut_row(const char *at, const char **row) {
  for (int i = 0; i < TABLE_COLUMNS; i++) {
    row[i] = at;
    at += strlen(at) + 1;
  }
  return at;
}

void table_print(const table *t, FILE *out) {
  int widths[TABLE_COLUMNS] = {0};
  const char *row[TABLE_COLUMNS], *at = t->text;
  widen(widths, t->heads);
  for (size_t r = 0; r < t->count; r++) {
    at = cut_row(at, row);
    widen(widths, row);
  }
  print_row(t, widths, t->heads, out);
  at = t->text;
  for (size_t r = 0; r < t->count; r++) {
    at = cut_row(at, row);
    print_row(t, widths, row, out);
  }
}

void table_free(table *t) {
  if (t->cells) fclose(t->cells);
  free(t->text);
  t->cells = NULL;
  t->text = NULL;
  t->count = 0;
}
