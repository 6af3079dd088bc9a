#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/fs_find.h"
#include "tmpdir.h"

static fs_find_place place(void) {
  return (fs_find_place){.variable = "CKPT_FIND_TEST",
                         .file = "the-file",
                         .beside = {"here", "../there"},
                         .installed = "/installed"};
}

static void expect(const fs_find_place *p, const char *wanted) {
  char out[FS_PATH_MAX];
  assert_int_equal(fs_find(io_system(), p, out, NULL), 0);
  assert_string_equal(out, wanted);
}

static void what_is_given_comes_first_then_the_environment(void **unused) {
  fs_find_place p = place();
  unsetenv("CKPT_FIND_TEST");
  expect(&p, "/installed");
  setenv("CKPT_FIND_TEST", "", 1);
  expect(&p, "/installed");
  setenv("CKPT_FIND_TEST", "/by/environment", 1);
  expect(&p, "/by/environment");
  p.given = "/given";
  expect(&p, "/given");
  unsetenv("CKPT_FIND_TEST");
}

static void a_path_that_is_too_long_is_an_error(void **unused) {
  char out[FS_PATH_MAX], *much = malloc(FS_PATH_MAX + 1);
  memset(much, 'x', FS_PATH_MAX);
  much[FS_PATH_MAX] = '\0';
  fs_find_place p = place();
  p.given = much;
  assert_int_equal(fs_find(io_system(), &p, out, NULL), ERR_LIMIT);
  free(much);
}

/* A copy of this program, in a tree of its own, says what it finds. */
static void beside_the_program_is_looked_at_in_order(void **unused) {
  char *dir = tmpdir_new(), command[5000], wanted[5000];
  make_dir(tmpdir_path(dir, "bin"));
  make_dir(tmpdir_path(dir, "there"));
  make_dir(tmpdir_path(dir, "bin/here"));
  snprintf(command, sizeof command, "cp /proc/%d/exe %s/bin/prog", (int)getpid(), dir);
  assert_int_equal(system(command), 0);
  static const char *const holds[] = {NULL, "there/the-file", "bin/here/the-file"};
  static const char *const found[] = {"/installed", "bin/../there", "bin/here"};
  for (int i = 0; i < 3; i++) {
    char text[5000] = "";
    if (holds[i]) write_file(tmpdir_path(dir, holds[i]), "");
    snprintf(command, sizeof command, "cd / && %s/bin/prog --find", dir);
    FILE *pipe = popen(command, "r");
    assert_non_null(fgets(text, sizeof text, pipe));
    assert_int_equal(pclose(pipe), 0);
    snprintf(wanted, sizeof wanted, "%s%s%s", i ? dir : "", i ? "/" : "", found[i]);
    assert_string_equal(text, wanted);
  }
  tmpdir_remove(dir);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--find") == 0) {
    char out[FS_PATH_MAX];
    fs_find_place p = place();
    fs_find(io_system(), &p, out, NULL);
    return printf("%s", out) < 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_given_comes_first_then_the_environment),
      cmocka_unit_test(a_path_that_is_too_long_is_an_error),
      cmocka_unit_test(beside_the_program_is_looked_at_in_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
