/* Random schedules: writers that save as the frameworks do, side by side, with events that come
 * late, get lost, or never were, with deaths in between. Whatever happens: what is handed out as
 * complete is the whole of a finished save; in the end each finished save is handed out; and once
 * the writers are gone nothing stays open.
 *
 * SEED=n runs that schedule alone and says what happens in it; with COUNT=m, m from there on. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detect_sim.h"

enum { PATH = 96, OPS = 48, WRITERS = 4, TARGETS = 64, QUEUE = 512, DIRS = 64, SCHEDULES = 2000 };

/* Under a sanitizer each takes many times as long, and looks for other mistakes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BY_DEFAULT = SCHEDULES / 10 };
#else
enum { BY_DEFAULT = SCHEDULES };
#endif

typedef enum op_kind {
  OP_MKDIR,
  OP_OPEN,
  OP_WRITE,
  OP_CLOSE,
  OP_RENAME,
  OP_UNLINK,
  OP_RMDIR
} op_kind;

typedef struct op {
  op_kind kind;
  char path[PATH], to[PATH];
  uint64_t size;
  bool part; /* a write with more to come */
} op;

/* What one checkpoint is by the generator's book. */
typedef struct target {
  char path[PATH];
  bool taken, busy;           /* somebody is at it; and what is there is not whole */
  bool torn, there, doubtful; /* doubtful: its writer died before detect could be sure */
  uint64_t files, bytes;      /* of the finished save */
} target;

typedef struct writer {
  op ops[OPS];
  size_t count, next;
  target *target;
  bool deletes, apart;
  uint64_t files, bytes;
  char open[PATH];
} writer;

typedef struct event {
  watch_kind kind;
  char path[PATH];
  bool is_dir;
  uint32_t cookie;
} event;

typedef struct world {
  sim *s;
  uint64_t random;
  unsigned seed;
  bool loud, polling, deaths, overflows, ranks;
  writer writers[WRITERS];
  target targets[TARGETS];
  size_t target_count;
  event queue[QUEUE];
  size_t queued;
  char watched[DIRS][PATH];
  size_t watched_count;
  int next_step;
  size_t complete;
} world;

static world *now_running; /* for has_writer */

static uint64_t dice(world *w, uint64_t n) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (w->random >> 11) % n;
}

static bool within(const char *path, const char *top) {
  size_t len = strlen(top);
  return strncmp(path, top, len) == 0 && (!path[len] || path[len] == '/' || path[len] == '.');
}

static bool has_writer(const char *path) {
  const char *below = path + strlen(IO_TREE_ROOT);
  if (*below == '/') below++;
  for (int i = 0; i < WRITERS; i++) {
    const char *open = now_running->writers[i].open;
    if (*open && (!*below || within(open, below))) return true;
  }
  return false;
}

static void book(const writer *by) {
  target *t = by->target;
  t->busy = t->torn = t->doubtful = false;
  t->there = !by->deletes;
  t->files = by->files;
  t->bytes = by->bytes;
}

static void finish(writer *by) {
  if (by->target->busy) book(by);
  by->target->taken = false;
  by->count = by->next = 0;
}

/* --- events: only of directories that are watched --- */

static bool is_watched(const world *w, const char *path) {
  char dir[PATH];
  const char *slash = strrchr(path, '/');
  if (!slash) return true;
  snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
  for (size_t i = 0; i < w->watched_count; i++)
    if (strcmp(w->watched[i], dir) == 0) return true;
  return false;
}

static void emit(world *w, watch_kind kind, const char *path, bool is_dir, uint32_t cookie) {
  if (w->polling || !is_watched(w, path)) return;
  assert_true(w->queued < QUEUE);
  event *ev = &w->queue[w->queued++];
  *ev = (event){.kind = kind, .is_dir = is_dir, .cookie = cookie};
  snprintf(ev->path, sizeof ev->path, "%s", path);
}

