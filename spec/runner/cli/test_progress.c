#include "with_cmocka.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/cli/progress.h"

/* ---- a made-up run: at most one transfer, and so many that wait ---- */

static struct {
  bool moves;
  uint64_t bytes, left;
  unsigned waiting, asked;
  const char *reason; /* of the one that moves; NULL: "uploading" */
} made;

int ckpt_run_pending(ckpt_run *run, ckpt_pending_fn *fn, void *ctx) {
  made.asked++;
  ckpt_pending p = {.size = sizeof p,
                    .unit = "checkpoint-3",
                    .reason = made.reason ? made.reason : "uploading",
                    .bytes = made.bytes,
                    .bytes_left = made.left,
                    .begun = 1};
  if (made.moves) fn(ctx, &p);
  p.begun = 0;
  p.unit = "checkpoint-4";
  p.reason = "waiting for checkpoint-3";
  for (unsigned i = 0; i < made.waiting; i++) fn(ctx, &p);
  return 0;
}

int ckpt_class(int code) {
  return (void)code, CKPT_CLASS_NONE;
}
const char *ckpt_status_name(int code) {
  return (void)code, "";
}
void ckpt_log_counted(ckpt *engine) {}

/* ---- what it writes to stderr ---- */

static int kept;

static int set_up(void **state) {
  memset(&made, 0, sizeof made);
  kept = dup(STDERR_FILENO);
  int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
  dup2(file, STDERR_FILENO);
  close(file);
  return 0;
}

static int tear_down(void **state) {
  dup2(kept, STDERR_FILENO);
  close(kept);
  return 0;
}

static const char *said(void) {
  static char text[1 << 16];
  ssize_t n = pread(STDERR_FILENO, text, sizeof text - 1, 0);
  text[n > 0 ? n : 0] = 0;
  return text;
}

/* ---- promises ---- */

static void with_nothing_moving_there_is_no_wake_up(void **state) {
  progress p;
  progress_begin(&p, false, true, 80);
  assert_true(isinf(p.next_at));
  made.waiting = 3;
  progress_look(&p, NULL, 10);
  assert_true(isinf(p.next_at));
  assert_string_equal(said(), "");
}

static void a_quick_save_draws_nothing(void **state) {
  progress p;
  progress_begin(&p, false, true, 80);
  made.moves = true;
  made.bytes = made.left = 1 << 20;
  progress_look(&p, NULL, 10);
  assert_true(p.next_at == 11);
  progress_look(&p, NULL, 10.5); /* something else woke us */
  made.moves = false;
  progress_look(&p, NULL, 11);
  assert_true(isinf(p.next_at));
  assert_null(strstr(said(), "saving"));
}

static void a_terminal_is_drawn_at_most_four_times_a_second(void **state) {
  progress p;
  progress_begin(&p, false, true, 120);
  made.moves = true;
  made.bytes = made.left = 1000 << 20;
  for (unsigned i = 0; i < 1100; i++) { /* an event each 10 ms, and 90 MiB/s */
    made.left = made.bytes - (uint64_t)(i * 0.9) * (1 << 20);
    progress_look(&p, NULL, 100 + i * 0.01);
  }
  const char *text = said();
  int drawn = 0;
  for (const char *at = text; (at = strstr(at, "saving")); at++) drawn++;
  assert_true(drawn > 30 && drawn <= 41);
  assert_true(made.asked <= 45);
  assert_non_null(strstr(text, "ckpt-lua: saving checkpoint-3: "));
  assert_non_null(strstr(text, " of 1000 MiB ("));
  assert_non_null(strstr(text, " MiB/s, "));
  assert_non_null(strstr(text, " s left"));
  assert_null(strchr(text, '\n'));
  made.moves = false;
  progress_look(&p, NULL, 120);
  text = said();
  assert_string_equal(text + strlen(text) - 4, "\r\033[K"); /* and it is gone */
}

static void what_is_all_sent_and_waits_for_others_has_no_seconds_left(void **state) {
  progress p;
  progress_begin(&p, false, false, 0);
  made.moves = true;
  made.bytes = made.left = 191 << 20;
  progress_look(&p, NULL, 100);
  made.left = 0;
  made.reason = "waiting for rank 1 of 2, 31 of 600 s";
  progress_look(&p, NULL, 131);
  assert_non_null(
      strstr(said(), "191 MiB of 191 MiB (100%); waiting for rank 1 of 2, 31 of 600 s\n"));
  assert_null(strstr(said(), "left"));
}

