#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/run_state.h"
#include "run_host.h"
#include "tmpdir.h"

static int setup(void **state) {
  run_host *h = run_host_new(NULL);
  run_host_begin(h);
  run_host_write(h, "ckpt-1.pt", "one", RUN_COMMITTED);
  run_host_write(h, "last.pt", "last", RUN_COMMITTED);
  run_host_close(h);
  err e = {0};
  assert_int_equal(run_host_open(h, &e), 0);
  *state = h;
  return 0;
}

static int manifest_of(run_host *h, size_t i, const manifest **out) {
  run *r = run_host_run(h);
  run_group *g = r->groups[0];
  return run_manifest(r, g, &runlog_view(g->group.log)->commits[i], out, NULL);
}

static void a_manifest_is_read_once_and_stays_while_others_are_read(void **state) {
  run_host *h = *state;
  const manifest *first, *second, *again;
  assert_int_equal(manifest_of(h, 0, &first), 0);
  assert_int_equal(unlink(run_host_store(h, "ckpt-1.pt/.ckpt-manifest.json")), 0);
  assert_int_equal(manifest_of(h, 1, &second), 0);
  assert_int_equal(manifest_of(h, 0, &again), 0);
  assert_ptr_equal(first, again);
  assert_string_equal(first->unit, "ckpt-1.pt");
  assert_string_equal(second->unit, "last.pt");
}

static void what_was_dropped_is_read_anew(void **state) {
  run_host *h = *state;
  const manifest *m;
  assert_int_equal(manifest_of(h, 0, &m), 0);
  run_manifests_drop(run_host_run(h));
  assert_int_equal(run_host_run(h)->known_count, 0);
  assert_int_equal(unlink(run_host_store(h, "ckpt-1.pt/.ckpt-manifest.json")), 0);
  assert_int_equal(manifest_of(h, 0, &m), ERR_CORRUPT);
}

static void one_that_cannot_be_read_is_not_kept(void **state) {
  run_host *h = *state;
  const manifest *m;
  char away[600];
  const char *path = run_host_store(h, "last.pt/.ckpt-manifest.json");
  snprintf(away, sizeof away, "%s.away", path);
  assert_int_equal(rename(path, away), 0);
  assert_int_equal(manifest_of(h, 1, &m), ERR_CORRUPT);
  assert_int_equal(rename(away, path), 0);
  assert_int_equal(manifest_of(h, 1, &m), 0);
  assert_string_equal(m->unit, "last.pt");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, run_host_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_manifest_is_read_once_and_stays_while_others_are_read),
      TEST(what_was_dropped_is_read_anew),
      TEST(one_that_cannot_be_read_is_not_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
