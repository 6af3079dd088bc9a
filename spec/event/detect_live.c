#include "detect_live.h"

#include "with_cmocka.h"

#include <poll.h>

enum { MS = 1000000 };

int64_t live_now(void) {
  return io_system()->now(io_system(), IO_MONO);
}

/* Sleeps as the runner does: on the descriptor, until it is due. */
void live_run_for(detect *d, int64_t ns) {
  err e = {0};
  for (int64_t end = live_now() + ns; live_now() < end;) {
    int64_t due = detect_due(d), left = (due < end ? due : end) - live_now();
    struct pollfd p = {.fd = detect_fd(d), .events = POLLIN};
    poll(&p, p.fd >= 0, left > 0 ? (int)(left / MS) + 1 : 0);
    if (detect_run(d, &e) < 0) fail_msg("%s", e.text);
  }
}

detect_state live_state(detect *d, const char *path) {
  detect_unit u;
  return detect_find(d, path, &u) ? u.state : DETECT_GONE;
}

void live_wait_for(detect *d, const char *path, detect_state want) {
  for (int i = 0; i < 200 && live_state(d, path) != want; i++) live_run_for(d, 20 * MS);
  detect_unit u = {.reason = "unknown"};
  detect_find(d, path, &u);
  if (live_state(d, path) != want)
    fail_msg("%s is in state %d: %s", path, (int)live_state(d, path), u.reason);
}
