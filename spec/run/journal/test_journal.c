#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/journal/journal.h"
#include "fault_dir.h"

#define BOOT "11111111-2222-3333-4444-555555555555"
#define HEAD "{\"boot\":\"" BOOT "\",\"format\":0,\"type\":\"journal\"}\n"
#define UNIT(path, state)                                                                          \
  "{\"commit\":-1,\"fingerprint\":\"00112233445566778899aabbccddeeff\",\"path\":\"" path           \
  "\",\"state\":\"" state "\",\"type\":\"unit\"}\n"

static char file[4096];

static int enter(void **unused) {
  fault_dir_enter(fault_dir_memory());
  snprintf(file, sizeof file, "%s/journal.jsonl", dir);
  return 0;
}

static journal *open_as(const io *io, const char *boot, bool served) {
  journal *j;
  err e = {0};
  if (journal_open(io, file, boot, served, &j, &e) < 0) fail_msg("%s", e.text);
  return j;
}

static journal *open_on(const io *io, const char *boot) {
  return open_as(io, boot, false);
}

static journal *open_it(void) {
  return open_on(io_unflushed(), BOOT);
}

static digest print_of(int seed) {
  digest d;
  hash_bytes(HASH_XXH3_128, &seed, sizeof seed, &d, NULL);
  return d;
}

/* The commit of that number in a log whose entries have these nonces. */
static runlog_ref ref_of(uint64_t n) {
  runlog_ref ref = {.n = n};
  if (n == RUNLOG_NONE) return ref;
  snprintf(ref.log, sizeof ref.log, "nonce of entry 0");
  snprintf(ref.entry, sizeof ref.entry, "nonce of entry %llu", (unsigned long long)n);
  return ref;
}

static void note(journal *j, const char *path, journal_state state, int seed, uint64_t commit) {
  err e = {0};
  digest d = print_of(seed);
  runlog_ref ref = ref_of(commit);
  if (journal_note(j, path, state, state == JOURNAL_OPEN ? NULL : &d, &ref, 1, &e) < 0)
    fail_msg("%s", e.text);
}

static void must_be(const journal *j, const char *path, journal_state state, int seed,
                    uint64_t commit) {
  journal_unit u = journal_find(j, path);
  digest d = print_of(seed);
  if (u.state != state) fail_msg("%s is in state %d, not %d", path, u.state, state);
  runlog_ref ref = ref_of(commit);
  assert_int_equal(u.commit.n, commit);
  assert_string_equal(u.commit.log, ref.log);
  assert_string_equal(u.commit.entry, ref.entry);
  if (state > JOURNAL_OPEN) assert_true(digest_equal(&u.fingerprint, &d));
}

static void must_have(const journal *j, const char *path, const char *result, bool named) {
  journal_unit u = journal_find(j, path);
  if (result ? !u.result || strcmp(u.result, result) != 0 : u.result != NULL)
    fail_msg("%s has %s", path, u.result ? u.result : "nothing");
  assert_int_equal(u.named, named);
}

static void what_was_reported_stays_until_the_unit_is_gone(void **unused) {
  (void)unused;
  for (int round = 0; round < 3; round++) {
    journal *j = open_it();
    if (round == 0) {
      assert_int_equal(journal_note_result(j, "new", "{\"loss\":1}", true, NULL), 0);
      note(j, "ck-1", JOURNAL_OPEN, 0, RUNLOG_NONE);
      assert_int_equal(journal_note_result(j, "ck-1", "{\"loss\":\"\\\"\"}", false, NULL), 0);
      note(j, "ck-1", JOURNAL_COMMITTED, 1, 7);
      assert_int_equal(journal_note_result(j, "none", NULL, false, NULL), 0);
      assert_int_equal(journal_find(j, "none").state, JOURNAL_UNKNOWN);
      note(j, "over", JOURNAL_OPEN, 0, RUNLOG_NONE);
      assert_int_equal(journal_note_result(j, "over", "{}", true, NULL), 0);
      assert_int_equal(journal_note_result(j, "over", NULL, false, NULL), 0);
    }
    must_be(j, "ck-1", JOURNAL_COMMITTED, 1, 7);
    must_have(j, "ck-1", "{\"loss\":\"\\\"\"}", false);
    must_have(j, "over", NULL, false);
    if (round < 2) must_have(j, "new", "{\"loss\":1}", true);
    if (round == 1) {
      assert_int_equal(journal_forget(j, "new", NULL), 0);
      note(j, "new", JOURNAL_OPEN, 0, RUNLOG_NONE);
    }
    if (round == 2) must_have(j, "new", NULL, false);
    journal_close(j);
  }
}