static void watch_dir(world *w, const char *path) {
  if (!io_tree_is_dir(w->s->tree, path)) return;
  if (rules_excluded(w->s->rules, path, true)) return;
  assert_true(w->watched_count < DIRS);
  snprintf(w->watched[w->watched_count++], PATH, "%s", path);
}

static void forget_dir(world *w, const char *path) {
  for (size_t i = w->watched_count; i-- > 0;)
    if (strcmp(w->watched[i], path) == 0)
      memcpy(w->watched[i], w->watched[--w->watched_count], PATH);
}

static void flush(world *w) {
  for (size_t i = 0; i < w->queued; i++) {
    const event *ev = &w->queue[i];
    if (w->loud)
      fprintf(stderr, "%9.3f event %d %s\n", (double)w->s->now / 1e9, (int)ev->kind, ev->path);
    if (ev->is_dir && (ev->kind == WATCH_CREATE || ev->kind == WATCH_MOVED_TO)) {
      forget_dir(w, ev->path);
      watch_dir(w, ev->path);
    }
    sim_feed(w->s, ev->kind, ev->path, ev->is_dir, ev->cookie);
  }
  w->queued = 0;
}

static void overflow(world *w) {
  if (w->loud) fprintf(stderr, "%9.3f overflow\n", (double)w->s->now / 1e9);
  w->queued = 0;
  sim_feed(w->s, WATCH_OVERFLOW, "", false, 0);
  w->watched_count = 0;
  for (size_t i = 0; i < w->target_count; i++) watch_dir(w, w->targets[i].path);
}

/* --- what writers do --- */

static void do_open(world *w, writer *by, const op *o) {
  bool there = io_tree_has(w->s->tree, o->path);
  io_tree_write(w->s->tree, o->path, 0);
  emit(w, there ? WATCH_MODIFY : WATCH_CREATE, o->path, false, 0);
  snprintf(by->open, PATH, "%s", o->path);
}

static void do_rename(world *w, writer *by, const op *o) {
  bool dir = io_tree_is_dir(w->s->tree, o->path);
  io_tree_rename(w->s->tree, o->path, o->to);
  uint32_t cookie = ++w->s->cookie;
  emit(w, WATCH_MOVED_FROM, o->path, dir, cookie);
  emit(w, WATCH_MOVED_TO, o->to, dir, cookie);
  /* Here it is done; at most the close of what was renamed is left. */
  bool last = by->next + 1 >= by->count && by->ops[by->count - 1].kind != OP_OPEN;
  if (strcmp(o->to, by->target->path) == 0 || last) {
    book(by);
    by->apart = true;
  }
  if (strcmp(by->open, o->path) == 0) snprintf(by->open, PATH, "%s", o->to);
}

/* Its structure tells whether all of it was written. */
static void write_json(io_tree *t, const op *o) {
  char *text = calloc(1, o->size);
  if (!text) abort();
  memset(text, ' ', o->size);
  text[0] = '{';
  if (!o->part) text[o->size - 1] = '}';
  io_tree_content(t, o->path, text, o->size);
  free(text);
}

static void perform(world *w, writer *by, const op *o) {
  io_tree *t = w->s->tree;
  if (w->loud)
    fprintf(stderr, "%9.3f op %d %s %s\n", (double)w->s->now / 1e9, (int)o->kind, o->path, o->to);
  bool changes = o->kind != OP_MKDIR || !io_tree_has(t, o->path);
  if (!by->apart && changes) by->target->busy = true;
  switch (o->kind) {
  case OP_MKDIR:
    if (io_tree_has(t, o->path)) break;
    io_tree_mkdir(t, o->path);
    emit(w, WATCH_CREATE, o->path, true, 0);
    break;
  case OP_OPEN: do_open(w, by, o); break;
  case OP_WRITE:
    if (strstr(o->path, ".json"))
      write_json(t, o);
    else
      io_tree_write(t, o->path, o->size);
    emit(w, WATCH_MODIFY, o->path, false, 0);
    break;
  case OP_CLOSE:
    emit(w, WATCH_CLOSE_WRITE, o->path, false, 0);
    by->open[0] = '\0';
    break;
  case OP_RENAME: do_rename(w, by, o); break;
  case OP_UNLINK:
    if (!io_tree_has(t, o->path)) break;
    io_tree_remove(t, o->path);
    emit(w, WATCH_DELETE, o->path, false, 0);
    break;
  case OP_RMDIR:
    if (!io_tree_has(t, o->path)) break;
    io_tree_remove(t, o->path);
    emit(w, WATCH_DELETE, o->path, true, 0);
    forget_dir(w, o->path);
    break;
  }
}

