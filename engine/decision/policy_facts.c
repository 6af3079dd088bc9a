/* policy_facts: makes the table of an event that a policy is handed. A member that is not known is
 * absent. */
#include <string.h>

#include "decision/policy_impl.h"

/* The builders share one sticky flag: whether the whole is still whole. */
static void put(json_t *to, const char *key, json_t *value, bool *whole) {
  /* Takes the reference over, on failure too. */
  if (json_object_set_new(to, key, value) < 0) *whole = false;
}

static json_t *name_value(const char *name) {
  json_t *value = json_string(name);
  return value ? value : js_name_new(name); /* bytes that are no text are shown as %XX */
}

static void put_name(json_t *to, const char *key, const char *name, bool *whole) {
  if (name) put(to, key, name_value(name), whole);
}

static void put_number(json_t *to, const char *key, uint64_t n, bool *whole) {
  put(to, key, json_integer(n < INT64_MAX ? (json_int_t)n : INT64_MAX), whole);
}

/* JSON has no infinity: no deadline is written as one in 30 years. */
static double within(double seconds) {
  static const double most = 1e9;
  return seconds < -most ? -most : seconds < most ? seconds : most;
}

static void put_seconds(json_t *to, const char *key, double seconds, bool *whole) {
  put(to, key, json_real(within(seconds)), whole);
}

static void put_bool(json_t *to, const char *key, bool yes, bool *whole) {
  put(to, key, json_boolean(yes), whole);
}

/* Puts a JSON object that came as text, from a log or a job; a text that is no object is left
 * out. */
static void put_object(json_t *to, const char *key, const char *text, bool *whole) {
  json_t *value = NULL;
  if (!text || js_parse(text, strlen(text), key, &value, NULL) < 0) return;
  if (json_is_object(value))
    put(to, key, value, whole);
  else
    json_decref(value);
}

/* Opens a table within another one. */
static json_t *put_table(json_t *to, const char *key, bool *whole) {
  json_t *table = json_object();
  put(to, key, table, whole);
  return *whole ? table : NULL;
}

static double age_of(int64_t now_ns, int64_t then_ns) {
  double age = (double)now_ns / 1e9 - (double)then_ns / 1e9;
  return age > 0 ? age : 0; /* the clock was set back */
}

static void put_checkpoint(json_t *event, const policy_facts *f, int64_t now, bool *whole) {
  const detect_unit *u = f->unit;
  json_t *c = put_table(event, "checkpoint", whole);
  json_t *names = json_array();
  if (!c || !names) {
    *whole = false;
    json_decref(names);
    return;
  }
  put_name(c, "name", u->name, whole);
  put_name(c, "path", u->path, whole);
  if (u->step != MATCH_NO_STEP) put(c, "step", json_integer(u->step), whole);
  put_number(c, "bytes", u->bytes, whole);
  put_number(c, "files", u->files, whole);
  put_name(c, "kind", f->kind, whole);
  for (size_t i = 0; i < f->name_count; i++)
    if (json_array_append_new(names, name_value(f->names[i])) < 0) *whole = false;
  put(c, "names", names, whole);
  if (u->changed_ns) put_seconds(c, "age", age_of(now, u->changed_ns), whole);
  put_object(c, "metrics", f->metrics, whole);
  put_bool(c, "in_place", u->in_place, whole);
  put_number(c, "generation", u->generation, whole);
  put_name(c, "reason", u->reason, whole);
}

static void put_error(json_t *event, const policy_facts *f, bool *whole) {
  json_t *error = put_table(event, "error", whole);
  if (!error) return;
  put_name(error, "code", err_name(f->status), whole);
  put_name(error, "class", err_class_name(err_class_of(f->status)), whole);
  put_name(error, "text", f->text, whole);
  put_number(error, "tries", f->tries, whole);
}

static void put_numbers(json_t *event, const policy_facts *f, bool *whole) {
  put_number(event, "results", f->results, whole);
  json_t *since = put_table(event, "since", whole);
  if (!since) return;
  put_number(since, "results", f->since.results, whole);
  put_number(since, "checkpoints", f->since.checkpoints, whole);
  put_number(since, "bytes", f->since.bytes, whole);
  if (f->since.seconds >= 0) put_seconds(since, "seconds", f->since.seconds, whole);
  json_t *job = put_table(event, "job", whole);
  if (!job) return;
  put_seconds(job, "seconds", f->job.seconds, whole);
  if (f->job.left >= 0) put_seconds(job, "left", f->job.left, whole);
  json_t *saves = put_table(event, "saves", whole);
  if (!saves) return;
  put_seconds(saves, "spent", f->saves.spent, whole);
  if (f->saves.seconds >= 0) put_seconds(saves, "seconds", f->saves.seconds, whole);
  json_t *queue = put_table(event, "queue", whole);
  if (!queue) return;
  put_number(queue, "waiting", f->waiting, whole);
  put_bool(queue, "running", f->running, whole);
  json_t *store = put_table(event, "store", whole);
  if (store) put_number(store, "commits", f->commits, whole);
}

static json_t *begin(const policy *p, const char *event, const char *group, int64_t now,
                     bool *whole) {
  json_t *e = json_object();
  if (!e) *whole = false;
  put_name(e, "event", event, whole);
  put(e, "now", json_real((double)now / 1e9), whole);
  put(e, "localtime", policy_localtime(now), whole);
  put_name(e, "run", p->run, whole);
  put_name(e, "group", group, whole);
  return e;
}

static json_t *end(json_t *event, bool whole) {
  if (whole) return event;
  json_decref(event);
  return NULL;
}

json_t *policy_event(const policy *p, const policy_facts *f) {
  bool whole = true;
  int64_t now = p->io->now(p->io, IO_WALL);
  json_t *event = begin(p, f->event, f->group, now, &whole);
  if (!event) return NULL;
  put_seconds(event, "grace", f->grace_s, &whole);
  if (f->unit) put_checkpoint(event, f, now, &whole);
  put_object(event, "result", f->result, &whole);
  put_name(event, "suspect", f->suspect, &whole);
  put_numbers(event, f, &whole);
  if (f->status < 0) put_error(event, f, &whole);
  return end(event, whole);
}

policy_question policy_list_question(const policy *p, policy_hook hook, const char *group,
                                     const policy_item *items, size_t count) {
  bool whole = true;
  int64_t now = p->io->now(p->io, IO_WALL);
  policy_question q = {.event = begin(p, policy_hook_name(hook), group, now, &whole)};
  buf_init(&q.items, POLICY_FRAME_MAX);
  put_seconds(q.event, "grace", 0, &whole);
  for (size_t i = 0; whole && i < count; i++)
    whole = policy_pack_item(&items[i], within(age_of(now, items[i].time_ns)), &q.items) == 0;
  q.event = end(q.event, whole);
  return q;
}
