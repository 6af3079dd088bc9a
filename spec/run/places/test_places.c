#include "with_cmocka.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/places/places.h"
#include "io_fault.h"
#include "prims/proc.h"
#include "tmpdir.h"

static char *dir;
static char *runtime; /* short, wherever $TMPDIR is */

static const char *in(const char *name) {
  return tmpdir_path(dir, name);
}

static const char *run(const char *name) {
  return tmpdir_path(runtime, name);
}

static int enter(void **unused) {
  char real[4096];
  dir = tmpdir_new();
  if (!realpath(dir, real)) return -1;
  free(dir);
  dir = strdup(real);
  umask(022);
  runtime = tmpdir_new_in("/tmp");
  setenv("XDG_RUNTIME_DIR", runtime, 1);
  unsetenv("CKPT_TEST_NAME");
  return 0;
}

static int leave(void **unused) {
  tmpdir_remove(dir);
  tmpdir_remove(runtime);
  return 0;
}

static int open_with(places_options o, places *p, err *e) {
  return places_open(io_unflushed(), &o, p, e);
}

static int open_at(const char *watched, const char *to, const char *state, places *p, err *e) {
  return open_with((places_options){.dir = watched, .to = to, .state = state}, p, e);
}

static void must_open(const char *watched, const char *to, const char *state, places *p) {
  err e = {0};
  if (open_at(watched, to, state, p, &e) < 0) fail_msg("%s", e.text);
}

static void must_refuse(const char *watched, const char *to, const char *state, const char *says) {
  places p;
  err e = {0};
  int entries = count_entries(dir);
  int rc = open_at(watched, to, state, &p, &e);
  if (rc != ERR_INVAL || e.code != rc || !strstr(e.text, says))
    fail_msg("%s, %s, %s: %d %s", watched, to, state, rc, e.text);
  assert_int_equal(count_entries(dir), entries); /* it was found out before anything was made */
}

static void a_directory_with_somebody_elses_files_is_no_state_directory(void **unused) {
  places p;
  err e = {0};
  make_dir(in("proj"));
  make_dir(in("proj/staging"));
  write_file(in("proj/staging/thesis.txt"), "years of work");
  assert_int_equal(open_at(in("out"), in("store"), in("proj"), &p, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "`state`"));
  assert_int_equal(count_entries(in("proj/staging")), 1);
  /* What a run that died before its first journal leaves is ours. */
  make_dir(in("new"));
  write_file(in("new/lock"), "");
  must_open(in("out"), in("store"), in("new"), &p);
  write_file(in("new/journal.jsonl"), "");
  write_file(in("new/exit.json"), "{}");
  must_open(in("out"), in("store"), in("new"), &p);
}

static void all_names_follow_from_directory_and_target(void **unused) {
  places p;
  must_open(in("out"), in("store"), NULL, &p);
  assert_string_equal(p.dir, in("out"));
  assert_string_equal(p.state, in("out.ckpt"));
  assert_string_equal(p.staging, in("out.ckpt/staging"));
  assert_string_equal(p.quarantine, in("out.ckpt/quarantine"));
  assert_string_equal(p.journal, in("out.ckpt/journal.jsonl"));
  assert_string_equal(p.lock, in("out.ckpt/lock"));
  assert_string_equal(p.target.scheme, "file");
  assert_string_equal(p.target.path, in("store"));
  assert_memory_equal(p.target_text, "file:///", 8);
  assert_int_equal(path_mode(in("out")), 0755);
  assert_int_equal(path_mode(in("out.ckpt")), 0700);
  assert_false(path_exists(in("store"))); /* the store makes it when it is written */
}

static void a_relative_directory_and_one_with_a_slash_at_its_end_are_the_same(void **unused) {
  places p, q;
  char here[4096];
  if (!getcwd(here, sizeof here) || chdir(dir) < 0) abort();
  must_open("./x/../out/", "store", NULL, &p);
  if (chdir(here) < 0) abort();
  must_open(in("out"), in("store"), NULL, &q);
  assert_string_equal(p.dir, q.dir);
  assert_string_equal(p.state, q.state);
  assert_string_equal(p.target_text, q.target_text);
  assert_string_equal(p.run_id, q.run_id);
}

