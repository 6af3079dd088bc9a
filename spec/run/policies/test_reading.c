/* Files of policies that are read by a thread that nobody waits for. */
#include "with_cmocka.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/policies/reading.h"
#include "tmpdir.h"

static void await(const reading *r) {
  for (int i = 0; i < 10000 && !reading_is_over(r); i++) io_system()->sleep(io_system(), 1000000);
  assert_true(reading_is_over(r));
}

static void what_was_read_is_given_when_it_is_over(void **state) {
  char *dir = tmpdir_new();
  reading *r;
  err e = {0};
  char *file = strdup(tmpdir_path(dir, "p.lua"));
  const char *const names[] = {file, NULL}, *const none[] = {"/nowhere/p.lua", NULL};
  write_file(file, "return {}");
  assert_int_equal(reading_begin(io_system(), "policies", names, &r, &e), 0);
  await(r);
  assert_int_equal(reading_status(r, &e), 0);
  policy_files files = *reading_files(r);
  *reading_files(r) = (policy_files){0};
  reading_drop(r);
  assert_int_equal(files.count, 1);
  assert_string_equal(files.at[0].text.data, "return {}");
  assert_int_equal(reading_begin(io_system(), "policies", none, &r, &e), 0);
  await(r);
  assert_int_equal(reading_status(r, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "/nowhere/p.lua"));
  reading_drop(r);
  assert_int_equal(reading_look(io_system(), &files, &r, &e), 0);
  await(r);
  assert_false(reading_edited(r, 0));
  reading_drop(r);
  write_file(file, "return { }");
  assert_int_equal(reading_look(io_system(), &files, &r, &e), 0);
  await(r);
  assert_true(reading_edited(r, 0));
  reading_drop(r);
  assert_int_equal(remove(file), 0); /* as for a moment while an editor writes it */
  assert_int_equal(reading_look(io_system(), &files, &r, &e), 0);
  await(r);
  assert_false(reading_edited(r, 0));
  reading_drop(r);
  policy_files_free(&files);
  free(file);
  tmpdir_remove(dir);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static int hung_open(const io *self, int dirfd, const char *path, int flags, mode_t mode) {
  (void)self;
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
  return io_system()->open(io_system(), dirfd, path, flags, mode);
}

static void one_that_hangs_is_let_go_of(void **state) {
  static io hung;
  const char *const names[] = {"/nowhere/p.lua", NULL};
  reading *r;
  hung = *io_system();
  hung.open = hung_open;
  pthread_mutex_lock(&gate);
  assert_int_equal(reading_begin(&hung, "policies", names, &r, NULL), 0);
  assert_false(reading_is_over(r));
  reading_drop(r); /* comes back */
  pthread_mutex_unlock(&gate);
  reading_drop(NULL);
}

/* The thread may be at it for long, and the host goes where it wants. */
static void paths_are_from_where_it_was_begun(void **state) {
  static io hung;
  char *dir = tmpdir_new(), here[4096];
  const char *const names[] = {"./p.lua", NULL};
  reading *r;
  err e = {0};
  hung = *io_system();
  hung.open = hung_open;
  write_file(tmpdir_path(dir, "p.lua"), "return {}");
  assert_non_null(getcwd(here, sizeof here));
  assert_int_equal(chdir(dir), 0);
  pthread_mutex_lock(&gate);
  int rc = reading_begin(&hung, "policies", names, &r, &e);
  assert_int_equal(chdir(here), 0);
  pthread_mutex_unlock(&gate);
  assert_int_equal(rc, 0);
  await(r);
  if (reading_status(r, &e) < 0) fail_msg("%s", e.text);
  reading_drop(r);
  tmpdir_remove(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_was_read_is_given_when_it_is_over),
      cmocka_unit_test(one_that_hangs_is_let_go_of),
      cmocka_unit_test(paths_are_from_where_it_was_begun),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
