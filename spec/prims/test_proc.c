#include "with_cmocka.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prims/proc.h"
#include "tmpdir.h"

static void nap(void) {
  nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void await_environment(pid_t pid) {
  char path[64], byte;
  ssize_t len = 0;
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  for (int i = 0; i < 2000 && len <= 0; i++) {
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    len = read(fd, &byte, 1);
    close(fd);
    if (len <= 0) nap();
  }
  assert_int_equal(len, 1);
}

enum { CHILDREN = 8 };
static pid_t children[CHILDREN]; /* those that run; 0: free */

/* fork(). The child ends with its parent, and with its test: one that stayed behind would be found
 * by the next test, and would hold the output of the whole run open. */
static pid_t spawn(void) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    memset(children, 0, sizeof children);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return 0;
  }
  int i = 0;
  while (i < CHILDREN && children[i]) i++;
  assert_true(i < CHILDREN);
  children[i] = child;
  return child;
}

static void forget_child(pid_t child) {
  for (int i = 0; i < CHILDREN; i++)
    if (children[i] == child) children[i] = 0;
}

static void end_child(pid_t child) {
  forget_child(child);
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

static int end_children(void **state) {
  for (int i = 0; i < CHILDREN; i++)
    if (children[i]) end_child(children[i]);
  return 0;
}

/* A child that did what it should, told so, and sleeps until end_child(). */
static pid_t start_child(void (*body)(void *), void *arg) {
  int ready[2];
  char byte = 0;
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  pid_t child = spawn();
  if (child == 0) {
    if (body) body(arg);
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  ssize_t told = read(ready[0], &byte, 1);
  close(ready[0]);
  assert_true(told >= 0);
  if (told == 0) await_environment(child); /* its new program closed the pipe, a bit too early */
  return child;
}

enum { KEPT = 16 };
typedef struct list {
  int n, stop_at;
  proc_info at[KEPT];
} list;

static int keep(void *ctx, const proc_info *info) {
  list *l = ctx;
  if (l->n < KEPT) l->at[l->n] = *info;
  l->n++;
  return l->n == l->stop_at ? 42 : 0;
}

static const proc_info *in_list(const list *l, pid_t pid) {
  for (int i = 0; i < l->n && i < KEPT; i++)
    if (l->at[i].pid == pid) return &l->at[i];
  return NULL;
}

static void the_boot_id_is_a_line_without_its_end(void **state) {
  char one[PROC_BOOT_MAX], two[PROC_BOOT_MAX];
  assert_int_equal(proc_boot_id(one, NULL), 0);
  assert_int_equal(proc_boot_id(two, NULL), 0);
  assert_string_equal(one, two);
  assert_int_equal(strlen(one), 36);
}

static void rename_badly(void *arg) {
  prctl(PR_SET_NAME, arg);
}

static void no_process_name_confuses_the_identity(void **state) {
  const char *names[] = {"plain", "a b", ")", ") Z 1 2 (", "(((", "\n) Z 1\n", ") Z 1 1 1 1 1"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    pid_t child = start_child(rename_badly, (void *)(uintptr_t)names[i]), sid = 0;
    uint64_t start = 0, own = 0;
    assert_int_equal(proc_identity(child, &start, &sid, NULL), 0);
    assert_int_equal(proc_identity(getpid(), &own, NULL, NULL), 0);
    assert_true(start >= own && own > 0);
    assert_int_equal(sid, getsid(0));
    assert_int_equal(proc_alive(child, start), 1);
    assert_int_equal(proc_alive(child, start + 1), 0);
    end_child(child);
    assert_int_equal(proc_alive(child, start), 0);
  }
}

static void new_session(void *arg) {
  setsid();
}

static void a_session_is_read(void **state) {
  pid_t child = start_child(new_session, NULL), sid = 0;
  assert_int_equal(proc_identity(child, NULL, &sid, NULL), 0);
  assert_int_equal(sid, child);
  end_child(child);
}

static void a_zombie_is_dead(void **state) {
  uint64_t start = 0;
  err e = {0};
  pid_t child = start_child(NULL, NULL);
  assert_int_equal(proc_identity(child, &start, NULL, NULL), 0);
  kill(child, SIGKILL);
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
  assert_int_equal(proc_alive(child, start), 0);
  assert_int_equal(proc_identity(child, &start, NULL, &e), ERR_NOENT);
  list l = {0};
  assert_true(proc_descendants(getpid(), keep, &l, NULL) >= 0);
  assert_null(in_list(&l, child));
  end_child(child);
  assert_int_equal(proc_identity(-1, NULL, NULL, &e), ERR_NOENT);
  assert_int_equal(proc_identity(0, NULL, NULL, &e), ERR_NOENT);
}

static void *outlive(void *arg) {
  for (;;) pause();
  return arg;
}

static void a_process_whose_first_thread_has_ended_lives(void **state) {
  pid_t child = spawn();
  if (child == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, outlive, NULL) == 0) pthread_exit(NULL);
    _exit(1);
  }
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
  for (int i = 0; i < 2000; i++) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t len = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[len] = 0;
    if (strstr(text, ") Z ")) break;
    nap();
  }
  assert_non_null(strstr(text, ") Z "));
  uint64_t start = 0;
  assert_int_equal(proc_identity(child, &start, NULL, NULL), 0);
  assert_int_equal(proc_alive(child, start), 1);
  end_child(child);
}

