/* restore, ls, verify, version: they ask the engine, and print data on stdout. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report.h"
#include "text.h"
#include "verbs.h"

/* A full disk or a closed pipe must not look like a short list: the buffer is flushed and looked at
 * before we say that all went well. */
static int finish_output(int code) {
  errno = 0;
  bool bad = fflush(stdout) != 0 || ferror(stdout);
  if (!bad) return code;
  report_error("cannot write the output: %s", errno ? strerror(errno) : "write error");
  return code == EXIT_DONE ? EXIT_FAILED : code;
}

static int open_engine(ckpt **engine) {
  ckpt_options options = {
      .size = sizeof options, .log_level = report_log_level(), .log = report_log};
  int rc = ckpt_open(engine, &options);
  if (rc < 0)
    report_error("cannot start the engine: %s",
                 *engine ? ckpt_error(*engine) : ckpt_status_name(rc));
  return rc;
}

static int64_t wall_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- one checkpoint ---- */

static bool in_group(const ckpt_item *item) {
  return item->group && *item->group;
}

/* By its directory: a name that was saved again and again has generations ("last.pt.~7"), and each
 * can be asked for by that. */
static void plain_name(FILE *f, const ckpt_item *item) {
  if (in_group(item)) {
    text_plain(f, item->group);
    fputc('/', f);
  }
  text_plain(f, item->dir ? item->dir : "?");
}

static void json_step(FILE *f, int64_t step) {
  if (step >= 0)
    fprintf(f, "%lld", (long long)step);
  else
    fputs("null", f);
}

/* The members of an item, without the braces. */
static void json_item(FILE *f, const ckpt_item *item) {
  fputs("\"group\":", f);
  text_json_name(f, item->group ? item->group : "");
  fputs(",\"name\":", f);
  text_json_name(f, item->name ? item->name : "");
  fputs(",\"dir\":", f);
  text_json_name(f, item->dir ? item->dir : "");
  fputs(",\"step\":", f);
  json_step(f, item->step);
  fprintf(f, ",\"files\":%llu,\"bytes\":%llu,\"time_ns\":%lld,\"committed\":\"",
          (unsigned long long)item->files, (unsigned long long)item->bytes,
          (long long)item->time_ns);
  text_time(f, item->time_ns);
  fprintf(f, "\",\"number\":%llu,\"root\":", (unsigned long long)item->number);
  text_json(f, item->root ? item->root : "");
  fputs(",\"uri\":", f);
  text_json(f, item->uri ? item->uri : "");
}

/* ---- ls ---- */

enum { COLUMNS = 6 };

typedef struct table {
  char *(*rows)[COLUMNS];
  size_t count;
  int64_t now_ns;
  bool json, failed;
} table;

/* A cell is written to a FILE of its own, as its width is only known then. */
static FILE *begin_cell(char **cell, size_t *size) {
  return open_memstream(cell, size);
}

static int fill_row(char *row[COLUMNS], const ckpt_item *item, int64_t now_ns) {
  for (int i = 0; i < COLUMNS; i++) {
    size_t size;
    FILE *f = begin_cell(&row[i], &size);
    if (!f) return -1;
    if (i == 0) plain_name(f, item);
    if (i == 1 && item->step >= 0) fprintf(f, "%lld", (long long)item->step);
    if (i == 1 && item->step < 0) fputc('-', f);
    if (i == 2) fprintf(f, "%llu", (unsigned long long)item->files);
    if (i == 3) text_size(f, item->bytes);
    if (i == 4) text_age(f, (double)(now_ns - item->time_ns) / 1e9, 0);
    if (i == 5) text_time(f, item->time_ns);
    if (fclose(f) != 0) return -1;
  }
  return 0;
}

static int add_row(void *ctx, const ckpt_item *item) {
  table *t = ctx;
  if (t->json) {
    fputc('{', stdout);
    json_item(stdout, item);
    fputs("}\n", stdout);
    t->count++;
    return ferror(stdout);
  }
  if (t->count % 64 == 0) {
    void *rows = realloc(t->rows, (t->count + 64) * sizeof *t->rows);
    if (!rows) {
      t->failed = true;
      return 1;
    }
    t->rows = rows;
  }
  char **row = t->rows[t->count++];
  memset(row, 0, sizeof *t->rows);
  t->failed = fill_row(row, item, t->now_ns) != 0;
  return t->failed;
}

static void print_table(const table *t) {
  static const char *const heads[COLUMNS] = {"NAME", "STEP", "FILES", "SIZE", "AGE", "COMMITTED"};
  size_t widths[COLUMNS];
  for (int i = 0; i < COLUMNS; i++) {
    widths[i] = strlen(heads[i]);
    for (size_t r = 0; r < t->count; r++)
      if (strlen(t->rows[r][i]) > widths[i]) widths[i] = strlen(t->rows[r][i]);
  }
  for (size_t r = 0; r <= t->count; r++) {
    for (int i = 0; i < COLUMNS; i++) {
      const char *cell = r == 0 ? heads[i] : t->rows[r - 1][i];
      int pad = (int)(widths[i] - strlen(cell));
      /* Names stand left, numbers right, and nothing ends in blanks. */
      if (i == 0)
        printf("%s%*s", cell, pad, "");
      else
        printf("  %*s%s", i < COLUMNS - 1 ? pad : 0, "", cell);
    }
    putchar('\n');
  }
}

