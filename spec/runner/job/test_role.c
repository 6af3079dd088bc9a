#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "runner/job/role.h"

enum { UNKNOWN = -1, LOCAL = 0, SHARED = 1 };

/* Two nodes of four tasks each, by a launcher that says all. */
static ckpt_ranks task(uint32_t rank) {
  ckpt_ranks f = {.rank = rank,
                  .world = 8,
                  .local_rank = rank % 4,
                  .local_world = 4,
                  .node = rank / 4,
                  .nodes = 2};
  snprintf(f.launch, sizeof f.launch, "slurm:1.0@h:1");
  snprintf(f.source, sizeof f.source, "slurm");
  return f;
}

static role decide(const options *o, ckpt_ranks f, int shared) {
  role made;
  char error[ROLE_ERROR_MAX] = "";
  if (role_decide(o, &f, shared, &made, error) < 0) fail_msg("%s", error);
  return made;
}

static void must_refuse(const options *o, ckpt_ranks f, int shared, const char *word) {
  role made;
  char error[ROLE_ERROR_MAX] = "";
  assert_int_equal(role_decide(o, &f, shared, &made, error), -1);
  if (!strstr(error, word)) fail_msg("\"%s\" does not name %s", error, word);
}

static void without_a_launcher_one_is_alone(void **state) {
  options o = {0};
  role r = decide(&o, (ckpt_ranks){0}, UNKNOWN);
  assert_true(r.watches && !r.awaited && r.world == 1);
  assert_string_equal(r.launch, "");
  ckpt_ranks one = task(0);
  one.world = 1; /* srun -n1 */
  r = decide(&o, one, UNKNOWN);
  assert_true(r.watches && r.world == 1);
}

static void of_a_shared_directory_the_first_task_watches_alone(void **state) {
  options o = {0};
  for (uint32_t i = 0; i < 8; i++) {
    role r = decide(&o, task(i), SHARED);
    assert_int_equal(r.watches, i == 0);
    assert_int_equal(r.awaited, i == 0);
    assert_int_equal(r.world, 1);
    assert_int_equal(r.index, i);
    assert_int_equal(r.count, 8);
    assert_string_equal(r.launch, "slurm:1.0@h:1");
  }
}

static void the_user_knows_how_many_write_into_a_directory(void **state) {
  options o = {.run.tasks = 6};
  assert_int_equal(decide(&o, task(5), SHARED).count, 6);
  must_refuse(&o, task(6), SHARED, "--tasks 6");
  o.run.tasks = 2;
  assert_int_equal(decide(&o, task(5), LOCAL).count, 2);
  must_refuse(&o, task(6), LOCAL, "--tasks 2");
  o.run.tasks = 1; /* nobody is asked */
  assert_int_equal(decide(&o, task(0), SHARED).count, 1);
  ckpt_ranks f = task(4);
  f.local_world = 0; /* an old Slurm does not say it */
  o.run.tasks = 0;
  assert_int_equal(decide(&o, f, LOCAL).count, 0);
}

static void of_local_directories_the_first_task_of_each_node_is_a_rank(void **state) {
  options o = {0};
  for (uint32_t i = 0; i < 8; i++) {
    role r = decide(&o, task(i), LOCAL);
    assert_int_equal(r.watches, i % 4 == 0);
    assert_int_equal(r.awaited, i % 4 == 0);
    assert_int_equal(r.rank, i / 4);
    assert_int_equal(r.world, 2);
    assert_int_equal(r.index, i % 4);
    assert_int_equal(r.count, 4);
  }
}

static void on_one_host_all_tasks_share_its_disk(void **state) {
  options o = {0};
  for (uint32_t i = 0; i < 4; i++) {
    ckpt_ranks f = task(i);
    f.world = 4;
    f.nodes = i % 2; /* not numbered, or one */
    f.node = 0;
    role r = decide(&o, f, LOCAL);
    assert_int_equal(r.watches, i == 0);
    assert_int_equal(r.world, 1);
  }
}

static void nodes_that_are_not_numbered_are_counted_in_blocks(void **state) {
  options o = {0};
  for (uint32_t i = 0; i < 8; i++) {
    ckpt_ranks f = task(i);
    f.node = f.nodes = 0;
    role r = decide(&o, f, LOCAL);
    assert_int_equal(r.rank, i / 4);
    assert_int_equal(r.world, 2);
    f.local_rank = i / 2; /* dealt out in turn: nobody knows */
    if (i / 2 != i % 4) must_refuse(&o, f, LOCAL, "--dir-is");
  }
  ckpt_ranks f = task(3);
  f.nodes = f.local_world = 0;
  must_refuse(&o, f, LOCAL, "--ranks task");
}

static void the_user_has_the_last_word(void **state) {
  options o = {.dir_is = DIR_IS_LOCAL};
  assert_int_equal(decide(&o, task(4), SHARED).world, 2);
  o = (options){.dir_is = DIR_IS_SHARED};
  assert_int_equal(decide(&o, task(4), LOCAL).watches, false);
  assert_int_equal(decide(&o, task(4), UNKNOWN).watches, false);
  o = (options){.ranks = RANKS_OFF};
  assert_int_equal(decide(&o, task(4), SHARED).watches, true);
  assert_int_equal(decide(&o, task(4), SHARED).world, 1);
  o = (options){.ranks = RANKS_NODE};
  assert_int_equal(decide(&o, task(4), SHARED).rank, 1);
  o = (options){.ranks = RANKS_TASK};
  role r = decide(&o, task(5), SHARED);
  assert_true(r.watches && !r.awaited && r.rank == 5 && r.world == 8);
  o = (options){.run.rank = 2, .run.world = 3, .run.launch = "mine"};
  r = decide(&o, task(5), SHARED);
  assert_true(r.watches && r.rank == 2 && r.world == 3);
  assert_string_equal(r.launch, "mine");
}

static void several_without_a_launch_id_are_refused(void **state) {
  options o = {0};
  for (int shared = LOCAL; shared <= SHARED; shared++)
    for (uint32_t i = 0; i < 8; i++) {
      ckpt_ranks f = task(i);
      f.launch[0] = 0;
      must_refuse(&o, f, shared, "--launch-id");
    }
  ckpt_ranks f = task(0);
  f.launch[0] = 0;
  snprintf(f.source, sizeof f.source, "torchrun");
  must_refuse(&o, f, SHARED, "--rdzv-id");
  o.run.launch = "given";
  assert_string_equal(decide(&o, f, SHARED).launch, "given");
  o = (options){.run.rank = 1, .run.world = 2};
  must_refuse(&o, (ckpt_ranks){0}, LOCAL, "--launch-id");
  o = (options){.run.rank = 0, .run.world = 1};
  assert_int_equal(decide(&o, (ckpt_ranks){0}, LOCAL).world, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_launcher_one_is_alone),
      cmocka_unit_test(of_a_shared_directory_the_first_task_watches_alone),
      cmocka_unit_test(the_user_knows_how_many_write_into_a_directory),
      cmocka_unit_test(of_local_directories_the_first_task_of_each_node_is_a_rank),
      cmocka_unit_test(on_one_host_all_tasks_share_its_disk),
      cmocka_unit_test(nodes_that_are_not_numbered_are_counted_in_blocks),
      cmocka_unit_test(the_user_has_the_last_word),
      cmocka_unit_test(several_without_a_launch_id_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
