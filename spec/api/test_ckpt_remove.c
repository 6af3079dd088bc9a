/* ckpt_remove and ckpt_plan, on a target that the core filled. */
#include "with_cmocka.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt.h"
#include "filled.h"
#include "tmpdir.h"

typedef struct scene {
  filled *f;
  ckpt *c;
  char told[2000];
} scene;

static int set_up(void **state) {
  scene *s = *state = calloc(1, sizeof *s);
  s->f = filled_new();
  return ckpt_open(&s->c, NULL);
}

static int tear_down(void **state) {
  scene *s = *state;
  ckpt_close(s->c);
  filled_free(s->f);
  free(s);
  return 0;
}

static int note_item(void *ctx, const ckpt_item *item) {
  static const char *const lives[] = {"live", "dropped", "deleted"};
  scene *s = ctx;
  size_t len = strlen(s->told);
  snprintf(s->told + len, sizeof s->told - len, "%s%s %s", len ? ", " : "", lives[item->life],
           item->dir);
  return 0;
}

static int remove_as(scene *s, const char *name, double grace, uint32_t flags) {
  ckpt_remove_options o = {
      .size = sizeof o, .uri = s->f->uri, .name = name, .grace_delete_s = grace, .flags = flags};
  s->told[0] = 0;
  return ckpt_remove(s->c, &o, note_item, s);
}

static void must_remove(scene *s, const char *name, double grace, uint32_t flags,
                        const char *told) {
  if (remove_as(s, name, grace, flags) != 0) fail_msg("%s", ckpt_error(s->c));
  assert_string_equal(s->told, told);
}

static void must_list(scene *s, const char *expected) {
  s->told[0] = 0;
  assert_int_equal(ckpt_list(s->c, s->f->uri, note_item, s), 0);
  assert_string_equal(s->told, expected);
}

#define LIVE_ALL "live checkpoint-1, live checkpoint-2, live checkpoint-3, live checkpoint-4"
#define LIVE_GROUP ", live checkpoint-9"

/* ---- remove ---- */

static void a_removed_one_is_hidden_at_once_and_deleted_after_the_grace(void **state) {
  scene *s = *state;
  must_remove(s, "checkpoint-2", 0, 0, "dropped checkpoint-2");
  assert_true(filled_has_data(s->f, "checkpoint-2"));
  must_list(s, "live checkpoint-1, live checkpoint-3, live checkpoint-4" LIVE_GROUP);
  must_remove(s, "checkpoint-2", 0, 0, ""); /* the grace is a day */
  must_remove(s, "checkpoint-2", -1, 0, "deleted checkpoint-2");
  assert_false(filled_has_data(s->f, "checkpoint-2"));
}

static void the_newest_is_refused_without_the_flag_and_nothing_is_written(void **state) {
  scene *s = *state;
  uint64_t next = runlog_view(s->f->log)->next;
  assert_int_equal(remove_as(s, "checkpoint-4", -1, 0), CKPT_EHELD);
  assert_non_null(strstr(ckpt_error(s->c), "newest"));
  assert_non_null(strstr(ckpt_error(s->c), "`all`"));
  assert_int_equal(runlog_refresh(s->f->log, NULL), 0);
  assert_int_equal(runlog_view(s->f->log)->next, next);
  must_remove(s, "checkpoint-4", -1, CKPT_REMOVE_ALL, "dropped checkpoint-4, deleted checkpoint-4");
}

static void a_name_that_is_nowhere_is_told(void **state) {
  scene *s = *state;
  assert_int_equal(remove_as(s, "checkpoint-77", -1, 0), CKPT_ENOENT);
  ckpt_remove_options none = {.size = sizeof none};
  assert_int_equal(ckpt_remove(s->c, &none, NULL, NULL), CKPT_EINVAL);
  none.uri = "/nowhere/at/all";
  assert_int_equal(ckpt_remove(s->c, &none, NULL, NULL), CKPT_ENOSTORE);
}

static void a_dry_run_tells_the_same_and_changes_nothing(void **state) {
  scene *s = *state;
  must_remove(s, "checkpoint-1", 0, 0, "dropped checkpoint-1");
  char *before = filled_picture(s->f);
  must_remove(s, "checkpoint-2", 0, CKPT_DRY_RUN, "dropped checkpoint-2");
  must_remove(s, NULL, -1, CKPT_DRY_RUN, "deleted checkpoint-1");
  assert_int_equal(remove_as(s, "checkpoint-4", 0, CKPT_DRY_RUN), CKPT_EHELD);
  filled_must_be(s->f, before);
}

