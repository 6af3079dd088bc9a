/* A wrong order, to show that the walk would see one: linked into the driver with
 * -Wl,--wrap=syscall,--wrap=linkat, it keeps back the rename that publishes a checkpoint until the
 * log says that it is committed. Without a kill nobody notices. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

long __real_syscall(long number, ...);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
long __wrap_syscall(long number, ...);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);

static char held_from[4096], held_to[4096];

long __wrap_syscall(long number, ...) {
  long a[6];
  va_list args;
  va_start(args, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
  va_end(args);
  const char *from = number == SYS_renameat2 ? (const char *)a[1] : NULL;
  if (!from || !strstr(from, "/.ckpt/staging/"))
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  snprintf(held_from, sizeof held_from, "%s", from);
  snprintf(held_to, sizeof held_to, "%s", (const char *)a[3]);
  return 0;
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
  int rc = __real_linkat(from_dir, from, to_dir, to, flags);
  if (rc != 0 || !*held_from || !strstr(to, "/.ckpt/log/")) return rc;
  rc = renameat(AT_FDCWD, held_from, AT_FDCWD, held_to);
  held_from[0] = 0;
  return rc;
}