static void what_was_noted_is_there_after_a_restart(void **unused) {
  static const char *const names[] = {"ck-1", "exp/a b/ck-2", "a\nb\t\"\\", "\xff\xfe%41",
                                      "é",    "{}",           "gone"};
  for (int round = 0; round < 2; round++) {
    journal *j = open_it();
    for (int i = 0; i < 7; i++) {
      if (round == 0)
        note(j, names[i], (journal_state)(1 + i % 3), i, i % 3 == 2 ? (uint64_t)i : RUNLOG_NONE);
      must_be(j, names[i], (journal_state)(1 + i % 3), i, i % 3 == 2 ? (uint64_t)i : RUNLOG_NONE);
    }
    must_be(j, "never noted", JOURNAL_UNKNOWN, 0, RUNLOG_NONE);
    assert_null(journal_find(j, "never noted").path);
    journal_close(j);
  }
}

static void the_newest_commit_of_each_log_is_known_for_each_target(void **unused) {
  journal *j = open_it();
  const runlog_ref three = ref_of(3), five = ref_of(5);
  assert_false(journal_has_committed(j, "s3://b/x"));
  note(j, "checkpoint-1", JOURNAL_COMMITTED, 1, 3); /* of a journal of before 1.1 */
  assert_true(journal_has_committed(j, "s3://b/x"));
  assert_int_equal(journal_note_log(j, "s3://b/x", "", &three, NULL), 0);
  assert_int_equal(journal_note_log(j, "s3://b/x", "exp/T\xff", &three, NULL), 0);
  assert_int_equal(journal_note_log(j, "s3://b/y", "", &three, NULL), 0);
  assert_int_equal(journal_note_log(j, "s3://b/x", "", &five, NULL), 0);
  for (int reopened = 0; reopened < 3; reopened++) { /* the second one reads what the first wrote */
    assert_true(journal_has_committed(j, "s3://b/x"));
    assert_false(journal_has_committed(j, "s3://b/z"));
    assert_null(journal_find_log(j, "s3://b/y", "exp/T\xff"));
    assert_int_equal(journal_find_log(j, "s3://b/x", "")->newest.n, 5);
    assert_true(runlog_ref_same(&journal_find_log(j, "s3://b/x", "exp/T\xff")->newest, &three));
    assert_string_equal(journal_log_at(j, "s3://b/x", 1)->group, "exp/T\xff");
    assert_null(journal_log_at(j, "s3://b/x", 2));
    journal_close(j);
    j = open_it();
  }
  journal_close(j);
}

static void a_log_that_was_used_is_known_by_its_name_before_its_first_commit(void **unused) {
  journal *j = open_it();
  const runlog_ref three = ref_of(3), used = {.n = RUNLOG_NONE, .log = "used"};
  assert_null(journal_known_log(j, NULL));
  assert_int_equal(journal_note_log(j, "s3://b/old", "", &three, NULL), 0);
  assert_int_equal(journal_note_log(j, "s3://b/new\xff", "", &used, NULL), 0);
  for (int reopened = 0; reopened < 3; reopened++) {
    assert_string_equal(journal_known_log(j, "used")->target, "s3://b/new\xff");
    assert_string_equal(journal_known_log(j, three.log)->target, "s3://b/old");
    assert_ptr_equal(journal_known_log(j, NULL), journal_known_log(j, "used"));
    assert_null(journal_known_log(j, "other"));
    assert_null(journal_find_log(j, "s3://b/new\xff", ""));
    assert_null(journal_log_at(j, "s3://b/new\xff", 0));
    assert_false(journal_has_committed(j, "s3://b/new\xff"));
    journal_close(j);
    j = open_it();
  }
  runlog_ref first = three;
  snprintf(first.log, sizeof first.log, "used");
  assert_int_equal(journal_note_log(j, "s3://b/new\xff", "", &first, NULL), 0);
  assert_int_equal(journal_note_log(j, "s3://b/new\xff", "", &used, NULL), 0);
  assert_int_equal(journal_find_log(j, "s3://b/new\xff", "")->newest.n, 3); /* that says more */
  journal_close(j);
}