static void what_is_missing_is_named(void **unused) {
  must_refuse(NULL, in("store"), NULL, "`dir`");
  must_refuse("", in("store"), NULL, "`dir`");
  must_refuse(in("out"), NULL, NULL, "`to`");
  must_refuse(in("out"), "", NULL, "`to`");
  must_refuse(in("out"), in("store"), "", "`state`");
  must_refuse("mem://x", in("store"), NULL, "`dir` mem://x");
  must_refuse(in("out"), in("store"), "s3://b/x", "`state` s3://b/x");
}

static void directory_state_and_target_must_not_lie_in_one_another(void **unused) {
  static const char says[] = "must not lie in one another";
  must_refuse(in("out"), in("out"), NULL, says);
  must_refuse(in("out"), in("out/store"), NULL, says);
  must_refuse(in("store/out"), in("store"), in("state"), says);
  must_refuse(in("out"), in("store"), in("out"), says);
  must_refuse(in("out"), in("store"), in("out/.state"), says);
  must_refuse(in("a/out"), in("store"), in("a"), says);
  must_refuse(in("out"), in("store"), in("store"), says);
  must_refuse(in("out"), in("store"), in("store/state"), says);
  must_refuse(in("out"), in("s/store"), in("s"), says);
  must_refuse(in("out"), in("out.ckpt"), NULL, says);
  must_refuse(in("out"), "/", NULL, says);
  must_refuse("/", in("store"), in("state"), says);
}

static void names_that_only_begin_alike_are_apart(void **unused) {
  places p;
  must_open(in("out"), in("out2"), in("out3"), &p);
  must_open(in("out"), "mem://out", in("out3"), &p);
}

static void links_do_not_hide_what_lies_in_what(void **unused) {
  static const char says[] = "must not lie in one another";
  make_dir(in("out"));
  make_dir(in("out/inner"));
  make_dir(in("links"));
  if (symlink(in("out/inner"), in("links/a")) < 0 || symlink("../out", in("links/b")) < 0) abort();
  must_refuse(in("out"), in("links/a"), NULL, says);
  must_refuse(in("out"), in("links/a/not/there/yet"), NULL, says);
  must_refuse(in("out"), in("links/b/x"), NULL, says);
  must_refuse(in("links/b"), in("out/x"), NULL, says);
  must_refuse(in("links/a"), in("out"), in("state"), says);
  must_refuse(in("out"), in("store"), in("links/a/state"), says);
  if (symlink("out/inner", in("out2.ckpt")) < 0) abort();
  must_refuse(in("out2"), in("out/inner/x"), NULL, says);
}

static void a_link_to_nothing_is_refused_for_nobody_knows_where_it_will_lead(void **unused) {
  make_dir(in("out"));
  if (symlink("out/later", in("dangling")) < 0) abort();
  must_refuse(in("out"), in("dangling"), NULL, "dangling is a link to");
  must_refuse(in("out"), in("dangling/x"), NULL, "dangling is a link to");
  must_refuse(in("out"), in("store"), in("dangling"), "dangling is a link to");
  must_refuse(in("dangling"), in("store"), NULL, "dangling is a link to");
}

static void a_watched_directory_behind_a_link_has_its_state_beside_the_real_one(void **unused) {
  places p;
  make_dir(in("disk"));
  make_dir(in("disk/out"));
  if (symlink("disk/out", in("link")) < 0) abort();
  must_open(in("link"), in("store"), NULL, &p);
  assert_string_equal(p.dir, in("disk/out"));
  assert_string_equal(p.state, in("disk/out.ckpt"));
}

