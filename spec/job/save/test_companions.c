/* What is saved beside a unit, and put back with it. */
#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/save/companions.h"
#include "job/restore/companions_restore.h"
#include "job/save/job.h"
#include "prims/fs.h"
#include "tmpdir.h"
#include "world.h"

static const char *in(const world *w, const char *name) {
  return tmpdir_path(w->root, name);
}

static const char *out(const world *w, const char *name) {
  return tmpdir_path(w->out, name);
}

/* ---- which there are ---- */

static void must_find(const world *w, const char *group, const char *glob, const char *expected) {
  const char *globs[] = {glob, NULL};
  companions_place at = {
      .io = world_io(), .rules = rules_builtin(), .root = w->root, .group = group};
  companions all;
  char text[2000] = "";
  assert_int_equal(companions_find(&at, globs, &all, NULL), 0);
  for (size_t i = 0; i < all.count; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s", i ? " " : "",
             all.items[i].name, all.items[i].type == MANIFEST_LINK ? "@" : "");
  assert_string_equal(text, expected);
  companions_free(&all);
}

static void globs_name_files_beside_units_and_never_in_them(void **state) {
  world *w = *state;
  static const char *const dirs[] = {
      "runs", "runs/a", "checkpoint-1", "exp", "exp/T1", "exp/T1/checkpoint-2", ".ckpt-restore"};
  static const char *const files[] = {
      "latest",  "result.json",         "runs/events.0",        "runs/a/events.1",
      "x.tmp",   "checkpoint-1/latest", "checkpoint-1/a.json",  "exp/T1/result.json",
      "last.pt", ".ckpt-restore/lock",  "exp/T1/checkpoint-2/a"};
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) make_dir(in(w, dirs[i]));
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) write_file(in(w, files[i]), files[i]);
  must_find(w, "", "latest", "latest");
  must_find(w, "", "./latest", "latest");
  must_find(w, "", "nothing", "");
  must_find(w, "", "*.json", "result.json");
  must_find(w, "exp/T1", "*.json", "result.json");
  must_find(w, "", "runs/**", "runs/a/events.1 runs/events.0");
  must_find(w, "", "runs/", "runs/a/events.1 runs/events.0");
  must_find(w, "", "runs", "runs/a/events.1 runs/events.0");
  must_find(w, "", "runs/*", "runs/events.0");
  must_find(w, "", "**/*.json", "exp/T1/result.json result.json");
  must_find(w, "", "checkpoint-1/*", "");
  must_find(w, "", "checkpoint-1", "");
  must_find(w, "", "checkpoint-1/a.json", "");
  must_find(w, "", "x.tmp", "");         /* excluded */
  must_find(w, "", "last.pt", "");       /* a unit */
  must_find(w, "", ".ckpt-restore", ""); /* ours */
  must_find(w, "", ".*/**", "");
}

static void links_to_checkpoints_of_their_own_directory_are_taken(void **state) {
  world *w = *state;
  char absolute[FS_PATH_MAX];
  make_dir(in(w, "checkpoint-1"));
  make_dir(in(w, "exp"));
  make_dir(in(w, "exp/checkpoint-1"));
  snprintf(absolute, sizeof absolute, "%s", in(w, "checkpoint-1"));
  static const char *const links[][2] = {
      {"last", "checkpoint-1"},       {"dotted", "./checkpoint-1"}, {"gone.ckpt", "a.ckpt"},
      {"deep", "exp/checkpoint-1"},   {"up", "../checkpoint-1"},    {"data", "exp"},
      {"other", "/tmp/checkpoint-1"}, {"exp/last", "checkpoint-1"}, {"x.tmp", "checkpoint-1"}};
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    assert_int_equal(symlink(links[i][1], in(w, links[i][0])), 0);
  assert_int_equal(symlink(absolute, in(w, "absolute")), 0);
  must_find(w, "", "nothing", "absolute@ dotted@ gone.ckpt@ last@");
  must_find(w, "", "last", "absolute@ dotted@ gone.ckpt@ last@");
  must_find(w, "", "deep", "absolute@ deep@ dotted@ gone.ckpt@ last@");
  must_find(w, "exp", "nothing", "last@");
}

