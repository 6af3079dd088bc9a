#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "base/vec.h"
#include "event/detect.h"
#include "lab/files.h"
#include "prims/fs.h"

/* The detector's own clock does not begin at 0, as no machine's does. */
static const int64_t booted_ns = 1000 * SECOND_NS;

typedef struct playing {
  const char *file;
  lab_history *h;
  const trace_rules *by;
  files *tree;
  detect *d;
  int64_t now; /* since the beginning */
  err *e;
} playing;

/* ---- what is found ---- */

static int no_memory(const playing *p) {
  return err_set(p->e, ERR_NOMEM, "a trace: out of memory");
}

/* The event is the history's from here on, whatever comes of it. */
static int add(playing *p, lab_event *event) {
  lab_history *h = p->h;
  int rc = event->trial ? 0 : no_memory(p);
  if (rc == 0 && h->count >= LAB_EVENTS_MAX)
    rc = err_set(p->e, ERR_LIMIT, "a trace: these are more than %d checkpoints", LAB_EVENTS_MAX);
  if (rc == 0 && !VEC_ROOM(h->events, h->count, h->room)) rc = no_memory(p);
  if (rc < 0) {
    lab_event_free(event);
    return rc;
  }
  event->at_ns = p->now;
  h->events[h->count++] = *event;
  return 0;
}

static bool holds(const playing *p, const char *unit, const char *name) {
  char path[FS_PATH_MAX];
  return name && fs_join(path, unit, name, NULL) == 0 && files_has(p->tree, path);
}

static const char *kind_of(const playing *p, const detect_unit *u) {
  if (u->kind != MATCH_DIR) return "perm";
  if (holds(p, u->path, p->by->null_marker)) return "null";
  return holds(p, u->path, p->by->temp_marker) ? "temp" : "perm";
}

/* Files above the checkpoints are none; what is complete again is one more, of the same name. */
static int take(playing *p, const detect_unit *u) {
  if (u->state != DETECT_COMPLETE || u->above) return 0;
  lab_event event = {.what = LAB_CHECKPOINT,
                     .trial = strdup(u->group),
                     .makes = true,
                     .name = strdup(u->name),
                     .kind = kind_of(p, u),
                     .step = u->step,
                     .bytes = u->bytes,
                     .sized = true,
                     .transfer_s = -1,
                     .limit_s = -1};
  const bool whole = event.name != NULL;
  int rc = add(p, &event);
  return rc == 0 && !whole ? no_memory(p) : rc;
}

static int take_all(playing *p) {
  detect_unit u;
  int rc = 0;
  while (rc == 0 && detect_next(p->d, &u)) rc = take(p, &u);
  return rc;
}

/* ---- time ---- */

static void set_clock(playing *p, int64_t now) {
  p->now = now;
  files_clock(p->tree, booted_ns + now, LAB_BEGINNING_S * SECOND_NS + now);
}

/* Runs the detector whenever it wants that, up to this moment. */
static int advance(playing *p, int64_t until) {
  for (int64_t due; (due = detect_due(p->d)) <= booted_ns + until;) {
    if (due - booted_ns > p->now) set_clock(p, due - booted_ns);
    int rc = detect_run(p->d, p->e);
    if (rc == 0) rc = take_all(p);
    if (rc < 0) return rc;
    /* What is due at once must not stop the clock. */
    if (detect_due(p->d) <= booted_ns + p->now) set_clock(p, p->now + 1);
  }
  if (until > p->now) set_clock(p, until);
  return 0;
}

static int feed(playing *p, watch_kind kind, const lab_change *c) {
  int rc = detect_feed(
      p->d, &(watch_event){.kind = kind, .path = c->path, .is_dir = c->is_dir, .cookie = c->cookie},
      p->e);
  return rc == 0 ? take_all(p) : rc;
}

/* ---- changes ---- */

static uint64_t size_or(const lab_change *c, uint64_t otherwise) {
  return c->size < 0 ? otherwise : (uint64_t)c->size;
}

