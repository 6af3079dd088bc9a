#include "with_cmocka.h"

#include <string.h>

#include "run/start/launcher.h"

/* The environment of a test: "NAME=value" texts, ended by NULL. */
static const char *get(void *ctx, const char *name) {
  const char *const *env = ctx;
  size_t len = strlen(name);
  for (; *env; env++)
    if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') return *env + len + 1;
  return NULL;
}

#define MPIRUN "OMPI_COMM_WORLD_RANK=0"
#define TORCHRUN "TORCHELASTIC_RUN_ID=none"
#define SIGKILL_TIMEOUT "OMPI_MCA_odls_base_sigkill_timeout"

static void the_time_to_a_kill_is_what_the_launcher_leaves(void **unused) {
  static const struct {
    const char *env[4];
    double seconds;
    const char *who;
  } rows[] = {
      {{NULL}, -1, ""},
      {{SIGKILL_TIMEOUT "=60"}, -1, ""}, /* no mpirun started us */
      {{MPIRUN}, 1, "mpirun"},
      {{MPIRUN, SIGKILL_TIMEOUT "=60"}, 60, "mpirun"},
      {{MPIRUN, SIGKILL_TIMEOUT "="}, 1, "mpirun"},
      {{MPIRUN, SIGKILL_TIMEOUT "=soon"}, 1, "mpirun"},
      {{MPIRUN, SIGKILL_TIMEOUT "=-1"}, 0, "mpirun"}, /* it kills at once */
      {{MPIRUN, "PRTE_LAUNCHED=1", SIGKILL_TIMEOUT "=60"}, 0.25, "mpirun"},
      {{TORCHRUN}, 30, "torchrun"},
      {{TORCHRUN, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=90"}, 90, "torchrun"},
      {{TORCHRUN, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=90", "PET_SHUTDOWN_TIMEOUT=10"}, 10, "torchrun"},
      {{TORCHRUN, MPIRUN}, 1, "mpirun"},
      {{TORCHRUN, MPIRUN, SIGKILL_TIMEOUT "=60"}, 30, "torchrun"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char who[128] = "x";
    double seconds = launcher_patience(get, (void *)rows[i].env, who, sizeof who);
    if (seconds != rows[i].seconds) fail_msg("row %zu: %g", i, seconds);
    if (strncmp(who, rows[i].who, strlen(rows[i].who)) != 0 || !*rows[i].who != !*who)
      fail_msg("row %zu: \"%s\"", i, who);
  }
}

static void what_gives_a_task_more_is_named_where_there_is_such_a_thing(void **unused) {
  const char *four[] = {MPIRUN, NULL}, *five[] = {MPIRUN, "PRTE_LAUNCHED=1", NULL};
  char who[128];
  launcher_patience(get, four, who, sizeof who);
  assert_non_null(strstr(who, "--mca odls_base_sigkill_timeout 60"));
  launcher_patience(get, five, who, sizeof who);
  assert_null(strstr(who, "--mca"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_time_to_a_kill_is_what_the_launcher_leaves),
      cmocka_unit_test(what_gives_a_task_more_is_named_where_there_is_such_a_thing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
