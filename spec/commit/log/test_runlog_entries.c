/* What commits carry, and what becomes of them: dropped, deleted, by the writer and by guests. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_place.h"
#include "manifest_make.h"
#include "store_lossy.h"

static runlog *open_log(store *s) {
  runlog *log = NULL;
  err e = {0};
  if (runlog_open(s, "", &log, &e) != 0) fail_msg("%s", e.text);
  return log;
}

static uint64_t commit_as(runlog *log, const char *unit, const char *metrics, const char *reason) {
  uint64_t n, made = 0;
  manifest m;
  err e = {0};
  make_small(&m, unit, runlog_view(log)->next);
  free(m.policy);
  m.policy = strdup("mine");
  free(m.metrics);
  m.metrics = metrics ? strdup(metrics) : NULL;
  int rc = runlog_attempt_begin(log, unit, &n, &e);
  if (rc == 0) rc = runlog_commit_attempt(log, n, &m, &(runlog_note){.reason = reason}, &made, &e);
  if (rc < 0) fail_msg("%s", e.text);
  manifest_free(&m);
  return made;
}

static uint64_t commit(runlog *log, const char *unit) {
  return commit_as(log, unit, NULL, NULL);
}

static const runlog_commit *find(runlog *log, uint64_t n) {
  const runlog_commit *c = runlog_find_commit(runlog_view(log), n);
  assert_non_null(c);
  return c;
}

/* The place closes it. */
static runlog *reader_of(log_place *p) {
  return world_keep(p->w, open_log(p->s));
}

static void a_commit_carries_who_wanted_it_and_why(void **state) {
  log_place *p = *state;
  uint64_t n = commit_as(p->log, "a", "{\"loss\":0.5,\"step\":3}", "each fifth");
  runlog *reader = reader_of(p);
  const runlog_commit *c = find(reader, n);
  assert_string_equal(c->policy, "mine");
  assert_string_equal(c->reason, "each fifth");
  assert_string_equal(c->metrics, "{\"loss\":0.5,\"step\":3}");
  assert_int_equal(c->life, RUNLOG_LIVE);
}

static void a_commit_carries_what_its_lists_name(void **state) {
  log_place *p = *state;
  uint64_t n, made = 0;
  manifest m;
  make_small(&m, "c", 1);
  assert_int_equal(runlog_attempt_begin(p->log, "c", &n, NULL), 0);
  const runlog_note note = {.needs = "checkpoint_a/checkpoint_b/bad\xff/"};
  assert_int_equal(runlog_commit_attempt(p->log, n, &m, &note, &made, NULL), 0);
  manifest_free(&m);
  const runlog_commit *c = find(reader_of(p), made);
  assert_string_equal(c->needs, "checkpoint_a/checkpoint_b/");
  assert_true(runlog_commit_needs(c, "checkpoint_a"));
  assert_true(runlog_commit_needs(c, "checkpoint_b"));
  assert_false(runlog_commit_needs(c, "checkpoint_"));
  assert_false(runlog_commit_needs(c, "checkpoint_bb"));
  c = find(p->log, commit(p->log, "d"));
  assert_null(c->needs);
  assert_false(runlog_commit_needs(c, "checkpoint_a"));
}

static void what_is_not_stated_stays_unstated(void **state) {
  log_place *p = *state;
  const runlog_commit *c = find(p->log, commit_as(p->log, "a", NULL, ""));
  assert_null(c->reason);
  assert_null(c->metrics);
  assert_null(c->drop_reason);
}

static void metrics_that_are_too_large_or_no_object_stay_out_and_stop_nothing(void **state) {
  log_place *p = *state;
  char *large = calloc(1, RUNLOG_METRICS_MAX + 100);
  memset(large, ' ', RUNLOG_METRICS_MAX);
  memcpy(large + RUNLOG_METRICS_MAX, "{\"a\":1}", 8);
  assert_null(find(p->log, commit_as(p->log, "a", large, NULL))->metrics);
  assert_null(find(p->log, commit_as(p->log, "b", "[1,2]", NULL))->metrics);
  assert_null(find(p->log, commit_as(p->log, "c", "{\"a\":", NULL))->metrics);
  free(large);
}

