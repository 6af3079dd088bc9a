/* ckpt_remove and ckpt_plan, on a target that the core filled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

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
#include "tmpdir.h"
#include "world.h"

typedef struct scene {
  world *w;
  runlog *log, *group;
  ckpt *c;
  char uri[600];
  char told[2000];
} scene;

static scene *scene_new(void) {
  scene *s = calloc(1, sizeof *s);
  s->w = world_new("file", world_io());
  s->log = world_begin(s->w->env.store, "", "one");
  s->group = world_begin(s->w->env.store, "exp/T1", "one");
  for (int i = 1; i <= 4; i++) {
    char name[40];
    snprintf(name, sizeof name, "checkpoint-%d", i);
    make_unit(s->w, name, MATCH_DIR, (unsigned)i);
    save_unit(s->w, s->log, name, MATCH_DIR, i);
  }
  make_unit(s->w, "exp/T1/checkpoint-9", MATCH_DIR, 9);
  save_unit(s->w, s->group, "exp/T1/checkpoint-9", MATCH_DIR, 9);
  assert_int_equal(ckpt_open(&s->c, NULL), 0);
  snprintf(s->uri, sizeof s->uri, "file://%s/root", s->w->place.dir);
  return s;
}

static void scene_free(scene *s) {
  ckpt_close(s->c);
  runlog_close(s->log);
  runlog_close(s->group);
  world_free(s->w);
  free(s);
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
      .size = sizeof o, .uri = s->uri, .name = name, .grace_delete_s = grace, .flags = flags};
  s->told[0] = 0;
  return ckpt_remove(s->c, &o, note_item, s);
}

static void must_remove(scene *s, const char *name, double grace, uint32_t flags,
                        const char *told) {
  if (remove_as(s, name, grace, flags) != 0) fail_msg("%s", ckpt_error(s->c));
  assert_string_equal(s->told, told);
}

static bool data_of(scene *s, const char *name) {
  char key[300];
  snprintf(key, sizeof key, "%s/model.bin", name);
  return store_holds(s->w->env.store, key);
}

static void must_list(scene *s, const char *expected) {
  s->told[0] = 0;
  assert_int_equal(ckpt_list(s->c, s->uri, note_item, s), 0);
  assert_string_equal(s->told, expected);
}

#define LIVE_ALL "live checkpoint-1, live checkpoint-2, live checkpoint-3, live checkpoint-4"
#define LIVE_GROUP ", live checkpoint-9"

/* ---- remove ---- */

static void a_removed_one_is_hidden_at_once_and_deleted_after_the_grace(void **state) {
  (void)state;
  scene *s = scene_new();
  must_remove(s, "checkpoint-2", 0, 0, "dropped checkpoint-2");
  assert_true(data_of(s, "checkpoint-2"));
  must_list(s, "live checkpoint-1, live checkpoint-3, live checkpoint-4" LIVE_GROUP);
  must_remove(s, "checkpoint-2", 0, 0, ""); /* the grace is a day */
  must_remove(s, "checkpoint-2", -1, 0, "deleted checkpoint-2");
  assert_false(data_of(s, "checkpoint-2"));
  scene_free(s);
}

static void without_a_grace_it_is_gone_at_once(void **state) {
  (void)state;
  scene *s = scene_new();
  must_remove(s, "checkpoint-1", -1, 0, "dropped checkpoint-1, deleted checkpoint-1");
  assert_null(store_litter(s->w->env.store, "exp/T1"));
  assert_false(data_of(s, "checkpoint-1"));
  scene_free(s);
}

static void the_newest_is_refused_without_the_flag_and_nothing_is_written(void **state) {
  (void)state;
  scene *s = scene_new();
  uint64_t next = runlog_view(s->log)->next;
  assert_int_equal(remove_as(s, "checkpoint-4", -1, 0), CKPT_EHELD);
  assert_non_null(strstr(ckpt_error(s->c), "newest"));
  assert_non_null(strstr(ckpt_error(s->c), "--all"));
  assert_int_equal(runlog_refresh(s->log, NULL), 0);
  assert_int_equal(runlog_view(s->log)->next, next);
  must_remove(s, "checkpoint-4", -1, CKPT_REMOVE_ALL, "dropped checkpoint-4, deleted checkpoint-4");
  scene_free(s);
}

static void without_name_or_flag_nothing_live_goes(void **state) {
  (void)state;
  scene *s = scene_new();
  must_remove(s, NULL, -1, 0, "");
  must_list(s, LIVE_ALL LIVE_GROUP);
  must_remove(s, "checkpoint-1", 0, 0, "dropped checkpoint-1");
  must_remove(s, "checkpoint-3", -1, 0, "dropped checkpoint-3, deleted checkpoint-3");
  assert_true(data_of(s, "checkpoint-1")); /* another one's word does not shorten its grace */
  must_remove(s, NULL, -1, 0, "deleted checkpoint-1");
  scene_free(s);
}

static void with_the_flag_everything_goes_in_every_group(void **state) {
  (void)state;
  scene *s = scene_new();
  assert_int_equal(remove_as(s, NULL, -1, CKPT_REMOVE_ALL), 0);
  must_list(s, "");
  assert_false(data_of(s, "checkpoint-4") || data_of(s, "exp/T1/checkpoint-9"));
  assert_null(store_litter(s->w->env.store, "exp/T1"));
  scene_free(s);
}