static void more_than_the_limit_is_left_out_and_said(void **state) {
  world *w = *state;
  const char *globs[] = {"runs/**", NULL};
  companions_place at = {.io = world_io(), .rules = rules_builtin(), .root = w->root, .group = ""};
  companions all;
  make_dir(in(w, "runs"));
  for (int i = 0; i < COMPANIONS_MAX + 5; i++) {
    char name[40];
    snprintf(name, sizeof name, "runs/%d", i);
    write_file(in(w, name), "");
  }
  assert_int_equal(companions_find(&at, globs, &all, NULL), 0);
  assert_int_equal(all.count, COMPANIONS_MAX);
  assert_true(all.cut);
  companions_free(&all);
}

static void a_unit_is_named_by_its_whole_name_or_its_step(void **state) {
  static const struct {
    const char *text, *unit;
    int64_t step;
    bool yes;
  } cases[] = {{"global_step1", "global_step1", 1, true},
               {"global_step1\n", "global_step1", 1, true},
               {"global_step10", "global_step1", 1, false},
               {"my_global_step1", "global_step1", 1, false},
               {"model_checkpoint_path: \"ckpt-3\"", "ckpt-3", 3, true},
               {"/abs/work/epoch_3.pth", "epoch_3.pth", 3, true},
               {" 3000 \n", "iter_0003000", 3000, true},
               {"3001", "iter_0003000", 3000, false},
               {"step 3000", "iter_0003000", 3000, false},
               {"", "ckpt-3", 3, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(
        companions_name_unit(cases[i].text, strlen(cases[i].text), cases[i].unit, cases[i].step),
        cases[i].yes);
}

/* ---- there and back ---- */

static void add_op(plan *p, plan_op op) {
  int i = p->count++;
  for (; i > 0 && p->ops[i - 1] > op; i--) p->ops[i] = p->ops[i - 1];
  p->ops[i] = op;
}

static bool just_written; /* else it was long ago */

/* Saves checkpoint-`step` with what `globs` name. The commit is valid until the next call. */
static bool found; /* at the start of the run */

static const runlog_commit *save(world *w, runlog *log, int64_t step, const char *const *globs) {
  char unit[40];
  snprintf(unit, sizeof unit, "checkpoint-%d", (int)step);
  make_unit(w, unit, MATCH_DIR, (unsigned)step);
  if (just_written && utimensat(AT_FDCWD, in(w, unit), NULL, 0) < 0) abort();
  w->env.companions = globs;
  job *j = job_for(w, log, unit, MATCH_DIR, step, 0);
  add_op(&j->plan, PLAN_COMPANIONS);
  j->found = found;
  job_run(j);
  if (j->status < 0) fail_msg("%s", j->error.text);
  const runlog_commit *c = runlog_find_commit(runlog_view(log), j->commit.n);
  job_free(j);
  return c;
}

static int manifest_of(const world *w, const runlog_commit *c, manifest *out,
                       char key[STORE_KEY_MAX], err *e) {
  const manifest own = {.unit = c->unit, .kind = c->kind};
  const companions_units units = {.unit = &own};
  return companions_manifest(w->env.store, "", c->attempt, &c->companions, &units, out, key, e);
}

static int bring_back(const world *w, const runlog_commit *c, bool only_missing,
                      companions_clear_fn *clear, err *e) {
  manifest m = {0};
  char key[STORE_KEY_MAX];
  fs_held *held;
  assert_int_equal(fs_held_new(world_io(), &held, NULL), 0);
  assert_int_equal(fs_hold(held, w->out, NULL), 0);
  restore how = {
      .io = fs_held_io(held), .store = w->env.store, .pool = w->pool, .staging = w->staging};
  companions_target to = {
      .dir = w->out, .only_missing = only_missing, .clear = clear, .ctx = (void *)w};
  int rc = manifest_of(w, c, &m, key, e);
  if (rc == 0) rc = companions_restore(&how, &m, key, &to, e);
  manifest_free(&m);
  fs_held_free(held);
  assert_int_equal(count_entries(w->staging), 0);
  return rc;
}

static const char *const usual[] = {"latest", "newest", "runs/**", "large.log", NULL};

static void fill(const world *w) {
  make_dir(in(w, "runs"));
  write_file(in(w, "latest"), "checkpoint-1");
  write_file(in(w, "runs/empty"), "");
  write_pattern(in(w, "large.log"), (9 << 20) + 7, 3);
  if (!path_exists(in(w, "newest"))) assert_int_equal(symlink("checkpoint-1", in(w, "newest")), 0);
}

static void they_come_back_as_they_were(void **state) {
  for (size_t i = 0; i < 2; i++) {
    world *w = world_new(world_schemes[i], world_io());
    runlog *log = world_log(w, "", "one");
    char target[100] = "";
    fill(w);
    const runlog_commit *c = save(w, log, 1, usual);
    assert_int_equal(c->companions.files, 4);
    assert_int_equal(c->companions.bytes, 12 + (9 << 20) + 7);
    assert_int_equal(bring_back(w, c, false, NULL, NULL), 4);
    assert_true(file_is(out(w, "latest"), "checkpoint-1"));
    assert_true(file_is(out(w, "runs/empty"), ""));
    assert_true(files_equal(in(w, "large.log"), out(w, "large.log")));
    assert_int_equal(readlink(out(w, "newest"), target, sizeof target - 1), 12);
    assert_string_equal(target, "checkpoint-1");
    assert_int_equal(bring_back(w, c, false, NULL, NULL), 0); /* all of it is there */
    must_restore(w, "", c, "checkpoint-1");
    world_free(w);
  }
}

static void a_unit_with_nothing_beside_it_has_nothing_in_the_store(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  const runlog_commit *c = save(w, log, 1, usual);
  assert_int_equal(c->companions.files, 0);
}

static int no_room(void *ctx, const char *name, err *e) {
  const world *w = ctx;
  return rename(out(w, name), tmpdir_path(w->dir, "moved")) == 0 ? 0 : ERR_IO;
}

static void what_differs_is_refused_left_or_moved_away(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  err e = {0};
  fill(w);
  const runlog_commit *c = save(w, log, 1, usual);
  write_file(out(w, "latest"), "mine");
  assert_int_equal(bring_back(w, c, false, NULL, &e), ERR_EXISTS);
  assert_non_null(strstr(e.text, "latest"));
  assert_int_equal(count_entries(w->out), 1);
  assert_int_equal(bring_back(w, c, true, NULL, NULL), 3);
  assert_true(file_is(out(w, "latest"), "mine"));
  assert_int_equal(bring_back(w, c, false, no_room, NULL), 1);
  assert_true(file_is(out(w, "latest"), "checkpoint-1"));
  assert_true(file_is(tmpdir_path(w->dir, "moved"), "mine"));
}

static void damage_is_found_and_nothing_of_it_is_shown(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  char key[STORE_KEY_MAX], part[STORE_KEY_MAX + 20];
  fill(w);
  const runlog_commit *c = save(w, log, 1, usual);
  assert_int_equal(runlog_key_companions("", c->attempt, c->companions.term, key, NULL), 0);
  snprintf(part, sizeof part, "%s/latest", key);
  assert_int_equal(
      w->env.store->ops->put(w->env.store, part, "checkpoint-9", 12, STORE_REPLACE, NULL), 0);
  assert_int_equal(bring_back(w, c, false, NULL, NULL), ERR_CORRUPT);
  assert_int_equal(count_entries(w->out), 0);
  snprintf(part, sizeof part, "%s/%s", key, MANIFEST_NAME);
  assert_int_equal(w->env.store->ops->remove(w->env.store, part, NULL), 0);
  assert_int_equal(bring_back(w, c, false, NULL, NULL), ERR_CORRUPT);
}

/* ---- while they are written ---- */

static void go_on(void *ctx) {
  write_file(in(ctx, "latest"), "checkpoint-2");
}

/* The job looked at it before the trainer saved the next one. */
static void a_pointer_is_saved_as_it_named_this_unit(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {"latest", NULL};
  write_file(in(w, "latest"), "checkpoint-1");
  w->env.io = hooked_io(world_io(), "model.bin", 1, go_on, w);
  const runlog_commit *c = save(w, log, 1, globs);
  assert_true(hook_ran());
  assert_true(file_is(in(w, "latest"), "checkpoint-2"));
  assert_int_equal(bring_back(w, c, false, NULL, NULL), 1);
  assert_true(file_is(out(w, "latest"), "checkpoint-1"));
}

static bool is_latest(const char *path) {
  return strcmp(fs_base(path), "latest") == 0;
}

/* It is opened when the job begins, before it sends, and when it is saved itself. */
static struct {
  io io;
  world *world;
  int opens, first, second; /* at which of them it comes to name checkpoint-1, and checkpoint-2 */
} later;

static int open_later(const io *self, int dirfd, const char *path, int flags, mode_t mode) {
  if (!is_latest(path)) return world_io()->open(world_io(), dirfd, path, flags, mode);
  later.opens++;
  if (later.opens == later.first) write_file(in(later.world, "latest"), "checkpoint-1");
  if (later.opens == later.second) {
    make_unit(later.world, "checkpoint-2", MATCH_DIR, 2);
    write_file(in(later.world, "latest"), "checkpoint-2");
  }
  return world_io()->open(world_io(), dirfd, path, flags, mode);
}

static char said[1000];

static void hear(void *ctx, log_level level, const char *text) {
  if (level == LOG_WARN) snprintf(said, sizeof said, "%s", text);
}

static atomic_bool no_time = true, is_time = false;

/* Returns how many files the checkpoint is saved with. */
static uint64_t save_pointer(int first, int second, const atomic_bool *hurry,
                             const char *expected) {
  static const char *const globs[] = {"latest", NULL};
  static const log_sink sink = {.fn = hear, .min = LOG_WARN};
  world *w = world_new("file", world_io());
  runlog *log = world_log(w, "", "one");
  write_file(in(w, "latest"), "checkpoint-0");
  later.io = *world_io();
  later.io.open = open_later;
  later.io.open_beneath = NULL; /* or open_later would not be asked */
  later.world = w;
  later.opens = 0;
  later.first = first;
  later.second = second;
  *said = 0;
  w->env.io = &later.io;
  w->env.log = &sink;
  w->env.hurry = hurry;
  just_written = true;
  const runlog_commit *c = save(w, log, 1, globs);
  just_written = false;
  uint64_t files = c->companions.files;
  w->env.io = world_io();
  w->env.log = NULL;
  if (expected) {
    assert_int_equal(bring_back(w, c, false, NULL, NULL), 1);
    assert_true(file_is(out(w, "latest"), expected));
  }
  assert_null(c->needs);
  world_free(w);
  assert_string_equal(said, "");
  return files;
}

/* Frameworks write it behind the checkpoint, so it may come when the save has begun. */
static void a_pointer_that_is_written_behind_its_unit_is_saved_before_the_next_one(void **state) {
  save_pointer(2, 3, &no_time, "checkpoint-1");
  save_pointer(3, 0, &no_time, "checkpoint-1");
}

static void a_pointer_that_is_late_is_waited_for_while_there_is_time(void **state) {
  assert_int_equal(save_pointer(9, 0, &is_time, "checkpoint-1"), 1);
  assert_int_equal(save_pointer(9, 0, &no_time, NULL), 0);
}

static void a_pointer_that_went_on_is_saved_as_it_would_name_its_unit(void **state) {
  assert_int_equal(save_pointer(0, 2, &is_time, "checkpoint-1"), 1);
}

/* At most 10 seconds, of which no test can wait fewer. */
static void a_pointer_that_never_names_its_unit_is_not_saved_with_it(void **state) {
  int64_t begun = world_io()->now(world_io(), IO_MONO);
  assert_int_equal(save_pointer(0, 0, &is_time, NULL), 0);
  int64_t took = world_io()->now(world_io(), IO_MONO) - begun;
  assert_in_range(took, 5000000000, 20000000000);
  assert_int_equal(save_pointer(0, 0, &no_time, NULL), 0);
}

/* Lightning's `last.ckpt` stays where it is when a resumed training makes `last-v1.ckpt`. */
static void a_pointer_that_was_passed_over_before_is_not_waited_for(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {NULL};
  w->env.hurry = &no_time;
  assert_int_equal(symlink("checkpoint-1", in(w, "last")), 0);
  save(w, log, 1, globs);
  save(w, log, 2, globs);
  w->env.hurry = &is_time;
  just_written = true;
  int64_t begun = world_io()->now(world_io(), IO_MONO);
  const runlog_commit *c = save(w, log, 3, globs);
  int64_t took = world_io()->now(world_io(), IO_MONO) - begun;
  just_written = false;
  assert_int_equal(c->companions.files, 0);
  assert_in_range(took, 0, 5000000000);
}

/* Saves one that was written just now; returns the number of files with it. */
static uint64_t save_at_once(world *w, int64_t step) {
  static const char *const globs[] = {NULL};
  runlog *log = world_log(w, "", "one");
  w->env.hurry = &is_time;
  just_written = true;
  int64_t begun = world_io()->now(world_io(), IO_MONO);
  const runlog_commit *c = save(w, log, step, globs);
  assert_in_range(world_io()->now(world_io(), IO_MONO) - begun, 0, 5000000000);
  just_written = false;
  return c->companions.files;
}

/* Whoever was to write it died with the job. */
static void of_what_a_start_found_no_pointer_is_waited_for(void **state) {
  world *w = *state;
  assert_int_equal(symlink("checkpoint-1", in(w, "last")), 0);
  found = true;
  assert_int_equal(save_at_once(w, 2), 0);
  found = false;
}

/* Lightning's resumed training makes `last-v1.ckpt`, and leaves the first one where it is. */
static void a_link_is_not_waited_for_where_another_names_the_unit(void **state) {
  world *w = *state;
  assert_int_equal(symlink("checkpoint-1", in(w, "last")), 0);
  assert_int_equal(symlink("checkpoint-2", in(w, "last-v1")), 0);
  assert_int_equal(save_at_once(w, 2), 1);
}

/* `best` need not lead to the newest, and says nothing of `last`. */
static void a_link_is_waited_for_beside_one_that_leads_elsewhere(void **state) {
  world *w = *state;
  static const char *const globs[] = {NULL};
  runlog *log = world_log(w, "", "one");
  assert_int_equal(symlink("checkpoint-1", in(w, "best")), 0);
  assert_int_equal(symlink("checkpoint-1", in(w, "last")), 0);
  w->env.hurry = &is_time;
  just_written = true;
  int64_t begun = world_io()->now(world_io(), IO_MONO);
  save(w, log, 2, globs);
  just_written = false;
  assert_in_range(world_io()->now(world_io(), IO_MONO) - begun, 5000000000, 20000000000);
}

static void what_a_list_names_is_noted_with_the_commit(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {"checkpoint_manager_snapshot.json", NULL};
  write_file(in(w, globs[0]), "{\"checkpoint_results\": ["
                              "{\"checkpoint_dir_name\": \"checkpoint-1\"},"
                              "{\"checkpoint_dir_name\": \"checkpoint-3\"}]}");
  w->env.hurry = &no_time;
  const runlog_commit *c = save(w, log, 1, globs);
  assert_string_equal(c->needs, "checkpoint-3/");
  assert_int_equal(c->companions.files, 1);
  c = save(w, log, 2, globs); /* it does not know that one */
  assert_null(c->needs);
  assert_int_equal(c->companions.files, 0);
}

/* Spaces between its words make a list as long as this. */
static void write_list(const char *path, size_t len) {
  static const char end[] = "{\"checkpoint_dir_name\": \"checkpoint-3\"}]}";
  buf text;
  buf_init(&text, len + 1);
  buf_fmt(&text, "{\"checkpoint_results\": [{\"checkpoint_dir_name\": \"checkpoint-1\"},");
  while (text.len < len - (sizeof end - 1)) buf_add(&text, " ", 1);
  buf_add(&text, end, sizeof end - 1);
  assert_int_equal(buf_failed(&text), 0);
  write_bytes(path, text.data, text.len);
  buf_free(&text);
}

/* A longer one is saved as any file is. */
static void a_list_of_up_to_8_mib_is_read_for_what_it_names(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {"checkpoint_manager_snapshot.json", NULL};
  w->env.hurry = &no_time;
  write_list(in(w, globs[0]), 8 << 20);
  const runlog_commit *c = save(w, log, 1, globs);
  assert_int_equal(c->companions.files, 1);
  assert_string_equal(c->needs, "checkpoint-3/");
  write_list(in(w, globs[0]), (8 << 20) + 1);
  c = save(w, log, 2, globs);
  assert_int_equal(c->companions.files, 1);
  assert_null(c->needs);
}

static void a_link_that_need_not_lead_to_the_newest_is_saved_as_it_is(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {NULL};
  char target[32] = "";
  w->env.hurry = &no_time;
  assert_int_equal(symlink("checkpoint-1", in(w, "best")), 0);
  assert_int_equal(symlink("checkpoint-1", in(w, "last")), 0);
  const runlog_commit *c = save(w, log, 2, globs);
  assert_string_equal(c->needs, "checkpoint-1/");
  assert_int_equal(bring_back(w, c, false, NULL, NULL), 1);
  assert_int_equal(readlink(out(w, "best"), target, sizeof target - 1), 12);
  assert_false(path_exists(out(w, "last")));
}

static struct {
  io io;
  world *world;
  int looks, opens;
} going;

/* The first six looks are those of the searches for files, and for links. */
static int lstat_going(const io *self, int dirfd, const char *path, struct stat *out) {
  if (is_latest(path) && ++going.looks == 7) remove(in(going.world, "latest"));
  return world_io()->lstat(world_io(), dirfd, path, out);
}

static int open_going(const io *self, int dirfd, const char *path, int flags, mode_t mode) {
  if (is_latest(path) && ++going.opens == 2) remove(in(going.world, "latest"));
  return world_io()->open(world_io(), dirfd, path, flags, mode);
}

static void a_pointer_that_goes_is_saved_with_the_times_that_it_had(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {"latest", NULL};
  manifest m = {0};
  struct stat then;
  char key[STORE_KEY_MAX];
  write_file(in(w, "latest"), "checkpoint-1");
  assert_int_equal(lstat(in(w, "latest"), &then), 0);
  going.io = *world_io();
  going.io.lstat = lstat_going;
  going.io.open = open_going;
  going.io.open_beneath = NULL;
  going.world = w;
  w->env.io = &going.io;
  const runlog_commit *c = save(w, log, 1, globs);
  assert_false(path_exists(in(w, "latest")));
  assert_int_equal(c->companions.files, 1);
  assert_int_equal(manifest_of(w, c, &m, key, NULL), 0);
  assert_int_equal(m.entries[0].mode, then.st_mode & 0777);
  assert_int_equal(m.entries[0].mtime_ns, io_time_ns(then.st_mtim));
  manifest_free(&m);
}

static void lead_on(void *ctx) {
  assert_int_equal(unlink(in(ctx, "last")), 0);
  assert_int_equal(symlink("checkpoint-2", in(ctx, "last")), 0);
}

static void a_link_is_saved_as_it_led_to_this_unit(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {"last", NULL};
  char target[32] = "";
  assert_int_equal(symlink("checkpoint-1", in(w, "last")), 0);
  w->env.io = hooked_io(world_io(), "model.bin", 1, lead_on, w);
  const runlog_commit *c = save(w, log, 1, globs);
  assert_true(hook_ran());
  assert_int_equal(bring_back(w, c, false, NULL, NULL), 1);
  assert_int_equal(readlink(out(w, "last"), target, sizeof target - 1), 12);
  assert_string_equal(target, "checkpoint-1");
}

static void grow(void *ctx) {
  FILE *f = fopen(in(ctx, "large.log"), "a");
  assert_non_null(f);
  fputs("more", f);
  fclose(f);
}

static struct {
  io io;
  world *world;
  bool grown;
} growing;

static ssize_t read_growing(const io *self, int fd, void *to, size_t len) {
  if (len >= HASH_BLOCK && !growing.grown) {
    growing.grown = true;
    grow(growing.world);
  }
  return world_io()->read(world_io(), fd, to, len);
}

static void a_log_that_grows_is_cut_where_it_was_opened(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  static const char *const globs[] = {"large.log", NULL};
  fill(w);
  growing.io = *world_io();
  growing.io.read = read_growing;
  growing.world = w;
  w->env.io = &growing.io;
  const runlog_commit *c = save(w, log, 1, globs);
  assert_true(growing.grown);
  assert_int_equal(c->companions.bytes, (9 << 20) + 7);
  assert_int_equal(bring_back(w, c, false, NULL, NULL), 2); /* and a link to a checkpoint */
}

static void vanish(void *ctx) {
  remove(in(ctx, "large.log"));
}

static void what_vanishes_is_left_out_and_fails_nothing(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "", "one");
  fill(w);
  w->env.io = hooked_io(world_io(), "model.bin", 1, vanish, w);
  const runlog_commit *c = save(w, log, 1, usual);
  assert_true(hook_ran());
  assert_int_equal(c->companions.files, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_FILE_WORLD(globs_name_files_beside_units_and_never_in_them),
      IN_A_FILE_WORLD(links_to_checkpoints_of_their_own_directory_are_taken),
      IN_A_FILE_WORLD(more_than_the_limit_is_left_out_and_said),
      cmocka_unit_test(a_unit_is_named_by_its_whole_name_or_its_step),
      cmocka_unit_test(they_come_back_as_they_were),
      IN_A_FILE_WORLD(a_unit_with_nothing_beside_it_has_nothing_in_the_store),
      IN_A_FILE_WORLD(what_differs_is_refused_left_or_moved_away),
      IN_A_FILE_WORLD(damage_is_found_and_nothing_of_it_is_shown),
      IN_A_FILE_WORLD(a_pointer_is_saved_as_it_named_this_unit),
      cmocka_unit_test(a_pointer_that_is_written_behind_its_unit_is_saved_before_the_next_one),
      cmocka_unit_test(a_pointer_that_is_late_is_waited_for_while_there_is_time),
      IN_A_FILE_WORLD(a_pointer_that_was_passed_over_before_is_not_waited_for),
      cmocka_unit_test(a_pointer_that_went_on_is_saved_as_it_would_name_its_unit),
      cmocka_unit_test(a_pointer_that_never_names_its_unit_is_not_saved_with_it),
      IN_A_FILE_WORLD(of_what_a_start_found_no_pointer_is_waited_for),
      IN_A_FILE_WORLD(a_link_is_not_waited_for_where_another_names_the_unit),
      IN_A_FILE_WORLD(a_link_is_waited_for_beside_one_that_leads_elsewhere),
      IN_A_FILE_WORLD(what_a_list_names_is_noted_with_the_commit),
      IN_A_FILE_WORLD(a_list_of_up_to_8_mib_is_read_for_what_it_names),
      IN_A_FILE_WORLD(a_link_that_need_not_lead_to_the_newest_is_saved_as_it_is),
      IN_A_FILE_WORLD(a_pointer_that_goes_is_saved_with_the_times_that_it_had),
      IN_A_FILE_WORLD(a_link_is_saved_as_it_led_to_this_unit),
      IN_A_FILE_WORLD(a_log_that_grows_is_cut_where_it_was_opened),
      IN_A_FILE_WORLD(what_vanishes_is_left_out_and_fails_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
