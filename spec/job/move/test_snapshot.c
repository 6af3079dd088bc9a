#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job/move/snapshot.h"
#include "io_fault.h"
#include "tmpdir.h"
#include "world.h"

static const char *const paths[] = {"a/checkpoint-1", "a/last.ckpt", "ckpt-1"};

static int take(const world *w, const io *io, match_kind kind, const unit_files *from, bool twice,
                const atomic_int *cancel, unit_files *out, err *e) {
  _Atomic uint64_t alive = 0;
  return snapshot_take(io, w->root, paths[kind], rules_builtin(), from, w->staging, twice, cancel,
                       &alive, out, e);
}

static unit_files look(const world *w, match_kind kind) {
  unit_files t;
  err e = {0};
  if (unit_files_scan(world_io(), w->root, paths[kind], kind, rules_builtin(), &t, &e) < 0)
    fail_msg("%s", e.text);
  return t;
}

static void must_hold_the_same(const unit_files *from, const unit_files *copy) {
  assert_int_equal(copy->count, from->count);
  assert_int_equal(copy->kind, from->kind);
  assert_int_equal(copy->mode, from->mode);
  assert_int_equal(copy->mtime_ns, from->mtime_ns);
  for (size_t i = 0; i < from->count; i++) {
    const unit_file *a = &from->files[i], *b = &copy->files[i];
    char left[4096], right[4096];
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->mode, b->mode);
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->mtime_ns, b->mtime_ns);
    if (a->type == MANIFEST_LINK) assert_string_equal(a->target, b->target);
    assert_int_equal(unit_files_path(from, a, left, NULL), 0);
    assert_int_equal(unit_files_path(copy, b, right, NULL), 0);
    assert_string_not_equal(left, right);
    if (a->type == MANIFEST_FILE) assert_true(files_equal(left, right));
  }
}

static void a_copy_has_the_names_bytes_modes_and_times_of_the_original(void **state) {
  for (match_kind kind = MATCH_DIR; kind <= MATCH_GROUP; kind++)
    for (int twice = 0; twice < 2; twice++) {
      world *w = world_new("mem", world_io());
      make_unit(w, paths[kind], kind, 1);
      unit_files from = look(w, kind), copy;
      err e = {0};
      if (take(w, world_io(), kind, &from, twice, NULL, &copy, &e) < 0) fail_msg("%s", e.text);
      must_hold_the_same(&from, &copy);
      unit_files_free(&from);
      unit_files_free(&copy);
      world_free(w);
    }
}

/* The staging is emptied after this, by somebody who may not be root. */
static void a_read_only_directory_is_copied_into_one_that_can_be_removed(void **state) {
  world *w = *state;
  make_unit(w, paths[0], MATCH_DIR, 1);
  char sub[4096];
  snprintf(sub, sizeof sub, "%s/%s/sub", w->root, paths[0]);
  assert_int_equal(chmod(sub, 0555), 0);
  unit_files from = look(w, MATCH_DIR), copy;
  assert_int_equal(take(w, world_io(), MATCH_DIR, &from, false, NULL, &copy, NULL), 0);
  must_hold_the_same(&from, &copy);
  snprintf(sub, sizeof sub, "%s/%s/sub", w->staging, paths[0]);
  assert_int_equal(path_mode(sub), 0700);
  unit_files_free(&from);
  unit_files_free(&copy);
}

static void a_cancelled_copy_stops(void **state) {
  atomic_int cancel = 1;
  for (match_kind kind = MATCH_DIR; kind <= MATCH_GROUP; kind++) {
    world *w = world_new("mem", world_io());
    make_unit(w, paths[kind], kind, 1);
    unit_files from = look(w, kind), copy;
    assert_int_equal(take(w, world_io(), kind, &from, false, &cancel, &copy, NULL), ERR_CANCELED);
    assert_int_equal(copy.count, 0);
    unit_files_free(&from);
    world_free(w);
  }
}

static void a_unit_that_differs_from_its_listing_is_retired(void **state) {
  for (int how = 0; how < 4; how++) {
    world *w = world_new("mem", world_io());
    make_unit(w, paths[0], MATCH_DIR, 1);
    unit_files from = look(w, MATCH_DIR), copy;
    char file[4096];
    err e = {0};
    snprintf(file, sizeof file, "%s/%s/model.bin", w->root, paths[0]);
    if (how == 0) write_file(file, "other");
    if (how == 1) assert_int_equal(remove(file), 0);
    if (how == 2) write_file(tmpdir_path(w->root, "a/checkpoint-1/late"), "x");
    if (how == 3) remove_unit(w, paths[0], MATCH_DIR);
    assert_int_equal(take(w, world_io(), MATCH_DIR, &from, false, NULL, &copy, &e), ERR_RETIRED);
    assert_int_equal(e.code, ERR_RETIRED);
    assert_int_equal(copy.count, 0);
    unit_files_free(&from);
    world_free(w);
  }
}

static void any_failing_call_gives_an_error_or_the_whole_copy(void **state) {
  static const io_fault_plan plans[] = {
      {.errnum = EIO}, {.errnum = ENOSPC, .for_good = true}, {.errnum = EIO, .done = true}};
  io_fault *fault = io_fault_new(world_io());
  for (int p = 0; p < 3; p++) {
    world *w = world_new("mem", world_io());
    make_unit(w, paths[0], MATCH_DIR, 1);
    unit_files from = look(w, MATCH_DIR);
    io_fault_plan plan = plans[p];
    int fds = count_fds(), errors = 0;
    for (plan.nth = 1;; plan.nth++) {
      unit_files copy;
      err e = {0};
      io_fault_set(fault, plan);
      int rc = take(w, io_fault_io(fault), MATCH_DIR, &from, true, NULL, &copy, &e);
      bool failed = io_fault_failed(fault, CALL_ANY) > 0;
      if (rc == 0) must_hold_the_same(&from, &copy);
      if (rc < 0) assert_int_equal(e.code, rc);
      if (rc < 0) assert_int_equal(copy.count, 0);
      errors += rc < 0;
      unit_files_free(&copy);
      assert_int_equal(count_fds(), fds);
      tmpdir_remove(strdup(w->staging));
      make_dir(w->staging);
      if (!failed) break;
    }
    assert_true(errors > 10);
    unit_files_free(&from);
    world_free(w);
  }
  io_fault_free(fault);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_copy_has_the_names_bytes_modes_and_times_of_the_original),
      IN_A_MEM_WORLD(a_read_only_directory_is_copied_into_one_that_can_be_removed),
      cmocka_unit_test(a_cancelled_copy_stops),
      cmocka_unit_test(a_unit_that_differs_from_its_listing_is_retired),
      cmocka_unit_test(any_failing_call_gives_an_error_or_the_whole_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