/* 8 parts of 8 MiB are sent side by side over a link of 5 MiB a second, and are acknowledged one
 * after the other in a moment. */
static void a_rate_is_of_what_was_acknowledged_however_it_comes(void **state) {
  progress p;
  progress_begin(&p, false, true, 120);
  made.moves = true;
  made.bytes = made.left = 400 << 20;
  for (int tenths = 0; tenths <= 760; tenths++) {
    double now = tenths / 10.0;
    uint64_t sent = (uint64_t)(now * 5), whole = sent / 64 * 64;
    double late = now - (double)whole / 5; /* since the last 64 MiB were complete */
    uint64_t burst = sent < 64 ? 0 : late < 0.8 ? (uint64_t)(late * 10) * 8 : 64;
    uint64_t before = sent < 64 ? 0 : (sent / 64 - 1) * 64;
    made.left = made.bytes - ((before + burst) << 20);
    progress_look(&p, NULL, now);
    double rate = p.rate / (1 << 20);
    if (sent < 64 && p.rate > 0) fail_msg("%.0f MiB/s after %.1f s", rate, now);
    if (burst == 64 && now > p.next.at && (rate < 2.4 || rate > 5.01))
      fail_msg("%.1f MiB/s after %.1f s", rate, now);
  }
  assert_true(p.rate > 0);
  assert_null(strstr(said(), "(100%)"));
  made.moves = false;
  progress_look(&p, NULL, 80);
}

static void elsewhere_a_line_comes_every_30_seconds(void **state) {
  progress p;
  progress_begin(&p, false, false, 0);
  made.moves = true;
  made.bytes = made.left = 100 << 20;
  made.waiting = 2;
  for (unsigned now = 0; now <= 95; now++) {
    made.left = made.bytes - (uint64_t)now * (1 << 20);
    progress_look(&p, NULL, now);
  }
  const char *text = said();
  int lines = 0;
  for (const char *at = text; (at = strchr(at, '\n')); at++) lines++;
  assert_int_equal(lines, 3);
  assert_null(strchr(text, '\033'));
  assert_non_null(strstr(text, "; 2 waiting (waiting for checkpoint-3)\n"));
  assert_non_null(strstr(text, ", 1.0 MiB/s, "));
}

static void quiet_means_quiet(void **state) {
  progress p;
  progress_begin(&p, true, true, 80);
  made.moves = true;
  for (unsigned now = 0; now < 100; now++) progress_look(&p, NULL, now);
  assert_true(isinf(p.next_at));
  assert_string_equal(said(), "");
}

static const char *written(const progress *p, const progress_sum *sum, int columns) {
  static char text[1024];
  FILE *f = fmemopen(text, sizeof text, "w");
  progress_write(f, p, sum, columns);
  fclose(f);
  return text;
}

static void a_line_is_cut_between_characters(void **state) {
  progress p = {0};
  progress_sum sum = {.begun = 2, .name = "m\xc3\xb6\xc3\xb6", .done = 1, .total = 4};
  assert_string_equal(written(&p, &sum, 0),
                      "saving m\xc3\xb6\xc3\xb6 and 1 more: 1 B of 4 B (25%)");
  assert_string_equal(written(&p, &sum, 9), "saving m\xc3\xb6");
  assert_string_equal(written(&p, &sum, 10), "saving m\xc3\xb6\xc3\xb6");
  for (int columns = 1; columns < 60; columns++) written(&p, &sum, columns);
}

static void no_name_speaks_to_the_terminal(void **state) {
  progress p = {0};
  progress_sum sum = {.begun = 1, .name = "a\033[2Jb\n", .waits_for = "c\r"};
  const char *text = written(&p, &sum, 0);
  assert_null(strpbrk(text, "\033\n\r"));
}

/* ---- calls that block ---- */

static ckpt_progress told(uint64_t bytes, bool over) {
  return (ckpt_progress){.size = sizeof(ckpt_progress),
                         .what = "restore",
                         .unit = "checkpoint-3",
                         .bytes = bytes,
                         .total = 1000 << 20,
                         .over = over};
}

