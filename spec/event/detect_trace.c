#include "detect_trace.h"

#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Tests are run from the project's root, or from beside this file. */
static FILE *open_trace(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "spec/data/traces/%s.jsonl", name);
  FILE *f = fopen(path, "r");
  if (!f) {
    snprintf(path, sizeof path, "%.*s../data/traces/%s.jsonl",
             (int)(strrchr(__FILE__, '/') ? strrchr(__FILE__, '/') - __FILE__ + 1 : 0), __FILE__,
             name);
    f = fopen(path, "r");
  }
  if (!f) fail_msg("no trace %s", name);
  return f;
}

static double number(json_t *o, const char *key, double otherwise) {
  json_t *v = json_object_get(o, key);
  return json_is_number(v) ? json_number_value(v) : otherwise;
}

trace trace_read(const char *name) {
  trace tr = {0};
  char text[4096];
  FILE *f = open_trace(name);
  while (fgets(text, sizeof text, f)) {
    json_t *o;
    assert_int_equal(js_parse(text, strlen(text), name, &o, NULL), 0);
    tr.at = realloc(tr.at, (tr.count + 1) * sizeof *tr.at);
    trace_line *l = &tr.at[tr.count++];
    *l = (trace_line){.t = number(o, "t", 0), .size = (int64_t)number(o, "size", -1)};
    l->t_end = number(o, "t_end", l->t);
    l->cookie = (uint32_t)number(o, "cookie", 0);
    const char *ev = json_string_value(json_object_get(o, "ev"));
    const char *link = json_string_value(json_object_get(o, "link"));
    l->is_dir = ev && strstr(ev, ",ISDIR") != NULL;
    snprintf(l->ev, sizeof l->ev, "%.*s", ev ? (int)strcspn(ev, ",") : 0, ev ? ev : "");
    snprintf(l->path, sizeof l->path, "%s", json_string_value(json_object_get(o, "path")));
    snprintf(l->link, sizeof l->link, "%s", link ? link : "");
    json_decref(o);
  }
  fclose(f);
  return tr;
}

bool trace_is(const trace_line *l, const char *ev) {
  return strcmp(l->ev, ev) == 0;
}

static bool within(const char *path, const char *top) {
  size_t len = strlen(top);
  return strncmp(path, top, len) == 0 && (!path[len] || path[len] == '/' || path[len] == '.');
}

static bool ends(const char *path, const char *ending) {
  size_t n = strlen(path), m = strlen(ending);
  return n >= m && strcmp(path + n - m, ending) == 0;
}

/* The recordings have no bytes. These formats show in theirs whether all was written: a zip by its end,
 * HDF5 by the end of file that its superblock names. */
static void put_bytes(sim *s, const char *path, uint64_t size, bool whole) {
  bool torch = ends(path, ".pt") || (ends(path, ".pth") && !strstr(path, "legacy_"));
  bool zip = (torch || ends(path, ".ckpt") || ends(path, ".keras")) && size >= 26;
  bool hdf5 = ends(path, ".h5") && size >= 2048;
  if (!zip && !hdf5) return;
  unsigned char *b = calloc(1, size);
  if (!b) abort();
  if (zip) memcpy(b, "PK\3\4", 4);
  if (zip && whole) {
    memcpy(b + size - 22, "PK\5\6", 4);
    for (int i = 0; i < 4; i++) b[size - 6 + i] = (unsigned char)((size - 22) >> (8 * i));
  }
  uint64_t end = whole ? size : 2 * size;
  if (hdf5) memcpy(b, "\x89HDF\r\n\x1a\n", 8);
  if (hdf5) b[13] = 8;
  for (int i = 0; hdf5 && i < 8; i++) b[40 + i] = (unsigned char)(end >> (8 * i));
  io_tree_content(s->tree, path, b, size);
  free(b);
}

