#include "detect_sim.h"

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sim_somebody_writes;
bool (*sim_has_writer)(const char *path);

static bool answer(const char *path) {
  return sim_has_writer ? sim_has_writer(path) : sim_somebody_writes;
}

static void must(int rc, const err *e) {
  if (rc >= 0) return;
  fprintf(stderr, "detect_sim: %s\n", e->text);
  abort();
}

sim *sim_new(const rules *rules) {
  sim *s = calloc(1, sizeof *s);
  s->tree = io_tree_new();
  s->rules = rules ? rules : rules_builtin();
  s->now = 1000 * SIM_S + 123456789; /* not a whole second: stamps look as fine as they are */
  io_tree_clock(s->tree, s->now);
  sim_somebody_writes = false;
  sim_has_writer = NULL;
  return s;
}

void sim_free(sim *s) {
  detect_close(s->d);
  io_tree_free(s->tree);
  free(s->news);
  free(s);
}

void sim_drain(sim *s) {
  detect_unit u;
  while (detect_next(s->d, &u)) {
    if (s->count == s->room) {
      s->room = s->room ? 2 * s->room : 32;
      s->news = realloc(s->news, s->room * sizeof *s->news);
    }
    sim_news *n = &s->news[s->count++];
    *n = (sim_news){.t = s->now,
                    .state = u.state,
                    .generation = u.generation,
                    .files = u.files,
                    .bytes = u.bytes,
                    .in_place = u.in_place};
    snprintf(n->path, sizeof n->path, "%s", u.path);
    snprintf(n->reason, sizeof n->reason, "%s", u.reason);
    if (s->on_news) s->on_news(s->ctx, n);
  }
}

void sim_open_mode(sim *s, detect_mode mode, int64_t poll_ns) {
  err e = {0};
  detect_options o = {.io = io_tree_io(s->tree),
                      .root = IO_TREE_ROOT,
                      .rules = s->rules,
                      .mode = mode,
                      .poll_ns = poll_ns,
                      .known = s->known,
                      .known_count = s->known_count,
                      .agree = s->agree,
                      .agree_ctx = s,
                      .has_writer = answer};
  must(detect_open(&o, &s->d, &e), &e);
  sim_drain(s);
}

void sim_open(sim *s) {
  sim_open_mode(s, DETECT_FED, 0);
}

int sim_set_up_tree(void **state) {
  *state = sim_new(NULL);
  return 0;
}

int sim_set_up(void **state) {
  sim_set_up_tree(state);
  sim_open(*state);
  return 0;
}

int sim_tear_down(void **state) {
  sim_free(*state);
  return 0;
}

void sim_until(sim *s, int64_t t_ns) {
  err e = {0};
  for (int64_t due; s->d && (due = detect_due(s->d)) <= t_ns;) {
    if (due > s->now) s->now = due;
    io_tree_clock(s->tree, s->now);
    must(detect_run(s->d, &e), &e);
    sim_drain(s);
    if (detect_due(s->d) <= s->now) s->now++; /* what is due at once must not stop the clock */
  }
  if (t_ns > s->now) s->now = t_ns;
  io_tree_clock(s->tree, s->now);
}

void sim_wait(sim *s, int64_t ns) {
  sim_until(s, s->now + ns);
}

void sim_feed(sim *s, watch_kind kind, const char *path, bool is_dir, uint32_t cookie) {
  err e = {0};
  watch_event ev = {.kind = kind, .path = path, .is_dir = is_dir, .cookie = cookie};
  if (!s->d || s->deaf) return;
  must(detect_feed(s->d, &ev, &e), &e);
  sim_drain(s);
}

void sim_mkdir(sim *s, const char *path) {
  io_tree_mkdir(s->tree, path);
  sim_feed(s, WATCH_CREATE, path, true, 0);
}

void sim_create(sim *s, const char *path) {
  io_tree_write(s->tree, path, 0);
  sim_feed(s, WATCH_CREATE, path, false, 0);
}

void sim_write(sim *s, const char *path, uint64_t size) {
  io_tree_write(s->tree, path, size);
  sim_feed(s, WATCH_MODIFY, path, false, 0);
}

void sim_close(sim *s, const char *path) {
  sim_feed(s, WATCH_CLOSE_WRITE, path, false, 0);
}

void sim_begin(sim *s, const char *path, uint64_t size) {
  sim_create(s, path);
  sim_write(s, path, size);
}

void sim_save(sim *s, const char *path, uint64_t size) {
  if (!io_tree_has(s->tree, path)) sim_create(s, path);
  sim_write(s, path, size);
  sim_close(s, path);
}

void sim_rename(sim *s, const char *from, const char *to) {
  bool dir = io_tree_is_dir(s->tree, from);
  io_tree_rename(s->tree, from, to);
  s->cookie++;
  sim_feed(s, WATCH_MOVED_FROM, from, dir, s->cookie);
  sim_feed(s, WATCH_MOVED_TO, to, dir, s->cookie);
}

void sim_arrive(sim *s, const char *path, uint64_t size) {
  if (io_tree_has(s->tree, path)) io_tree_remove(s->tree, path);
  io_tree_write(s->tree, path, size);
  sim_feed(s, WATCH_MOVED_TO, path, false, ++s->cookie);
}

void sim_remove(sim *s, const char *path) {
  bool dir = io_tree_is_dir(s->tree, path);
  io_tree_remove(s->tree, path);
  sim_feed(s, WATCH_DELETE, path, dir, 0);
}

void sim_remove_tree(sim *s, const char *path) {
  static const char *const names[] = {"model.safetensors",
                                      "optimizer.pt",
                                      "rng_state.pth",
                                      "trainer_state.json",
                                      "a.bin",
                                      "b.bin",
                                      "training_args.bin",
                                      NULL};
  char child[512];
  for (int i = 0; names[i]; i++) {
    snprintf(child, sizeof child, "%s/%s", path, names[i]);
    if (io_tree_has(s->tree, child)) sim_remove(s, child);
  }
  sim_remove(s, path);
}

detect_unit sim_unit(sim *s, const char *path) {
  detect_unit u = {.state = DETECT_GONE, .reason = "not known"};
  detect_find(s->d, path, &u);
  return u;
}

detect_state sim_state(sim *s, const char *path) {
  return sim_unit(s, path).state;
}

void sim_after(sim *s, int64_t ns, const char *path, detect_state state) {
  static const char *const names[] = {[DETECT_OPEN] = "open",
                                      [DETECT_COMPLETE] = "complete",
                                      [DETECT_UNPROVEN] = "unproven",
                                      [DETECT_BROKEN] = "broken",
                                      [DETECT_GONE] = "gone"};
  sim_wait(s, ns);
  detect_unit u = sim_unit(s, path);
  if (u.state != state)
    fail_msg("%s is %s, not %s: %s", path, names[u.state], names[state], u.reason);
}

const char *sim_reason(sim *s, const char *path) {
  return sim_unit(s, path).reason;
}

int64_t sim_when(const sim *s, const char *path, detect_state state, size_t from) {
  for (size_t i = from; i < s->count; i++)
    if (s->news[i].state == state && strcmp(s->news[i].path, path) == 0) return s->news[i].t;
  return -1;
}

size_t sim_times(const sim *s, const char *path, detect_state state) {
  size_t n = 0;
  for (size_t i = 0; i < s->count; i++)
    n += s->news[i].state == state && strcmp(s->news[i].path, path) == 0;
  return n;
}