/* The environment. */

static char marker[32]; /* a value that no other run of this test uses */

static void become_sleep(void *arg) {
  char *argv[] = {"sleep", "60", "0", NULL};
  execve("/bin/sleep", argv, arg);
  _exit(1);
}

static void only_who_is_surely_gone_is_gone(void **state) {
  uint64_t start;
  pid_t child = spawn();
  if (child == 0) {
    for (;;) pause();
  }
  assert_int_equal(proc_identity(child, &start, NULL, NULL), 0);
  assert_false(proc_gone(child, start));
  assert_true(proc_gone(child, start + 1)); /* its number is another one's by now */
  assert_false(proc_gone(0, start));
  assert_false(proc_gone(-1, start));
  kill(child, SIGKILL);
  while (!proc_gone(child, start)) nap(); /* a zombie */
  assert_int_equal(waitpid(child, NULL, 0), child);
  forget_child(child);
  assert_true(proc_gone(child, start));
}

static void who_sees_its_own_numbers_knows_their_space(void **state) {
  char ours[PROC_SPACE_MAX], again[PROC_SPACE_MAX];
  assert_int_equal(proc_space(ours), 1);
  assert_int_equal(proc_space(again), 1);
  assert_string_equal(ours, again);
  assert_int_equal(strncmp(ours, "pid:[", 5), 0);
}

static void only_the_exact_entry_counts(void **state) {
  char exact[64], longer[64], shorter[64], prefixed[64];
  snprintf(exact, sizeof exact, "CKPT_SPEC=%s", marker);
  snprintf(longer, sizeof longer, "CKPT_SPEC=%sx", marker);
  snprintf(shorter, sizeof shorter, "CKPT_SPEC=%.*s", (int)strlen(marker) - 1, marker);
  snprintf(prefixed, sizeof prefixed, "XCKPT_SPEC=%s", marker);
  char *yes[] = {"A=1", exact, "B=2", NULL}, *no[] = {longer, shorter, prefixed, "CKPT_SPEC", NULL};
  pid_t first = start_child(become_sleep, yes), second = start_child(become_sleep, no);
  list l = {0};
  assert_int_equal(proc_find_env("CKPT_SPEC", marker, keep, &l, NULL), 1);
  assert_int_equal(l.n, 1);
  assert_int_equal(l.at[0].pid, first);
  assert_int_equal(l.at[0].ppid, getpid());
  assert_int_equal(l.at[0].sid, getsid(0));
  assert_string_equal(l.at[0].command, "sleep 60 0");
  assert_int_equal(proc_alive(first, l.at[0].start), 1);
  end_child(first);
  end_child(second);
  assert_int_equal(proc_find_env("CKPT_SPEC", marker, keep, &l, NULL), 0);
  err e = {0};
  assert_int_equal(proc_find_env("", "x", keep, &l, &e), ERR_INVAL);
  assert_int_equal(proc_find_env("A=B", "x", keep, &l, &e), ERR_INVAL);
}