static void a_file_where_a_directory_should_be_is_an_error(void **unused) {
  places p;
  err e = {0};
  write_file(in("file"), "x");
  assert_int_equal(open_at(in("file"), in("store"), NULL, &p, &e), ERR_INVAL);
  assert_int_equal(open_at(in("out"), in("store"), in("file"), &p, &e), ERR_EXISTS);
  assert_true(open_at(in("file/out"), in("store"), NULL, &p, &e) < 0);
  assert_true(file_is(in("file"), "x"));
}

static void a_path_that_is_too_long_is_an_error(void **unused) {
  places p;
  err e = {0};
  char path[5000];
  for (size_t i = 0; i < sizeof path; i++) path[i] = i % 10 ? 'x' : '/';
  path[4090] = 0; /* "<dir>.ckpt" would be too long */
  assert_true(open_at(path, in("store"), NULL, &p, &e) < 0);
  assert_true(open_at(in("out"), path, NULL, &p, &e) == 0 || e.code == ERR_LIMIT);
  path[4090] = 'x';
  path[4990] = 0;
  assert_true(open_at(path, in("store"), NULL, &p, &e) < 0);
  assert_true(open_at(in("out"), path, NULL, &p, &e) < 0);
}

static void a_name_in_braces_comes_from_the_environment_or_is_an_error(void **unused) {
  places p;
  char to[4200];
  snprintf(to, sizeof to, "%s/{CKPT_TEST_NAME}/x", in("store"));
  must_refuse(in("out"), to, NULL, "CKPT_TEST_NAME");
  setenv("CKPT_TEST_NAME", "", 1);
  must_refuse(in("out"), to, NULL, "CKPT_TEST_NAME");
  setenv("CKPT_TEST_NAME", "../out", 1);
  must_refuse(in("out"), to, NULL, "must not lie");
  setenv("CKPT_TEST_NAME", "job 7", 1);
  must_open(in("out"), to, NULL, &p);
  assert_string_equal(p.target.path, in("store/job 7/x"));
}

/* ---- in a mount namespace of our own ---- */

