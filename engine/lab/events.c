#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/seconds.h"
#include "base/vec.h"
#include "lab/members.h"
#include "prims/fs.h"
#include "prims/numbers/match_step.h"

static const int64_t most_bytes = INT64_C(1) << 60;
static const double usual_grace_s = 30;

static const char *const words[] = {"start",   "result", "checkpoint", "complete", "error",
                                    "preempt", "crash",  "end",        "transfer"};
static const char *const kinds[] = {"perm", "null", "temp", "memory", NULL};

const char *lab_word(lab_what what) {
  return words[what];
}

void lab_event_free(lab_event *event) {
  free(event->trial);
  free(event->result);
  free(event->name);
  free(event->metrics);
  *event = (lab_event){0};
}

/* ---- one line ---- */

typedef struct reading {
  members in; /* the line's */
  lab_event *out;
} reading;

/* Takes one of `choices`, ended by NULL. */
static int take_word(const reading *r, const json_t *object, const char *key,
                     const char *const *choices, const char *wants, int *out) {
  json_t *value;
  if (!members_given(object, key, &value)) return 0;
  const char *text = json_string_value(value);
  for (int i = 0; text && choices[i]; i++)
    if (strcmp(choices[i], text) == 0) {
      *out = i;
      return 0;
    }
  return members_wrong(&r->in, key, wants);
}

/* A name is one of a file or a directory. */
static int take_name(const reading *r, const json_t *object, const char *key, char **out) {
  json_t *value;
  if (!members_given(object, key, &value)) return 0;
  const char *text = json_string_value(value);
  size_t len = text ? strlen(text) : 0;
  if (len == 0 || len >= FS_NAME_MAX || strchr(text, '/') || strcmp(text, ".") == 0 ||
      strcmp(text, "..") == 0)
    return members_wrong(&r->in, key, "a name of at most 255 bytes, without a slash");
  *out = strdup(text);
  return *out ? 0 : err_set(r->in.e, ERR_NOMEM, "%s: out of memory", r->in.where);
}

/* A trial is a directory: its name, or its path below the directory of all. LAB_EACH is a name, too. */
static int take_trial(const reading *r, const json_t *line) {
  json_t *value;
  if (!members_given(line, "trial", &value)) return 0;
  const char *text = json_string_value(value);
  if (!text || fs_beneath_check(text, NULL) < 0)
    return members_wrong(&r->in, "trial",
                         "a name of at most 255 bytes, or a path of such names without \"..\"");
  r->out->trial = strdup(text);
  return r->out->trial ? 0 : err_set(r->in.e, ERR_NOMEM, "%s: out of memory", r->in.where);
}

static int print(const reading *r, const json_t *object, char **out) {
  buf text;
  buf_init(&text, LAB_LINE_MAX);
  int rc = object ? js_print(object, &text, r->in.e)
                  : err_set(r->in.e, ERR_NOMEM, "%s: out of memory", r->in.where);
  if (rc == 0) *out = buf_take(&text);
  buf_free(&text);
  return rc;
}

/* Numbers of a result or a checkpoint, as text; NULL: none are given. */
static int take_metrics(const reading *r, const json_t *object, const char *key, char **out) {
  json_t *value;
  if (!members_given(object, key, &value)) return 0;
  if (!json_is_object(value)) return members_wrong(&r->in, key, "an object of numbers");
  return print(r, value, out);
}

/* Numbers: metrics, and how far the training is. A result has them, with or without any. */
static int take_result(const reading *r, const json_t *line) {
  json_t *metrics, *iteration, *time;
  bool has_iteration = members_given(line, "training_iteration", &iteration);
  bool has_time = members_given(line, "time_total_s", &time);
  if ((has_iteration && !json_is_number(iteration)) || (has_time && !json_is_number(time)))
    return members_wrong(
        &r->in, has_iteration && !json_is_number(iteration) ? "training_iteration" : "time_total_s",
        "a number");
  if (members_given(line, "metrics", &metrics) && !json_is_object(metrics))
    return members_wrong(&r->in, "metrics", "an object of numbers");
  if (r->out->what != LAB_RESULT && !has_iteration && !has_time && !json_is_object(metrics))
    return 0;
  json_t *all = json_is_object(metrics) ? json_copy(metrics) : json_object();
  int bad = all ? 0 : -1;
  if (has_iteration) js_set(all, "training_iteration", json_incref(iteration), &bad);
  if (has_time) js_set(all, "time_total_s", json_incref(time), &bad);
  int rc = bad ? err_set(r->in.e, ERR_NOMEM, "%s: out of memory", r->in.where)
               : print(r, all, &r->out->result);
  json_decref(all);
  return rc;
}

