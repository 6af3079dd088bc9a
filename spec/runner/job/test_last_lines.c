#include "with_cmocka.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/job/last_lines.h"
#include "tmpdir.h"

static char text[4096];

/* What is taken of `said`, behind what stood in the file before; the file is open for writing alone. */
static const char *taken(const char *dir, const char *before, const char *said) {
  int fd = open(tmpdir_path(dir, "log"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, before, strlen(before)), (ssize_t)strlen(before));
  last_lines l = last_lines_begin(fd, -1);
  assert_int_equal(write(fd, said, strlen(said)), (ssize_t)strlen(said));
  last_lines_take(&l, text, sizeof text);
  last_lines_end(&l);
  close(fd);
  return text;
}

static void they_are_those_of_this_job(void **state) {
  assert_string_equal(taken(*state, "old\nlines\n", "Traceback\n  at x\nKeyError: 7\n"),
                      "Traceback\n  at x\nKeyError: 7");
  assert_string_equal(taken(*state, "old\n", ""), "");
  assert_string_equal(taken(*state, "", "no end"), "no end");
}

static void ours_and_what_was_drawn_over_are_left_out(void **state) {
  assert_string_equal(taken(*state, "", "ckpt-lua: committed a\n10%\r50%\r100%\r\n\n\nlast\n"),
                      "100%\nlast");
}

static void of_many_the_last_twelve_are_taken(void **state) {
  char *many = calloc(1, 200000);
  if (!many) abort();
  size_t len = 0;
  for (int i = 0; i < 9000; i++) len += (size_t)sprintf(many + len, "line %d\n", i);
  const char *last = taken(*state, "", many);
  assert_string_equal(strrchr(last, '\n'), "\nline 8999");
  assert_true(strncmp(last, "line 8988\n", 10) == 0);
  memset(many, 'x', 100000);
  snprintf(many + 100000, 6, "\nend\n");
  last = taken(*state, "", many);
  assert_int_equal(strlen(last), 250 + 4);
  free(many);
}

static void what_is_no_file_is_not_known(void **state) {
  int ends[2];
  (void)state;
  assert_int_equal(pipe(ends), 0);
  last_lines l = last_lines_begin(ends[1], ends[0]);
  assert_int_equal(l.fd, -1);
  last_lines_take(&l, text, sizeof text);
  assert_string_equal(text, "");
  last_lines_end(&l);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_DIRECTORY(they_are_those_of_this_job),
      IN_A_DIRECTORY(ours_and_what_was_drawn_over_are_left_out),
      IN_A_DIRECTORY(of_many_the_last_twelve_are_taken),
      IN_A_DIRECTORY(what_is_no_file_is_not_known),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
