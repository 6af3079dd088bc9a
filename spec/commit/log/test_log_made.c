/* Makes logs of any length below a directory, for rounds_spec.sh and bench_log.sh, which say
 * how. They are made in memory, by the engine, and written out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commit/log/runlog.h"
#include "manifest_make.h"

static void must(int rc, const err *e) {
  if (rc >= 0) return;
  fprintf(stderr, "%s\n", e->text);
  exit(1);
}

static void commit(runlog *log, int step) {
  char unit[64];
  uint64_t n;
  manifest m;
  err e = {0};
  snprintf(unit, sizeof unit, "checkpoint-%d", step);
  make_small(&m, unit, (uint64_t)step);
  m.step = step;
  m.text = m.root;
  must(runlog_attempt_begin(log, unit, &n, &e), &e);
  must(runlog_commit_attempt(log, n, &m, &(runlog_note){.reason = "each checkpoint"}, NULL, &e),
       &e);
  must(runlog_snapshot(log, &e), &e);
  manifest_free(&m);
}

static void write_file(const char *dir, const char *key, const buf *text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", dir, key);
  for (char *at = path + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    mkdir(path, 0755);
    *at = '/';
  }
  FILE *f = fopen(path, "w");
  if (!f || fwrite(text->data, 1, text->len, f) != text->len || fclose(f) != 0) {
    perror(path);
    exit(1);
  }
}

static void write_out(store *s, const char *dir) {
  store_keys keys = {0};
  err e = {0};
  must(s->ops->list(s, "", false, store_keys_add, &keys, &e), &e);
  for (size_t i = 0; i < keys.count; i++) {
    buf text;
    buf_init(&text, 64 << 20);
    must(s->ops->get(s, keys.at[i].key, &text, &e), &e);
    write_file(dir, keys.at[i].key, &text);
    buf_free(&text);
  }
  store_keys_free(&keys);
}

int main(int argc, char **argv) {
  uri u;
  store *s = NULL;
  runlog *log = NULL;
  runlog_writer who = {.launch = "one", .host = "h"};
  err e = {0};
  if (argc != 3) {
    puts("1..0 # SKIP spec/commit/log/rounds_spec.sh runs it: DIR COMMITS");
    return 0;
  }
  must(uri_parse("mem://made", &u, &e), &e);
  must(store_open(&u, io_system(), NULL, &s, &e), &e);
  must(runlog_open(s, "", &log, &e), &e);
  must(runlog_begin(log, "one", &who, false, &e), &e);
  for (int i = 1; i <= atoi(argv[2]); i++) commit(log, i);
  write_out(s, argv[1]);
  runlog_close(log);
  store_close(s);
  return 0;
}