/* --- scripts --- */

static void add_op(writer *by, op_kind kind, const char *path, const char *to, uint64_t size) {
  assert_true(by->count < OPS);
  op *o = &by->ops[by->count++];
  *o = (op){.kind = kind, .size = size};
  snprintf(o->path, PATH, "%s", path);
  snprintf(o->to, PATH, "%s", to);
}

static uint64_t some_size(world *w) {
  return 130 + dice(w, 5000);
}

/* open, writes, close */
static void add_file(world *w, writer *by, const char *dir, const char *name) {
  char path[2 * PATH];
  uint64_t size = some_size(w);
  snprintf(path, sizeof path, "%s%s%s", dir, *dir ? "/" : "", name);
  add_op(by, OP_OPEN, path, "", 0);
  if (dice(w, 2)) {
    add_op(by, OP_WRITE, path, "", size / 2 + 100);
    by->ops[by->count - 1].part = true;
  }
  add_op(by, OP_WRITE, path, "", size);
  add_op(by, OP_CLOSE, path, "", 0);
  by->files++;
  by->bytes += size;
}

/* the same under a temporary name, renamed before or after its close */
static void add_renamed(world *w, writer *by, const char *dir, const char *temporary,
                        const char *name) {
  char from[2 * PATH], to[2 * PATH];
  uint64_t size = some_size(w);
  bool late = dice(w, 2);
  snprintf(from, sizeof from, "%s%s%s", dir, *dir ? "/" : "", temporary);
  snprintf(to, sizeof to, "%s%s%s", dir, *dir ? "/" : "", name);
  add_op(by, OP_OPEN, from, "", 0);
  add_op(by, OP_WRITE, from, "", size);
  if (!late) add_op(by, OP_CLOSE, from, "", 0);
  add_op(by, OP_RENAME, from, to, 0);
  if (late) add_op(by, OP_CLOSE, to, "", 0);
  by->files++;
  by->bytes += size;
}

static target *target_named(world *w, const char *path) {
  for (size_t i = 0; i < w->target_count; i++)
    if (strcmp(w->targets[i].path, path) == 0) return &w->targets[i];
  if (w->target_count == TARGETS) return NULL;
  target *t = &w->targets[w->target_count++];
  snprintf(t->path, PATH, "%s", path);
  return t;
}

static int pick_step(world *w, int reuse_in) {
  if (w->next_step > 1 && dice(w, (uint64_t)reuse_in) == 0)
    return 1 + (int)dice(w, (uint64_t)w->next_step - 1);
  return w->next_step++;
}

static void script_hf(world *w, writer *by, const char *dir) {
  add_op(by, OP_MKDIR, dir, "", 0);
  add_file(w, by, dir, "config.json");
  if (w->ranks) add_file(w, by, dir, "rng_state_1.pth");
  add_renamed(w, by, dir, ".tmpAbCdEf", "model.safetensors");
  add_file(w, by, dir, "training_args.bin");
  add_file(w, by, dir, "optimizer.pt");
  add_file(w, by, dir, "trainer_state.json");
}

static void script_dcp(world *w, writer *by, const char *dir) {
  add_op(by, OP_MKDIR, dir, "", 0);
  add_file(w, by, dir, "__0_0.distcp");
  add_file(w, by, dir, "__1_0.distcp");
  add_renamed(w, by, dir, ".metadata.tmp", ".metadata");
}

