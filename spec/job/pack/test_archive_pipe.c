#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job/pack/archive_pipe.h"
#include "tmpdir.h"

static ssize_t nothing(void *ctx, void *to, size_t room, err *e) {
  return 0;
}

static ssize_t failing(void *ctx, void *to, size_t room, err *e) {
  return err_set(e, ERR_RETIRED, "it changed");
}

/* What is taken from a helper that is this shell script. */
static ssize_t take_from(const char *script, archive_feed *feed, err *e) {
  char *dir = tmpdir_new(), text[1000], room[100];
  archive_pipe *p = NULL;
  const archive_pipe_options o = {.io = io_system(),
                                  .libexec = dir,
                                  .verb = "unpack",
                                  .argument = "0",
                                  .what = "a.tar",
                                  .feed = feed};
  snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
  write_file(tmpdir_path(dir, "ckpt-archive"), text);
  assert_int_equal(chmod(tmpdir_path(dir, "ckpt-archive"), 0700), 0);
  int before = count_fds();
  *e = (err){0};
  assert_int_equal(archive_pipe_open(&o, &p, e), 0);
  ssize_t n = archive_pipe_take(p, room, sizeof room, e);
  archive_pipe_close(p);
  assert_int_equal(count_fds(), before);
  tmpdir_remove(dir);
  return n;
}

static void what_it_gives_is_taken_to_its_end(void **unused) {
  err e;
  assert_int_equal(
      take_from("printf 'B\\005\\000\\000\\000helloB\\001\\000\\000\\000!Z\\000\\000\\000\\000'",
                nothing, &e),
      6);
}

static void one_that_dies_or_talks_nonsense_is_an_error(void **unused) {
  static const struct {
    const char *script, *words;
    int code;
  } all[] = {
      {"exit 3", "exit code 3", ERR_IO},
      {"kill -9 $$", "signal KILL", ERR_IO},
      {"printf 'B\\377\\377\\377\\377some'", "gone", ERR_IO},
      {"printf 'Q\\000\\000\\000\\000'", "nonsense", ERR_FORMAT},
      {"printf 'W\\001\\000\\000\\000x'", "nonsense", ERR_FORMAT},
      {"printf 'Z\\001\\000\\000\\000x'", "nonsense", ERR_FORMAT},
      {"printf 'F\\002\\000\\000\\000xx'", "nonsense", ERR_FORMAT},
      {"printf 'F\\377\\377\\000\\000'", "nonsense", ERR_FORMAT},
      {"printf 'B'", "gone", ERR_IO},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    err e;
    ssize_t rc = take_from(all[i].script, nothing, &e);
    if (rc != all[i].code || !strstr(e.text, all[i].words))
      fail_msg("%s: %zd %s", all[i].script, rc, e.text);
    assert_int_equal(strncmp(e.text, "a.tar: ", 7), 0);
  }
}

static void its_words_are_made_harmless_and_its_code_must_be_one(void **unused) {
  err e;
  ssize_t rc = take_from("printf 'F\\010\\000\\000\\000\\005\\000\\000\\000a\\033[m'", nothing, &e);
  assert_int_equal(rc, ERR_FORMAT);
  assert_string_equal(e.text, "a.tar: a [m");
  rc = take_from("printf 'F\\006\\000\\000\\000\\354\\377\\377\\377no'", nothing, &e);
  assert_int_equal(rc, ERR_LIMIT);
  assert_string_equal(e.text, "a.tar: no");
}

static void an_error_of_the_feed_comes_through(void **unused) {
  err e;
  assert_int_equal(take_from("printf 'W\\000\\000\\000\\000'; cat >/dev/null", failing, &e),
                   ERR_RETIRED);
  assert_string_equal(e.text, "it changed");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_it_gives_is_taken_to_its_end),
      cmocka_unit_test(one_that_dies_or_talks_nonsense_is_an_error),
      cmocka_unit_test(its_words_are_made_harmless_and_its_code_must_be_one),
      cmocka_unit_test(an_error_of_the_feed_comes_through),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
