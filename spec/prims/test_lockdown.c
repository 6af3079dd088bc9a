/* What a process can still do after lockdown(): each attempt in a child of its own. */

#include "with_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "prims/lockdown.h"

#ifdef CKPT_SANITIZED
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

enum { DONE = 0, REFUSED = 3, WARNED = 4 };

/* The status of a child that locks itself down and then tries. */
static int after_lockdown(int (*attempt)(void)) {
  int status;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) _exit(lockdown() ? WARNED : attempt());
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

static int try_open(void) {
  return open("/etc/passwd", O_RDONLY) < 0 ? REFUSED : DONE;
}
static int try_write_file(void) {
  return open("/tmp/ckpt-policy-was-here", O_WRONLY | O_CREAT, 0600) < 0 ? REFUSED : DONE;
}
static int try_socket(void) {
  return socket(AF_INET, SOCK_STREAM, 0) < 0 ? REFUSED : DONE;
}
static int try_fork(void) {
  return fork() < 0 ? REFUSED : DONE;
}
static int try_exec(void) {
  execl("/bin/true", "true", (char *)NULL);
  return REFUSED;
}
static int try_kill(void) {
  return kill(getppid(), 0) < 0 ? REFUSED : DONE;
}
static int try_ptrace(void) {
  return syscall(SYS_ptrace, 0, 0, 0, 0) < 0 ? REFUSED : DONE;
}
static int try_code(void) {
  void *p =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? REFUSED : DONE;
}
static int try_turn_to_code(void) {
  void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return WARNED;
  return mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? REFUSED : DONE;
}
static int try_limits_of_others(void) {
  return prlimit(getppid(), RLIMIT_NOFILE, NULL, NULL) < 0 ? REFUSED : DONE;
}
static int try_dup(void) {
  return dup(0) < 0 ? REFUSED : DONE;
}

static void each_thing_that_it_needs_not_kills_it(void **unused) {
  if (is_sanitized) skip();
  int (*const attempts[])(void) = {try_open, try_write_file,   try_socket,          try_fork,
                                   try_exec, try_kill,         try_ptrace,          try_code,
                                   try_dup,  try_turn_to_code, try_limits_of_others};
  for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
    int status = after_lockdown(attempts[i]);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
      fail_msg("attempt %zu: status %#x", i, (unsigned)status);
  }
}

static int grow_and_shrink(void) {
  char *p = malloc(1000);
  for (size_t n = 1000; p && n < 64 << 20; n *= 2) {
    char *moved = realloc(p, 2 * n);
    if (!moved) break;
    p = moved;
    memset(p, 1, 2 * n);
  }
  free(p);
  lockdown_allow(1 << 20, 3);
  return write(2, "", 0) == 0 ? DONE : REFUSED;
}

static void memory_and_its_descriptors_stay(void **unused) {
  int status = after_lockdown(grow_and_shrink);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), DONE);
}

static int take_too_much(void) {
  lockdown_allow(0, 1);
  void *volatile p = malloc((size_t)1 << 30);
  int refused = p == NULL;
  lockdown_allow(64 << 20, 64);
  void *volatile more = malloc((size_t)1 << 30);
  return refused && more ? DONE : REFUSED;
}

static void the_address_space_grows_with_states_and_frames_only(void **unused) {
  if (is_sanitized) skip();
  int status = after_lockdown(take_too_much);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), DONE);
}

/* Even where there is no filter: nothing can be opened beyond 0, 1 and 2. */
static void the_environment_is_gone(void **unused) {
  int status;
  setenv("CKPT_TEST_SECRET", "hunter2", 1);
  pid_t pid = fork();
  if (pid == 0) {
    const char *secret = getenv("CKPT_TEST_SECRET");
    lockdown();
    _exit(secret && secret[0] == 0 && !getenv("CKPT_TEST_SECRET") ? DONE : REFUSED);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_thing_that_it_needs_not_kills_it),
      cmocka_unit_test(memory_and_its_descriptors_stay),
      cmocka_unit_test(the_address_space_grows_with_states_and_frames_only),
      cmocka_unit_test(the_environment_is_gone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
