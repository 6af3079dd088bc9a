#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "commit/ranks.h"

/* The environment of a test: "NAME=value" texts, ended by NULL. */
static const char *get(void *ctx, const char *name) {
  const char *const *env = ctx;
  size_t len = strlen(name);
  for (; *env; env++)
    if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') return *env + len + 1;
  return NULL;
}

#define DETECT(found, e, ...)                                                                      \
  ranks_detect(get, (void *)(const char *const[]){__VA_ARGS__, NULL}, (found), (e))

static void must_refuse(int rc, const err *e, const char *word) {
  assert_int_equal(rc, ERR_INVAL);
  assert_int_equal(e->code, ERR_INVAL);
  if (!strstr(e->text, word)) fail_msg("\"%s\" does not name %s", e->text, word);
}

static void without_a_launcher_there_is_no_world(void **state) {
  ranks_found f;
  assert_int_equal(DETECT(&f, NULL, "HOME=/root"), 0);
  assert_int_equal(f.world, 0);
  /* These are names that anybody uses. */
  assert_int_equal(DETECT(&f, NULL, "RANK=3"), 0);
  assert_int_equal(f.world, 0);
  assert_int_equal(DETECT(&f, NULL, "WORLD_SIZE=8", "RANK="), 0);
  assert_int_equal(f.world, 0);
}

#define SLURM                                                                                      \
  "SLURM_JOB_ID=42", "SLURM_STEP_ID=7", "SLURM_PROCID=5", "SLURM_NTASKS=64",                       \
      "SLURM_STEP_NUM_TASKS=8", "SLURM_LOCALID=1", "SLURM_NODEID=2", "SLURM_NNODES=16",            \
      "SLURM_STEP_NUM_NODES=4"

static void a_task_of_srun_is_told_by_its_step_and_not_by_the_allocation(void **state) {
  ranks_found f;
  err e = {0};
  if (DETECT(&f, &e, SLURM, "SLURM_SRUN_COMM_HOST=10.0.0.1", "SLURM_SRUN_COMM_PORT=41234",
             "SLURM_STEP_TASKS_PER_NODE=2(x4)") < 0)
    fail_msg("%s", e.text);
  assert_int_equal(f.rank, 5);
  assert_int_equal(f.world, 8);
  assert_int_equal(f.local_rank, 1);
  assert_int_equal(f.local_world, 2);
  assert_int_equal(f.node, 2);
  assert_int_equal(f.nodes, 4);
  assert_string_equal(f.source, "slurm");
  assert_string_equal(f.launch, "slurm:42.7@10.0.0.1:41234");
}

static void two_copies_of_one_slurm_job_are_two_launches(void **state) {
  ranks_found one, two;
  assert_int_equal(DETECT(&one, NULL, SLURM, "SLURM_RESTART_COUNT=0", "SLURM_SRUN_COMM_HOST=n1",
                          "SLURM_SRUN_COMM_PORT=1000"),
                   0);
  assert_int_equal(DETECT(&two, NULL, SLURM, "SLURM_RESTART_COUNT=0", "SLURM_SRUN_COMM_HOST=n2",
                          "SLURM_SRUN_COMM_PORT=1000"),
                   0);
  assert_string_not_equal(one.launch, two.launch);
}

static void without_the_address_of_srun_no_launch_id_is_safe(void **state) {
  ranks_found f;
  assert_int_equal(DETECT(&f, NULL, SLURM, "SLURM_RESTART_COUNT=1"), 0);
  assert_int_equal(f.world, 8);
  assert_string_equal(f.launch, "");
}

static void a_batch_script_is_no_rank(void **state) {
  ranks_found f;
  assert_int_equal(
      DETECT(&f, NULL, "SLURM_JOB_ID=42", "SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_LOCALID=0"),
      0);
  assert_int_equal(f.world, 0);
}