static void a_path_counts_as_a_whole(void **state) {
  char here[96], there[96];
  snprintf(here, sizeof here, "CKPT_SPEC=/run/user/1/%s", marker);
  snprintf(there, sizeof there, "/tmp/other/%s", marker);
  char *env[] = {here, NULL};
  pid_t child = start_child(become_sleep, env);
  list l = {0};
  assert_int_equal(proc_find_env("CKPT_SPEC", there, keep, &l, NULL), 0);
  assert_int_equal(proc_find_env("CKPT_SPEC", here + 10, keep, &l, NULL), 1);
  assert_int_equal(l.at[0].uid, getuid());
  end_child(child);
}

static void the_machine_has_an_id_or_none(void **state) {
  char first[PROC_MACHINE_MAX], second[PROC_MACHINE_MAX];
  int known = proc_machine(first);
  assert_int_equal(proc_machine(second), known);
  assert_string_equal(first, second);
  assert_int_equal(strlen(first) >= 32, known);
}

/* The reads are of 16 KiB: the entry lies before, across and behind the first border. */
static void an_entry_may_lie_across_two_reads(void **state) {
  char entry[64], *pad = calloc(1, 17000);
  snprintf(entry, sizeof entry, "CKPT_SPEC=%s", marker);
  int len = (int)strlen(entry);
  for (int at = 16384 - len - 2; at <= 16384 + 1; at += 3) {
    memset(pad, 'p', (size_t)at - 1); /* the entry begins at byte `at` */
    memcpy(pad, "P=", 2);
    pad[at - 1] = 0;
    char *env[] = {pad, entry, "Z=1", NULL};
    pid_t child = start_child(become_sleep, env);
    list l = {0};
    assert_int_equal(proc_find_env("CKPT_SPEC", marker, keep, &l, NULL), 1);
    assert_int_equal(l.at[0].pid, child);
    end_child(child);
  }
  free(pad);
}

static void the_last_entry_of_a_huge_environment_is_found(void **state) {
  enum { PIECE = 100000, PIECES = 18 };
  char entry[64], *pad = calloc(1, PIECE + 1), *env[PIECES + 2] = {0};
  snprintf(entry, sizeof entry, "CKPT_SPEC=%s", marker);
  memset(pad, 'p', PIECE);
  pad[1] = '=';
  for (int i = 0; i < PIECES; i++) env[i] = pad;
  env[PIECES] = entry;
  pid_t child = start_child(become_sleep, env);
  list l = {0};
  assert_int_equal(proc_find_env("CKPT_SPEC", marker, keep, &l, NULL), 1);
  end_child(child);
  free(pad);
}

static void a_callback_may_stop_the_walk(void **state) {
  char entry[64];
  snprintf(entry, sizeof entry, "CKPT_SPEC=%s", marker);
  char *env[] = {entry, NULL};
  pid_t one = start_child(become_sleep, env), two = start_child(become_sleep, env);
  list l = {.stop_at = 1};
  assert_int_equal(proc_find_env("CKPT_SPEC", marker, keep, &l, NULL), 42);
  assert_int_equal(l.n, 1);
  l = (list){.stop_at = 1};
  assert_int_equal(proc_descendants(getpid(), keep, &l, NULL), 42);
  assert_int_equal(l.n, 1);
  end_child(one);
  end_child(two);
}

static char *own_argv;
static size_t own_argv_len;

static void fill_argv(void *arg) {
  memset(own_argv, 'x', own_argv_len); /* its last NUL too: the kernel would read on */
}

static void a_command_never_runs_on_into_the_environment(void **state) {
  pid_t child = start_child(fill_argv, NULL);
  list l = {0};
  assert_true(proc_descendants(getpid(), keep, &l, NULL) >= 1);
  const proc_info *info = in_list(&l, child);
  assert_non_null(info);
  assert_int_equal(strspn(info->command, "x"), strlen(info->command));
  assert_true(strlen(info->command) <= own_argv_len);
  end_child(child);
}

static void become_long_sleep(void *arg) {
  char *argv[202] = {"sleep"};
  for (int i = 1; i < 201; i++) argv[i] = "60";
  execve("/bin/sleep", argv, arg);
  _exit(1);
}

static void a_long_command_is_cut(void **state) {
  char entry[64];
  snprintf(entry, sizeof entry, "CKPT_SPEC=%s", marker);
  char *env[] = {entry, NULL};
  pid_t child = start_child(become_long_sleep, env);
  list l = {0};
  assert_int_equal(proc_find_env("CKPT_SPEC", marker, keep, &l, NULL), 1);
  size_t len = strlen(l.at[0].command); /* the cut may fall on a blank */
  assert_true(len == PROC_NAME_MAX - 1 || len == PROC_NAME_MAX - 2);
  assert_memory_equal(l.at[0].command, "sleep 60 60 ", 12);
  end_child(child);
}

