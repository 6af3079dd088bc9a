/* What is written down for `why`: read back as it was, bounded, and never in anybody's way. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "why/trail.h"
#include "io_fault.h"
#include "tmpdir.h"

typedef struct seen {
  int count, commits;
  trail_what whats[64];
  char last[512], units[4096];
} seen;

static int see(void *ctx, const trail_record *r) {
  seen *s = ctx;
  if (s->count < 64) s->whats[s->count] = r->what;
  s->count++;
  s->commits += r->what == TRAIL_COMMITTED;
  snprintf(s->last, sizeof s->last, "%s|%s|%s|%s|%d|%u|%llu|%s|%s|%s|%s", r->unit ? r->unit : "-",
           r->cause ? r->cause : "-", r->policy ? r->policy : "-", r->reason ? r->reason : "-",
           r->status, r->tries, (unsigned long long)r->commit, r->log ? r->log : "-",
           r->entry ? r->entry : "-", r->content ? r->content : "-", r->left ? r->left : "-");
  return 0;
}

static seen read_all(const char *dir, const char *unit) {
  seen s = {0};
  trail_read(io_system(), dir, unit, see, &s, NULL);
  return s;
}

static trail *open_in(const io *io, const char *dir) {
  trail *t;
  assert_int_equal(trail_open(io, NULL, dir, &t, NULL), 0);
  return t;
}

static void a_record_comes_back_as_it_was(void **state) {
  char *dir = *state;
  seen none = {0};
  assert_int_equal(trail_read(io_system(), dir, NULL, see, &none, NULL), ERR_NOENT);
  trail *t = open_in(io_system(), dir);
  trail_note(t, &(trail_record){.what = TRAIL_START, .policy = "default"});
  trail_note(t, &(trail_record){.time_ns = 77,
                                .what = TRAIL_RETRYING,
                                .unit = "exp/\xff%\n\"-3",
                                .cause = "c",
                                .policy = "p",
                                .reason = "a\nb \xfe %41",
                                .status = ERR_IO,
                                .tries = 3,
                                .commit = 9,
                                .log = "l",
                                .entry = "n",
                                .content = "d",
                                .left = "x\ny/"});
  trail_close(t);
  seen s = read_all(dir, "exp/\xff%\n\"-3");
  assert_int_equal(s.count, 1);
  assert_int_equal(s.whats[0], TRAIL_RETRYING);
  assert_string_equal(s.last, "exp/\xff%\n\"-3|c|p|a\nb \xfe %41|-3|3|9|l|n|d|x\ny/");
  assert_int_equal(read_all(dir, NULL).count, 2);
  assert_int_equal(read_all(dir, "exp").count, 0);
  trail_note(NULL, &(trail_record){.what = TRAIL_START});
  trail_close(NULL);
}

static void note_open(trail *t, const char *reason) {
  trail_note(t, &(trail_record){.what = TRAIL_OPEN, .unit = "u", .reason = reason});
}

static void numbers_alone_are_no_news(void **state) {
  char *dir = *state;
  trail *t = open_in(io_system(), dir);
  for (int i = 0; i < 1000; i++) {
    char text[64];
    snprintf(text, sizeof text, "quiet %d.%d of 30 s", i / 10, i % 10);
    note_open(t, text);
    note_open(t, "it is being written");
  }
  assert_int_equal(read_all(dir, "u").count, 2);
  note_open(t, "quiet 9.9 of 30 s");
  trail_close(t); /* the last word is kept */
  seen s = read_all(dir, "u");
  assert_int_equal(s.count, 3);
  assert_non_null(strstr(s.last, "quiet 9.9"));
  t = open_in(io_system(), dir); /* another run says it again */
  note_open(t, "quiet 9.9 of 30 s");
  trail_note(t, &(trail_record){.what = TRAIL_COMPLETE, .unit = "u"});
  trail_note(t, &(trail_record){.what = TRAIL_COMPLETE, .unit = "u"});
  note_open(t, "quiet 0.1 of 30 s"); /* and once it was something else, it is news again */
  assert_int_equal(read_all(dir, "u").count, 6);
  trail_close(t);
}