static void a_reason_can_neither_control_a_terminal_nor_break_the_log(void **state) {
  log_place *p = *state;
  static const struct {
    const char *said, *kept;
  } cases[] = {
      {"\x1b[2Jred", " [2Jred"},
      {"a\nb\tc\x7f", "a b c "},
      {"\xc2\x9b"
       "31m 25 % \xe2\x82\xac",
       " 31m 25 % \xe2\x82\xac"},
      {"bad \xff\xfe utf", "bad ?? utf"},
      {"cut \xe2\x82", "cut ??"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t n = commit_as(p->log, "a", NULL, cases[i].said);
    assert_string_equal(find(p->log, n)->reason, cases[i].kept);
    assert_int_equal(runlog_drop(p->log, n, cases[i].said, cases[i].said, NULL, NULL, NULL), 0);
    assert_string_equal(find(p->log, n)->drop_reason, cases[i].kept);
  }
  char long_text[2000];
  memset(long_text, 'x', sizeof long_text);
  memcpy(long_text + RUNLOG_REASON_MAX - 3, "\xe2\x82\xac", 3); /* a character across the end */
  long_text[sizeof long_text - 1] = 0;
  const char *kept = find(p->log, commit_as(p->log, "a", NULL, long_text))->reason;
  assert_int_equal(strlen(kept), RUNLOG_REASON_MAX - 3);
}

static void what_is_dropped_is_not_chosen_any_more(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x"), b = commit(p->log, "x"), c = commit(p->log, "y");
  assert_int_equal(runlog_drop(p->log, b, "keep", "only three", NULL, NULL, NULL), 0);
  runlog *reader = reader_of(p);
  const runlog_state *st = runlog_view(reader);
  assert_int_equal(runlog_newest(st, "x")->n, a);
  assert_int_equal(runlog_newest(st, NULL)->n, c);
  assert_int_equal(runlog_newest_ever(st, "x")->n, b);
  assert_int_equal(find(reader, b)->life, RUNLOG_DROPPED);
  assert_string_equal(find(reader, b)->drop_policy, "keep");
  assert_string_equal(find(reader, b)->drop_reason, "only three");
  assert_int_equal(find(reader, b)->drop, st->next - 1);
  assert_int_equal(runlog_drop(p->log, a, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_refresh(reader, NULL), 0);
  assert_null(runlog_newest(runlog_view(reader), "x"));
}

static void its_directory_stays_taken_for_ever(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  assert_int_equal(runlog_drop(p->log, a, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_delete(p->log, a, NULL, NULL, NULL), 0);
  assert_string_not_equal(find(p->log, commit(p->log, "x"))->dir, "x");
  assert_int_equal(runlog_find_dir(runlog_view(p->log), "x")->life, RUNLOG_DELETED);
}

static void nothing_is_deleted_that_was_not_dropped(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  assert_int_equal(runlog_delete(p->log, a, NULL, NULL, NULL), ERR_INVAL);
  assert_int_equal(runlog_drop(p->log, 777, NULL, NULL, NULL, NULL, NULL), ERR_INVAL);
  assert_int_equal(runlog_delete(p->log, 777, NULL, NULL, NULL), ERR_INVAL);
  assert_int_equal(find(p->log, a)->life, RUNLOG_LIVE);
}

static void asked_for_twice_it_is_done_once(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  for (int i = 0; i < 2; i++)
    assert_int_equal(runlog_drop(p->log, a, "p", "r", NULL, NULL, NULL), 0);
  uint64_t next = runlog_view(p->log)->next;
  for (int i = 0; i < 2; i++) assert_int_equal(runlog_delete(p->log, a, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_drop(p->log, a, "p", "r", NULL, NULL, NULL), 0);
  assert_int_equal(runlog_view(p->log)->next, next + 1);
}

static void a_guest_drops_and_deletes_and_fences_nobody(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x"), b = commit(p->log, "x");
  runlog *guest = reader_of(p);
  assert_int_equal(runlog_drop(guest, a, "user", "by hand", NULL, NULL, NULL), 0);
  assert_int_equal(runlog_delete(guest, a, NULL, NULL, NULL), 0);
  uint64_t c = commit(p->log, "x"); /* the writer collides, reads, and goes on */
  assert_int_equal(find(p->log, a)->life, RUNLOG_DELETED);
  assert_int_equal(runlog_refresh(guest, NULL), 0);
  assert_int_equal(runlog_newest(runlog_view(guest), "x")->n, c);
  assert_int_equal(find(guest, b)->life, RUNLOG_LIVE);
}

static void a_guest_makes_no_log(void **state) {
  log_place *p = *state;
  runlog *guest = NULL;
  assert_int_equal(runlog_open(p->s, "elsewhere", &guest, NULL), 0);
  assert_int_equal(runlog_drop(guest, 0, NULL, NULL, NULL, NULL, NULL), ERR_INVAL);
  assert_false(store_holds(p->s, "elsewhere/.ckpt/log/00000000000000000000.json"));
  runlog_close(guest);
}

static void a_fenced_writer_drops_nothing(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  runlog *newer = world_log(p->w, "", "two");
  assert_int_equal(runlog_drop(p->log, a, NULL, NULL, NULL, NULL, NULL), ERR_FENCED);
  assert_int_equal(runlog_refresh(newer, NULL), 0);
  assert_int_equal(find(newer, a)->life, RUNLOG_LIVE);
  assert_int_equal(runlog_drop(newer, a, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_delete(p->log, a, NULL, NULL, NULL), ERR_FENCED);
}

/* Somebody else drops the newer one between the look and the entry. */
struct rival {
  store *s;
  uint64_t victim;
  bool done;
};

static void drop_first(void *ctx) {
  struct rival *r = ctx;
  if (r->done) return;
  r->done = true;
  runlog *log = open_log(r->s);
  assert_int_equal(runlog_drop(log, r->victim, "rival", NULL, NULL, NULL, NULL), 0);
  runlog_close(log);
}

static bool is_not_newest(void *ctx, const runlog_state *state, const runlog_commit *c) {
  ++*(int *)ctx;
  return runlog_newest(state, NULL)->n != c->n;
}

static void what_a_rival_did_is_asked_about_before_the_entry_is_made(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x"), b = commit(p->log, "x");
  struct rival rival = {.s = p->s, .victim = b};
  store_lossy *link = store_lossy_new(p->s, 1, true);
  runlog *guest = open_log(&link->base);
  int asked = 0;
  link->between = drop_first;
  link->ctx = &rival;
  assert_int_equal(runlog_drop(guest, a, NULL, NULL, is_not_newest, &asked, NULL), ERR_CONFLICT);
  assert_int_equal(asked, 2);
  runlog *reader = reader_of(p);
  assert_int_equal(find(reader, a)->life, RUNLOG_LIVE);
  assert_int_equal(find(reader, b)->life, RUNLOG_DROPPED);
  runlog_close(guest);
  store_lossy_free(link);
}

static void a_drop_whose_answer_was_lost_stands_once(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  store_lossy *link = store_lossy_new(p->s, 1, true);
  runlog *guest = open_log(&link->base);
  link->lost_at = link->puts + 1;
  assert_int_equal(runlog_drop(guest, a, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(find(guest, a)->life, RUNLOG_DROPPED);
  runlog_close(guest);
  store_lossy_free(link);
}

static void the_store_says_when_an_entry_was_made(void **state) {
  log_place *p = *state;
  int64_t at = 0, now = world_io()->now(world_io(), IO_WALL);
  uint64_t a = commit(p->log, "x");
  assert_int_equal(runlog_entry_time(p->log, a, &at, NULL), 0);
  assert_true(at > now - 5000000000 && at < now + 5000000000);
  assert_int_equal(runlog_entry_time(p->log, a + 1, &at, NULL), ERR_NOENT);
}

static void a_mark_is_set_and_taken_back_by_whoever_finds_out(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x"), b = commit(p->log, "x");
  runlog *guest = reader_of(p);
  for (int i = 0; i < 2; i++) /* asked for twice it is done once */
    assert_int_equal(runlog_mark(guest, b, true, "does not load", NULL), 0);
  assert_int_equal(runlog_refresh(p->log, NULL), 0);
  assert_int_equal(runlog_newest(runlog_view(p->log), "x")->n, a);
  assert_string_equal(find(p->log, b)->bad_reason, "does not load");
  uint64_t next = runlog_view(p->log)->next;
  for (int i = 0; i < 2; i++) assert_int_equal(runlog_mark(p->log, b, false, NULL, NULL), 0);
  assert_int_equal(runlog_view(p->log)->next, next + 1);
  assert_int_equal(runlog_newest(runlog_view(p->log), "x")->n, b);
  assert_int_equal(runlog_mark(p->log, 777, true, NULL, NULL), ERR_INVAL);
  assert_int_equal(runlog_drop(p->log, a, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_mark(p->log, a, true, NULL, NULL), ERR_INVAL);
}

static void numbers_are_told_once_by_whoever_has_them(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x"), b = commit(p->log, "y");
  runlog *guest = reader_of(p);
  assert_int_equal(runlog_mark(guest, b, true, "does not load", NULL), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(runlog_tell_numbers(guest, a, "{\"loss\":0.5}", NULL), 0);
    assert_int_equal(runlog_tell_numbers(p->log, b, "{\"loss\":1}", NULL), 0);
  }
  assert_int_equal(runlog_view(p->log)->next, b + 4);
  assert_string_equal(find(p->log, a)->metrics, "{\"loss\":0.5}");
  assert_string_equal(find(p->log, b)->metrics, "{\"loss\":1}");
  assert_false(find(p->log, a)->bad);
  assert_true(find(p->log, b)->bad);
  assert_int_equal(runlog_drop(p->log, a, NULL, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_tell_numbers(p->log, a, "{\"loss\":9}", NULL), 0);
  assert_string_equal(find(p->log, a)->metrics, "{\"loss\":0.5}");
  assert_int_equal(runlog_tell_numbers(p->log, 777, "{}", NULL), ERR_INVAL);
  char large[RUNLOG_METRICS_MAX + 2];
  memset(large, ' ', sizeof large - 1);
  large[sizeof large - 1] = '\0';
  assert_int_equal(runlog_tell_numbers(p->log, b, large, NULL), ERR_LIMIT);
}

static void a_guest_sweeps_only_what_nobody_may_go_on_with(void **state) {
  log_place *p = *state;
  uint64_t mine = 0, later = 0;
  runlog *guest = reader_of(p);
  err e = {0};
  assert_int_equal(runlog_attempt_begin(p->log, "x", &mine, NULL), 0);
  assert_int_equal(runlog_refresh(guest, NULL), 0);
  assert_int_equal(runlog_sweep(guest, mine, &e), ERR_HELD);
  assert_non_null(strstr(e.text, "\"x\""));
  runlog *newer = world_log(p->w, "", "two");
  assert_int_equal(runlog_attempt_begin(newer, "y", &later, NULL), 0);
  assert_int_equal(runlog_sweep(guest, later, NULL), ERR_INVAL); /* it has not read of it */
  assert_int_equal(runlog_sweep(guest, mine, NULL), ERR_HELD);
  assert_int_equal(runlog_refresh(guest, NULL), 0);
  assert_int_equal(runlog_sweep(guest, mine, NULL), 0);
  assert_int_equal(runlog_sweep(guest, later, NULL), ERR_HELD);
  assert_int_equal(runlog_adopt(newer, mine, NULL), ERR_CONFLICT);
  assert_int_equal(runlog_sweep(guest, 777, NULL), ERR_INVAL);
}

/* An adoption that was planned before a sweep took its number is planned anew. */
static void sweep_first(void *ctx) {
  struct rival *r = ctx;
  if (r->done) return;
  r->done = true;
  runlog *log = open_log(r->s);
  assert_int_equal(runlog_sweep(log, r->victim, NULL), 0);
  runlog_close(log);
}

static void what_was_swept_in_between_is_not_adopted(void **state) {
  log_place *p = *state;
  store_lossy *link = store_lossy_new(p->s, 1, true);
  uint64_t n = 0;
  assert_int_equal(runlog_attempt_begin(p->log, "x", &n, NULL), 0);
  runlog *newer = world_begin(&link->base, "", "two");
  struct rival rival = {.s = p->s, .victim = n};
  link->between = sweep_first;
  link->ctx = &rival;
  assert_int_equal(runlog_adopt(newer, n, NULL), ERR_CONFLICT);
  assert_true(rival.done);
  assert_int_equal(runlog_find_attempt(runlog_view(newer), n)->owner, 1);
  runlog_close(newer);
  store_lossy_free(link);
}

static void a_run_that_was_removed_fences_its_writer_and_says_so(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x"), open = 0, n = 0;
  err e = {0};
  assert_int_equal(runlog_attempt_begin(p->log, "y", &open, NULL), 0);
  runlog *guest = reader_of(p);
  for (int i = 0; i < 2; i++)
    assert_int_equal(runlog_end(guest, "removed by hand", NULL, NULL, NULL), 0);
  assert_int_equal(find(guest, a)->life, RUNLOG_DELETED);
  assert_int_equal(runlog_find_attempt(runlog_view(guest), open)->fate, RUNLOG_SWEPT);
  assert_int_equal(runlog_attempt_begin(p->log, "z", &n, &e), ERR_FENCED);
  assert_non_null(strstr(e.text, "removed by hand"));
  assert_non_null(strstr(e.text, "term 1"));
  assert_int_equal(runlog_refresh(p->log, NULL), ERR_FENCED);
  assert_int_equal(runlog_sweep(p->log, open, NULL), ERR_FENCED);
  assert_int_equal(runlog_end(p->log, NULL, NULL, NULL, NULL), ERR_FENCED);
  manifest m;
  make_small(&m, "y", 1);
  assert_int_equal(runlog_commit_attempt(p->log, open, &m, NULL, NULL, NULL), ERR_FENCED);
  manifest_free(&m);
}

static void a_place_whose_run_was_removed_is_free_for_another_with_new_names(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  runlog *other = reader_of(p);
  runlog_writer who = {.launch = "two", .host = "h"};
  assert_int_equal(runlog_check_run(other, &(runlog_title){.id = "next"}, NULL), ERR_OTHER_RUN);
  assert_int_equal(runlog_end(p->log, NULL, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_begin(other, "next", &who, false, NULL), 0);
  const runlog_state *st = runlog_view(other);
  assert_string_equal(st->run_id, "next");
  assert_false(st->ended);
  assert_null(runlog_newest_ever(st, "x"));
  uint64_t b = commit(other, "x");
  assert_int_equal(runlog_newest_ever(st, "x")->n, b);
  assert_true(b > a);
  assert_string_not_equal(find(other, b)->dir, "x");
  assert_int_equal(runlog_newest(st, NULL)->n, b);
  err e = {0};
  assert_int_equal(runlog_refresh(p->log, &e), ERR_FENCED);
  assert_non_null(strstr(e.text, "launch two"));
  runlog *reader = reader_of(p);
  assert_string_equal(runlog_view(reader)->run_id, "next");
}

static bool never(void *ctx, const runlog_state *state, const runlog_commit *c) {
  assert_null(c);
  return !++*(int *)ctx;
}

static void an_end_asks_first_and_needs_a_run(void **state) {
  log_place *p = *state;
  uint64_t a = commit(p->log, "x");
  int asked = 0;
  err e = {0};
  runlog *guest = reader_of(p), *nowhere = NULL;
  assert_int_equal(runlog_end(guest, NULL, never, &asked, &e), ERR_CONFLICT);
  assert_int_equal(asked, 1);
  assert_int_equal(find(guest, a)->life, RUNLOG_LIVE);
  assert_int_equal(runlog_open(p->s, "elsewhere", &nowhere, NULL), 0);
  assert_int_equal(runlog_end(nowhere, NULL, NULL, NULL, NULL), ERR_NOENT);
  assert_false(store_holds(p->s, "elsewhere/.ckpt/log/00000000000000000000.json"));
  runlog_close(nowhere);
}

/* Whether its writer may be pushed aside was asked of another one. */
static void a_term_that_came_since_the_question_is_not_pushed_aside(void **state) {
  log_place *p = *state;
  runlog *late = reader_of(p), *first = reader_of(p);
  runlog_writer one = {.launch = "one", .host = "h"}, two = {.launch = "two", .host = "i"};
  runlog_title title = {
      .id = "world", .continue_run = true, .asked = true, .newest = runlog_view(late)->term.n};
  assert_int_equal(runlog_begin(first, "world", &one, true, NULL), 0);
  assert_int_equal(runlog_begin_as(late, &title, &two, NULL), ERR_CONFLICT);
  assert_string_equal(runlog_view(late)->term.writer.launch, "one");
  title.newest = runlog_view(late)->term.n;
  assert_int_equal(runlog_begin_as(late, &title, &two, NULL), 0);
  assert_int_equal(runlog_refresh(first, NULL), ERR_FENCED);
}

static void the_other_ranks_follow_the_term_of_their_own_launch(void **state) {
  log_place *p = *state;
  runlog *rank = reader_of(p), *first = reader_of(p);
  runlog_writer who = {.launch = "ranks", .host = "h", .world = 4};
  uint64_t n = 0;
  assert_int_equal(runlog_follow(rank, "ranks", 4, NULL), ERR_NOENT);
  assert_int_equal(runlog_follow(rank, "", 4, NULL), ERR_INVAL);
  assert_int_equal(runlog_begin(first, "world", &who, true, NULL), 0);
  err e = {0};
  assert_int_equal(runlog_follow(rank, "ranks", 8, &e), ERR_CONFLICT);
  assert_non_null(strstr(e.text, "4 ranks"));
  assert_int_equal(runlog_follow(rank, "other", 4, NULL), ERR_NOENT);
  for (int i = 0; i < 2; i++) assert_int_equal(runlog_follow(rank, "ranks", 4, NULL), 0);
  assert_int_equal(runlog_attempt_begin(first, "x", &n, NULL), 0);
  assert_int_equal(runlog_refresh(rank, NULL), 0);
  assert_int_equal(runlog_find_attempt(runlog_view(rank), n)->world, 4);
  manifest m;
  make_small(&m, "x", 3);
  assert_int_equal(runlog_commit_attempt(rank, n, &m, NULL, NULL, NULL), 0);
  assert_int_equal(runlog_commit_attempt(first, n, &m, NULL, NULL, NULL), 0); /* the same one */
  manifest_free(&m);
  world_log(p->w, "", "ranks");
  assert_int_equal(runlog_refresh(rank, NULL), ERR_FENCED);
  assert_int_equal(runlog_follow(rank, "ranks", 4, NULL), ERR_FENCED);
}

static void what_was_saved_beside_it_is_in_the_commit(void **state) {
  log_place *p = *state;
  manifest m;
  uint64_t n = 0, made = 0;
  make_small(&m, "x", 3);
  runlog_note note = {.companions = {.term = 1, .files = 2, .bytes = 99, .root = m.root}};
  assert_int_equal(runlog_attempt_begin(p->log, "x", &n, NULL), 0);
  assert_int_equal(runlog_commit_attempt(p->log, n, &m, &note, &made, NULL), 0);
  runlog *reader = reader_of(p);
  const runlog_companions *with = &find(reader, made)->companions;
  assert_int_equal(with->term, 1);
  assert_int_equal(with->files, 2);
  assert_int_equal(with->bytes, 99);
  assert_true(digest_equal(&with->root, &m.root));
  manifest_free(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_BOTH_PLACES(a_commit_carries_who_wanted_it_and_why),
      IN_BOTH_PLACES(a_commit_carries_what_its_lists_name),
      IN_BOTH_PLACES(what_is_not_stated_stays_unstated),
      IN_BOTH_PLACES(metrics_that_are_too_large_or_no_object_stay_out_and_stop_nothing),
      IN_BOTH_PLACES(a_reason_can_neither_control_a_terminal_nor_break_the_log),
      IN_BOTH_PLACES(what_is_dropped_is_not_chosen_any_more),
      IN_BOTH_PLACES(its_directory_stays_taken_for_ever),
      IN_BOTH_PLACES(nothing_is_deleted_that_was_not_dropped),
      IN_BOTH_PLACES(asked_for_twice_it_is_done_once),
      IN_BOTH_PLACES(a_guest_drops_and_deletes_and_fences_nobody),
      IN_BOTH_PLACES(a_guest_makes_no_log),
      IN_BOTH_PLACES(a_fenced_writer_drops_nothing),
      IN_BOTH_PLACES(what_a_rival_did_is_asked_about_before_the_entry_is_made),
      IN_BOTH_PLACES(a_drop_whose_answer_was_lost_stands_once),
      IN_BOTH_PLACES(the_store_says_when_an_entry_was_made),
      IN_BOTH_PLACES(a_mark_is_set_and_taken_back_by_whoever_finds_out),
      IN_BOTH_PLACES(numbers_are_told_once_by_whoever_has_them),
      IN_BOTH_PLACES(a_guest_sweeps_only_what_nobody_may_go_on_with),
      IN_BOTH_PLACES(what_was_swept_in_between_is_not_adopted),
      IN_BOTH_PLACES(a_run_that_was_removed_fences_its_writer_and_says_so),
      IN_BOTH_PLACES(a_place_whose_run_was_removed_is_free_for_another_with_new_names),
      IN_BOTH_PLACES(an_end_asks_first_and_needs_a_run),
      IN_BOTH_PLACES(a_term_that_came_since_the_question_is_not_pushed_aside),
      IN_BOTH_PLACES(the_other_ranks_follow_the_term_of_their_own_launch),
      IN_BOTH_PLACES(what_was_saved_beside_it_is_in_the_commit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