/* Beside another event stands one that was told before: nothing new comes of it. */
static bool has_a_checkpoint(lab_what what) {
  return what == LAB_CHECKPOINT || what == LAB_RESULT || what == LAB_TRANSFER;
}

static void forget_checkpoint(lab_event *out) {
  free(out->name);
  free(out->metrics);
  out->name = out->metrics = NULL;
  out->sized = false;
}

static int take_checkpoint(const reading *r, const json_t *line) {
  static const char *const known[] = {"name", "step", "bytes", "kind", "metrics", NULL};
  json_t *c;
  lab_event *out = r->out;
  int kind = 0;
  if (!members_given(line, "checkpoint", &c)) return 0;
  if (!json_is_object(c)) return members_wrong(&r->in, "checkpoint", "an object");
  int64_t bytes = -1;
  int rc = members_check(&r->in, c, "a checkpoint", known);
  if (rc == 0) rc = take_name(r, c, "name", &out->name);
  if (rc == 0 && out->name)
    out->step = match_step_between(out->name, out->name, out->name + strlen(out->name));
  if (rc == 0) rc = members_whole(&r->in, c, "step", INT64_MAX >> 1, &out->step);
  if (rc == 0) rc = members_whole(&r->in, c, "bytes", most_bytes, &bytes);
  if (rc == 0)
    rc = take_word(r, c, "kind", kinds, "\"perm\", \"null\", \"temp\" or \"memory\"", &kind);
  if (rc == 0) rc = take_metrics(r, c, "metrics", &out->metrics);
  out->kind = kinds[kind];
  out->sized = bytes >= 0;
  out->bytes = bytes >= 0 ? (uint64_t)bytes : 0;
  out->makes = out->makes || out->what == LAB_RESULT;
  if (!has_a_checkpoint(out->what)) forget_checkpoint(out);
  return rc;
}

/* The code of a name; 0: none. A code that has no name is recorded, too, as err_name() has it, and
 * is read as one that has none. */
static int fault_of(const char *name) {
  enum { NAMELESS = INT_MIN };
  const int code = err_of_name(name);
  return code == 0 && strcmp(name, err_name(NAMELESS)) == 0 ? NAMELESS : code;
}

/* How the store fails; who names an error need not say that it does. */
static int take_fault(const reading *r, const json_t *transfer) {
  json_t *value;
  if (r->out->outcome == LAB_FAIL) r->out->fault = ERR_TIMEOUT;
  if (!members_given(transfer, "error", &value)) return 0;
  const char *name = json_string_value(value);
  r->out->fault = name ? fault_of(name) : 0;
  if (r->out->fault == 0 || r->out->outcome == LAB_OK)
    return members_wrong(&r->in, "error",
                         "the code of an error, as \"NOSPACE\", of a transfer that fails");
  r->out->outcome = LAB_FAIL;
  return 0;
}

static int take_transfer(const reading *r, const json_t *line) {
  static const char *const known[] = {"seconds", "outcome", "error", NULL};
  static const char *const outcomes[] = {"", "ok", "fail", NULL};
  json_t *t;
  int outcome = LAB_AS_BEFORE;
  if (!members_given(line, "transfer", &t)) return 0;
  if (!json_is_object(t)) return members_wrong(&r->in, "transfer", "an object");
  int rc = members_check(&r->in, t, "a transfer", known);
  if (rc == 0) rc = members_seconds(&r->in, t, "seconds", &r->out->transfer_s);
  if (rc == 0) rc = take_word(r, t, "outcome", outcomes, "\"ok\" or \"fail\"", &outcome);
  r->out->outcome = (lab_outcome)outcome;
  if (rc == 0) rc = take_fault(r, t);
  return rc;
}

static int take_what(const reading *r, const json_t *line) {
  const char *text = json_string_value(json_object_get(line, "event"));
  for (int i = 0; text && i < LAB_WHATS; i++)
    if (strcmp(words[i], text) == 0) {
      r->out->what = (lab_what)i;
      return 0;
    }
  return members_wrong(
      &r->in, "event",
      "\"start\", \"result\", \"checkpoint\", \"complete\", \"error\", \"preempt\", "
      "\"crash\", \"end\" or \"transfer\"");
}

static int take_time(const reading *r, const json_t *line, int64_t after_ns) {
  double t = (double)after_ns / 1e9;
  int rc = members_seconds(&r->in, line, "t", &t);
  if (rc < 0) return rc;
  r->out->at_ns = json_is_number(json_object_get(line, "t")) ? (int64_t)(t * 1e9 + 0.5) : after_ns;
  if (r->out->at_ns >= after_ns) return 0;
  return err_set(r->in.e, ERR_INVAL, "%s: \"t\" is %.9g, before the event before it (%.9g)",
                 r->in.where, t, (double)after_ns / 1e9);
}