static uint64_t size_of(const sim *s, const char *path) {
  struct stat st;
  char absolute[600];
  const io *io = io_tree_io(s->tree);
  snprintf(absolute, sizeof absolute, "%s/%s", IO_TREE_ROOT, path);
  return io->lstat(io, AT_FDCWD, absolute, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void put(sim *s, const trace_line *l) {
  if (*l->link) {
    if (io_tree_has(s->tree, l->path)) io_tree_remove(s->tree, l->path);
    io_tree_link(s->tree, l->path, l->link);
  } else if (l->is_dir) {
    io_tree_mkdir(s->tree, l->path);
  } else {
    io_tree_write(s->tree, l->path, l->size < 0 ? 0 : (uint64_t)l->size);
  }
}

static const char *base_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Finds what was moved to where a listing found it: its departure is told right after, and no arrival,
 * since nobody watched there yet. */
static trace_line *moved_here(const trace *tr, size_t scanned) {
  size_t k = scanned;
  while (k < tr->count && trace_is(&tr->at[k], "SCAN")) k++;
  if (k == tr->count || !trace_is(&tr->at[k], "MOVED_FROM")) return NULL;
  bool same = strcmp(base_of(tr->at[k].path), base_of(tr->at[scanned].path)) == 0;
  for (size_t t = k + 1; same && t < tr->count; t++)
    if (trace_is(&tr->at[t], "MOVED_TO") && tr->at[t].cookie == tr->at[k].cookie) same = false;
  return same ? &tr->at[k] : NULL;
}

/* What a listing of this new directory found is there before its event is read. */
static void put_scanned(sim *s, const trace *tr, size_t i) {
  const char *moved = NULL;
  for (size_t k = i + 1; k < tr->count && trace_is(&tr->at[k], "SCAN"); k++) {
    trace_line found = tr->at[k], *from = moved_here(tr, k);
    found.is_dir = found.size < 0;
    if (!within(found.path, tr->at[i].path) || (moved && within(found.path, moved))) continue;
    if (from && io_tree_has(s->tree, from->path)) {
      io_tree_rename(s->tree, from->path, found.path);
      from->to_known = true;
      moved = tr->at[k].path;
    } else {
      put(s, &found);
    }
  }
}

static void move(sim *s, trace *tr, size_t i) {
  const trace_line *l = &tr->at[i];
  if (!l->to_known && !io_tree_has(s->tree, l->path)) put(s, l);
  for (size_t k = i + 1; k < tr->count; k++) {
    if (!trace_is(&tr->at[k], "MOVED_TO") || tr->at[k].cookie != l->cookie) continue;
    tr->at[k].to_known = true;
    /* The recorder was often too late to see the size under the first name. */
    if (l->size < 0 && tr->at[k].size >= 0)
      io_tree_write(s->tree, l->path, (uint64_t)tr->at[k].size);
    io_tree_rename(s->tree, l->path, tr->at[k].path);
    break;
  }
  sim_feed(s, WATCH_MOVED_FROM, l->path, l->is_dir, l->cookie);
}

int64_t trace_ns(double t) {
  return 2000 * SIM_S + (int64_t)(t * 1e9);
}

static void replay_line(sim *s, trace *tr, size_t i) {
  const trace_line *l = &tr->at[i];
  sim_until(s, trace_ns(l->t));
  if (trace_is(l, "CREATE")) {
    put(s, l);
    if (l->is_dir) put_scanned(s, tr, i);
    sim_feed(s, WATCH_CREATE, l->path, l->is_dir, 0);
  } else if (trace_is(l, "MODIFY")) {
    io_tree_write(s->tree, l->path, l->size < 0 ? 1 : (uint64_t)l->size);
    sim_feed(s, WATCH_MODIFY, l->path, false, 0);
    put_bytes(s, l->path, size_of(s, l->path), false);
    if (l->t_end > l->t) {
      sim_until(s, trace_ns(l->t_end));
      io_tree_write(s->tree, l->path, l->size < 0 ? 1 : (uint64_t)l->size);
      put_bytes(s, l->path, size_of(s, l->path), false);
      sim_feed(s, WATCH_MODIFY, l->path, false, 0);
    }
  } else if (trace_is(l, "CLOSE_WRITE")) {
    if (l->size >= 0 && (uint64_t)l->size != size_of(s, l->path))
      io_tree_write(s->tree, l->path, (uint64_t)l->size);
    put_bytes(s, l->path, size_of(s, l->path), true);
    sim_feed(s, WATCH_CLOSE_WRITE, l->path, false, 0);
  } else if (trace_is(l, "ATTRIB")) {
    sim_feed(s, WATCH_ATTRIB, l->path, l->is_dir, 0);
  } else if (trace_is(l, "MOVED_FROM")) {
    move(s, tr, i);
  } else if (trace_is(l, "MOVED_TO")) {
    if (!l->to_known) {
      if (io_tree_has(s->tree, l->path)) io_tree_remove(s->tree, l->path);
      put(s, l);
    }
    sim_feed(s, WATCH_MOVED_TO, l->path, l->is_dir, l->cookie);
  } else if (trace_is(l, "DELETE")) {
    if (io_tree_has(s->tree, l->path)) io_tree_remove(s->tree, l->path);
    sim_feed(s, WATCH_DELETE, l->path, l->is_dir, 0);
  }
}

/* True if the next save of the same name begins with this line: all of the one before had been there,
 * closed, for a second. */
static bool is_next_save(const trace *tr, const sim_news *n, const trace_line *l) {
  if (!n->in_place || strcmp(l->path, n->path) != 0) return false;
  for (const trace_line *before = l; before-- > tr->at;)
    if (strcmp(before->path, l->path) == 0)
      return trace_is(before, "CLOSE_WRITE") && (uint64_t)before->size == n->bytes &&
             l->t - before->t > 1;
  return false;
}

/* A file above the checkpoints is written again and again: when it is called complete, the last that
 * happened to it must be a close. */
static void a_close_came_last(const trace *tr, const char *path, int64_t t) {
  const trace_line *last = NULL;
  for (size_t i = 0; i < tr->count && trace_ns(tr->at[i].t) <= t; i++)
    if (strcmp(tr->at[i].path, path) == 0) last = &tr->at[i];
  if (!last) abort();
  assert_string_equal(last->ev, "CLOSE_WRITE");
  assert_true(t - trace_ns(last->t) >= SIM_S);
}

bool trace_is_above(const char *path) {
  match_unit m;
  return rules_is_above(rules_builtin(), rules_match(rules_builtin(), path, false, &m));
}

/* A temporary name beside a file is no part of it. */
static bool is_beside(const char *path, const char *unit) {
  return path[strlen(unit)] == '.' && rules_excluded(rules_builtin(), path, false);
}

/* Of a unit: what gives it other bytes. */
static bool writes(const trace_line *l, const char *unit) {
  return (trace_is(l, "MODIFY") || trace_is(l, "CREATE") || trace_is(l, "MOVED_TO") ||
          trace_is(l, "SCAN")) &&
         within(l->path, unit) && !is_beside(l->path, unit) && !*l->link;
}

/* A unit that was handed out complete must not have been written to later, until another save of
 * the same name begins, or is moved into its place: from there on it is another file. */
static void never_complete_too_early(const sim *s, const trace *tr, const char *name) {
  for (size_t i = 0; i < s->count; i++) {
    const sim_news *n = &s->news[i];
    if (n->state != DETECT_COMPLETE) continue;
    if (trace_is_above(n->path)) {
      a_close_came_last(tr, n->path, n->t);
      continue;
    }
    for (size_t k = 0; k < tr->count; k++) {
      const trace_line *l = &tr->at[k];
      if (trace_ns(l->t) > n->t && is_next_save(tr, n, l)) break;
      if (!writes(l, n->path) || trace_ns(l->t_end) <= n->t) continue;
      if (trace_is(l, "MOVED_TO") && strcmp(l->path, n->path) == 0) break;
      fail_msg("%s: %s complete at %.3f, %s %s at %.3f", name, n->path,
               (double)(n->t - 2000 * SIM_S) / 1e9, l->ev, l->path, l->t);
    }
  }
}

void trace_each_within(const sim *s, const char *name, double within_s) {
  trace tr = trace_read(name);
  for (size_t i = 0; i < s->count; i++) {
    const sim_news *n = &s->news[i];
    const trace_line *last = NULL;
    if (n->state != DETECT_COMPLETE || trace_is_above(n->path)) continue;
    for (const trace_line *l = tr.at; l < tr.at + tr.count; l++)
      if (trace_ns(l->t_end) <= n->t &&
          (writes(l, n->path) || (trace_is(l, "CLOSE_WRITE") && within(l->path, n->path))))
        last = l;
    if (!last) abort();
    double waited = (double)(n->t - trace_ns(last->t_end)) / 1e9;
    if (waited > within_s)
      fail_msg("%s: %s was complete %.3f s after its last write, not within %.3f s", name, n->path,
               waited, within_s);
  }
  free(tr.at);
}

static int count_states(void *ctx, const detect_unit *u) {
  size_t *count = ctx;
  if (u->state != DETECT_COMPLETE)
    fail_msg("%s is left in state %d: %s", u->path, (int)u->state, u->reason);
  ++*count;
  return 0;
}

/* Replays; all that is left at the end must be complete. */
sim *trace_replay(const char *name, size_t expected) {
  trace tr = trace_read(name);
  sim *s = sim_new(NULL);
  size_t complete = 0;
  sim_until(s, trace_ns(0));
  sim_open(s);
  for (size_t i = 0; i < tr.count; i++) replay_line(s, &tr, i);
  sim_wait(s, 120 * SIM_S);
  never_complete_too_early(s, &tr, name);
  assert_int_equal(detect_each(s->d, count_states, &complete), 0);
  if (complete != expected) {
    for (size_t i = 0; i < s->count; i++)
      fprintf(stderr, "%s %d %s\n", s->news[i].path, (int)s->news[i].state, s->news[i].reason);
    fail_msg("%s: %zu units, not %zu", name, complete, expected);
  }
  assert_int_equal(detect_due(s->d), INT64_MAX); /* nothing is left to wake up for */
  free(tr.at);
  return s;
}

void trace_complete_by(const sim *s, const char *path, double t, double within_s) {
  int64_t when = -1;
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->news[i].path, path) == 0 && s->news[i].state == DETECT_COMPLETE)
      when = s->news[i].t;
  if (when < trace_ns(t) || when > trace_ns(t + within_s))
    fail_msg("%s was complete at %.3f, not within %.3f s of %.3f", path,
             (double)(when - 2000 * SIM_S) / 1e9, within_s, t);
}

sim *trace_ruins(const char *name) {
  char file[128];
  snprintf(file, sizeof file, "kill/%s.left", name);
  trace tr = trace_read(file);
  sim *s = sim_new(NULL);
  for (int pass = 0; pass < 2; pass++) /* directories first, parents first */
    for (size_t len = 1; len < 512; len++)
      for (size_t i = 1; i < tr.count; i++)
        if (strlen(tr.at[i].path) == len && (tr.at[i].size < 0) == (pass == 0)) {
          trace_line l = tr.at[i];
          l.is_dir = pass == 0;
          sim_wait(s, SIM_MS);
          put(s, &l);
        }
  free(tr.at);
  return s;
}