/* As the engine tells it: four times a second, 100 MiB/s, and the end. */
static void restore_for(progress *p, double begin, double seconds) {
  for (int i = 0; i * 0.25 < seconds; i++) {
    ckpt_progress now = told((uint64_t)(i * 25) << 20, false);
    progress_take(p, &now, begin + i * 0.25);
  }
  ckpt_progress end = told(1000 << 20, true);
  progress_take(p, &end, begin + seconds);
}

static void a_call_that_blocks_is_drawn_until_it_ends(void **state) {
  progress p;
  progress_begin(&p, false, true, 120);
  restore_for(&p, 50, 10);
  const char *text = said();
  int drawn = 0;
  for (const char *at = text; (at = strstr(at, "restoring")); at++) drawn++;
  assert_int_equal(drawn, 36);
  assert_non_null(strstr(text, "ckpt-lua: restoring checkpoint-3: 500 MiB of 1000 MiB (50%), "));
  assert_non_null(strstr(text, ", 100 MiB/s, 5 s left\r"));
  assert_string_equal(text + strlen(text) - 4, "\r\033[K");
  assert_true(isinf(p.next_at));
  assert_int_equal(made.asked, 0);
}

static void one_that_is_quickly_over_draws_nothing(void **state) {
  progress p;
  progress_begin(&p, false, true, 120);
  for (int i = 0; i < 20; i++) restore_for(&p, 50 + i, 0.9); /* each by itself */
  assert_string_equal(said(), "");
}

static void without_a_terminal_it_has_a_line_every_30_seconds(void **state) {
  progress p;
  progress_begin(&p, false, false, 0);
  restore_for(&p, 50, 29);
  assert_string_equal(said(), "");
  restore_for(&p, 100, 65);
  const char *text = said();
  int lines = 0;
  for (const char *at = text; (at = strchr(at, '\n')); at++) lines++;
  assert_int_equal(lines, 2);
  assert_null(strchr(text, '\033'));
}

static void quiet_holds_for_them_too(void **state) {
  progress p;
  progress_begin(&p, true, true, 80);
  restore_for(&p, 50, 100);
  assert_string_equal(said(), "");
}

/* The restore at the start, then the saves of the run. */
static void a_run_goes_on_where_its_restore_has_ended(void **state) {
  progress p;
  progress_begin(&p, false, true, 120);
  restore_for(&p, 50, 3);
  made.moves = true;
  made.bytes = made.left = 8 << 20;
  progress_look(&p, NULL, 53);
  assert_true(p.next_at == 54);
  made.left = 4 << 20;
  progress_look(&p, NULL, 54);
  assert_non_null(strstr(said(), "saving checkpoint-3: 4.0 MiB of 8.0 MiB (50%), 4.0 MiB/s, "));
}

static void each_thing_that_takes_time_has_its_word(void **state) {
  progress p = {0};
  progress_sum sum = {.begun = 1, .name = "a", .what = "verify"};
  assert_string_equal(written(&p, &sum, 0), "verifying a: 0 B of 0 B");
  sum.what = "check";
  assert_string_equal(written(&p, &sum, 0), "checking a: 0 B of 0 B");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(with_nothing_moving_there_is_no_wake_up),
      TEST(a_quick_save_draws_nothing),
      TEST(a_terminal_is_drawn_at_most_four_times_a_second),
      TEST(what_is_all_sent_and_waits_for_others_has_no_seconds_left),
      TEST(a_rate_is_of_what_was_acknowledged_however_it_comes),
      TEST(elsewhere_a_line_comes_every_30_seconds),
      TEST(quiet_means_quiet),
      TEST(a_line_is_cut_between_characters),
      TEST(no_name_speaks_to_the_terminal),
      TEST(a_call_that_blocks_is_drawn_until_it_ends),
      TEST(one_that_is_quickly_over_draws_nothing),
      TEST(without_a_terminal_it_has_a_line_every_30_seconds),
      TEST(quiet_holds_for_them_too),
      TEST(a_run_goes_on_where_its_restore_has_ended),
      TEST(each_thing_that_takes_time_has_its_word),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