static void script_orbax(world *w, writer *by, const char *dir) {
  char tmp[2 * PATH], sub[3 * PATH];
  snprintf(tmp, sizeof tmp, "%s.orbax-checkpoint-tmp", dir);
  snprintf(sub, sizeof sub, "%s/state", tmp);
  add_op(by, OP_MKDIR, tmp, "", 0);
  add_op(by, OP_MKDIR, sub, "", 0);
  add_file(w, by, sub, "manifest.ocdbt");
  add_file(w, by, tmp, "_CHECKPOINT_METADATA");
  add_op(by, OP_RENAME, tmp, dir, 0);
}

/* A new save, or the removal of an old one. False: this target cannot be used now. */
static bool begin(world *w, writer *by) {
  char path[PATH];
  *by = (writer){0};
  int kind = (int)dice(w, 8), step;
  switch (kind) {
  case 0: snprintf(path, sizeof path, "last.pt"); break;
  case 1: snprintf(path, sizeof path, "model_%d.ubj", pick_step(w, 4)); break;
  case 2: snprintf(path, sizeof path, "best.pth"); break;
  case 3: snprintf(path, sizeof path, "checkpoint-%d", pick_step(w, 5)); break;
  case 4: snprintf(path, sizeof path, "step-%d", pick_step(w, 3)); break;
  case 5: snprintf(path, sizeof path, "%d", w->next_step++); break;
  case 6: snprintf(path, sizeof path, "checkpoint_%d", w->next_step++); break;
  default:
    step = w->next_step++;
    snprintf(path, sizeof path, "ckpt-%d", step);
    break;
  }
  target *t = target_named(w, path);
  if (!t || t->taken) return false;
  by->target = t;
  switch (kind) {
  case 0:
  case 1: add_file(w, by, "", path); break;
  case 2: add_renamed(w, by, "", "best.pth.tmp", path); break;
  case 3: script_hf(w, by, path); break;
  case 4: script_dcp(w, by, path); break;
  case 5: script_orbax(w, by, path); break;
  case 6:
    add_op(by, OP_MKDIR, path, "", 0);
    add_renamed(w, by, path, ".tmpAbCdEf", "model.safetensors");
    add_file(w, by, path, "optimizer.bin");
    add_file(w, by, path, "random_states_0.pkl");
    break;
  default: {
    char data[PATH + 8], index[PATH + 8];
    snprintf(data, sizeof data, "%s.data-0", path);
    snprintf(index, sizeof index, "%s.index", path);
    add_file(w, by, "", data);
    add_file(w, by, "", index);
  }
  }
  /* What is built elsewhere leaves the old one whole until the rename. */
  by->apart = kind == 2 || kind == 5;
  t->taken = true;
  return true;
}

static bool begin_removal(world *w, writer *by) {
  static const char *const names[] = {"config.json",       "rng_state_1.pth", "model.safetensors",
                                      "training_args.bin", "optimizer.pt",    "trainer_state.json"};
  char path[2 * PATH];
  target *t = &w->targets[dice(w, w->target_count)];
  *by = (writer){0};
  if (t->taken || !t->there || strncmp(t->path, "checkpoint-", 11) != 0) return false;
  by->target = t;
  by->deletes = true;
  t->taken = true;
  for (int i = 0; i < 6; i++) {
    snprintf(path, sizeof path, "%s/%s", t->path, names[i]);
    if (io_tree_has(w->s->tree, path)) add_op(by, OP_UNLINK, path, "", 0);
  }
  add_op(by, OP_RMDIR, t->path, "", 0);
  return true;
}

