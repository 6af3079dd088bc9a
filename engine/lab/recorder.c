#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/seconds.h"
#include "prims/fs.h"
#include "prims/lock.h"
#include "prims/numbers/match_step.h"

struct lab_recorder {
  const io *io;
  const log_sink *log;
  char path[FS_PATH_MAX];
  int fd;    /* -1: the record has ended */
  lock held; /* two runs in one file would cut each other's lines */
  int64_t last_ns;
  uint64_t size, events;
};

/* ---- lines ---- */

static void add_text(buf *out, const char *key, const char *text) {
  json_t *value = json_string(text);
  if (!value) value = js_name_new(text); /* no UTF-8 */
  buf_fmt(out, "\"%s\":", key);
  js_print(value, out, NULL);
  json_decref(value);
}

static void add_checkpoint(buf *out, const lab_event *event) {
  buf_str(out, ",\"checkpoint\":{");
  add_text(out, "name", event->name);
  if (event->sized) buf_fmt(out, ",\"bytes\":%" PRIu64, event->bytes);
  if (event->what == LAB_CHECKPOINT) {
    if (event->step != MATCH_NO_STEP) buf_fmt(out, ",\"step\":%" PRId64, event->step);
    buf_fmt(out, ",\"kind\":\"%s\",\"metrics\":%s", event->kind,
            event->metrics ? event->metrics : "{}");
  }
  buf_str(out, "}");
}

static void print(const lab_event *event, int64_t at_ns, buf *out) {
  const int64_t us = (at_ns + 500) / 1000; /* what is read again has lost its last digits */
  buf_fmt(out, "{\"t\":%" PRId64 ".%06d,\"event\":\"%s\"", us / 1000000, (int)(us % 1000000),
          lab_word(event->what));
  if (event->trial && *event->trial) {
    buf_str(out, ",");
    add_text(out, "trial", event->trial);
  }
  if (event->result) buf_fmt(out, ",\"metrics\":%s", event->result);
  if (event->name) add_checkpoint(out, event);
  if (event->what == LAB_TRANSFER) {
    buf_fmt(out, ",\"transfer\":{\"seconds\":%.6f,\"outcome\":\"%s\"", event->transfer_s,
            event->outcome == LAB_FAIL ? "fail" : "ok");
    if (event->outcome == LAB_FAIL) buf_fmt(out, ",\"error\":\"%s\"", err_name(event->fault));
    buf_str(out, "}");
  }
  if (event->what == LAB_PREEMPT) buf_fmt(out, ",\"grace\":%.3f", event->grace_s);
  if (event->what == LAB_START && event->limit_s >= 0)
    buf_fmt(out, ",\"left\":%.3f", event->limit_s < LAB_LONGEST_S ? event->limit_s : LAB_LONGEST_S);
  buf_str(out, "}\n");
}

/* ---- the file ---- */

static void stop(lab_recorder *r, const err *why) {
  log_say(r->log, LOG_WARN, "the record of this run ends here, and the run goes on: %s", why->text);
  if (r->fd >= 0) r->io->close(r->io, r->fd);
  r->fd = -1;
  lock_drop(&r->held);
}

/* A part of a line that was written is taken away again: the record is whole up to there. */
static void append(lab_recorder *r, const buf *line) {
  err why = {0};
  int rc = buf_failed(line);
  if (rc < 0) err_set(&why, rc, "%s: an event has no room in a line", r->path);
  if (rc == 0 && (r->events >= LAB_EVENTS_MAX || r->size + line->len > LAB_BYTES_MAX))
    rc = err_set(&why, ERR_LIMIT, "%s: it has %" PRIu64 " events, more are not read", r->path,
                 r->events);
  if (rc == 0) {
    rc = fs_write_all(r->io, r->fd, line->data, line->len, r->path, &why);
    if (rc < 0) r->io->ftruncate(r->io, r->fd, (off_t)r->size);
  }
  if (rc < 0) {
    stop(r, &why);
    return;
  }
  r->size += line->len;
  r->events++;
}

static void add_at(lab_recorder *r, const lab_event *event, int64_t at_ns) {
  buf line;
  buf_init(&line, LAB_LINE_MAX);
  print(event, at_ns, &line);
  append(r, &line);
  buf_free(&line);
}

void lab_recorder_add(lab_recorder *r, const lab_event *event) {
  if (!r || r->fd < 0) return;
  int64_t now = r->io->now(r->io, IO_WALL) - LAB_BEGINNING_S * SECOND_NS;
  if (now > r->last_ns) r->last_ns = now; /* the clock may be set back */
  add_at(r, event, r->last_ns);
}