/* ---- plan ---- */

static int note_verdict(void *ctx, const ckpt_verdict *v) {
  static const char *const words[] = {"keep", "guarded", "limited", "drop", "wait", "delete"};
  scene *s = ctx;
  size_t len = strlen(s->told);
  assert_true(*v->reason);
  snprintf(s->told + len, sizeof s->told - len, "%s%s %s", len ? ", " : "", words[v->verdict],
           v->item->dir);
  return 0;
}

static void a_plan_without_a_policy_keeps_all_that_lives(void **state) {
  scene *s = *state;
  must_remove(s, "checkpoint-1", 0, 0, "dropped checkpoint-1");
  char *before = filled_picture(s->f);
  ckpt_plan_options o = {.size = sizeof o, .uri = s->f->uri};
  s->told[0] = 0;
  assert_int_equal(ckpt_plan(s->c, &o, note_verdict, s), 0);
  assert_string_equal(s->told, "wait checkpoint-1, keep checkpoint-2, keep checkpoint-3, "
                               "keep checkpoint-4, keep checkpoint-9");
  o.grace_delete_s = -1;
  s->told[0] = 0;
  assert_int_equal(ckpt_plan(s->c, &o, note_verdict, s), 0);
  assert_non_null(strstr(s->told, "delete checkpoint-1"));
  filled_must_be(s->f, before);
}

/* From here on this process can change no file: such calls fail. */
static void deny_writes(void) {
#define DENY(nr)                                                                                   \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1),                                                 \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EROFS)
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      DENY(SYS_mkdirat),
      DENY(SYS_renameat2),
      DENY(SYS_linkat),
      DENY(SYS_unlinkat),
      DENY(SYS_symlinkat),
      DENY(SYS_ftruncate),
      DENY(SYS_utimensat),
      DENY(SYS_fchmod),
      DENY(SYS_pwrite64),
      DENY(SYS_fsync),
      DENY(SYS_fdatasync),
      DENY(SYS_unlink),
      DENY(SYS_rename),
      DENY(SYS_mkdir),
      DENY(SYS_link),
      DENY(SYS_creat),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EROFS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
    _exit(77);
}

/* 0: all worked without a write. 1 to 4: which did not. */
static int look_only(scene *s) {
  const char *json;
  ckpt_plan_options o = {.size = sizeof o, .uri = s->f->uri};
  if (open(tmpdir_path(s->f->w->dir, "x"), O_WRONLY | O_CREAT, 0600) >= 0) return 1;
  if (ckpt_plan(s->c, &o, note_verdict, s) != 0 || !*s->told) return 2;
  if (remove_as(s, "checkpoint-1", -1, CKPT_DRY_RUN) != 0 || !*s->told) return 3;
  if (ckpt_show(s->c, s->f->uri, NULL, &json) != 0) return 4;
  return remove_as(s, "checkpoint-1", -1, 0) == 0 ? 5 : 0;
}

static void plans_and_dry_runs_work_where_every_write_is_denied(void **state) {
  scene *s = *state;
  pid_t child = fork();
  if (child == 0) {
    if (ckpt_open(&s->c, NULL) < 0) _exit(6); /* the parent's is no use here */
    deny_writes();
    _exit(look_only(s));
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77)
    print_message("no seccomp here\n");
  else
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int stop_at_once(void *ctx, const ckpt_verdict *v) {
  ++*(int *)ctx;
  return 42;
}

static void a_caller_may_stop_a_plan(void **state) {
  scene *s = *state;
  int calls = 0;
  ckpt_plan_options o = {.size = sizeof o, .uri = s->f->uri};
  assert_int_equal(ckpt_plan(s->c, &o, stop_at_once, &calls), 42);
  assert_int_equal(calls, 1);
  o.uri = NULL;
  assert_int_equal(ckpt_plan(s->c, &o, note_verdict, s), CKPT_EINVAL);
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(a_removed_one_is_hidden_at_once_and_deleted_after_the_grace),
      ON_A_TARGET(the_newest_is_refused_without_the_flag_and_nothing_is_written),
      ON_A_TARGET(a_name_that_is_nowhere_is_told),
      ON_A_TARGET(a_dry_run_tells_the_same_and_changes_nothing),
      ON_A_TARGET(a_plan_without_a_policy_keeps_all_that_lives),
      ON_A_TARGET(plans_and_dry_runs_work_where_every_write_is_denied),
      ON_A_TARGET(a_caller_may_stop_a_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
