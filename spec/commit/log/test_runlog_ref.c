#include "with_cmocka.h"

#include <string.h>

#include "commit/log/runlog_impl.h"
#include "commit/log/runlog_ref.h"
#include "world.h"

static void must_find(runlog *log, const runlog_ref *ref, uint64_t n) {
  const runlog_commit *c = NULL;
  assert_int_equal(runlog_ref_find(log, ref, &c, NULL), 0);
  if (n == RUNLOG_NONE)
    assert_null(c);
  else
    assert_true(c && c->n == n);
}

/* Logs "a" and "b", with the same entries but for their nonces. */
static void a_commit_is_known_in_its_own_log_alone(void **state) {
  world *w = *state;
  runlog *a = world_log(w, "a", "one"), *b = world_log(w, "b", "one");
  runlog_ref ref, other, none = {.n = RUNLOG_NONE};
  uint64_t n = world_commit(a, "x");
  assert_int_equal(world_commit(b, "x"), n);
  assert_int_equal(runlog_ref_of(a, n, &ref, NULL), 0);
  assert_int_equal(runlog_ref_of(b, n, &other, NULL), 0);
  assert_false(runlog_ref_same(&ref, &other));
  assert_true(runlog_ref_same(&ref, &ref));
  must_find(a, &ref, n);
  must_find(b, &ref, RUNLOG_NONE);
  must_find(a, &none, RUNLOG_NONE);
  assert_int_equal(runlog_ref_of(a, n + 1, &other, NULL), ERR_INVAL);
}

/* A copy was gone on with: entry 0 is the same, the commit of that number is another one. */
static void the_commits_own_entry_counts(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "a", "one");
  runlog_ref ref;
  uint64_t n = world_commit(log, "x");
  assert_int_equal(runlog_ref_of(log, n, &ref, NULL), 0);
  ref.entry[0] ^= 1;
  must_find(log, &ref, RUNLOG_NONE);
  ref.entry[0] = 0; /* of before 1.1 */
  must_find(log, &ref, RUNLOG_NONE);
  assert_false(runlog_ref_same(&ref, &ref));
}

/* As it is after a snapshot of 1.0. */
static void a_log_that_was_read_without_nonces_asks_its_entries(void **state) {
  world *w = *state;
  runlog *log = world_log(w, "a", "one");
  runlog_ref ref;
  uint64_t n = world_commit(log, "x");
  assert_int_equal(runlog_ref_of(log, n, &ref, NULL), 0);
  *log->st.nonce = *log->st.commits[0].nonce = 0;
  must_find(log, &ref, n);
  assert_string_equal(log->st.nonce, ref.log);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_MEM_WORLD(a_commit_is_known_in_its_own_log_alone),
      IN_A_MEM_WORLD(the_commits_own_entry_counts),
      IN_A_MEM_WORLD(a_log_that_was_read_without_nonces_asks_its_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