int verb_ls(const options *o) {
  ckpt *engine = NULL;
  table t = {.now_ns = wall_ns(), .json = o->json};
  int rc = open_engine(&engine);
  if (rc == 0) {
    rc = ckpt_list(engine, o->uri, add_row, &t);
    if (rc < 0)
      report_error("%s", ckpt_error(engine));
    else if (t.failed)
      report_error("out of memory");
    else if (t.count == 0)
      report_info("no checkpoint was committed at %s", o->uri);
    else if (!t.json)
      print_table(&t);
  }
  for (size_t r = 0; !t.json && r < t.count; r++)
    for (int i = 0; i < COLUMNS; i++) free(t.rows[r][i]);
  free(t.rows);
  ckpt_close(engine);
  return finish_output(rc < 0 ? exit_code_of(rc) : t.failed ? EXIT_FAILED : EXIT_DONE);
}

/* ---- restore ---- */

typedef struct restored {
  const options *o;
  size_t count;
} restored;

/* stdout gets the path, for scripts: path=$(ckpt-lua restore ...). */
static int print_restored(void *ctx, const ckpt_item *item) {
  restored *r = ctx;
  const char *slash = in_group(item) ? "/" : "";
  const char *group = item->group ? item->group : "";
  char *path = NULL, *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  bool ok =
      f && asprintf(&path, "%s/%s%s%s", r->o->dir, group, slash, item->name ? item->name : "") >= 0;
  r->count++;
  if (ok && r->o->json) {
    fputs("{\"path\":", stdout);
    text_json_name(stdout, path);
    fputc(',', stdout);
    json_item(stdout, item);
    fputs("}\n", stdout);
  } else if (ok) {
    puts(path);
  }
  if (f) {
    fputs("restored ", f);
    plain_name(f, item);
    fprintf(f, " (%llu file%s, ", (unsigned long long)item->files, item->files == 1 ? "" : "s");
    text_size(f, item->bytes);
    fprintf(f, ") to %s", r->o->dir);
    if (fclose(f) == 0) report_info("%s", text);
  }
  free(path);
  free(text);
  return 0;
}

int verb_restore(const options *o) {
  ckpt *engine = NULL;
  restored r = {.o = o};
  int rc = open_engine(&engine);
  if (rc == 0) {
    ckpt_restore_options options = {
        .size = sizeof options, .uri = o->uri, .name = o->name, .dir = o->dir};
    rc = ckpt_restore(engine, &options, print_restored, &r);
    if (rc < 0) report_error("%s", ckpt_error(engine));
  }
  ckpt_close(engine);
  return finish_output(rc < 0 ? exit_code_of(rc) : r.count == 0 ? EXIT_NOTHING : EXIT_DONE);
}

/* ---- verify ---- */

typedef struct verified {
  bool json;
  size_t good, bad;
} verified;

static int print_verified(void *ctx, const ckpt_verified *v) {
  verified *all = ctx;
  const char *reason = v->reason ? v->reason : "";
  if (v->status == CKPT_OK)
    all->good++;
  else
    all->bad++;
  if (all->json) {
    printf("{\"ok\":%s,\"status\":\"%s\",\"findings\":%u,\"reason\":",
           v->status == CKPT_OK ? "true" : "false", ckpt_status_name(v->status), v->findings);
    text_json(stdout, reason);
    fputc(',', stdout);
    json_item(stdout, v->item);
    fputs("}\n", stdout);
    return 0;
  }
  fputs(v->status == CKPT_OK ? "ok   " : "BAD  ", stdout);
  plain_name(stdout, v->item);
  if (v->status == CKPT_OK) {
    printf(" (%llu file%s, ", (unsigned long long)v->item->files, v->item->files == 1 ? "" : "s");
    text_size(stdout, v->item->bytes);
    fputs(")\n", stdout);
  } else {
    fputs(": ", stdout);
    text_plain(stdout, reason);
    if (v->findings > 1) printf(" (and %u more)", v->findings - 1);
    fputc('\n', stdout);
  }
  return 0;
}

int verb_verify(const options *o) {
  ckpt *engine = NULL;
  verified all = {.json = o->json};
  int code = EXIT_DONE;
  int rc = open_engine(&engine);
  if (rc == 0) {
    rc = ckpt_verify(engine, o->uri, o->name, print_verified, &all);
    /* Each bad one has had its line already. */
    if (rc < 0 && (rc != CKPT_ECORRUPT || all.bad == 0)) report_error("%s", ckpt_error(engine));
  }
  if (rc < 0)
    code = exit_code_of(rc);
  else if (all.bad > 0)
    code = EXIT_CORRUPT;
  else if (all.good == 0) {
    report_error("no checkpoint was committed at %s", o->uri);
    code = EXIT_NOTHING;
  }
  ckpt_close(engine);
  return finish_output(code);
}

/* ---- version ---- */

int verb_version(const options *o) {
  if (o->json) {
    fputs("{\"name\":\"ckpt-lua\",\"version\":", stdout);
    text_json(stdout, ckpt_version());
    fputs("}\n", stdout);
  } else {
    printf("ckpt-lua %s\n", ckpt_version());
  }
  return finish_output(EXIT_DONE);
}