static int take_line(const reading *r, const json_t *line, int64_t after_ns) {
  static const char *const known[] = {
      "t",        "event", "trial", "metrics", "training_iteration", "time_total_s", "checkpoint",
      "transfer", "grace", "left",  NULL};
  lab_event *out = r->out;
  if (!json_is_object(line))
    return err_set(r->in.e, ERR_INVAL, "%s: an event is an object, {\"event\": ...}", r->in.where);
  int rc = members_check(&r->in, line, "an event", known);
  if (rc == 0) rc = take_what(r, line);
  if (rc == 0) rc = take_time(r, line, after_ns);
  if (rc == 0) rc = take_trial(r, line);
  out->makes = out->what == LAB_CHECKPOINT;
  if (rc == 0) rc = take_result(r, line);
  if (rc == 0) rc = take_checkpoint(r, line);
  if (rc == 0) rc = take_transfer(r, line);
  if (rc == 0) rc = members_seconds(&r->in, line, "grace", &out->grace_s);
  if (rc == 0) rc = members_seconds(&r->in, line, "left", &out->limit_s);
  if (rc == 0 && !out->trial && !(out->trial = strdup("")))
    rc = err_set(r->in.e, ERR_NOMEM, "%s: out of memory", r->in.where);
  out->of_each = out->trial && strcmp(out->trial, LAB_EACH) == 0;
  return rc;
}

/* What a line says of one checkpoint needs to say of which. */
static int check_event(const reading *r) {
  const lab_event *out = r->out;
  if (out->what == LAB_TRANSFER && (!out->name || out->transfer_s < 0))
    return err_set(r->in.e, ERR_INVAL,
                   "%s: a transfer is told with the \"name\" of its \"checkpoint\", and the "
                   "\"seconds\" of its \"transfer\"",
                   r->in.where);
  if (out->limit_s >= 0 && out->what != LAB_START)
    return err_set(r->in.e, ERR_INVAL, "%s: only a start has \"left\"", r->in.where);
  if (!out->of_each || !(out->makes || out->what == LAB_TRANSFER)) return 0;
  return err_set(r->in.e, ERR_INVAL, "%s: a checkpoint is of one trial, not of \"*\"", r->in.where);
}

int lab_event_read(const char *line, size_t len, const char *where, int64_t after_ns,
                   lab_event *out, err *e) {
  json_t *value = NULL;
  *out = (lab_event){.kind = kinds[0],
                     .step = MATCH_NO_STEP,
                     .transfer_s = -1,
                     .grace_s = usual_grace_s,
                     .limit_s = -1};
  const reading r = {{where, e}, out};
  err why = {0};
  int rc = js_parse(line, len, where, &value, &why);
  /* No store is damaged: somebody has written it wrongly. */
  if (rc < 0) rc = err_set(e, rc == ERR_FORMAT ? ERR_INVAL : rc, "%s", why.text);
  if (rc == 0) rc = take_line(&r, value, after_ns);
  if (rc == 0) rc = check_event(&r);
  json_decref(value);
  if (rc < 0) lab_event_free(out);
  return rc;
}

/* ---- a file ---- */

void lab_history_free(lab_history *h) {
  for (size_t i = 0; i < h->count; i++) lab_event_free(&h->events[i]);
  for (size_t i = 0; i < h->change_count; i++) lab_change_free(&h->changes[i]);
  free(h->events);
  free(h->changes);
  *h = (lab_history){0};
}

/* Who names trials, and none where a job begins or ends, means all of them: a trial without a name is
 * one where a checkpoint or a result is of it, or where there is no other. */
static void share_nameless(lab_history *h) {
  bool others = false, own = false;
  for (size_t i = 0; i < h->count; i++) {
    const lab_event *event = &h->events[i];
    const bool nameless = *event->trial == '\0';
    others = others || (!nameless && !event->of_each);
    own = own || (nameless && has_a_checkpoint(event->what));
  }
  for (size_t i = 0; others && !own && i < h->count; i++)
    if (*h->events[i].trial == '\0') h->events[i].of_each = true;
}

typedef struct lines {
  const char *path;
  lab_history *h;
  buf line;
  size_t number;
  bool is_trace;
} lines;

static bool is_blank(const buf *line) {
  for (size_t i = 0; i < line->len; i++)
    if (!strchr(" \t\r", line->data[i]) || line->data[i] == '\0') return false;
  return true;
}