static void a_name_that_several_groups_have_removes_none_of_them(void **state) {
  (void)state;
  scene *s = scene_new();
  make_unit(s->w, "exp/T1/checkpoint-1", MATCH_DIR, 1);
  save_unit(s->w, s->group, "exp/T1/checkpoint-1", MATCH_DIR, 1);
  assert_int_equal(remove_as(s, "checkpoint-1", -1, 0), CKPT_EINVAL);
  assert_true(data_of(s, "checkpoint-1") && data_of(s, "exp/T1/checkpoint-1"));
  scene_free(s);
}

static void a_name_that_is_nowhere_is_told(void **state) {
  (void)state;
  scene *s = scene_new();
  assert_int_equal(remove_as(s, "checkpoint-77", -1, 0), CKPT_ENOENT);
  ckpt_remove_options none = {.size = sizeof none};
  assert_int_equal(ckpt_remove(s->c, &none, NULL, NULL), CKPT_EINVAL);
  none.uri = "/nowhere/at/all";
  assert_int_equal(ckpt_remove(s->c, &none, NULL, NULL), CKPT_ENOSTORE);
  scene_free(s);
}

/* Every file of the target, with its size and time. */
static int add_line(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  char *text = ctx;
  (void)is_prefix;
  size_t len = strlen(text);
  snprintf(text + len, (1 << 16) - len, "%s %llu %lld\n", key, (unsigned long long)object->size,
           (long long)object->mtime_ns);
  return 0;
}

static char *picture(scene *s) {
  char *text = calloc(1, 1 << 16);
  assert_int_equal(s->w->env.store->ops->list(s->w->env.store, "", false, add_line, text, NULL), 0);
  return text;
}

static void a_dry_run_tells_the_same_and_changes_nothing(void **state) {
  (void)state;
  scene *s = scene_new();
  must_remove(s, "checkpoint-1", 0, 0, "dropped checkpoint-1");
  char *before = picture(s);
  must_remove(s, "checkpoint-2", 0, CKPT_DRY_RUN, "dropped checkpoint-2");
  must_remove(s, NULL, -1, CKPT_DRY_RUN, "deleted checkpoint-1");
  assert_int_equal(remove_as(s, "checkpoint-4", 0, CKPT_DRY_RUN), CKPT_EHELD);
  char *after = picture(s);
  assert_string_equal(before, after);
  free(before);
  free(after);
  scene_free(s);
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
  (void)state;
  scene *s = scene_new();
  must_remove(s, "checkpoint-1", 0, 0, "dropped checkpoint-1");
  char *before = picture(s);
  ckpt_plan_options o = {.size = sizeof o, .uri = s->uri};
  s->told[0] = 0;
  assert_int_equal(ckpt_plan(s->c, &o, note_verdict, s), 0);
  assert_string_equal(s->told, "wait checkpoint-1, keep checkpoint-2, keep checkpoint-3, "
                               "keep checkpoint-4, keep checkpoint-9");
  o.grace_delete_s = -1;
  s->told[0] = 0;
  assert_int_equal(ckpt_plan(s->c, &o, note_verdict, s), 0);
  assert_non_null(strstr(s->told, "delete checkpoint-1"));
  char *after = picture(s);
  assert_string_equal(before, after);
  free(before);
  free(after);
  scene_free(s);
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
  ckpt_plan_options o = {.size = sizeof o, .uri = s->uri};
  if (open(tmpdir_path(s->w->dir, "x"), O_WRONLY | O_CREAT, 0600) >= 0) return 1;
  if (ckpt_plan(s->c, &o, note_verdict, s) != 0 || !*s->told) return 2;
  if (remove_as(s, "checkpoint-1", -1, CKPT_DRY_RUN) != 0 || !*s->told) return 3;
  if (ckpt_show(s->c, s->uri, NULL, &json) != 0) return 4;
  return remove_as(s, "checkpoint-1", -1, 0) == 0 ? 5 : 0;
}

static void plans_and_dry_runs_work_where_every_write_is_denied(void **state) {
  (void)state;
  scene *s = scene_new();
  pid_t child = fork();
  if (child == 0) {
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
  scene_free(s);
}

static int stop_at_once(void *ctx, const ckpt_verdict *v) {
  (void)v;
  ++*(int *)ctx;
  return 42;
}

static void a_caller_may_stop_a_plan(void **state) {
  (void)state;
  scene *s = scene_new();
  int calls = 0;
  ckpt_plan_options o = {.size = sizeof o, .uri = s->uri};
  assert_int_equal(ckpt_plan(s->c, &o, stop_at_once, &calls), 42);
  assert_int_equal(calls, 1);
  o.uri = NULL;
  assert_int_equal(ckpt_plan(s->c, &o, note_verdict, s), CKPT_EINVAL);
  scene_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_removed_one_is_hidden_at_once_and_deleted_after_the_grace),
      cmocka_unit_test(without_a_grace_it_is_gone_at_once),
      cmocka_unit_test(the_newest_is_refused_without_the_flag_and_nothing_is_written),
      cmocka_unit_test(without_name_or_flag_nothing_live_goes),
      cmocka_unit_test(with_the_flag_everything_goes_in_every_group),
      cmocka_unit_test(a_name_that_several_groups_have_removes_none_of_them),
      cmocka_unit_test(a_name_that_is_nowhere_is_told),
      cmocka_unit_test(a_dry_run_tells_the_same_and_changes_nothing),
      cmocka_unit_test(a_plan_without_a_policy_keeps_all_that_lives),
      cmocka_unit_test(plans_and_dry_runs_work_where_every_write_is_denied),
      cmocka_unit_test(a_caller_may_stop_a_plan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