/* All writers die; the kernel closes what they had open. */
static void die_all(world *w) {
  if (w->loud) fprintf(stderr, "%9.3f all die\n", (double)w->s->now / 1e9);
  for (int i = 0; i < WRITERS; i++) {
    writer *by = &w->writers[i];
    if (*by->open) emit(w, WATCH_CLOSE_WRITE, by->open, false, 0);
    /* A JSON text that is closed is whole, whoever closes the file. */
    bool whole = by->next + 1 == by->count && strstr(by->open, "/trainer_state.json");
    whole = whole && by->ops[by->next].kind == OP_CLOSE;
    if (whole && by->target->busy) book(by);
    if (by->next < by->count && by->target->busy) by->target->torn = true;
    if (by->next < by->count) by->target->busy = by->target->taken = false;
    *by = (writer){0};
  }
  flush(w);
  /* The parent sees the end a little after the closes. */
  if (dice(w, 2)) sim_wait(w->s, (int64_t)dice(w, 190) * SIM_MS);
  detect_writer_gone(w->s->d, false);
  for (size_t i = 0; i < w->target_count; i++) {
    target *t = &w->targets[i];
    t->doubtful = t->doubtful || t->torn || sim_state(w->s, t->path) != DETECT_COMPLETE;
  }
}

/* --- the invariant --- */

static void check(void *ctx, const sim_news *n) {
  world *w = ctx;
  if (w->loud)
    fprintf(stderr, "%9.3f NEWS %s state %d gen %u: %s\n", (double)n->t / 1e9, n->path,
            (int)n->state, n->generation, n->reason);
  if (n->state != DETECT_COMPLETE) return;
  target *t = NULL;
  for (size_t i = 0; i < w->target_count; i++)
    if (strcmp(w->targets[i].path, n->path) == 0) t = &w->targets[i];
  if (!t) {
    fail_msg("SEED=%u: %s is no checkpoint", w->seed, n->path);
    return;
  }
  if (t->busy) fail_msg("SEED=%u: %s is complete while it is written", w->seed, n->path);
  if (t->torn) fail_msg("SEED=%u: %s is complete though its save was killed", w->seed, n->path);
  if (n->files != t->files || n->bytes != t->bytes)
    fail_msg("SEED=%u: %s has %d files, %d bytes, not %d, %d", w->seed, n->path, (int)n->files,
             (int)n->bytes, (int)t->files, (int)t->bytes);
  w->complete++;
}

static void all_finished_saves_are_complete(world *w) {
  for (size_t i = 0; i < w->target_count; i++) {
    target *t = &w->targets[i];
    detect_unit u = sim_unit(w->s, t->path);
    if (!t->there || t->doubtful || t->torn) continue;
    if (u.state != DETECT_COMPLETE)
      fail_msg("SEED=%u: %s was saved, but is in state %d: %s", w->seed, t->path, (int)u.state,
               u.reason);
  }
}

static int is_decided(void *ctx, const detect_unit *u) {
  const world *w = ctx;
  if (u->state == DETECT_OPEN)
    fail_msg("SEED=%u: %s is open for ever: %s", w->seed, u->path, u->reason);
  return 0;
}

/* Nobody writes any more, and the longest quiet time has passed. */
static void nothing_is_open(world *w) {
  detect_each(w->s->d, is_decided, w);
  if (!w->polling) assert_true(detect_due(w->s->d) == INT64_MAX);
}

/* --- one schedule --- */

static int64_t some_time(world *w, bool all_open) {
  static const int64_t gaps[] = {0, 1, 40, 900, 6000, 20000}; /* ms at most */
  if (all_open && dice(w, 10) == 0) return (int64_t)dice(w, 300000) * SIM_MS;
  return (int64_t)dice(w, (uint64_t)gaps[dice(w, 6)] * 1000 + 1) * SIM_MS / 1000;
}

static void step_one(world *w) {
  writer *by = &w->writers[dice(w, WRITERS)];
  if (by->next == by->count) {
    bool removal = w->target_count > 2 && dice(w, 6) == 0;
    if (!(removal ? begin_removal(w, by) : begin(w, by))) *by = (writer){0};
    return;
  }
  perform(w, by, &by->ops[by->next++]);
  if (by->next == by->count) finish(by);
}

static void pass_time(world *w) {
  bool open = true;
  for (int i = 0; i < WRITERS; i++)
    if (w->writers[i].next < w->writers[i].count && !*w->writers[i].open) open = false;
  if (w->overflows && dice(w, 12) == 0)
    overflow(w);
  else
    flush(w);
  sim_wait(w->s, some_time(w, open && !w->polling));
}