static void tasks_that_are_not_the_same_on_each_node_are_counted(void **state) {
  static const struct {
    const char *list;
    uint32_t tasks; /* of node 2; 0: refused */
  } lists[] = {{"SLURM_STEP_TASKS_PER_NODE=3,1,4", 4},   {"SLURM_STEP_TASKS_PER_NODE=1(x2),6", 6},
               {"SLURM_STEP_TASKS_PER_NODE=2(x3),1", 2}, {"SLURM_STEP_TASKS_PER_NODE=2(x2)", 0},
               {"SLURM_STEP_TASKS_PER_NODE=2(y3)", 0},   {"SLURM_STEP_TASKS_PER_NODE=,", 0},
               {"SLURM_STEP_TASKS_PER_NODE=2(x", 0},     {"SLURM_STEP_TASKS_PER_NODE=1(x3)", 0}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    ranks_found f;
    err e = {0};
    int rc = DETECT(&f, &e, SLURM, lists[i].list);
    if (lists[i].tasks == 0) {
      assert_int_equal(rc, ERR_INVAL);
      assert_int_equal(f.world, 0);
    } else {
      if (rc < 0) fail_msg("%s: %s", lists[i].list, e.text);
      assert_int_equal(f.local_world, lists[i].tasks);
    }
  }
}

#define TORCHRUN                                                                                   \
  "RANK=9", "WORLD_SIZE=16", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=8", "GROUP_RANK=1",                 \
      "GROUP_WORLD_SIZE=2"

static void torchrun_is_told_even_inside_of_srun(void **state) {
  ranks_found f;
  err e = {0};
  if (DETECT(&f, &e, SLURM, TORCHRUN, "TORCHELASTIC_RUN_ID=exp-1", "TORCHELASTIC_RESTART_COUNT=2",
             "MASTER_ADDR=n1", "MASTER_PORT=29400") < 0)
    fail_msg("%s", e.text);
  assert_string_equal(f.source, "torchrun");
  assert_int_equal(f.rank, 9);
  assert_int_equal(f.world, 16);
  assert_int_equal(f.node, 1);
  assert_int_equal(f.nodes, 2);
  assert_int_equal(f.local_world, 8);
  assert_string_equal(f.launch, "torchrun:exp-1.2@n1:29400");
}

static void the_id_that_torchrun_gives_every_launch_is_none(void **state) {
  ranks_found f;
  assert_int_equal(DETECT(&f, NULL, TORCHRUN, "TORCHELASTIC_RUN_ID=none",
                          "TORCHELASTIC_RESTART_COUNT=0", "MASTER_ADDR=127.0.0.1",
                          "MASTER_PORT=29500"),
                   0);
  assert_int_equal(f.world, 16);
  assert_string_equal(f.launch, "");
}

static void a_restart_by_torchrun_is_another_launch(void **state) {
  ranks_found one, two;
  assert_int_equal(
      DETECT(&one, NULL, TORCHRUN, "TORCHELASTIC_RUN_ID=x", "TORCHELASTIC_RESTART_COUNT=0"), 0);
  assert_int_equal(
      DETECT(&two, NULL, TORCHRUN, "TORCHELASTIC_RUN_ID=x", "TORCHELASTIC_RESTART_COUNT=1"), 0);
  assert_string_not_equal(one.launch, two.launch);
}

static void a_requeued_job_is_another_launch_of_torchrun(void **state) {
  ranks_found one, two;
#define REQUEUED                                                                                   \
  TORCHRUN, "TORCHELASTIC_RUN_ID=4711", "TORCHELASTIC_RESTART_COUNT=0", "MASTER_ADDR=n1",          \
      "MASTER_PORT=29500", "SLURM_JOB_ID=4711"
  assert_int_equal(DETECT(&one, NULL, REQUEUED), 0);
  assert_int_equal(DETECT(&two, NULL, REQUEUED, "SLURM_RESTART_COUNT=1"), 0);
  assert_string_not_equal(one.launch, two.launch);
}

