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

/* The store names what it renames and links in directories that it holds. */
static void whole(long dir, const char *name, char out[4096]) {
  char link[64];
  ssize_t len = 0;
  snprintf(link, sizeof link, "/proc/self/fd/%ld", dir);
  if (*name != '/' && (int)dir != AT_FDCWD) len = readlink(link, out, 2048);
  snprintf(out + (len > 0 ? len : 0), 2048, "%s%s", len > 0 ? "/" : "", name);
}

long __wrap_syscall(long number, ...) {
  long a[6];
  va_list args;
  va_start(args, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
  va_end(args);
  char from[4096] = "";
  if (number == SYS_renameat2) whole(a[0], (const char *)a[1], from);
  if (!strstr(from, "/.ckpt/staging/"))
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  snprintf(held_from, sizeof held_from, "%s", from);
  whole(a[2], (const char *)a[3], held_to);
  return 0;
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
  char at[4096];
  int rc = __real_linkat(from_dir, from, to_dir, to, flags);
  whole(to_dir, to, at);
  if (rc != 0 || !*held_from || !strstr(at, "/.ckpt/log/")) return rc;
  rc = renameat(AT_FDCWD, held_from, AT_FDCWD, held_to);
  held_from[0] = 0;
  return rc;
}
