/* The default run id is of what a command runs: each row of a table of command lines that people
 * write, and what must be called the same. */
#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runner/cli/words.h"
#include "runner/job/program_named.h"
#include "tmpdir.h"

static char *dir;

static char *named(const char *line) {
  word_list words = {0};
  assert_int_equal(words_split(&words, line, "{}"), 0);
  char *name = program_named(words.items);
  assert_non_null(name);
  word_list_free(&words);
  return name;
}

static void is(const char *line, const char *want) {
  char *name = named(line);
  if (strcmp(name, want) != 0) fail_msg("%s: \"%s\", not \"%s\"", line, name, want);
  free(name);
}

static void is_script(const char *line) {
  char want[600];
  snprintf(want, sizeof want, "file:%s/train.py", dir);
  is(line, want);
}

static void touch(const char *name, mode_t mode) {
  FILE *f = fopen(name, "w");
  assert_non_null(f);
  fputs("#!/bin/sh\n", f);
  fclose(f);
  assert_int_equal(chmod(name, mode), 0);
}

static int set_up(void **state) {
  char *made = tmpdir_new();
  dir = realpath(made, NULL);
  free(made);
  if (chdir(dir) != 0) return -1;
  touch("train.py", 0755);
  touch("other.py", 0755);
  touch("conf.yaml", 0644);
  assert_int_equal(mkdir("sub", 0755), 0);
  assert_int_equal(symlink("../train.py", "sub/linked.py"), 0);
  (void)state;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  if (chdir("/") != 0) return -1;
  tmpdir_remove(dir);
  return 0;
}

static void flags_and_the_way_to_the_script_do_not_matter(void **state) {
  is_script("./train.py");
  is_script("./train.py --lr 1");
  is_script("sub/../train.py");
  is_script("sub/linked.py");
  is_script("python train.py");
  is_script("python3.11 -u train.py --lr 0.1 --data other.py");
  is_script("/usr/bin/python3 -W ignore -X dev -OO train.py");
  is_script("python -uWignore train.py");
  is_script("bash train.py");
  is_script("bash -eu -o pipefail train.py x");
  is_script("sh -c 'python train.py --lr 1'");
  is_script("bash -lc 'X=1 python train.py'");
  is_script("perl -I lib train.py");
}

static void launchers_do_not_matter(void **state) {
  is_script("torchrun --nproc 4 train.py --lr 1");
  is_script("torchrun --nproc-per-node=4 --rdzv-id 7 --rdzv_backend c10d train.py");
  is_script("python -m torch.distributed.run --nproc_per_node 8 train.py");
  is_script("accelerate launch train.py");
  is_script("accelerate launch --config_file conf.yaml --num_processes 2 train.py --x y");
  is_script("deepspeed --num_gpus 2 --include localhost:0 train.py");
  is_script("mpirun -n 4 python train.py");
  is_script("mpirun -np 4 --mca btl self,tcp -x PATH -host a,b python -u train.py");
  is_script("srun -n 2 --gres gpu:1 python train.py");
  is_script("srun --ntasks=2 bash -c 'exec python train.py'");
  is_script("env X=1 Y=2 python train.py");
  is_script("env -u HOME -C . python train.py");
  is_script("nohup python train.py");
  is_script("time -p python train.py");
  is_script("nice -n 19 python train.py");
  is_script("timeout -k 5 24h python train.py");
  is_script("stdbuf -oL python train.py");
  is_script("taskset -c 0-3 python train.py");
  is_script("numactl --cpunodebind=0 -m 0 python train.py");
  is_script("uv run train.py");
  is_script("uv run --with numpy -p 3.11 python train.py");
  is_script("conda run -n env --no-capture-output python train.py");
  is_script("poetry run python train.py");
  is_script("singularity exec --nv -B /data image.sif python train.py");
  is_script("sudo -u ml nice env A=b srun torchrun --nproc 2 -- train.py --lr 3");
}

static void a_module_is_known_by_its_name(void **state) {
  is("python -m pkg.train --lr 1", "module:pkg.train");
  is("python -um pkg.train", "module:pkg.train");
  is("torchrun --nproc 4 -m pkg.train", "module:pkg.train");
  is("accelerate launch -m pkg.train", "module:pkg.train");
  is("python -m torch.distributed.run --nproc 4 -m pkg.train", "module:pkg.train");
  is("uv run -m pkg.train x", "module:pkg.train");
}

static void what_is_not_understood_is_known_by_its_first_file(void **state) {
  is_script("pyhton train.py --lr 1");
  is_script("torchrun --an-option-of-tomorrow 4 train.py");
  is_script("mpirun --an-option-of-tomorrow 4 python train.py");
}

static void a_program_is_known_by_its_name_or_path(void **state) {
  is("true", "name:true");
  is("true --config conf.yaml", "name:true");
  is("nosuchprogram --x", "name:nosuchprogram");
  char want[600];
  snprintf(want, sizeof want, "file:%s/notyet.py", dir);
  is("python notyet.py", want);
}

/* Files that the text makes would give it another name at the next start. */
static void text_that_is_more_than_a_command_is_the_program_itself(void **state) {
  is("sh -c 'cp train.py x; python train.py'", "code:cp train.py x; python train.py");
  is("sh -c 'exit 3'", "code:exit 3");
  is("python -c 'import x' train.py", "code:import x");
  is("python -uc 'import x'", "code:import x");
}

static void words_that_lead_nowhere_name_the_first(void **state) {
  is("python", "name:python");
  is("env", "name:env");
  is("srun -n", "name:srun");
  is("uv sync", "name:uv");
  is("nice nice nice nice nice nice nice nice nice nice nice nice nice nice nice nice nice nice",
     "name:nice");
  is("python -m", "name:python");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(flags_and_the_way_to_the_script_do_not_matter),
      cmocka_unit_test(launchers_do_not_matter),
      cmocka_unit_test(a_module_is_known_by_its_name),
      cmocka_unit_test(what_is_not_understood_is_known_by_its_first_file),
      cmocka_unit_test(a_program_is_known_by_its_name_or_path),
      cmocka_unit_test(text_that_is_more_than_a_command_is_the_program_itself),
      cmocka_unit_test(words_that_lead_nowhere_name_the_first),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