static void open_mpi_and_pmi_are_known(void **state) {
  ranks_found f;
  assert_int_equal(DETECT(&f, NULL, "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4",
                          "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                          "PMIX_NAMESPACE=prterun-n1-77@1", "PMI_RANK=0", "PMI_SIZE=1"),
                   0);
  assert_string_equal(f.source, "openmpi");
  assert_int_equal(f.rank, 3);
  assert_int_equal(f.world, 4);
  assert_int_equal(f.local_world, 2);
  assert_int_equal(f.nodes, 0);
  assert_string_equal(f.launch, "openmpi:prterun-n1-77@1");
  assert_int_equal(DETECT(&f, NULL, "PMI_RANK=1", "PMI_SIZE=2"), 0);
  assert_string_equal(f.source, "pmi");
  assert_int_equal(f.world, 2);
  assert_string_equal(f.launch, "");
}

static void adaptdl_names_its_job_and_counts_its_restarts(void **state) {
  ranks_found f;
  assert_int_equal(DETECT(&f, NULL, "ADAPTDL_REPLICA_RANK=1", "ADAPTDL_NUM_REPLICAS=2",
                          "ADAPTDL_JOB_ID=ns/job", "ADAPTDL_NUM_RESTARTS=4", "RANK=0",
                          "WORLD_SIZE=9"),
                   0);
  assert_string_equal(f.source, "adaptdl");
  assert_int_equal(f.rank, 1);
  assert_int_equal(f.world, 2);
  assert_string_equal(f.launch, "adaptdl:ns/job.4");
  assert_int_equal(DETECT(&f, NULL, "ADAPTDL_REPLICA_RANK=1", "ADAPTDL_NUM_REPLICAS=2"), 0);
  assert_string_equal(f.launch, "");
  assert_int_equal(DETECT(&f, NULL, "ADAPTDL_REPLICA_RANK=0"), 0); /* one replica sets no more */
  assert_int_equal(f.world, 0);
}

static void what_is_no_number_is_refused_by_its_name(void **state) {
  static const char *const bad[] = {"PMI_RANK=x",          "PMI_RANK=-1",
                                    "PMI_RANK=1.5",        "PMI_RANK= 1",
                                    "PMI_RANK=4294967296", "PMI_RANK=99999999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ranks_found f;
    err e = {0};
    must_refuse(DETECT(&f, &e, bad[i], "PMI_SIZE=4"), &e, "PMI_RANK");
    assert_int_equal(f.world, 0);
  }
}

static void what_contradicts_is_refused(void **state) {
  ranks_found f;
  err e = {0};
  must_refuse(DETECT(&f, &e, "PMI_RANK=4", "PMI_SIZE=4"), &e, "PMI_RANK=4");
  must_refuse(DETECT(&f, &e, "PMI_RANK=0"), &e, "PMI_SIZE");
  must_refuse(DETECT(&f, &e, "PMI_RANK=0", "PMI_SIZE=0"), &e, "PMI_SIZE");
  must_refuse(DETECT(&f, &e, "PMI_RANK=0", "PMI_SIZE=65537"), &e, "PMI_SIZE");
  must_refuse(DETECT(&f, &e, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2",
                     "OMPI_COMM_WORLD_LOCAL_RANK=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
              &e, "LOCAL_RANK");
  must_refuse(DETECT(&f, &e, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2",
                     "OMPI_COMM_WORLD_LOCAL_SIZE=3"),
              &e, "openmpi");
  must_refuse(DETECT(&f, &e, "SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2",
                     "SLURM_NODEID=1", "SLURM_NNODES=1"),
              &e, "SLURM_NODEID");
  must_refuse(DETECT(&f, &e, SLURM, "RANK=0", "WORLD_SIZE=2"), &e, "RANK=0");
  e = (err){0};
  if (DETECT(&f, &e, SLURM, "RANK=5", "WORLD_SIZE=8") < 0) fail_msg("%s", e.text);
}

static void a_long_launch_id_is_compared_by_its_digest(void **state) {
  char space[600] = "PMIX_NAMESPACE=";
  ranks_found one, two;
  memset(space + strlen(space), 'n', sizeof space - 100);
  assert_int_equal(DETECT(&one, NULL, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", space),
                   0);
  space[sizeof space - 120] = 'm';
  assert_int_equal(DETECT(&two, NULL, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", space),
                   0);
  assert_true(strlen(one.launch) > 10 && strlen(one.launch) < RUNLOG_ID_MAX);
  assert_string_not_equal(one.launch, two.launch);
}

static void lists_of_ranks_are_short(void **state) {
  char text[200];
  uint32_t many[100];
  for (uint32_t i = 0; i < 100; i++) many[i] = 2 * i;
  ranks_list((const uint32_t[]){3}, 1, 1, text, sizeof text);
  assert_string_equal(text, "3");
  ranks_list((const uint32_t[]){3, 4, 9}, 3, 3, text, sizeof text);
  assert_string_equal(text, "3, 4, 9");
  ranks_list((const uint32_t[]){0, 3, 4, 5, 6, 9}, 6, 6, text, sizeof text);
  assert_string_equal(text, "0, 3-6, 9");
  ranks_list(many, 100, 100, text, sizeof text);
  assert_string_equal(text, "0, 2, 4, 6, 8, 10, 12, 14, ...");
  ranks_list((const uint32_t[]){1, 2}, 2, 700, text, sizeof text);
  assert_string_equal(text, "1, 2, ...");
  for (size_t room = 0; room < sizeof text; room++) { /* never past its room */
    memset(text, '#', sizeof text);
    ranks_list(many, 100, 200, text, room);
    assert_int_equal(text[room < sizeof text - 1 ? room : sizeof text - 1], '#');
    if (room) assert_non_null(memchr(text, 0, room));
  }
}

static void all_ranks_together_look_a_thousand_times_a_second_at_most(void **state) {
  const uint32_t worlds[] = {1, 2, 64, 1000, 10000, RANKS_MAX};
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
    assert_true(ranks_pause_least(worlds[i]) * 1000 >= (int64_t)worlds[i] * 1000000000);
    assert_true(ranks_pause_first(worlds[i]) * 1000 >= (int64_t)worlds[i] * 1000000000);
  }
  assert_int_equal(ranks_pause_least(2), 200000000);
}

static void missing_ranks_are_named(void **state) {
  char text[200] = "#";
  _Atomic uint64_t bits[RANKS_WORDS] = {0};
  ranks_missing_text(bits, 4, text, sizeof text);
  assert_string_equal(text, "");
  bits[0] = 1 << 3;
  ranks_missing_text(bits, 4, text, sizeof text);
  assert_string_equal(text, "rank 3 (3 of 4 are there)");
  bits[0] = 1 << 3 | 1 << 5;
  bits[3] = UINT64_C(1) << 63;
  ranks_missing_text(bits, 256, text, sizeof text);
  assert_string_equal(text, "ranks 3, 5, 255 (253 of 256 are there)");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(without_a_launcher_there_is_no_world),
      cmocka_unit_test(a_task_of_srun_is_told_by_its_step_and_not_by_the_allocation),
      cmocka_unit_test(two_copies_of_one_slurm_job_are_two_launches),
      cmocka_unit_test(without_the_address_of_srun_no_launch_id_is_safe),
      cmocka_unit_test(a_batch_script_is_no_rank),
      cmocka_unit_test(tasks_that_are_not_the_same_on_each_node_are_counted),
      cmocka_unit_test(torchrun_is_told_even_inside_of_srun),
      cmocka_unit_test(the_id_that_torchrun_gives_every_launch_is_none),
      cmocka_unit_test(a_restart_by_torchrun_is_another_launch),
      cmocka_unit_test(a_requeued_job_is_another_launch_of_torchrun),
      cmocka_unit_test(open_mpi_and_pmi_are_known),
      cmocka_unit_test(adaptdl_names_its_job_and_counts_its_restarts),
      cmocka_unit_test(what_is_no_number_is_refused_by_its_name),
      cmocka_unit_test(what_contradicts_is_refused),
      cmocka_unit_test(a_long_launch_id_is_compared_by_its_digest),
      cmocka_unit_test(lists_of_ranks_are_short),
      cmocka_unit_test(all_ranks_together_look_a_thousand_times_a_second_at_most),
      cmocka_unit_test(missing_ranks_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
