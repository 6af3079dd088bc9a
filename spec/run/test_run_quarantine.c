/* What a start says of what it moves away. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run_host.h"
#include "tmpdir.h"

static void commit(run_host *h) {
  run_host_begin(h);
  run_host_write(h, "last.pt", "the weights", RUN_COMMITTED);
  run_host_close(h);
}

static run_prepared prepare(run_host *h) {
  run_prepared p;
  err e = {0};
  if (run_host_open(h, &e) < 0) fail_msg("%s", e.text);
  if (run_prepare(run_host_run(h), RUN_AUTO, NULL, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static void what_is_saved_and_makes_room_is_not_called_incomplete(void **state) {
  run_host *h = *state;
  run_host_begin(h);
  run_host_write(h, "last.pt", "the first", RUN_COMMITTED);
  size_t len;
  char *first = read_file(run_host_dir(h, "last.pt"), &len);
  struct stat st;
  assert_int_equal(stat(run_host_dir(h, "last.pt"), &st), 0);
  run_host_tick(h);
  run_host_write(h, "last.pt", "the second", RUN_COMMITTED);
  run_host_close(h);
  assert_int_equal(remove(run_host_dir(h, "last.pt")), 0);
  write_file(run_host_dir(h, "last.pt"), first);
  free(first);
  assert_int_equal(utimensat(AT_FDCWD, run_host_dir(h, "last.pt"),
                             (struct timespec[]){st.st_atim, st.st_mtim}, 0),
                   0);
  run_prepared p = prepare(h);
  assert_int_equal(p.quarantined, 1);
  assert_int_equal(p.incomplete, 0);
}

static void what_nothing_proves_whole_is(void **state) {
  run_host *h = *state;
  commit(h);
  write_file(run_host_dir(h, "last.pt"), "half");
  run_prepared p = prepare(h);
  assert_int_equal(p.quarantined, 1);
  assert_int_equal(p.incomplete, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WITH_HOST(what_is_saved_and_makes_room_is_not_called_incomplete),
      WITH_HOST(what_nothing_proves_whole_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