/* The program ends with a removal half done, or between two files of a directory that would have
 * got its marker last. */
static void leave_undone(writer *by) {
  if (!by->target || by->next == by->count || *by->open) return;
  if (!by->deletes && strncmp(by->target->path, "step-", 5) != 0) return;
  if (by->target->busy) by->target->torn = true;
  by->target->busy = by->target->taken = false;
  *by = (writer){0};
}

static void run_schedule(unsigned seed, bool loud, size_t *complete) {
  static const int64_t grains[] = {1, 1, 4000000, 1000000000};
  world *w = calloc(1, sizeof *w);
  w->seed = seed;
  w->loud = loud;
  w->random = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; i++) dice(w, 2);
  w->next_step = 1;
  w->polling = seed % 4 == 3;
  w->deaths = seed % 3 == 1;
  w->overflows = seed % 2 == 1;
  w->ranks = dice(w, 2);
  w->s = sim_new(NULL);
  io_tree_grain(w->s->tree, grains[dice(w, 4)]);
  w->s->on_news = check;
  w->s->ctx = w;
  now_running = w;
  sim_has_writer = has_writer;
  if (w->polling)
    sim_open_mode(w->s, DETECT_FED, (int64_t)(1 + dice(w, 5)) * SIM_S);
  else
    sim_open(w->s);
  int64_t idle[WRITERS] = {0};
  for (int n = 0; n < 80; n++) {
    for (uint64_t k = dice(w, 5); k-- > 0;) step_one(w);
    /* Each writer that is between two files takes a step at least each 20 s. */
    int64_t before = w->s->now;
    pass_time(w);
    for (int i = 0; i < WRITERS; i++) {
      writer *by = &w->writers[i];
      /* A poll sees no close: there the silence began with the last write. */
      bool silent = by->next < by->count && (!*by->open || w->polling);
      idle[i] = silent ? idle[i] + w->s->now - before : 0;
      if (idle[i] < 8 * SIM_S) continue;
      for (bool seen = false; !seen && by->next < by->count;) {
        seen = !w->polling || by->ops[by->next].kind != OP_CLOSE;
        perform(w, by, &by->ops[by->next++]);
        if (by->next == by->count) finish(by);
      }
      idle[i] = 0;
    }
    if (w->deaths && dice(w, 60) == 0) {
      die_all(w);
      int64_t gap = (int64_t)dice(w, 100) * SIM_S;
      sim_wait(w->s, gap);
      if (gap > 40 * SIM_S) nothing_is_open(w);
      detect_writer_new(w->s->d);
    }
  }
  for (int i = 0; i < WRITERS; i++) {
    writer *by = &w->writers[i];
    if (seed % 10 == 0) leave_undone(by);
    while (by->next < by->count) {
      perform(w, by, &by->ops[by->next++]);
      if (by->next == by->count) finish(by);
      flush(w);
      sim_wait(w->s, 100 * SIM_MS);
    }
  }
  flush(w);
  if (seed % 5 == 0) detect_writer_gone(w->s->d, true);
  sim_wait(w->s, (seed % 5 == 0 && !w->polling ? 6 : 100) * SIM_S);
  all_finished_saves_are_complete(w);
  if (seed % 5 == 1) die_all(w);
  sim_wait(w->s, 100 * SIM_S);
  if (seed % 5 < 2) nothing_is_open(w);
  *complete += w->complete;
  sim_free(w->s);
  free(w);
}

static void what_is_complete_is_the_whole_of_a_finished_save(void **state) {
  size_t complete = 0;
  const char *from = getenv("SEED"), *many = getenv("COUNT");
  unsigned first = from ? (unsigned)atoi(from) : 1;
  unsigned count = many ? (unsigned)atoi(many) : from ? 1 : BY_DEFAULT;
  for (unsigned seed = first; seed < first + count; seed++)
    run_schedule(seed, count == 1, &complete);
  if (count > 1) assert_true(complete > count); /* it is not by never handing out anything */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_complete_is_the_whole_of_a_finished_save),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
