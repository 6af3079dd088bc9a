#include "lockdown.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sanitizers need terabytes of address space, calls and files of their own. */
#ifdef CKPT_SANITIZED
enum { BOUNDED = 0 };
#else
enum { BOUNDED = 1 };
#endif

enum { CPU_S = 10 }; /* for the requests of a second: far more than the parent lets one have */

/* The program; a state at its cap, with its fragmentation; a frame as JSON and in Lua. */
static const rlim_t space_base = 96 << 20, space_state = 16 << 20, space_max = (rlim_t)8 << 30;
enum { FRAME_TIMES = 96 };

/* One that stands already is not set again. */
static void move_limit(int what, rlim_t soft, rlim_t hard, rlim_t *present) {
  struct rlimit limit = {soft, hard};
  if (soft != *present && setrlimit(what, &limit) == 0) *present = soft;
}

static int set_limit(int what, rlim_t soft, rlim_t hard) {
  struct rlimit limit = {soft, hard};
  return setrlimit(what, &limit);
}

/* What was used is looked at once a second: that takes a system call, the other clock none. */
static void allow_cpu(void) {
  static rlim_t present;
  static time_t looked;
  struct timespec wall = {0}, used = {0};
  clock_gettime(CLOCK_MONOTONIC, &wall);
  if (present && wall.tv_sec == looked) return;
  looked = wall.tv_sec;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  move_limit(RLIMIT_CPU, (rlim_t)used.tv_sec + CPU_S, RLIM_INFINITY, &present);
}

void lockdown_allow(size_t frame, unsigned states) {
  enum { STEP = 64 << 10 }; /* most frames are smaller, and have one limit */
  static rlim_t present_space;
  if (!BOUNDED) return;
  frame = (frame / STEP + 1) * STEP;
  rlim_t space = space_base + (states + 1) * space_state + (rlim_t)frame * FRAME_TIMES;
  move_limit(RLIMIT_AS, space < space_max ? space : space_max, space_max, &present_space);
  allow_cpu();
}

#if defined(__x86_64__)
enum { ARCH = AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { ARCH = AUDIT_ARCH_AARCH64 };
#endif

#define LOAD(field)                                                                                \
  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define ALLOW_CALL(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), ALLOW

/* Loads the low half of argument `n` (x86-64 and arm64 are little-endian here). */
#define LOW(n) LOAD(args[n])

static int filter_calls(void) {
#if defined(__x86_64__) || defined(__aarch64__)
  struct sock_filter rules[] = {
      LOAD(arch),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
      KILL,
      LOAD(nr),
      ALLOW_CALL(read),
      ALLOW_CALL(write),
      ALLOW_CALL(munmap),
      ALLOW_CALL(mremap),
      ALLOW_CALL(brk),
      ALLOW_CALL(madvise),
      ALLOW_CALL(getrandom),
      ALLOW_CALL(futex),
      ALLOW_CALL(clock_gettime),
      ALLOW_CALL(rt_sigreturn),
      ALLOW_CALL(exit_group),
      /* It may have memory, but no code: there is no JIT in here. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 4),
      LOW(2),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      KILL,
      ALLOW,
      /* It may set limits of itself alone. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_prlimit64, 0, 3),
      LOW(0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      ALLOW,
      KILL,
  };
  struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#else
  errno = ENOSYS;
  return -1;
#endif
}

/* Forgets the environment, which may hold a key to a store. The parent hands none down; a user who
 * starts the helper by hand may. */
static void forget_environment(void) {
  extern char **environ;
  for (char **at = environ; *at; at++) memset(*at, 0, strlen(*at));
  *environ = NULL;
}

/* Drops capabilities, root's, too: a policy that broke out would otherwise be root among the calls
 * that the filter lets through. Only a process with CAP_SETPCAP may shrink the bounding set;
 * without it there is nothing to give up, and nothing can be gained by a start of another program,
 * which the filter kills. */
static int drop_capabilities(void) {
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
  for (unsigned long n = 0; prctl(PR_CAPBSET_READ, n, 0, 0, 0) >= 0; n++)
    prctl(PR_CAPBSET_DROP, n, 0, 0, 0);
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return (int)syscall(SYS_capset, &head, none);
}

const char *lockdown(void) {
  const char *missing = NULL;
  /* PR_SET_PDEATHSIG is not used: the kernel means the thread that started us, and a host's threads
   * come and go. Our input ends with the host, and a policy that runs then has its limit of CPU
   * time. */
  forget_environment();
  if (chdir("/") != 0) missing = "the policies' helper cannot leave its directory";
  syscall(SYS_close_range, 3U, ~0U, 0U);
  /* The limit 3 is for numbers, not files; nothing can be opened beyond the three that are
   * there. */
  if ((BOUNDED && (set_limit(RLIMIT_NOFILE, 3, 3) != 0 || set_limit(RLIMIT_FSIZE, 0, 0) != 0)) ||
      set_limit(RLIMIT_CORE, 0, 0) != 0)
    missing = "the policies' helper runs without limits for files";
  lockdown_allow(0, 0);
  if (drop_capabilities() != 0) missing = "the policies' helper keeps its capabilities";
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || (BOUNDED && filter_calls() != 0))
    missing = "the policies' helper runs without a filter of system calls: the kernel has none";
  return missing;
}