static int add_change(lines *l, const char *where, err *e) {
  lab_history *h = l->h;
  const int64_t after = h->change_count ? h->changes[h->change_count - 1].at_ns : 0;
  if (h->change_count >= LAB_EVENTS_MAX)
    return err_set(e, ERR_LIMIT, "%s: these are more than %d changes", where, LAB_EVENTS_MAX);
  if (!VEC_ROOM(h->changes, h->change_count, h->change_room))
    return err_set(e, ERR_NOMEM, "%s: out of memory", where);
  lab_change *c = &h->changes[h->change_count];
  int rc = lab_change_read(l->line.data, l->line.len, where, after, c, e);
  if (rc > 0) c->line = l->number, h->change_count++;
  return rc < 0 ? rc : 0;
}

static int add_event(lines *l, const char *where, err *e) {
  lab_history *h = l->h;
  const int64_t after = h->count ? h->events[h->count - 1].at_ns : 0;
  if (h->count >= LAB_EVENTS_MAX)
    return err_set(e, ERR_LIMIT, "%s: these are more than %d events", where, LAB_EVENTS_MAX);
  if (!VEC_ROOM(h->events, h->count, h->room))
    return err_set(e, ERR_NOMEM, "%s: out of memory", where);
  int rc = lab_event_read(l->line.data, l->line.len, where, after, &h->events[h->count], e);
  if (rc == 0) h->count++;
  return rc;
}

static int end_line(lines *l, err *e) {
  char where[FS_PATH_MAX + 32];
  lab_history *h = l->h;
  snprintf(where, sizeof where, "%s:%zu", l->path, ++l->number);
  if (buf_failed(&l->line) < 0)
    return err_set(e, ERR_LIMIT, "%s: the line is longer than %d KiB", where, LAB_LINE_MAX >> 10);
  if (is_blank(&l->line)) return 0;
  /* The first line says which it is. */
  if (h->count == 0 && !l->is_trace) l->is_trace = lab_change_is(l->line.data, l->line.len);
  return l->is_trace ? add_change(l, where, e) : add_event(l, where, e);
}

static int take_bytes(lines *l, const char *bytes, size_t len, err *e) {
  int rc = 0;
  while (rc == 0 && len > 0) {
    const char *end = memchr(bytes, '\n', len);
    size_t piece = end ? (size_t)(end - bytes) : len;
    buf_add(&l->line, bytes, piece);
    if (!end && buf_failed(&l->line) == 0) return 0;
    rc = end_line(l, e);
    buf_clear(&l->line);
    if (!end) return rc;
    bytes = end + 1;
    len -= piece + 1;
  }
  return rc;
}

/* True if it is no JSON, though it begins as a line of a record does. */
static bool is_torn(const buf *line) {
  json_t *value = NULL;
  bool whole = js_parse(line->data, line->len, "", &value, NULL) == 0;
  json_decref(value);
  return !whole && line->data[0] == '{';
}

/* The last line has no end: a record of a run that was killed while it was written. */
static int end_last(lines *l, err *e) {
  if (l->h->count + l->h->change_count == 0 || buf_failed(&l->line) < 0 || !is_torn(&l->line))
    return end_line(l, e);
  l->h->torn = ++l->number;
  return 0;
}

int lab_history_read(const io *io, const char *path, lab_history *out, err *e) {
  enum { PIECE = 64 << 10 };
  *out = (lab_history){0};
  lines l = {.path = path, .h = out};
  char *bytes = malloc(PIECE);
  if (!bytes) return err_set(e, ERR_NOMEM, "read %s: out of memory", path);
  const bool given = strcmp(path, "/dev/stdin") == 0; /* opened anew, a file begins again */
  int fd = given ? STDIN_FILENO : io->open(io, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) {
    free(bytes);
    return err_sys(e, fd, "read %s", path);
  }
  buf_init(&l.line, LAB_LINE_MAX);
  ssize_t n = 0;
  size_t all = 0;
  int rc = 0;
  while (rc == 0 && (n = fs_fill(io, fd, bytes, PIECE)) > 0) {
    rc = take_bytes(&l, bytes, (size_t)n, e);
    all += (size_t)n;
    if (rc == 0 && all > LAB_BYTES_MAX)
      rc = err_set(e, ERR_LIMIT, "%s: these are more than %d MiB of events", path,
                   LAB_BYTES_MAX >> 20);
  }
  if (rc == 0 && n < 0) rc = err_sys(e, (int)n, "read %s", path);
  if (rc == 0 && l.line.len > 0) rc = end_last(&l, e);
  if (!given) io->close(io, fd);
  buf_free(&l.line);
  free(bytes);
  if (rc == 0) share_nameless(out);
  if (rc < 0) lab_history_free(out);
  return rc;
}