static void it_stays_small_and_forgets_no_unit_that_counts(void **state) {
  char *dir = *state, reason[201], unit[32];
  memset(reason, 'x', 200);
  reason[200] = '\0';
  trail *t = open_in(io_system(), dir);
  trail_note(t, &(trail_record){.what = TRAIL_COMMITTED, .unit = "first", .commit = 5});
  trail_note(t, &(trail_record){.what = TRAIL_GONE, .unit = "gone"});
  for (int i = 0; i < 60000; i++) {
    snprintf(unit, sizeof unit, "unit-%d", i % 50);
    trail_note(
        t, &(trail_record){
               .what = TRAIL_RETRYING, .unit = unit, .reason = reason, .tries = (unsigned)i + 1});
  }
  trail_close(t);
  struct stat st;
  const char *files[] = {"why.jsonl", "why.1.jsonl"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(stat(tmpdir_path(dir, files[i]), &st), 0);
    assert_true(st.st_size < TRAIL_BYTES_MAX + 4096);
    assert_int_equal(st.st_mode & 0777, 0600);
  }
  assert_true(read_all(dir, "first").count > 0);
  assert_int_equal(read_all(dir, "gone").count, 0);
  seen s = read_all(dir, "unit-49");
  assert_non_null(strstr(s.last, "|60000|"));
}

static void what_cannot_be_read_is_passed_over(void **state) {
  char *dir = *state;
  char *huge = malloc(300000);
  memset(huge, 'y', 299999);
  huge[299999] = '\0';
  FILE *f = fopen(tmpdir_path(dir, "why.jsonl"), "w");
  fprintf(f,
          "nonsense\n\n[]\n{}\n{\"t\":\"x\",\"what\":\"open\"}\n{\"t\":1,\"what\":\"unheard\"}\n");
  fprintf(f, "{\"t\":1,\"what\":\"open\",\"unit\":7,\"status\":99999999999,\"tries\":-1}\n");
  fprintf(f, "{\"t\":1,\"what\":\"open\",\"unit\":\"a\",\"reason\":\"%%zz\"}\n");
  fprintf(f, "%s\n{\"t\":2,\"what\":\"gone\",\"unit\":\"a\"}\n{\"t\":3,\"what\":\"op", huge);
  fclose(f);
  free(huge);
  assert_int_equal(read_all(dir, "a").count, 2);
  trail *t = open_in(io_system(), dir); /* a torn end takes no record with it */
  trail_note(t, &(trail_record){.what = TRAIL_SKIPPED, .unit = "a", .reason = "r"});
  trail_close(t);
  seen s = read_all(dir, "a");
  assert_int_equal(s.count, 3);
  assert_string_equal(s.last, "a|-|-|r|0|0|0|-|-|-|-");
}

static void a_thing_that_is_no_file_stops_nobody(void **state) {
  char *dir = *state;
  assert_int_equal(mkfifo(tmpdir_path(dir, "why.jsonl"), 0600), 0);
  make_dir(tmpdir_path(dir, "why.1.jsonl"));
  trail *t = open_in(io_system(), dir);
  trail_note(t, &(trail_record){.what = TRAIL_GONE, .unit = "a"});
  trail_close(t);
  assert_int_equal(read_all(dir, NULL).count, 0);
}

static int warnings;
static void count_warning(void *ctx, log_level level, const char *text) {
  warnings += level == LOG_WARN;
}

static void failing_calls_cost_records_and_one_warning(void **state) {
  io_fault *f = io_fault_new(io_system());
  log_sink log = {.fn = count_warning, .min = LOG_DEBUG};
  for (long n = 1; n < 200; n++) {
    char *dir = tmpdir_new();
    trail *t;
    warnings = 0;
    io_fault_once(f, CALL_ANY, n, EIO);
    assert_int_equal(trail_open(io_fault_io(f), &log, dir, &t, NULL), 0);
    for (unsigned i = 1; i < 6; i++)
      trail_note(t, &(trail_record){.what = TRAIL_RETRYING, .unit = "a", .tries = i});
    trail_close(t);
    bool over = io_fault_failed(f, CALL_ANY) == 0;
    assert_true(warnings <= 1);
    assert_true(read_all(dir, "a").count >= 4);
    assert_non_null(strstr(read_all(dir, "a").last, "|5|"));
    tmpdir_remove(dir);
    if (over) break;
  }
  io_fault_free(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_DIRECTORY(a_record_comes_back_as_it_was),
      IN_A_DIRECTORY(numbers_alone_are_no_news),
      IN_A_DIRECTORY(it_stays_small_and_forgets_no_unit_that_counts),
      IN_A_DIRECTORY(what_cannot_be_read_is_passed_over),
      IN_A_DIRECTORY(a_thing_that_is_no_file_stops_nobody),
      cmocka_unit_test(failing_calls_cost_records_and_one_warning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