/* Descendants. */

static void have_a_child(void *arg) {
  pid_t *grandchild = arg;
  setsid();
  *grandchild = start_child(new_session, NULL);
}

static void descendants_are_found_across_sessions_parents_first(void **state) {
  int pipe_fd[2];
  assert_int_equal(pipe(pipe_fd), 0);
  pid_t child = spawn(), grandchild = 0;
  if (child == 0) {
    have_a_child(&grandchild);
    if (write(pipe_fd[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(1);
    for (;;) pause();
  }
  pid_t stranger = start_child(NULL, NULL);
  assert_int_equal(read(pipe_fd[0], &grandchild, sizeof grandchild), sizeof grandchild);
  list l = {0};
  assert_int_equal(proc_descendants(child, keep, &l, NULL), 1);
  assert_int_equal(l.at[0].pid, grandchild);
  assert_int_equal(l.at[0].ppid, child);
  assert_int_equal(l.at[0].sid, grandchild);
  l = (list){0};
  assert_int_equal(proc_descendants(getpid(), keep, &l, NULL), 3);
  assert_null(in_list(&l, getpid()));
  assert_non_null(in_list(&l, stranger));
  assert_true(in_list(&l, child) < in_list(&l, grandchild));
  l = (list){0};
  assert_true(proc_descendants(getppid(), keep, &l, NULL) >= 3);
  assert_null(in_list(&l, getpid()));
  assert_int_equal(proc_descendants(grandchild, keep, &l, NULL), 0);
  end_child(child); /* and with it the grandchild */
  end_child(stranger);
  close(pipe_fd[0]);
  close(pipe_fd[1]);
}

/* Writers. */

static bool has_writer(const char *path) {
  proc_writers *w = proc_writers_take(path);
  assert_non_null(w);
  bool has = proc_writers_has(w, path);
  proc_writers_free(w);
  return has;
}

typedef struct opening {
  const char *path;
  int flags;
  bool unlink_it;
} opening;

static void open_it(void *arg) {
  opening *o = arg;
  if (open(o->path, o->flags, 0600) < 0) _exit(1);
  if (o->unlink_it) unlink(o->path);
}

static void only_an_open_for_writing_at_or_below_the_path_counts(void **state) {
  char *dir = tmpdir_new(), *top = realpath(dir, NULL), below[600], sibling[600];
  make_dir(tmpdir_path(top, "unit"));
  make_dir(tmpdir_path(top, "unit/sub"));
  snprintf(below, sizeof below, "%s/unit", top);
  snprintf(sibling, sizeof sibling, "%s/un", top);
  const struct {
    const char *file;
    int flags;
    bool unlink_it, writes;
  } rows[] = {
      {"unit/a", O_WRONLY, false, true},
      {"unit/sub/b", O_RDWR, false, true},
      {"unit/c", O_WRONLY | O_APPEND, false, true},
      {"unit/d", O_RDONLY, false, false},
      {"unit/e", O_WRONLY, true, false},
      {"unit/f (deleted)", O_WRONLY, false, true},
      {"unit/f (deleted)", O_WRONLY, true, false},
      {"unit/new\nline", O_WRONLY, false, true},
      {"unit2", O_WRONLY, false, false},
      {"other", O_WRONLY, false, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", top, rows[i].file);
    opening o = {path, rows[i].flags | O_CREAT, rows[i].unlink_it};
    pid_t child = start_child(open_it, &o);
    if (has_writer(below) != rows[i].writes) fail_msg("row %zu: %s", i, rows[i].file);
    assert_false(has_writer(sibling));
    if (!rows[i].unlink_it) assert_int_equal(has_writer(path), rows[i].flags != O_RDONLY);
    if (rows[i].writes) assert_true(has_writer("/"));
    end_child(child);
    assert_false(has_writer(below));
  }
  int own = open(tmpdir_path(top, "unit/own"), O_WRONLY | O_CREAT, 0600);
  assert_true(own >= 0);
  assert_false(has_writer(below));
  close(own);
  free(top);
  tmpdir_remove(dir);
}

static void one_walk_answers_for_all_paths(void **state) {
  char *dir = tmpdir_new(), *top = realpath(dir, NULL), path[700];
  static const char *const open_ones[] = {"b/c/x", "b-2", "b.d/y", "zz/a"};
  static const struct {
    const char *path;
    bool writes;
  } rows[] = {{"b", true},   {"b/c", true},  {"b/c/x", true}, {"b/", true},  {"b/d", false},
              {"b-2", true}, {"b-", false},  {"b.d", true},   {"b.", false}, {"a", false},
              {"zz", true},  {"zzz", false}, {"", true},      {"z", false},  {"b/c/x/y", false}};
  for (int i = 0; i < 4; i++)
    make_dir(tmpdir_path(top, (const char *[]){"b", "b/c", "b.d", "zz"}[i]));
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/%s", top, open_ones[i]);
    start_child(open_it, &(opening){path, O_WRONLY | O_CREAT, false});
  }
  proc_writers *w = proc_writers_take(top);
  assert_non_null(w);
  end_children(NULL); /* it tells of the moment at which it was taken */
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", top, rows[i].path);
    if (proc_writers_has(w, path) != rows[i].writes) fail_msg("row %zu: %s", i, path);
  }
  assert_true(proc_writers_has(w, "/"));
  proc_writers_free(w);
  free(top);
  tmpdir_remove(dir);
}

/* In a child that may open `spare` more descriptors. */
static int with_few_descriptors(int spare) {
  int next = open("/dev/null", O_RDONLY);
  struct rlimit few = {(rlim_t)(next + spare), (rlim_t)(next + spare)};
  close(next);
  if (next < 0 || setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
  list l = {0};
  err e = {0};
  if (proc_find_env("CKPT_SPEC", marker, keep, &l, &e) != ERR_IO || !strstr(e.text, "/proc"))
    return 2;
  if (proc_descendants(getppid(), keep, &l, &e) != ERR_IO) return 3;
  if (!has_writer("/no/where")) return 4;
  if (spare == 0 && proc_alive(getppid(), 1) != 1) return 5;
  return l.n;
}

static void without_descriptors_nobody_is_said_to_be_gone(void **state) {
  for (int spare = 0; spare < 2; spare++) {
    pid_t child = spawn();
    if (child == 0) _exit(with_few_descriptors(spare));
    int status = 0;
    forget_child(child);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
}

static void no_descriptor_is_left_open(void **state) {
  list l = {.stop_at = 1};
  int before = count_fds();
  proc_descendants(1, keep, &l, NULL);
  l.n = 0;
  proc_find_env("PATH", "", keep, &l, NULL);
  has_writer("/");
  proc_identity(getpid(), NULL, NULL, NULL);
  assert_int_equal(count_fds(), before);
}

int main(int argc, char **argv) {
  own_argv = argv[0];
  own_argv_len = (size_t)(argv[argc - 1] - argv[0]) + strlen(argv[argc - 1]) + 1;
  snprintf(marker, sizeof marker, "run-%d", (int)getpid());
#define TEST(f) cmocka_unit_test_teardown(f, end_children)
  const struct CMUnitTest tests[] = {
      TEST(the_boot_id_is_a_line_without_its_end),
      TEST(no_process_name_confuses_the_identity),
      TEST(a_session_is_read),
      TEST(a_zombie_is_dead),
      TEST(a_process_whose_first_thread_has_ended_lives),
      TEST(only_who_is_surely_gone_is_gone),
      TEST(who_sees_its_own_numbers_knows_their_space),
      TEST(only_the_exact_entry_counts),
      TEST(a_path_counts_as_a_whole),
      TEST(the_machine_has_an_id_or_none),
      TEST(an_entry_may_lie_across_two_reads),
      TEST(the_last_entry_of_a_huge_environment_is_found),
      TEST(a_callback_may_stop_the_walk),
      TEST(a_command_never_runs_on_into_the_environment),
      TEST(a_long_command_is_cut),
      TEST(descendants_are_found_across_sessions_parents_first),
      TEST(only_an_open_for_writing_at_or_below_the_path_counts),
      TEST(one_walk_answers_for_all_paths),
      TEST(without_descriptors_nobody_is_said_to_be_gone),
      TEST(no_descriptor_is_left_open),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
