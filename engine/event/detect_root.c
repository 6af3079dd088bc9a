/* detect_root: the watched directory itself: it may go, and come again. */
#include <fcntl.h>

#include "detect_model.h"

static const int64_t look_ns = 1000000000; /* between two looks for a root that is gone */

void root_look_later(detect *d) {
  d->root_due = model_mono(d) + look_ns;
}

/* A job may make its directory anew. The watch of the old one stays open until there is another: so
 * the new descriptor has another number, and a poller that waits on it sees that it changed. */
void root_lost(detect *d) {
  if (d->lost) return;
  d->lost = true;
  d->fresh = d->missed = false;
  d->root_due = model_mono(d);
  model_clear(d);
  log_say(d->log, LOG_WARN, "%s was removed, moved or unmounted; waiting until it is there again",
          d->root);
}

static bool root_stat(const detect *d, struct stat *st) {
  return d->io->lstat(d->io, AT_FDCWD, d->root, st) >= 0 && S_ISDIR(st->st_mode);
}

void root_check(detect *d) {
  struct stat st;
  d->root_due = INT64_MAX;
  if (!root_stat(d, &st) || st.st_ino != d->root_ino || st.st_dev != d->root_dev) root_lost(d);
}

static int choose_mode(detect *d, err *e) {
  fs_kind kind;
  err why = {0};
  if (d->mode == DETECT_FED) return 0;
  int rc = fs_kind_of(d->root, &kind, e);
  if (rc < 0) return rc;
  d->foreign = kind.remote_writers;
  d->polling = d->mode == DETECT_POLL || d->foreign;
  if (d->polling) return 0;
  rc = watch_open(&d->watch, d->root, &why);
  if (rc == ERR_LIMIT) {
    log_say(d->log, LOG_WARN, "%s; listing the directory every %g s instead", why.text,
            (double)d->poll_ns / 1e9);
    d->polling = true;
    return 0;
  }
  if (rc < 0 && e) *e = why;
  return rc;
}

/* Notes the root's identity after the watch stands: if the root was exchanged in between, the next
 * look finds that out. */
static void know_root(detect *d) {
  struct stat st = {0};
  root_stat(d, &st);
  d->root_ino = st.st_ino;
  d->root_dev = st.st_dev;
  d->root_due = INT64_MAX;
}

int root_open(detect *d, err *e) {
  int rc = choose_mode(d, e);
  if (rc == 0) know_root(d);
  return rc;
}

bool root_back(detect *d, int *rc, err *e) {
  struct stat st;
  err why = {0};
  watch *old = d->watch;
  if (model_mono(d) < d->root_due) return false;
  root_look_later(d);
  if (!root_stat(d, &st)) return false;
  d->watch = NULL;
  *rc = root_open(d, &why);
  if (*rc < 0) {
    d->watch = old;
    if (*rc == ERR_NOENT) *rc = 0;
    if (*rc < 0 && e) *e = why;
    return false;
  }
  watch_close(old);
  d->lost = false;
  d->missed = true;
  log_say(d->log, LOG_INFO, "%s is there again", d->root);
  return true;
}