/* `whole`: nobody writes to it, as far as is told. */
static int put(playing *p, const lab_change *c, bool is_dir, bool whole) {
  if (c->link) return files_link(p->tree, c->path, c->link, p->e);
  if (is_dir) return files_make_dir(p->tree, c->path, p->e);
  return files_write(p->tree, c->path, size_or(c, 0), whole, p->e);
}

static bool within(const char *path, const char *top) {
  const size_t len = strlen(top);
  return strncmp(path, top, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static const lab_change *of_kind(const playing *p, size_t i, lab_change_what what) {
  return i < p->h->change_count && p->h->changes[i].what == what ? &p->h->changes[i] : NULL;
}

/* How far a pair of events is looked for: inotify tells one right after the other. */
enum { NEAR = 1000 };

/* The arrival of what departs at `from`; NULL: it has left the tree, or nobody watched there. */
static lab_change *arrival_of(const playing *p, size_t from) {
  const uint32_t cookie = p->h->changes[from].cookie;
  for (size_t i = from + 1; cookie && i < p->h->change_count && i <= from + NEAR; i++)
    if (p->h->changes[i].what == LAB_FILE_MOVED_TO && p->h->changes[i].cookie == cookie)
      return &p->h->changes[i];
  return NULL;
}

/* What was moved to where a listing found it: its departure is told right behind the listing, and no
 * arrival, since nobody watched there yet. */
static lab_change *departure_to(const playing *p, size_t scanned) {
  size_t i = scanned;
  while (of_kind(p, i, LAB_FILE_SCAN)) i++;
  if (!of_kind(p, i, LAB_FILE_MOVED_FROM) || arrival_of(p, i)) return NULL;
  lab_change *from = &p->h->changes[i];
  return strcmp(fs_base(from->path), fs_base(p->h->changes[scanned].path)) == 0 ? from : NULL;
}

/* What a listing found is there before the event of its new directory is read. */
static int put_found(playing *p, size_t created) {
  const char *moved = NULL;
  const lab_change *c;
  int rc = 0;
  for (size_t i = created + 1; rc == 0 && (c = of_kind(p, i, LAB_FILE_SCAN)); i++) {
    const bool known = moved && within(c->path, moved);
    if (!within(c->path, p->h->changes[created].path) || known) continue;
    lab_change *from = departure_to(p, i);
    if (from && files_has(p->tree, from->path)) {
      rc = files_rename(p->tree, from->path, c->path, p->e);
      from->moved = true;
      moved = c->path;
    } else {
      rc = put(p, c, c->size < 0 && !c->link, true);
    }
  }
  return rc;
}

static int created(playing *p, size_t i) {
  const lab_change *c = &p->h->changes[i];
  int rc = put(p, c, c->is_dir, false);
  if (rc == 0 && c->is_dir) rc = put_found(p, i);
  return rc == 0 ? feed(p, WATCH_CREATE, c) : rc;
}

static int modified(playing *p, const lab_change *c) {
  int rc = files_write(p->tree, c->path, size_or(c, 1), false, p->e);
  if (rc == 0) rc = feed(p, WATCH_MODIFY, c);
  if (rc < 0 || c->end_ns <= c->at_ns) return rc;
  rc = advance(p, c->end_ns);
  if (rc == 0) rc = files_write(p->tree, c->path, size_or(c, 1), false, p->e);
  return rc == 0 ? feed(p, WATCH_MODIFY, c) : rc;
}

static int closed(playing *p, const lab_change *c) {
  const uint64_t size = files_size(p->tree, c->path);
  int rc = 0;
  if (files_has(p->tree, c->path) && size_or(c, size) == size)
    files_close(p->tree, c->path);
  else
    rc = files_write(p->tree, c->path, size_or(c, size), true, p->e);
  return rc == 0 ? feed(p, WATCH_CLOSE_WRITE, c) : rc;
}

/* Both names change at once; the arrival is told when its line comes. */
static int departed(playing *p, size_t i) {
  lab_change *c = &p->h->changes[i], *to = arrival_of(p, i);
  int rc = 0;
  if (!c->moved && !files_has(p->tree, c->path)) rc = put(p, c, c->is_dir, true);
  /* Whoever records is often too late to see the size under the first name. */
  if (rc == 0 && to && !c->is_dir && c->size < 0 && to->size >= 0 && !to->link)
    rc = files_write(p->tree, c->path, (uint64_t)to->size, true, p->e);
  if (rc == 0 && to) rc = files_rename(p->tree, c->path, to->path, p->e);
  if (to) to->moved = true;
  if (!to && !c->moved) files_remove(p->tree, c->path);
  return rc == 0 ? feed(p, WATCH_MOVED_FROM, c) : rc;
}

static int arrived(playing *p, const lab_change *c) {
  int rc = 0;
  if (!c->moved) {
    files_remove(p->tree, c->path);
    rc = put(p, c, c->is_dir, true);
  }
  return rc == 0 ? feed(p, WATCH_MOVED_TO, c) : rc;
}

static int change(playing *p, size_t i) {
  const lab_change *c = &p->h->changes[i];
  switch (c->what) {
  case LAB_FILE_CREATE: return created(p, i);
  case LAB_FILE_MODIFY: return modified(p, c);
  case LAB_FILE_CLOSE_WRITE: return closed(p, c);
  case LAB_FILE_MOVED_FROM: return departed(p, i);
  case LAB_FILE_MOVED_TO: return arrived(p, c);
  case LAB_FILE_DELETE: files_remove(p->tree, c->path); return feed(p, WATCH_DELETE, c);
  case LAB_FILE_ATTRIB: return feed(p, WATCH_ATTRIB, c);
  case LAB_FILE_SCAN:
  case LAB_FILE_CHANGES: break;
  }
  return 0;
}

/* ---- the whole ---- */

/* Whether somebody has a file open is told by the changes alone. */
static bool nobody_writes(const char *path) {
  (void)path;
  return false;
}

/* Says which line cannot be. */
static int named(const playing *p, size_t line, int rc) {
  const err why = p->e ? *p->e : (err){0};
  return err_set(p->e, rc, "%s:%zu: %s", p->file, line, why.text);
}

static int play_all(playing *p) {
  const lab_history *h = p->h;
  const int64_t rest_ns = p->by->rules->quiet_ns + 120 * SECOND_NS;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < h->change_count; i++) {
    rc = advance(p, h->changes[i].at_ns);
    if (rc == 0 && (rc = change(p, i)) < 0) rc = named(p, h->changes[i].line, rc);
  }
  return rc == 0 ? advance(p, p->now + rest_ns) : rc;
}

static int start(playing *p, const log_sink *log) {
  lab_event event = {.what = LAB_START,
                     .trial = strdup(LAB_EACH),
                     .of_each = true,
                     .kind = "perm",
                     .transfer_s = -1,
                     .limit_s = -1};
  const detect_options o = {.io = files_io(p->tree),
                            .log = log,
                            .root = FILES_ROOT,
                            .rules = p->by->rules,
                            .mode = DETECT_FED,
                            .has_writer = nobody_writes};
  set_clock(p, p->h->changes[0].at_ns);
  int rc = add(p, &event);
  return rc == 0 ? detect_open(&o, &p->d, p->e) : rc;
}

int lab_trace_play(lab_history *h, const char *file, const trace_rules *by, const log_sink *log,
                   err *e) {
  playing p = {.file = file, .h = h, .by = by, .e = e};
  if (h->change_count == 0) return 0;
  p.tree = files_new();
  int rc = p.tree ? start(&p, log) : no_memory(&p);
  if (rc == 0) rc = play_all(&p);
  detect_close(p.d);
  files_free(p.tree);
  return rc;
}
