/* policy_facts: makes the table of an event that a policy is handed. A member that is not known is
 * absent. */
#include <string.h>

#include "base/packed.h"
#include "decision/policy_impl.h"

static void put_text(packed_table *to, const char *key, const char *text) {
  if (!text) return;
  packed_member(to, key);
  packed_put_byte(to->out, PACKED_STRING);
  policy_pack_name(text, to->out);
}

static void put_real(packed_table *to, const char *key, double value) {
  packed_member(to, key);
  packed_put_real(to->out, value);
}

static void put_number(packed_table *to, const char *key, uint64_t n) {
  put_real(to, key, policy_pack_count(n));
}

/* A deadline that there is none of is one in 30 years: JSON has no infinity. */
static double within(double seconds) {
  static const double most = 1e9;
  return seconds < -most ? -most : seconds < most ? seconds : most;
}

static void put_seconds(packed_table *to, const char *key, double seconds) {
  put_real(to, key, within(seconds));
}

static void put_bool(packed_table *to, const char *key, bool yes) {
  packed_member(to, key);
  packed_put_bool(to->out, yes);
}

/* Puts a JSON object that came as text, from a log or a job; a text that is no object is left
 * out. */
static void put_object(packed_table *to, const char *key, const char *text) {
  json_t *value = NULL;
  if (!text || js_parse(text, strlen(text), key, &value, NULL) < 0) return;
  if (json_is_object(value)) {
    packed_member(to, key);
    packed_put_json(to->out, value);
  }
  json_decref(value);
}

/* Opens a table within another one. */
static packed_table open_table(packed_table *to, const char *key) {
  packed_member(to, key);
  return packed_open(to->out, PACKED_OBJECT);
}

static double age_of(int64_t now_ns, int64_t then_ns) {
  double age = (double)now_ns / 1e9 - (double)then_ns / 1e9;
  return age > 0 ? age : 0; /* the clock was set back */
}

static void put_names(packed_table *to, const policy_facts *f) {
  packed_member(to, "names");
  packed_table names = packed_open(to->out, PACKED_ARRAY);
  for (size_t i = 0; i < f->name_count; i++) put_text(&names, NULL, f->names[i]);
  packed_close(&names);
}

static void put_checkpoint(packed_table *event, const policy_facts *f, int64_t now) {
  const detect_unit *u = f->unit;
  packed_table c = open_table(event, "checkpoint");
  put_text(&c, "name", u->name);
  put_text(&c, "path", u->path);
  if (u->step != MATCH_NO_STEP) put_real(&c, "step", (double)u->step);
  put_number(&c, "bytes", u->bytes);
  put_number(&c, "files", u->files);
  put_text(&c, "kind", f->kind);
  put_names(&c, f);
  if (u->changed_ns) put_seconds(&c, "age", age_of(now, u->changed_ns));
  put_object(&c, "metrics", f->metrics);
  put_bool(&c, "in_place", u->in_place);
  put_number(&c, "generation", u->generation);
  put_text(&c, "reason", u->reason);
  packed_close(&c);
}

static void put_error(packed_table *event, const policy_facts *f) {
  packed_table error = open_table(event, "error");
  put_text(&error, "code", err_name(f->status));
  put_text(&error, "class", err_class_name(err_class_of(f->status)));
  put_text(&error, "text", f->text);
  put_number(&error, "tries", f->tries);
  packed_close(&error);
}

static void put_numbers(packed_table *event, const policy_facts *f) {
  put_number(event, "results", f->results);
  packed_table since = open_table(event, "since");
  put_number(&since, "results", f->since.results);
  put_number(&since, "checkpoints", f->since.checkpoints);
  put_number(&since, "bytes", f->since.bytes);
  if (f->since.seconds >= 0) put_seconds(&since, "seconds", f->since.seconds);
  packed_close(&since);
  packed_table job = open_table(event, "job");
  put_seconds(&job, "seconds", f->job.seconds);
  if (f->job.left >= 0) put_seconds(&job, "left", f->job.left);
  packed_close(&job);
  packed_table saves = open_table(event, "saves");
  put_seconds(&saves, "spent", f->saves.spent);
  if (f->saves.seconds >= 0) put_seconds(&saves, "seconds", f->saves.seconds);
  packed_close(&saves);
  packed_table queue = open_table(event, "queue");
  put_number(&queue, "waiting", f->waiting);
  put_bool(&queue, "running", f->running);
  packed_close(&queue);
  packed_table store = open_table(event, "store");
  put_number(&store, "commits", f->commits);
  packed_close(&store);
}

static packed_table begin(const policy *p, const char *event, const char *group, int64_t now,
                          double grace_s, buf *out) {
  buf_init(out, POLICY_FRAME_MAX);
  packed_table e = packed_open(out, PACKED_OBJECT);
  put_text(&e, "event", event);
  put_real(&e, "now", (double)now / 1e9);
  packed_member(&e, "localtime");
  policy_localtime(now, out);
  put_text(&e, "run", p->run);
  put_text(&e, "group", group);
  put_seconds(&e, "grace", grace_s);
  return e;
}

policy_question policy_event(const policy *p, const policy_facts *f) {
  policy_question q = {.then = {0}};
  int64_t now = p->io->now(p->io, IO_WALL);
  packed_table event = begin(p, f->event, f->group, now, f->grace_s, &q.about);
  if (f->unit) put_checkpoint(&event, f, now);
  put_object(&event, "result", f->result);
  put_text(&event, "suspect", f->suspect);
  put_numbers(&event, f);
  if (f->status < 0) put_error(&event, f);
  packed_close(&event);
  return q;
}

policy_question policy_list_question(const policy *p, policy_hook hook, const char *group,
                                     const policy_item *items, size_t count) {
  policy_question q = {.then = {0}};
  int64_t now = p->io->now(p->io, IO_WALL);
  packed_table event = begin(p, policy_hook_name(hook), group, now, 0, &q.about);
  packed_close(&event);
  for (size_t i = 0; i < count; i++)
    policy_pack_item(&items[i], within(age_of(now, items[i].time_ns)), &q.about);
  return q;
}
