#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "prims/proc.h"
#include "runner/cli/clock.h"

int process_read(pid_t pid, process *out) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  ssize_t n = read(fd, text, sizeof text - 1);
  int error = n < 0 ? errno : ESRCH;
  close(fd);
  if (n <= 0) return -error;
  text[n] = 0;
  /* The name stands in parentheses and may have any character, blanks and ")" too. */
  char *open_at = strchr(text, '('), *close_at = strrchr(text, ')');
  char state;
  int parent;
  unsigned long long start;
  if (!open_at || !close_at || close_at < open_at ||
      sscanf(close_at + 1,
             " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
             &state, &parent, &start) != 3)
    return -EPROTO;
  *out = (process){
      .pid = pid, .parent = parent, .start = start, .zombie = state == 'Z' || state == 'X'};
  snprintf(out->name, sizeof out->name, "%.*s", (int)(close_at - open_at - 1), open_at + 1);
  return 0;
}

void processes_free(process_list *list) {
  free(list->items);
  *list = (process_list){0};
}

/* Takes a descendant, unless it has ended since the walk, or is only not waited for yet. */
static int take_descendant(void *ctx, const proc_info *info) {
  process_list *list = ctx;
  process p;
  if (process_read(info->pid, &p) != 0 || p.start != info->start || p.zombie) return 0;
  process *items = realloc(list->items, (list->count + 1) * sizeof *items);
  if (!items) return ERR_NOMEM;
  list->items = items;
  items[list->count++] = p;
  return 0;
}

int processes_below(pid_t root, process_list *out) {
  err e = {0};
  processes_free(out);
  int rc = proc_descendants(root, take_descendant, out, &e);
  return rc >= 0 ? 0 : rc == ERR_NOMEM ? -ENOMEM : e.sys ? -e.sys : -EIO;
}

bool process_is_ancestor(pid_t pid) {
  process p = {.parent = getpid()};
  while (p.parent > 0) {
    if (p.parent == pid) return true;
    if (process_read(p.parent, &p) != 0) return false;
  }
  return false;
}

bool process_carries(pid_t pid, const char *name, const char *value) {
  char path[64], *entry = NULL;
  size_t room = 0, len = strlen(name);
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  FILE *f = fopen(path, "re");
  bool found = false;
  while (f && !found && getdelim(&entry, &room, 0, f) > 0)
    found =
        strncmp(entry, name, len) == 0 && entry[len] == '=' && strcmp(entry + len + 1, value) == 0;
  free(entry);
  if (f) fclose(f);
  return found;
}

/* Returns a descriptor of this very process, or -errno. */
static int open_process(pid_t pid, uint64_t start) {
  process now = {0};
  int fd = pidfd_open(pid, 0); /* is closed on exec by its nature */
  if (fd < 0) return -errno;
  /* From here on the descriptor holds the process, whatever becomes of its number. */
  int rc = process_read(pid, &now);
  if (rc == 0 && !now.zombie && now.start == start) return fd;
  close(fd);
  return -ESRCH;
}

int process_signal(pid_t pid, uint64_t start, int signo) {
  int fd = open_process(pid, start);
  if (fd < 0) return fd;
  int rc = pidfd_send_signal(fd, signo, NULL, 0) == 0 ? 0 : -errno;
  close(fd);
  return rc;
}

/* Waits until the descriptors in `fds` are done (each is then -1) or the time is over; returns how
 * many are left. */
static size_t wait_for(struct pollfd *fds, size_t count, double seconds) {
  enum { LOOK_S = 3600 };
  double until = clock_s() + seconds;
  for (;;) {
    size_t left = 0;
    for (size_t i = 0; i < count; i++) left += fds[i].fd >= 0;
    double rest = until - clock_s();
    if (left == 0 || rest <= 0) return left;
    if (poll(fds, count, rest < LOOK_S ? (int)(rest * 1000) + 1 : LOOK_S * 1000) < 0 &&
        errno != EINTR)
      return left;
    for (size_t i = 0; i < count; i++) {
      if (fds[i].fd < 0 || !fds[i].revents) continue;
      close(fds[i].fd);
      fds[i].fd = -1;
    }
  }
}

int processes_end(const process_list *list, double grace_s, process *left) {
  enum { KILL_WAIT_S = 5 }; /* a process that hangs in the kernel does not go */
  struct pollfd *fds = calloc(list->count + 1, sizeof *fds);
  int rc = fds ? 0 : -ENOMEM;
  for (size_t i = 0; fds && i < list->count; i++) {
    int fd = open_process(list->items[i].pid, list->items[i].start);
    fds[i] = (struct pollfd){.fd = fd < 0 ? -1 : fd, .events = POLLIN};
    if (fd >= 0 || fd == -ESRCH || rc != 0) continue;
    rc = fd; /* it is not gone, and cannot be opened */
    if (left) *left = list->items[i];
  }
  for (int round = 0; rc == 0 && round < 2; round++) {
    for (size_t i = 0; i < list->count; i++) {
      if (fds[i].fd < 0) continue;
      if (pidfd_send_signal(fds[i].fd, round == 0 ? SIGTERM : SIGKILL, NULL, 0) == 0) continue;
      if (errno == ESRCH) continue; /* it has just ended: the wait sees it */
      rc = rc ? rc : -errno;
      if (left) *left = list->items[i];
    }
    if (rc == 0 && wait_for(fds, list->count, round == 0 ? grace_s : KILL_WAIT_S) == 0) break;
    if (round == 1 && rc == 0) rc = -EBUSY;
  }
  for (size_t i = 0; fds && i < list->count; i++) {
    if (fds[i].fd < 0) continue;
    if (rc == -EBUSY && left) *left = list->items[i];
    close(fds[i].fd);
  }
  free(fds);
  return rc;
}