static void what_was_forgotten_stays_forgotten(void **unused) {
  journal *j = open_it();
  note(j, "a", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
  note(j, "b", JOURNAL_COMPLETE, 2, RUNLOG_NONE);
  assert_int_equal(journal_forget(j, "a", NULL), 0);
  assert_int_equal(journal_forget(j, "never noted", NULL), 0);
  must_be(j, "a", JOURNAL_UNKNOWN, 0, RUNLOG_NONE);
  journal_close(j);
  j = open_it();
  must_be(j, "a", JOURNAL_UNKNOWN, 0, RUNLOG_NONE);
  must_be(j, "b", JOURNAL_COMPLETE, 2, RUNLOG_NONE);
  journal_close(j);
}

static void a_unit_that_is_written_again_has_lost_its_proof(void **unused) {
  journal *j = open_it();
  note(j, "a", JOURNAL_COMMITTED, 1, 7);
  note(j, "a", JOURNAL_OPEN, 0, RUNLOG_NONE);
  journal_close(j);
  j = open_it();
  must_be(j, "a", JOURNAL_OPEN, 0, RUNLOG_NONE);
  assert_int_equal(journal_find(j, "a").fingerprint.len, 0);
  journal_close(j);
}

static void the_child_is_known_until_its_end_is_noted(void **unused) {
  journal *j = open_it();
  assert_int_equal(journal_last_child(j).pid, 0);
  assert_int_equal(journal_note_child(j, 4711, UINT64_C(123456789012), 4700, NULL), 0);
  journal_close(j);
  j = open_it();
  journal_child c = journal_last_child(j);
  assert_int_equal(c.pid, 4711);
  assert_int_equal(c.sid, 4700);
  assert_int_equal(c.start, UINT64_C(123456789012));
  assert_true(c.same_boot);
  assert_int_equal(journal_note_child_end(j, NULL), 0);
  journal_close(j);
  j = open_it();
  assert_int_equal(journal_last_child(j).pid, 0);
  journal_close(j);
}

static void its_records_come_in_the_order_of_their_paths(void **unused) {
  journal *j = open_it();
  assert_int_equal(journal_count(j), 0);
  note(j, "b", JOURNAL_OPEN, 0, RUNLOG_NONE);
  note(j, "a/c", JOURNAL_COMMITTED, 1, 5);
  assert_int_equal(journal_count(j), 2);
  assert_string_equal(journal_at(j, 0).path, "a/c");
  assert_int_equal(journal_at(j, 0).commit.n, 5);
  assert_string_equal(journal_at(j, 1).path, "b");
  journal_close(j);
}

static void after_a_reboot_all_is_in_doubt_until_it_is_noted_anew(void **unused) {
  journal *j = open_it();
  note(j, "open", JOURNAL_OPEN, 0, RUNLOG_NONE);
  note(j, "complete", JOURNAL_COMPLETE, 2, RUNLOG_NONE);
  note(j, "committed", JOURNAL_COMMITTED, 3, 9);
  journal_note_child(j, 4711, 1, 4700, NULL);
  journal_close(j);
  for (int i = 0; i < 2; i++) { /* and so it stays, though the next one is on the same boot */
    j = open_on(io_unflushed(), "another boot");
    must_be(j, "open", JOURNAL_OPEN, 0, RUNLOG_NONE);
    must_be(j, "complete", JOURNAL_OPEN, 0, RUNLOG_NONE);
    must_be(j, "committed", JOURNAL_OPEN, 3, 9); /* its number is kept */
    assert_false(journal_last_child(j).same_boot);
    journal_close(j);
  }
}

static void note_flushed(journal *j, const char *path, int seed) {
  digest d = print_of(seed);
  assert_int_equal(journal_note_flushed(j, path, &d, NULL), 0);
}

/* Complete and committed, and flushed; restored, as it was then and as the next start saw it. */
static void note_some_flushed(journal *j) {
  const runlog_ref nine = ref_of(9);
  note(j, "complete", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
  note_flushed(j, "complete", 1);
  note(j, "committed", JOURNAL_COMPLETE, 2, RUNLOG_NONE);
  note_flushed(j, "committed", 2);
  note(j, "committed", JOURNAL_COMMITTED, 2, 9);
  assert_int_equal(journal_note(j, "restored", JOURNAL_COMMITTED, NULL, &nine, 1, NULL), 0);
  note(j, "restored", JOURNAL_COMMITTED, 3, 9);
}

static void what_was_flushed_to_a_server_is_not_doubted_after_a_reboot(void **unused) {
  journal *j = open_it();
  note_some_flushed(j);
  journal_close(j);
  for (int i = 0; i < 3; i++) {
    j = open_as(io_unflushed(), i % 2 ? BOOT : "another boot", true);
    must_be(j, "complete", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
    must_be(j, "committed", JOURNAL_COMMITTED, 2, 9);
    must_be(j, "restored", JOURNAL_COMMITTED, 3, 9);
    journal_close(j);
  }
}

static void on_a_disk_of_the_machine_it_is(void **unused) {
  journal *j = open_it();
  note_some_flushed(j);
  journal_close(j);
  for (int i = 0; i < 2; i++) { /* and the server that comes then has no part in it */
    j = open_as(io_unflushed(), i ? "a third boot" : "another boot", i);
    must_be(j, "complete", JOURNAL_OPEN, 1, RUNLOG_NONE);
    must_be(j, "committed", JOURNAL_OPEN, 2, 9);
    must_be(j, "restored", JOURNAL_OPEN, 3, 9);
    journal_close(j);
  }
}

static void what_was_not_flushed_is_doubted_though_a_server_has_it(void **unused) {
  journal *j = open_it();
  note(j, "never", JOURNAL_COMMITTED, 1, 9);
  note(j, "before", JOURNAL_COMPLETE, 2, RUNLOG_NONE);
  note_flushed(j, "before", 2);
  note(j, "before", JOURNAL_COMPLETE, 3, RUNLOG_NONE); /* other content since */
  note(j, "late", JOURNAL_COMPLETE, 4, RUNLOG_NONE);
  note_flushed(j, "late", 5); /* of what stood there when the flush was begun */
  note(j, "again", JOURNAL_COMPLETE, 6, RUNLOG_NONE);
  note_flushed(j, "again", 6);
  note(j, "again", JOURNAL_OPEN, 0, RUNLOG_NONE);
  note(j, "again", JOURNAL_COMPLETE, 6, RUNLOG_NONE); /* pages may have been written meanwhile */
  journal_close(j);
  j = open_as(io_unflushed(), "another boot", true);
  must_be(j, "never", JOURNAL_OPEN, 1, 9);
  must_be(j, "before", JOURNAL_OPEN, 3, RUNLOG_NONE);
  must_be(j, "late", JOURNAL_OPEN, 4, RUNLOG_NONE);
  must_be(j, "again", JOURNAL_OPEN, 6, RUNLOG_NONE);
  journal_close(j);
}

static void a_flush_is_noted_once_and_only_of_what_is_known(void **unused) {
  size_t len, after;
  journal *j = open_it();
  note(j, "complete", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
  note_flushed(j, "complete", 1);
  free(read_file(file, &len));
  note_flushed(j, "complete", 1);
  note_flushed(j, "unknown", 1);
  free(read_file(file, &after));
  assert_int_equal(len, after);
  assert_int_equal(journal_count(j), 1);
  journal_close(j);
}

/* ---- crashes ---- */

enum { NAMES = 3, NOTES = 40 };

/* A crash at any byte of the file: all notes that returned before it are there, and nothing else.
 */
static int here_if_of_an_even_entry(void *ctx, const journal_unit *u, err *e) {
  ++*(int *)ctx;
  return u->commit.n % 2 == 0;
}

static void what_the_target_at_hand_has_not_is_complete_and_no_more(void **unused) {
  int asked = 0;
  journal *j = open_it();
  note(j, "elsewhere", JOURNAL_COMMITTED, 1, 3);
  note(j, "here", JOURNAL_COMMITTED, 2, 4);
  note(j, "open", JOURNAL_OPEN, 0, RUNLOG_NONE);
  note(j, "whole", JOURNAL_COMPLETE, 3, RUNLOG_NONE);
  runlog_ref ref = ref_of(5);
  assert_int_equal(journal_note(j, "restored", JOURNAL_COMMITTED, NULL, &ref, 1, NULL), 0);
  assert_int_equal(journal_keep_here(j, here_if_of_an_even_entry, &asked, NULL), 0);
  assert_int_equal(asked, 3);
  must_be(j, "elsewhere", JOURNAL_COMPLETE, 1, 3);
  must_be(j, "here", JOURNAL_COMMITTED, 2, 4);
  must_be(j, "open", JOURNAL_OPEN, 0, RUNLOG_NONE);
  must_be(j, "whole", JOURNAL_COMPLETE, 3, RUNLOG_NONE);
  assert_int_equal(journal_find(j, "restored").state, JOURNAL_OPEN);
  journal_close(j);
  j = open_it(); /* what is true of the other target was not forgotten */
  must_be(j, "elsewhere", JOURNAL_COMMITTED, 1, 3);
  journal_close(j);
}

static void a_record_of_before_names_no_log(void **unused) {
  write_file(file, HEAD "{\"commit\":7,\"fingerprint\":\"00112233445566778899aabbccddeeff\","
                        "\"path\":\"a\",\"state\":\"committed\",\"type\":\"unit\"}\n");
  journal *j = open_it();
  journal_unit u = journal_find(j, "a");
  assert_int_equal(u.state, JOURNAL_COMMITTED);
  assert_int_equal(u.commit.n, 7);
  assert_string_equal(u.commit.log, "");
  assert_string_equal(u.commit.entry, "");
  journal_close(j);
}

static void cut_at_any_byte_it_tells_what_was_written_by_then(void **unused) {
  static const char *const names[NAMES] = {"ck-1", "ck-\xff", "exp/ck-2"};
  journal_state after[NOTES + 1][NAMES] = {{JOURNAL_UNKNOWN}};
  int seeds[NOTES + 1][NAMES] = {{0}};
  size_t sizes[NOTES + 1];
  struct stat st;
  journal *j = open_it();
  stat(file, &st);
  sizes[0] = (size_t)st.st_size;
  for (int i = 0; i < NOTES; i++) {
    int n = i % NAMES;
    journal_state state = (journal_state)((i * 7 / 3) % 4); /* 0: forgotten */
    memcpy(after[i + 1], after[i], sizeof after[i]);
    memcpy(seeds[i + 1], seeds[i], sizeof seeds[i]);
    after[i + 1][n] = state;
    seeds[i + 1][n] = i;
    if (state == JOURNAL_UNKNOWN)
      journal_forget(j, names[n], NULL);
    else
      note(j, names[n], state, i, RUNLOG_NONE);
    stat(file, &st);
    sizes[i + 1] = (size_t)st.st_size;
  }
  journal_close(j);
  size_t len;
  char *all = read_file(file, &len);
  assert_int_equal(len, sizes[NOTES]);
  for (size_t cut = 0, k = 0; cut <= len; cut++) {
    write_bytes(file, all, cut);
    while (k < NOTES && sizes[k + 1] <= cut) k++;
    j = open_it();
    for (int n = 0; n < NAMES; n++) must_be(j, names[n], after[k][n], seeds[k][n], RUNLOG_NONE);
    journal_close(j);
  }
  free(all);
}

static void a_tail_of_zeros_is_passed_over(void **unused) {
  char zeros[4096] = "";
  memcpy(zeros, HEAD UNIT("a", "complete"), sizeof(HEAD UNIT("a", "complete")) - 1);
  write_bytes(file, zeros, sizeof zeros);
  journal *j = open_it();
  assert_int_equal(journal_find(j, "a").state, JOURNAL_COMPLETE);
  journal_close(j);
}

static void any_changed_byte_still_opens(void **unused) {
  static const char text[] = HEAD UNIT("a", "complete") UNIT("b", "open");
  char changed[sizeof text];
  for (size_t i = 0; i + 1 < sizeof text; i++)
    for (int bit = 0; bit < 8; bit += 3) {
      memcpy(changed, text, sizeof text);
      changed[i] ^= (char)(1 << bit);
      write_bytes(file, changed, sizeof text - 1);
      journal *j;
      err e = {0};
      int rc = journal_open(io_unflushed(), file, BOOT, false, &j, &e);
      if (rc != 0 && rc != ERR_VERSION) fail_msg("byte %zu: %s", i, e.text);
      journal_close(j);
    }
}

/* ---- odd content ---- */

static void lines_of_unknown_types_are_passed_over(void **unused) {
  write_file(file, HEAD UNIT("a", "complete") "{\"type\":\"weather\",\"rain\":true}\n" UNIT(
                       "b", "complete"));
  journal *j = open_it();
  assert_int_equal(journal_find(j, "a").state, JOURNAL_COMPLETE);
  assert_int_equal(journal_find(j, "b").state, JOURNAL_COMPLETE);
  journal_close(j);
}

static void a_state_that_is_not_known_proves_nothing(void **unused) {
  write_file(file, HEAD UNIT("a", "complete") UNIT("a", "blessed") UNIT("b", "unknown"));
  journal *j = open_it();
  assert_int_equal(journal_find(j, "a").state, JOURNAL_OPEN);
  assert_int_equal(journal_find(j, "b").state, JOURNAL_OPEN);
  journal_close(j);
}

static void a_record_that_is_half_there_makes_its_unit_open(void **unused) {
  static const char *const half[] = {"{\"type\":\"unit\",\"path\":\"a\"}\n",
                                     "{\"type\":\"unit\",\"path\":\"a\",\"state\":\"committed\","
                                     "\"fingerprint\":\"xyz\",\"commit\":1}\n",
                                     "{\"type\":\"unit\",\"path\":\"a\",\"state\":\"complete\","
                                     "\"fingerprint\":\"\",\"commit\":\"1\"}\n"};
  for (int i = 0; i < 3; i++) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s", HEAD UNIT("a", "complete") UNIT("b", "complete"), half[i]);
    write_file(file, text);
    journal *j = open_it();
    assert_int_equal(journal_find(j, "a").state, JOURNAL_OPEN);
    assert_int_equal(journal_find(j, "b").state, JOURNAL_COMPLETE);
    journal_close(j);
  }
}

static void after_a_line_that_cannot_be_read_nothing_before_it_is_proven(void **unused) {
  static const char *const bad[] = {"\n",
                                    "garbage\n",
                                    "{\"type\":\"unit\",\"pa\n",
                                    "[]\n",
                                    "{\"type\":7}\n",
                                    "{\"type\":\"unit\",\"path\":7}\n",
                                    "{\"type\":\"unit\",\"path\":\"%zz\"}\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s", HEAD UNIT("a", "complete") UNIT("c", "committed"), bad[i],
             UNIT("b", "complete"));
    write_file(file, text);
    journal *j = open_it();
    assert_int_equal(journal_find(j, "a").state, JOURNAL_OPEN);
    assert_int_equal(journal_find(j, "c").state, JOURNAL_OPEN);
    assert_int_equal(journal_find(j, "b").state, JOURNAL_COMPLETE);
    journal_close(j);
  }
}

static void without_its_first_line_it_counts_as_another_boots(void **unused) {
  write_file(file, UNIT("a", "complete"));
  journal *j = open_it();
  assert_int_equal(journal_find(j, "a").state, JOURNAL_OPEN);
  journal_close(j);
}

static void a_process_number_that_does_not_fit_is_nobody(void **unused) {
  static const char *const pids[] = {"-1", "4294967297", "9223372036854775807", "1.5", "\"1\""};
  for (int i = 0; i < 5; i++) {
    char text[1024];
    snprintf(text, sizeof text, HEAD "{\"type\":\"child\",\"pid\":%s,\"sid\":1,\"start\":1}\n",
             pids[i]);
    write_file(file, text);
    journal *j = open_it();
    assert_int_equal(journal_last_child(j).pid, 0);
    journal_close(j);
  }
}

static void a_journal_of_a_newer_format_is_refused_and_left_as_it_is(void **unused) {
  static const char text[] = "{\"boot\":\"b\",\"format\":1,\"type\":\"journal\"}\nwhatever\n";
  journal *j;
  err e = {0};
  write_file(file, text);
  assert_int_equal(journal_open(io_unflushed(), file, BOOT, false, &j, &e), ERR_VERSION);
  assert_int_equal(e.code, ERR_VERSION);
  assert_non_null(strstr(e.text, file));
  assert_null(j);
  assert_true(file_is(file, text));
  assert_int_equal(count_entries(dir), 1);
}

/* ---- failing calls ---- */

static void when_any_call_of_an_opening_fails_the_old_one_stays_readable(void **unused) {
  journal *j = open_it();
  note(j, "a", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
  note(j, "b", JOURNAL_COMMITTED, 2, 5);
  journal_close(j);
  bool over = false;
  for (long n = 1; !over; n++) {
    err e = {0};
    int fds = count_fds();
    io_fault_once(fault, CALL_ANY, n, n % 2 ? ESTALE : ENOSPC);
    int rc = journal_open(io_fault_io(fault), file, BOOT, false, &j, &e);
    over = io_fault_failed(fault, CALL_ANY) == 0;
    if (rc < 0) assert_true(e.code == rc && *e.text);
    if (over) assert_int_equal(rc, 0);
    journal_close(j);
    assert_int_equal(count_fds(), fds);
    j = open_it();
    must_be(j, "a", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
    must_be(j, "b", JOURNAL_COMMITTED, 2, 5);
    journal_close(j);
  }
}

/* The first note fails at call n, half written too; the second one works: both are there then. */
static void after_a_note_that_failed_the_next_one_writes_both(void **unused) {
  for (int most = 0; most < 2; most++)
    for (long n = 1;; n++) {
      err e = {0};
      digest d = print_of(1);
      unlink(file);
      io_fault_once(fault, CALL_ANY, 0, 0);
      journal *j = open_on(io_fault_io(fault), BOOT);
      note(j, "before", JOURNAL_COMPLETE, 0, RUNLOG_NONE);
      io_fault_short_writes(fault, most ? 20 : 0);
      io_fault_once(fault, CALL_ANY, n, ENOSPC);
      int rc = journal_note(j, "a", JOURNAL_COMPLETE, &d, NULL, 1, &e);
      bool over = io_fault_failed(fault, CALL_ANY) == 0;
      assert_int_equal(rc, over ? 0 : ERR_NOSPACE);
      io_fault_once(fault, CALL_ANY, 0, 0);
      note(j, "b", JOURNAL_COMMITTED, 2, 5);
      journal_close(j);
      io_fault_short_writes(fault, 0);
      j = open_it();
      must_be(j, "before", JOURNAL_COMPLETE, 0, RUNLOG_NONE);
      must_be(j, "a", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
      must_be(j, "b", JOURNAL_COMMITTED, 2, 5);
      journal_close(j);
      if (over) break;
    }
}

static void proofs_are_flushed_before_the_call_returns(void **unused) {
  journal *j = open_on(io_fault_io(fault), BOOT);
  io_fault_once(fault, CALL_ANY, 0, 0);
  note(j, "a", JOURNAL_OPEN, 0, RUNLOG_NONE);
  assert_int_equal(io_fault_count(fault, CALL_FDATASYNC), 0);
  note(j, "a", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
  assert_int_equal(io_fault_count(fault, CALL_FDATASYNC), 1);
  note(j, "a", JOURNAL_COMMITTED, 1, 4);
  assert_int_equal(io_fault_count(fault, CALL_FDATASYNC), 2);
  journal_note_child(j, 1, 1, 1, NULL);
  assert_int_equal(io_fault_count(fault, CALL_FDATASYNC), 3);
  journal_close(j);
}

/* ---- parts of ranks ---- */

static void note_part(journal *j, const char *path, journal_state state, uint32_t parts) {
  digest d = print_of(1);
  runlog_ref ref = ref_of(3);
  assert_int_equal(
      journal_note(j, path, state, state == JOURNAL_OPEN ? NULL : &d, &ref, parts, NULL), 0);
}

static uint32_t parts_of(const journal *j, const char *path) {
  return journal_find(j, path).parts;
}

static void that_it_is_one_ranks_part_is_kept_with_each_record(void **unused) {
  digest d = print_of(1);
  journal *j = open_it();
  note_part(j, "open", JOURNAL_OPEN, 4);
  note_part(j, "part", JOURNAL_COMMITTED, 4);
  note_part(j, "whole", JOURNAL_COMMITTED, 1);
  note_part(j, "was", JOURNAL_COMPLETE, 4);
  note_part(j, "was", JOURNAL_COMMITTED, 1);
  assert_int_equal(journal_note_result(j, "part", "{}", false, NULL), 0);
  assert_int_equal(journal_note_flushed(j, "part", &d, NULL), 0);
  journal_close(j);
  for (int i = 0; i < 2; i++) { /* by its lines, and by those that were written anew */
    j = open_it();
    assert_int_equal(parts_of(j, "open"), 4);
    assert_int_equal(parts_of(j, "part"), 4);
    assert_int_equal(parts_of(j, "whole"), 0);
    assert_int_equal(parts_of(j, "was"), 0);
    journal_close(j);
  }
}

static void that_it_is_a_part_outlives_a_reboot(void **unused) {
  journal *j = open_it();
  note_part(j, "part", JOURNAL_COMPLETE, 4);
  journal_close(j);
  j = open_on(io_unflushed(), "another boot");
  assert_int_equal(journal_find(j, "part").state, JOURNAL_OPEN);
  assert_int_equal(parts_of(j, "part"), 4);
  journal_close(j);
}

static void what_is_no_number_of_ranks_says_nothing(void **unused) {
  static const char *const said[] = {"-1", "0", "1", "4294967296", "\"4\"", "4.5", "true"};
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    char text[400];
    snprintf(text, sizeof text,
             HEAD
             "{\"commit\":-1,\"fingerprint\":\"05a3003cc342acf8f806d8a46631372f\",\"parts\":%s,"
             "\"path\":\"a\",\"state\":\"complete\",\"type\":\"unit\"}\n",
             said[i]);
    write_file(file, text);
    journal *j = open_it();
    assert_int_equal(journal_find(j, "a").state, JOURNAL_COMPLETE);
    assert_int_equal(parts_of(j, "a"), 0);
    journal_close(j);
  }
}

/* ---- size ---- */

static void ten_thousand_units_are_noted_and_read_back(void **unused) {
  char name[64];
  journal *j = open_it();
  for (int i = 0; i < 10000; i++) {
    int k = i * 7919 % 10000; /* not in their order */
    snprintf(name, sizeof name, "exp/trial-%05d/checkpoint-1", k);
    note(j, name, JOURNAL_COMPLETE, k, RUNLOG_NONE);
  }
  journal_close(j);
  j = open_it();
  must_be(j, "exp/trial-00000/checkpoint-1", JOURNAL_COMPLETE, 0, RUNLOG_NONE);
  must_be(j, "exp/trial-09999/checkpoint-1", JOURNAL_COMPLETE, 9999, RUNLOG_NONE);
  journal_close(j);
}

static void in_a_run_that_goes_on_for_ever_it_does_not_grow_for_ever(void **unused) {
  struct stat st;
  off_t most = 0;
  journal *j = open_it();
  for (int i = 0; i < 15000; i++) {
    note(j, i % 2 ? "last.ckpt" : "best.ckpt", JOURNAL_COMPLETE, i, RUNLOG_NONE);
    stat(file, &st);
    if (st.st_size > most) most = st.st_size;
  }
  assert_true(most > 1 << 20 && most < 2 << 20);
  journal_close(j);
  j = open_it();
  must_be(j, "last.ckpt", JOURNAL_COMPLETE, 14999, RUNLOG_NONE);
  must_be(j, "best.ckpt", JOURNAL_COMPLETE, 14998, RUNLOG_NONE);
  journal_close(j);
  assert_int_equal(count_entries(dir), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, fault_dir_leave)

static bool is_watched(const journal *j, const char *path) {
  return journal_find(j, path).watched;
}

/* After a reboot, or on another machine that has the disk now, what was written may not be all there. */
static void
what_was_begun_on_this_boot_is_known_until_it_is_whole_or_the_boot_another(void **state) {
  journal *j = open_it();
  note(j, "a", JOURNAL_OPEN, 0, RUNLOG_NONE);
  note(j, "b", JOURNAL_OPEN, 0, RUNLOG_NONE);
  note(j, "b", JOURNAL_COMPLETE, 1, RUNLOG_NONE);
  assert_int_equal(journal_note_result(j, "c", "{}", false, NULL), 0);
  assert_true(is_watched(j, "a") && !is_watched(j, "b") && !is_watched(j, "c"));
  journal_close(j);
  for (int i = 0; i < 2; i++) {
    j = open_it();
    assert_true(is_watched(j, "a") && !is_watched(j, "b") && !is_watched(j, "c"));
    journal_close(j);
  }
  journal_close(open_on(io_unflushed(), "another boot"));
  j = open_it();
  assert_false(is_watched(j, "a"));
  note(j, "a", JOURNAL_OPEN, 0, RUNLOG_NONE);
  assert_true(is_watched(j, "a"));
  journal_close(j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      T(what_was_noted_is_there_after_a_restart),
      T(what_was_reported_stays_until_the_unit_is_gone),
      T(the_newest_commit_of_each_log_is_known_for_each_target),
      T(a_log_that_was_used_is_known_by_its_name_before_its_first_commit),
      T(what_was_forgotten_stays_forgotten),
      T(a_unit_that_is_written_again_has_lost_its_proof),
      T(the_child_is_known_until_its_end_is_noted),
      T(its_records_come_in_the_order_of_their_paths),
      T(after_a_reboot_all_is_in_doubt_until_it_is_noted_anew),
      T(what_was_flushed_to_a_server_is_not_doubted_after_a_reboot),
      T(on_a_disk_of_the_machine_it_is),
      T(what_was_not_flushed_is_doubted_though_a_server_has_it),
      T(a_flush_is_noted_once_and_only_of_what_is_known),
      T(what_was_begun_on_this_boot_is_known_until_it_is_whole_or_the_boot_another),
      T(what_the_target_at_hand_has_not_is_complete_and_no_more),
      T(a_record_of_before_names_no_log),
      T(cut_at_any_byte_it_tells_what_was_written_by_then),
      T(a_tail_of_zeros_is_passed_over),
      T(any_changed_byte_still_opens),
      T(lines_of_unknown_types_are_passed_over),
      T(a_state_that_is_not_known_proves_nothing),
      T(a_record_that_is_half_there_makes_its_unit_open),
      T(after_a_line_that_cannot_be_read_nothing_before_it_is_proven),
      T(without_its_first_line_it_counts_as_another_boots),
      T(a_process_number_that_does_not_fit_is_nobody),
      T(a_journal_of_a_newer_format_is_refused_and_left_as_it_is),
      T(when_any_call_of_an_opening_fails_the_old_one_stays_readable),
      T(after_a_note_that_failed_the_next_one_writes_both),
      T(proofs_are_flushed_before_the_call_returns),
      T(that_it_is_one_ranks_part_is_kept_with_each_record),
      T(that_it_is_a_part_outlives_a_reboot),
      T(what_is_no_number_of_ranks_says_nothing),
      T(ten_thousand_units_are_noted_and_read_back),
      T(in_a_run_that_goes_on_for_ever_it_does_not_grow_for_ever),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