/* ---- one that is there ---- */

/* Where its last whole line is: from `begins` to `ends`. */
typedef struct last_line {
  off_t begins, ends;
} last_line;

static int look_through(lab_recorder *r, last_line *last, err *e) {
  enum { PIECE = 64 << 10 };
  char *bytes = malloc(PIECE);
  ssize_t n = -ENOMEM;
  off_t at = 0;
  while (bytes && (n = r->io->pread(r->io, r->fd, bytes, PIECE, at)) > 0) {
    for (const char *end = bytes; (end = memchr(end, '\n', (size_t)(bytes + n - end))); end++) {
      last->begins = last->ends;
      last->ends = at + (end - bytes) + 1;
      r->events++;
    }
    at += n;
  }
  free(bytes);
  return n < 0 ? err_sys(e, (int)n, "read %s", r->path) : 0;
}

static int read_last(lab_recorder *r, const last_line *last, lab_event *event, err *e) {
  const off_t len = last->ends - last->begins;
  char *line = len > 1 && len <= LAB_LINE_MAX ? malloc((size_t)len) : NULL;
  ssize_t n = line ? r->io->pread(r->io, r->fd, line, (size_t)len, last->begins) : 0;
  err why = {0};
  int rc = ERR_INVAL;
  if (line && n == len) rc = lab_event_read(line, (size_t)len - 1, "its last line", 0, event, &why);
  free(line);
  if (rc == 0) return 0;
  return err_set(e, ERR_INVAL, "%s is there, and is no record of a run: name another file",
                 r->path);
}

/* Goes on behind what is there. */
static int go_on(lab_recorder *r, err *e) {
  const lab_event crash = {.what = LAB_CRASH, .trial = (char *)LAB_EACH};
  last_line last = {0};
  lab_event event = {0};
  int rc = look_through(r, &last, e);
  if (rc == 0) rc = read_last(r, &last, &event, e);
  if (rc < 0) return rc;
  r->last_ns = event.at_ns;
  const bool ended = event.what == LAB_END || event.what == LAB_CRASH;
  lab_event_free(&event);
  rc = r->io->ftruncate(r->io, r->fd, last.ends);
  if (rc < 0) return err_sys(e, rc, "take a torn line from %s", r->path);
  r->size = (uint64_t)last.ends;
  if (!ended) add_at(r, &crash, r->last_ns);
  return 0;
}

/* Where the file system has no locks, it goes without. */
static int hold(lab_recorder *r, err *e) {
  err why = {0};
  int fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return err_sys(e, errno, "lock %s", r->path);
  int rc = lock_take_open(fd, r->path, &r->held, &why);
  if (rc == ERR_HELD) return err_set(e, rc, "another run writes to %s: name another file", r->path);
  if (rc < 0 && rc != ERR_UNSUPPORTED) *e = why;
  return rc == ERR_UNSUPPORTED ? 0 : rc;
}

lab_recorder *lab_recorder_open(const io *io, const log_sink *log, const char *path) {
  enum { FLAGS = O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC };
  err why = {0};
  struct stat st;
  lab_recorder *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  *r = (lab_recorder){.io = io, .log = log, .fd = -1, .held = {-1}};
  int rc = fs_join(r->path, path, "", &why);
  if (rc == 0) r->fd = io->open(io, AT_FDCWD, path, FLAGS, 0666);
  if (rc == 0 && r->fd < 0) rc = err_sys(&why, r->fd, "open %s", path);
  if (rc == 0 && (rc = io->fstat(io, r->fd, &st)) < 0) err_sys(&why, rc, "look at %s", path);
  if (rc == 0 && !S_ISREG(st.st_mode)) rc = err_set(&why, ERR_INVAL, "%s is no file", path);
  if (rc == 0) rc = hold(r, &why);
  if (rc == 0 && (rc = io->fstat(io, r->fd, &st)) < 0) err_sys(&why, rc, "look at %s", path);
  if (rc == 0 && st.st_size > 0) rc = go_on(r, &why);
  if (rc == 0) return r;
  log_say(log, LOG_WARN, "nothing of this run is recorded, and it goes on: %s", why.text);
  lab_recorder_close(r);
  return NULL;
}

void lab_recorder_close(lab_recorder *r) {
  if (!r) return;
  if (r->fd >= 0) r->io->close(r->io, r->fd);
  lock_drop(&r->held);
  free(r);
}