/* 0 is fine, 77 "cannot be tried here", anything else the number of what is wrong. */
static void in_a_namespace(int (*body)(void)) {
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
      _exit(77);
    _exit(body());
  }
  assert_true(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

static int on_a_mount_point(void) {
  places p;
  err e = {0};
  make_dir(in("out"));
  if (mount("none", in("out"), "tmpfs", 0, "size=1m") != 0) return 77;
  if (open_at(in("out"), in("store"), NULL, &p, &e) != ERR_INVAL) return 1;
  if (!strstr(e.text, "mount point") || !strstr(e.text, "`state`")) return 2;
  if (path_exists(in("out.ckpt"))) return 3;
  if (open_at(in("out"), in("store"), in("state"), &p, &e) != 0) return 4;
  return 0;
}

static void beside_a_mount_point_the_state_must_be_named(void **unused) {
  in_a_namespace(on_a_mount_point);
}

static int below_what_cannot_be_written(void) {
  places p;
  err e = {0};
  make_dir(in("ro"));
  make_dir(in("ro/out"));
  if (mount(in("ro"), in("ro"), NULL, MS_BIND, NULL) != 0 ||
      mount(NULL, in("ro"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0)
    return 77;
  if (open_at(in("ro/out"), in("store"), NULL, &p, &e) != ERR_INVAL) return 1;
  if (!strstr(e.text, "ro/out.ckpt") || !strstr(e.text, "`state`")) return 2;
  if (open_at(in("ro/out"), in("store"), in("state"), &p, &e) != 0) return 3;
  if (open_at(in("ro/out"), in("store"), in("ro/state"), &p, &e) != ERR_ACCESS) return 4;
  if (open_at(in("ro/new"), in("store"), in("state"), &p, &e) != ERR_ACCESS) return 5;
  return 0;
}

static void below_a_parent_that_cannot_be_written_too(void **unused) {
  in_a_namespace(below_what_cannot_be_written);
}

/* ---- the run's id ---- */

static const char *id_of(const char *watched, const char *command, char out[RUNLOG_ID_MAX]) {
  places p;
  err e = {0};
  if (open_with((places_options){.dir = watched, .to = "mem://x", .command = command}, &p, &e) < 0)
    fail_msg("%s", e.text);
  return memcpy(out, p.run_id, sizeof p.run_id);
}

static void
the_default_id_is_stable_and_another_one_for_another_command_or_directory(void **unused) {
  char a[RUNLOG_ID_MAX], b[RUNLOG_ID_MAX];
  assert_string_equal(id_of(in("out"), "python train.py", a),
                      id_of(in("out"), "python train.py", b));
  assert_int_equal(strlen(a), 16);
  assert_string_not_equal(a, id_of(in("out"), "python train.py --lr 1", b));
  assert_string_not_equal(a, id_of(in("out2"), "python train.py", b));
  assert_string_not_equal(a, id_of(in("out"), NULL, b));
  assert_string_equal(id_of(in("out"), NULL, a), id_of(in("out"), "", b));
}

static places of_program(const char *program, const char *command) {
  places p;
  err e = {0};
  places_options o = {.dir = in("out"), .to = "mem://x", .command = command, .program = program};
  if (open_with(o, &p, &e) < 0) fail_msg("%s", e.text);
  return p;
}

static void the_id_of_a_program_does_not_change_with_its_flags(void **unused) {
  char old[RUNLOG_ID_MAX];
  places a = of_program("file:/train.py", "python train.py");
  places b = of_program("file:/train.py", "python train.py --lr 1");
  places c = of_program("file:/other.py", "python train.py");
  assert_string_equal(a.run_id, b.run_id);
  assert_string_not_equal(a.run_id, c.run_id);
  assert_string_not_equal(a.flags, b.flags);
  assert_string_equal(a.flags, c.flags);
  assert_string_equal(a.former, id_of(in("out"), "python train.py", old));
  assert_string_not_equal(a.former, b.former);
}

static void an_id_that_was_given_is_taken_as_it_is_within_its_limits(void **unused) {
  places p;
  char id[200];
  places_options o = {.dir = in("out"), .to = "mem://x", .run_id = "my run"};
  assert_int_equal(open_with(o, &p, NULL), 0);
  assert_string_equal(p.run_id, "my run");
  memset(id, 'x', sizeof id);
  id[sizeof id - 1] = 0;
  o.run_id = id;
  assert_int_equal(open_with(o, &p, NULL), ERR_INVAL);
  o.run_id = "";
  assert_int_equal(open_with(o, &p, NULL), ERR_INVAL);
}

static void the_writer_is_this_process(void **unused) {
  places p;
  runlog_writer w, v;
  err e = {0};
  uint64_t start;
  must_open(in("out"), "mem://x", NULL, &p);
  setenv("SLURM_JOB_ID", "123", 1);
  assert_int_equal(places_writer(io_unflushed(), &p, NULL, &w, &e), 0);
  unsetenv("SLURM_JOB_ID");
  assert_int_equal(places_writer(io_unflushed(), &p, "launch-1", &v, &e), 0);
  assert_int_equal(proc_identity(getpid(), &start, NULL, NULL), 0);
  assert_int_equal(w.pid, getpid());
  assert_int_equal(w.start, start);
  assert_string_equal(w.job, "slurm:123");
  assert_string_equal(v.job, "");
  assert_string_equal(w.state, p.state);
  assert_int_equal(strlen(w.launch), 32);
  assert_string_equal(v.launch, "launch-1");
  assert_true(*w.host && *w.boot);
  char text[200];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = 0;
  assert_int_equal(places_writer(io_unflushed(), &p, text, &w, &e), ERR_INVAL);
}

/* ---- the socket ---- */

/* As a run that has `before` in its state's identity ("": nothing). */
static int place(const char *before, places *p, err *e) {
  identity id = {0};
  snprintf(id.socket, sizeof id.socket, "%s", before);
  must_open(in("out"), "mem://x", NULL, p);
  return places_socket(io_unflushed(), &id, p, e);
}

static void must_place(const char *before, const char *below) {
  places p;
  err e = {0};
  if (place(before, &p, &e) < 0) fail_msg("%s", e.text);
  if (strncmp(p.socket, below, strlen(below)) != 0) fail_msg("%s not below %s", p.socket, below);
  assert_true(strlen(p.socket) < IDENTITY_SOCKET_MAX);
  assert_false(path_exists(p.socket)); /* nor is what it was tried with */
}

static const char *in_tmp(void) {
  static char expected[64];
  snprintf(expected, sizeof expected, "/tmp/ckpt-lua-%ld/", (long)geteuid());
  return expected;
}

static void the_socket_lies_in_a_private_directory_under_a_name_of_its_own(void **unused) {
  places p, q;
  assert_int_equal(place("", &p, NULL), 0);
  assert_memory_equal(p.socket, run("ckpt-lua/"), strlen(run("ckpt-lua/")));
  assert_int_equal(path_mode(run("ckpt-lua")), 0700);
  assert_int_equal(count_entries(run("ckpt-lua")), 0);
  assert_int_equal(place("", &q, NULL), 0);
  assert_string_not_equal(p.socket, q.socket);
  assert_int_equal(place(p.socket, &q, NULL), 0); /* what it had is kept */
  assert_string_equal(p.socket, q.socket);
}

/* An address holds 107 bytes; what fits into it is used as it is, to the last one. */
static void a_directory_with_a_long_name_is_used_whole_or_not_at_all(void **unused) {
  for (size_t bytes = 40; bytes <= 84; bytes++) {
    char name[100] = "", below[200];
    size_t more = bytes - strlen(run("")) - strlen("ckpt-lua/");
    memset(name, 'n', more);
    make_dir(run(name));
    chmod(run(name), 0700);
    setenv("XDG_RUNTIME_DIR", run(name), 1);
    snprintf(below, sizeof below, "%s/ckpt-lua/", run(name));
    must_place("", bytes + 1 + 16 < IDENTITY_SOCKET_MAX ? below : in_tmp());
  }
}

static void a_directory_that_others_can_enter_is_passed_over(void **unused) {
  char before[200];
  make_dir(run("ckpt-lua"));
  snprintf(before, sizeof before, "%s", run("ckpt-lua/one"));
  for (int i = 0; i < 6; i++) {
    chmod(run("ckpt-lua"), 0700 | 1 << i);
    must_place(before, in_tmp());
  }
  chmod(run("ckpt-lua"), 0700);
  must_place("", run("ckpt-lua/"));
}

static void a_link_or_a_file_is_passed_over(void **unused) {
  make_dir(in("mine"));
  chmod(in("mine"), 0700);
  if (symlink(in("mine"), run("ckpt-lua")) < 0) abort();
  must_place("", in_tmp());
  unlink(run("ckpt-lua"));
  write_file(run("ckpt-lua"), "");
  must_place("", in_tmp());
}

static void a_directory_of_another_user_is_passed_over(void **unused) {
  make_dir(run("ckpt-lua"));
  chmod(run("ckpt-lua"), 0700);
  if (chown(run("ckpt-lua"), 12345, 12345) < 0) skip();
  must_place("", in_tmp());
}

static void without_a_runtime_directory_of_this_user_it_lies_in_tmp(void **unused) {
  char long_name[100];
  memset(long_name, 'r', sizeof long_name);
  memcpy(long_name, "/tmp/", 5);
  long_name[sizeof long_name - 1] = 0;
  const char *const values[] = {"", "relative", in("not-there"), "/etc/passwd", long_name, NULL};
  for (int i = 0; i < 6; i++) {
    if (values[i])
      setenv("XDG_RUNTIME_DIR", values[i], 1);
    else
      unsetenv("XDG_RUNTIME_DIR");
    must_place("", in_tmp());
  }
  setenv("XDG_RUNTIME_DIR", runtime, 1);
  chmod(runtime, 0777);
  must_place("", in_tmp());
  chmod(runtime, 0700);
  if (chown(runtime, 12345, 12345) < 0) skip();
  must_place("", in_tmp());
}

/* In a mount namespace, so that the /tmp of this machine is left alone. */
static int where_tmp_is_taken(void) {
  char state[600];
  places p;
  err e = {0};
  if (mount("none", "/mnt", "tmpfs", 0, "size=1m") != 0) return 77;
  if (mount("none", "/tmp", "tmpfs", 0, "size=1m") != 0) return 77;
  unsetenv("XDG_RUNTIME_DIR");
  snprintf(state, sizeof state, "/tmp/ckpt-lua-%ld", (long)geteuid());
  write_file(state, "in the way");
  must_open("/mnt/out", "mem://x", NULL, &p);
  identity none = {0};
  if (places_socket(io_unflushed(), &none, &p, &e) < 0) return 1;
  if (strncmp(p.socket, "/mnt/out.ckpt/socket.", 21) != 0) return 2;
  if (!file_is(state, "in the way")) return 3;
  /* What a path has no room for is no place, and all that was tried is named. */
  char far[] =
      "/mnt/a-directory-whose-name-alone-is-so-long-that-no-address-of-a-socket-has-room/out";
  must_open(far, "mem://x", NULL, &p);
  if (places_socket(io_unflushed(), &none, &p, &e) != ERR_ACCESS || *p.socket) return 4;
  if (!strstr(e.text, state) || !strstr(e.text, "/mnt/a-directory")) return 5;
  if (unlink(state) < 0 || mount(NULL, "/tmp", NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) return 77;
  if (places_socket(io_unflushed(), &none, &p, &e) != ERR_ACCESS || *p.socket) return 6;
  return 0;
}

static void where_no_other_place_is_it_lies_in_the_state_directory_or_nowhere(void **unused) {
  in_a_namespace(where_tmp_is_taken);
}

static void a_call_that_fails_is_an_error_and_leaves_no_descriptor(void **unused) {
  io_fault *fault = io_fault_new(io_unflushed());
  for (long n = 1;; n++) {
    places p;
    err e = {0};
    int fds = count_fds();
    rmdir(in("out"));
    rmdir(in("out.ckpt"));
    places_options o = {.dir = in("out"), .to = in("store")};
    io_fault_once(fault, CALL_ANY, n, EIO);
    int rc = places_open(io_fault_io(fault), &o, &p, &e);
    assert_int_equal(count_fds(), fds);
    if (rc < 0) assert_true(e.code == rc && *e.text);
    if (io_fault_failed(fault, CALL_ANY) == 0) {
      assert_int_equal(rc, 0);
      break;
    }
  }
  io_fault_free(fault);
}

static void a_run_is_found_by_its_directory_or_its_state(void **unused) {
  places p, found;
  err e = {0};
  char boot[PROC_BOOT_MAX];
  identity id = {.id = "0123456789abcdef0123456789abcdef", .socket = "/some/where/100%"};
  must_open(in("out"), in("store"), NULL, &p);
  assert_int_equal(places_find(io_unflushed(), in("out"), NULL, &found, &e), 0);
  assert_string_equal(found.socket, "");
  assert_int_equal(proc_boot_id(boot, &e), 0);
  assert_int_equal(identity_write(io_unflushed(), p.state, boot, &id, &e), 0);
  assert_int_equal(places_find(io_unflushed(), in("out"), NULL, &found, &e), 0);
  assert_string_equal(found.socket, id.socket);
  assert_string_equal(found.state_id, id.id);
  assert_string_equal(found.state, p.state);
  assert_int_equal(places_find(io_unflushed(), NULL, in("out.ckpt"), &found, &e), 0);
  assert_string_equal(found.socket, id.socket);
  assert_int_equal(places_find(io_unflushed(), in("other"), NULL, &found, &e), 0);
  assert_string_equal(found.socket, "");
  assert_false(path_exists(in("other")) || path_exists(in("other.ckpt")));
  assert_int_equal(places_find(io_unflushed(), NULL, NULL, &found, &e), ERR_INVAL);
  assert_int_equal(count_entries(runtime), 0);
}

static void a_look_makes_nothing_and_sees_the_same(void **unused) {
  places p, seen;
  err e = {0};
  places_options o = {.dir = in("out"), .to = in("store"), .command = "train"};
  assert_int_equal(places_look(io_unflushed(), &o, &seen, &e), 0);
  assert_int_equal(count_entries(dir), 0);
  assert_int_equal(count_entries(runtime), 0);
  assert_int_equal(open_with(o, &p, &e), 0);
  assert_string_equal(seen.dir, p.dir);
  assert_string_equal(seen.state, p.state);
  assert_string_equal(seen.run_id, p.run_id);
  assert_string_equal(seen.target_text, p.target_text);
  o.to = in("out/store");
  assert_int_equal(places_look(io_unflushed(), &o, &seen, &e), ERR_INVAL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, leave)

static void a_state_directory_in_which_others_may_write_is_refused_or_told(void **state) {
  places p;
  err e = {0};
  make_dir(in("wide"));
  assert_int_equal(chmod(in("wide"), 0700), 0);
  assert_int_equal(open_at(in("out"), in("store"), in("wide"), &p, &e), 0);
  assert_false(places_shared(io_system(), &p));
  assert_int_equal(chmod(in("wide"), 0770), 0);
  assert_int_equal(open_at(in("out"), in("store"), in("wide"), &p, &e), 0);
  assert_true(places_shared(io_system(), &p));
  assert_int_equal(chmod(in("wide"), 01777), 0);
  assert_int_equal(open_at(in("out"), in("store"), in("wide"), &p, &e), 0);
  assert_true(places_shared(io_system(), &p));
  assert_int_equal(chmod(in("wide"), 0777), 0);
  assert_int_equal(open_at(in("out"), in("store"), in("wide"), &p, &e), ERR_ACCESS);
  assert_non_null(strstr(e.text, "chmod 700"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      T(all_names_follow_from_directory_and_target),
      T(a_relative_directory_and_one_with_a_slash_at_its_end_are_the_same),
      T(what_is_missing_is_named),
      T(directory_state_and_target_must_not_lie_in_one_another),
      T(names_that_only_begin_alike_are_apart),
      T(links_do_not_hide_what_lies_in_what),
      T(a_link_to_nothing_is_refused_for_nobody_knows_where_it_will_lead),
      T(a_watched_directory_behind_a_link_has_its_state_beside_the_real_one),
      T(a_file_where_a_directory_should_be_is_an_error),
      T(a_path_that_is_too_long_is_an_error),
      T(a_name_in_braces_comes_from_the_environment_or_is_an_error),
      T(beside_a_mount_point_the_state_must_be_named),
      T(below_a_parent_that_cannot_be_written_too),
      T(the_id_of_a_program_does_not_change_with_its_flags),
      T(the_default_id_is_stable_and_another_one_for_another_command_or_directory),
      T(an_id_that_was_given_is_taken_as_it_is_within_its_limits),
      T(the_writer_is_this_process),
      T(a_directory_with_somebody_elses_files_is_no_state_directory),
      T(a_state_directory_in_which_others_may_write_is_refused_or_told),
      T(the_socket_lies_in_a_private_directory_under_a_name_of_its_own),
      T(a_directory_with_a_long_name_is_used_whole_or_not_at_all),
      T(a_directory_that_others_can_enter_is_passed_over),
      T(a_link_or_a_file_is_passed_over),
      T(a_directory_of_another_user_is_passed_over),
      T(without_a_runtime_directory_of_this_user_it_lies_in_tmp),
      T(where_no_other_place_is_it_lies_in_the_state_directory_or_nowhere),
      T(a_call_that_fails_is_an_error_and_leaves_no_descriptor),
      T(a_run_is_found_by_its_directory_or_its_state),
      T(a_look_makes_nothing_and_sees_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
