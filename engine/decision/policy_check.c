/* policy_check: asks a policy everything that a run could ask it, with made-up facts of every kind, and
 * looks at what its rules need. */
#include "policy_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision/policy_check_impl.h"
#include "prims/fs.h"

/* ---- made-up facts ---- */

/* What lacks in the facts, or is there for once. Each kind of them is tried at each event. */
enum { KINDS = 10, NAN_KIND = 9 };

/* What library/watch.lua says of a field that there is none. */
#define FIELD_WORDS " has no \""

static void vary(policy_facts *f, detect_unit *unit, int kind) {
  if (kind == 1) return; /* as little as there can be */
  if (kind == 2) f->result = NULL, f->results = 0;
  if (kind == 3) f->metrics = NULL;
  if (kind == 4) unit->step = MATCH_NO_STEP;
  if (kind == 5) f->since.seconds = f->saves.seconds = -1, f->saves.spent = 0, f->commits = 0;
  if (kind == 6) f->name_count = 0, f->waiting = 0, f->job.left = -1;
  if (kind == 8) f->suspect = "made up", f->kind = "temp", unit->in_place = true;
}

/* At noon, at night and late in the evening, on working days and at the weekend: what a function does by the
 * clock on the wall is seen whenever the check is run. */
enum { CLOCKS = 5 };
static const struct {
  int hour, weekday;
} clocks[CLOCKS] = {{12, 3}, {2, 1}, {22, 5}, {12, 6}, {12, 7}};

/* The clock on the wall in a week that began on May 4th, a Monday. It is set within a day twice a year;
 * once is enough here. */
static json_t *made_up_clock(int kind, int at) {
  enum { MONDAY = 4 };
  json_t *local = json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "year", 2026, "month", 5,
                            "day", MONDAY + clocks[at].weekday - 1, "hour", clocks[at].hour,
                            "minute", 0, "second", 0, "weekday", clocks[at].weekday, "offset", 0);
  if (local && kind == 8)
    json_object_set_new(local, "change", json_pack("{s:i, s:i}", "after", 3600, "offset", 7200));
  return local;
}

/* What stands in the event in place of what is known. In kind 7 the job reports other numbers than those
 * that are asked for; in the last one they are none. */
static json_t *made_up(int kind, int clock) {
  return json_pack("{s:o, s:{s:b, s:b}}", "localtime", made_up_clock(kind, clock), "trial",
                   "numbers", kind != 7, "nan", kind == NAN_KIND);
}

static policy_question make_event(const checking *c, policy_hook hook, const char *word, int kind) {
  policy_facts f = policy_made_up(word, kind != 1);
  detect_unit unit = *f.unit;
  vary(&f, &unit, kind);
  f.unit = hook == POLICY_ON_PREEMPT ? NULL : &unit;
  if (hook == POLICY_ON_ERROR || hook == POLICY_ON_FAILED) f.status = ERR_IO, f.text = "made up";
  return policy_event(c->p, &f);
}

static policy_question make_list(const checking *c, policy_hook hook, int kind) {
  policy_item items[POLICY_MADE_UP_ITEMS];
  size_t count = kind == 1 ? 1 : POLICY_MADE_UP_ITEMS;
  policy_made_up_items(c->p, items);
  for (size_t i = 0; i < count; i++) {
    items[i].newest = i + 1 == count;
    if (kind == 2) items[i].step = MATCH_NO_STEP;
    if (kind == 3) items[i].metrics = NULL;
    if (kind == 8) items[i].suspect = "made up", items[i].pinned = true, items[i].left_out = 1;
  }
  if (kind == 6) items[count - 1].durable = false;
  return policy_list_question(c->p, hook, "", items, count);
}

/* ---- functions ---- */

static void note_names(json_t *all, const json_t *names) {
  const char *name;
  json_t *line;
  json_object_foreach((json_t *)names, name, line) if (!json_object_get(all, name))
      json_object_set(all, name, line);
}

static bool says_no(policy_hook hook, const json_t *answer) {
  const char *word = json_string_value(answer);
  return hook == POLICY_READY ? json_is_false(answer) : word && strcmp(word, "skip") == 0;
}

/* A function that says no by the clock is not asked again when the clock has gone on, unless it says
 * when. */
static void look_at_answer(checking *c, policy_hook hook, const char *word, int kind,
                           const json_t *answer) {
  const char *clock = json_string_value(json_object_get(answer, "clock"));
  const bool ends = strcmp(word, "end") == 0 || strcmp(word, "preempt") == 0;
  note_names(c->metrics, json_object_get(answer, "metrics"));
  note_names(c->results, json_object_get(answer, "results"));
  if (hook == POLICY_EXCLUDE) checking_left(c, json_object_get(answer, "answer"));
  if ((hook != POLICY_SYNC && hook != POLICY_READY) ||
      !says_no(hook, json_object_get(answer, "answer")))
    return;
  if (ends && kind == 0)
    checking_tell_key(
        c, POLICY_DOUBT, "end", policy_hook_name(hook),
        hook == POLICY_SYNC
            ? "`sync` says no at the end of the job, too, and what is complete then is "
              "not saved: let e.event == \"end\" and \"preempt\" through, unless you "
              "mean that"
            : "`ready` says no at the end of the job, too, and what waits for it then "
              "is not saved");
  else if (!ends && clock && !json_object_get(answer, "again"))
    checking_tell_at(c, POLICY_DOUBT, "time", clock, NULL,
                     "it looks at the clock, and says no without saying when to ask again: nothing "
                     "wakes it up then but a result, or the end. A third value says it: return "
                     "false, \"why\", \"10m\"");
}

static void tell_failure(checking *c, policy_hook hook, const char *word, int kind,
                         const char *why) {
  static const char *const lacks[KINDS] = {
      "",
      ", of the first checkpoint of a job that reports nothing",
      ", where the job reported no result",
      ", where the checkpoint has no numbers",
      ", where its name has no number",
      ", where nothing was saved yet",
      ", where nothing waits",
      ", where other numbers are reported than it asks for",
      ", where the checkpoint may be bad",
      ", where its numbers are NaN"};
  char more[200] = "";
  bool list = hook == POLICY_KEEP || hook == POLICY_KEEP_LOCAL || hook == POLICY_RESTORE;
  if (strstr(why, FIELD_WORDS)) {
    checking_tell(c, POLICY_FAULT, "field", why, "");
    return;
  }
  if (list)
    snprintf(more, sizeof more, " (%s%s)", policy_hook_name(hook),
             kind == NAN_KIND ? lacks[kind] : "");
  else
    snprintf(more, sizeof more, " (%s at the event %s%s)", policy_hook_name(hook), word,
             lacks[kind]);
  checking_tell(c, POLICY_FAULT, "function", why, more);
}

/* What ran into its limits takes as long each time. */
static bool is_costly(const char *why) {
  return strstr(why, "it ran too long") || strstr(why, "too much memory") || strstr(why, "helper");
}

/* Takes the answer's memory over, for the next question. */
static void take_memory(json_t **memory, const json_t *answer) {
  json_t *left = json_object_get(answer, "memory");
  if (!json_is_object(left)) return;
  json_decref(*memory);
  *memory = json_incref(left);
}

typedef enum outcome { ANSWERED, FAILED, COSTLY } outcome;

/* Asks once; a field that there is none is told, and passed over when it is asked again. */
static outcome try_once(checking *c, policy_hook hook, const char *word, int kind, int clock,
                        json_t **memory) {
  enum { AGAIN = 8 };
  for (int i = 0; i < AGAIN && !checking_over(c); i++) {
    policy_question q = word ? make_event(c, hook, word, kind) : make_list(c, hook, kind);
    json_t *answer;
    err why = {0};
    json_t *request =
        json_pack("{s:s, s:s, s:O, s:o}", "what", "ask", "hook", policy_hook_name(hook), "memory",
                  *memory, "made_up", made_up(kind, clock));
    int rc = policy_check_ask(c->p, request, &q, &answer, &why);
    policy_question_free(&q);
    if (rc == 0) {
      look_at_answer(c, hook, word ? word : "", kind, answer);
      take_memory(memory, answer);
      json_decref(answer);
      return ANSWERED;
    }
    tell_failure(c, hook, word ? word : "", kind, why.text);
    if (!strstr(why.text, FIELD_WORDS)) return is_costly(why.text) ? COSTLY : FAILED;
  }
  return FAILED;
}

/* Asks at each hour; a list is of no event, and has none. */
static outcome try_kind(checking *c, policy_hook hook, const char *word, int kind,
                        json_t **memory) {
  outcome o = ANSWERED;
  for (int clock = 0; clock < (word ? CLOCKS : 1) && o == ANSWERED && !checking_over(c); clock++)
    o = try_once(c, hook, word, kind, clock, memory);
  return o;
}

/* Of a kind of facts with which it failed once no more is learned at the next event, and each failure
 * costs a new state; so does what runs into its limits. */
typedef struct tried {
  unsigned failed; /* a bit for each kind */
  bool costly;
} tried;

static void try_event(checking *c, policy_hook hook, const char *word, tried *t) {
  json_t *memory = json_object();
  for (int kind = 0; memory && kind < KINDS && !t->costly && !checking_over(c); kind++) {
    if (t->failed >> kind & 1) continue;
    outcome o = try_kind(c, hook, word, kind, &memory);
    if (o != ANSWERED) t->failed |= 1U << kind;
    t->costly = o == COSTLY;
  }
  json_decref(memory);
}

static void try_hook(checking *c, policy_hook hook) {
  static const char *const events[] = {"complete", "result", "time", "end", "preempt"},
                           *const begins[] = {"complete", "end", "preempt"};
  tried t = {0};
  switch (hook) {
  case POLICY_READY:
  case POLICY_SYNC:
  case POLICY_QUEUE:
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) try_event(c, hook, events[i], &t);
    break;
  case POLICY_EXCLUDE:
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) try_event(c, hook, begins[i], &t);
    break;
  case POLICY_KEEP:
  case POLICY_KEEP_LOCAL:
  case POLICY_RESTORE: try_event(c, hook, NULL, &t); break;
  case POLICY_ON_ERROR: try_event(c, hook, "error", &t); break;
  case POLICY_ON_PREEMPT: try_event(c, hook, "preempt", &t); break;
  case POLICY_ON_COMMITTED: try_event(c, hook, "committed", &t); break;
  case POLICY_ON_FAILED: try_event(c, hook, "failed", &t); break;
  case POLICY_HOOKS: break;
  }
}

static void try_functions(checking *c) {
  const json_t *written = json_object_get(c->p->data, "written");
  for (int hook = 0; hook < POLICY_HOOKS; hook++)
    if (json_is_true(json_object_get(written, policy_hook_name((policy_hook)hook))))
      try_hook(c, (policy_hook)hook);
}

/* ---- rules ---- */

static void look_at_rules(checking *c) {
  json_t *answer, *one;
  int rounds = 1;
  size_t i;
  for (int round = 1; round <= rounds && !checking_over(c); round++) {
    json_t *request = json_pack("{s:s, s:i}", "what", "rules", "round", round);
    if (policy_check_ask(c->p, request, NULL, &answer, NULL) < 0) return;
    rounds = (int)json_number_value(json_object_get(answer, "rounds"));
    json_decref(answer);
  }
  if (checking_over(c) ||
      policy_check_ask(c->p, json_pack("{s:s}", "what", "unused"), NULL, &answer, NULL) < 0)
    return;
  json_array_foreach(json_object_get(answer, "list"), i, one) {
    const char *line = json_string_value(json_object_get(one, "line"));
    const char *text = json_string_value(json_object_get(one, "text"));
    char name[POLICY_NAME_MAX];
    if (!line || !text) continue;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, " "), text);
    checking_tell_at(c, POLICY_DOUBT, "rule", line, name, text);
  }
  json_decref(answer);
}

static void look_at_needs(checking *c) {
  json_t *answer, *why;
  const char *key;
  if (policy_check_ask(c->p, json_pack("{s:s}", "what", "needs"), NULL, &answer, NULL) < 0) return;
  note_names(c->metrics, json_object_get(answer, "metrics"));
  note_names(c->results, json_object_get(answer, "results"));
  json_object_foreach(json_object_get(answer, "doubted"), key, why)
      checking_tell_key(c, POLICY_DOUBT, "key", key, json_string_value(why));
  json_decref(answer);
}

/* ---- what no answer may break ---- */

static void tell_broken(checking *c, const json_t *list) {
  json_t *one;
  size_t i;
  json_array_foreach((json_t *)list, i, one) {
    const char *line = json_string_value(json_object_get(one, "line"));
    const char *text = json_string_value(json_object_get(one, "text"));
    if (line && text)
      checking_tell_at(c, POLICY_FAULT, "must", line,
                       json_string_value(json_object_get(one, "word")), text);
  }
}

/* Looks for the smallest lists on which `keep` breaks an entry of `must`. */
static void look_at_must(checking *c) {
  bool done = false;
  for (bool first = true; !done && !checking_over(c); first = false) {
    err why = {0};
    json_t *answer, *request = json_pack("{s:s, s:b}", "what", "must", "first", first);
    if (policy_check_ask(c->p, request, NULL, &answer, &why) < 0) {
      checking_tell(c, POLICY_FAULT, strstr(why.text, FIELD_WORDS) ? "field" : "function", why.text,
                    "");
      return;
    }
    done = !json_is_false(json_object_get(answer, "done"));
    tell_broken(c, json_object_get(answer, "list"));
    json_decref(answer);
  }
}

/* True if nothing but these numbers of names can be a checkpoint's. */
static bool only_by_name(const json_t *sources) {
  size_t i;
  json_t *source;
  json_array_foreach((json_t *)sources, i, source) {
    const char *from = json_string_value(json_object_get(source, "from"));
    if (!from || strcmp(from, "name") != 0) return false;
  }
  return json_array_size(sources) > 0;
}

static bool gives(const json_t *sources, const char *name) {
  size_t i;
  json_t *source;
  json_array_foreach((json_t *)sources, i, source) {
    const char *key = json_string_value(json_object_get(source, "key"));
    if (key && strcmp(key, name) == 0) return true;
  }
  return false;
}

/* Of a metric that no source gives, and of results, which the job has to report. */
static void tell_needs(checking *c) {
  const json_t *sources = json_object_get(c->p->data, "metrics");
  const char *name;
  json_t *line;
  char text[400];
  if (only_by_name(sources)) json_object_foreach(c->metrics, name, line) {
      if (gives(sources, name)) continue;
      snprintf(text, sizeof text, "nothing in `metrics` gives \"%.100s\": no checkpoint has it",
               name);
      checking_tell_at(c, POLICY_DOUBT, "metric", json_string_value(line), name, text);
    }
  json_object_foreach(c->results, name, line) {
    snprintf(text, sizeof text,
             "it counts on results with \"%.100s\": the job has to report them (`notify` "
             "%.100s=1)",
             name, name);
    checking_tell_at(c, POLICY_HINT, "result", json_string_value(line), name, text);
  }
}

/* ---- the whole ---- */

static int open_policy(checking *c, err *e) {
  const policy_check_options *o = c->o;
  const char *const names[] = {o->policy, NULL};
  err why = {0};
  policy_options options = {.io = o->io,
                            .link = o->link,
                            .id = "check",
                            .names = names,
                            .settings = o->settings,
                            .dir = o->dir,
                            .quiet_ns = -1,
                            .untried = true};
  int rc = policy_open(&options, &c->p, &why);
  if (rc == 0) return 0;
  if (rc != ERR_POLICY && rc != ERR_INVAL && rc != ERR_LIMIT) return err_set(e, rc, "%s", why.text);
  checking_tell(c, POLICY_FAULT, "load", why.text, "");
  return 0;
}

static void start_part(checking *c, int64_t ms) {
  c->deadline = c->o->io->now(c->o->io, IO_MONO) + INT64_C(1000000) * ms;
}

static int check_all(checking *c, err *e) {
  start_part(c, CHECK_FOR_MS);
  int rc = open_policy(c, e);
  if (rc < 0 || !c->p) return rc;
  look_at_needs(c);
  look_at_rules(c);
  checking_excludes(c);
  try_functions(c);
  if (!c->faulty) look_at_must(c);
  if (checking_over(c) && c->stopped == 0)
    checking_tell(c, POLICY_DOUBT, "limit", "not all of it was tried: it takes too long", "");
  tell_needs(c);
  start_part(c, CHECK_FOR_MS);
  return c->o->tree ? checking_tree(c, e) : 0;
}

static int read_file(const policy_check_options *o, buf *text, char name[FS_NAME_MAX + 8], err *e) {
  char dir[FS_PATH_MAX];
  policy_options options = {.io = o->io, .dir = o->dir};
  size_t len = strlen(fs_base(o->policy));
  bool lua = len > 4 && strcmp(fs_base(o->policy) + len - 4, ".lua") == 0;
  snprintf(name, FS_NAME_MAX + 8, "%.255s%s", fs_base(o->policy), lua ? "" : ".lua");
  int rc = policy_shipped_dir(o->io, o->dir, dir, e);
  return rc < 0 ? rc : policy_read(&options, dir, o->policy, text, e);
}

int policy_check(const policy_check_options *o, policy_finding_fn *fn, void *ctx, err *e) {
  buf text;
  char name[FS_NAME_MAX + 8];
  buf_init(&text, POLICY_FILE_MAX + 1);
  int rc = read_file(o, &text, name, e);
  if (rc == 0) rc = buf_failed(&text);
  checking c = {.o = o,
                .file = name,
                .text = text.data ? text.data : "",
                .told = json_object(),
                .metrics = json_object(),
                .results = json_object(),
                .fn = fn,
                .ctx = ctx};
  if (rc == 0 && (!c.told || !c.metrics || !c.results))
    rc = err_set(e, ERR_NOMEM, "check a policy: out of memory");
  if (rc == 0) rc = check_all(&c, e);
  if (rc == 0 && c.stopped) rc = c.stopped;
  if (rc == 0 && c.faulty)
    rc = err_set(e, ERR_POLICY, "%s does not load, or would fail in a run", o->policy);
  policy_close(c.p);
  json_decref(c.told);
  json_decref(c.metrics);
  json_decref(c.results);
  buf_free(&text);
  return rc;
}

static int take_fault(void *ctx, const policy_finding *f) {
  char *first = ctx;
  if (f->level != POLICY_FAULT) return 0;
  snprintf(first, ERR_TEXT_MAX, "%s", f->text);
  return 1;
}

/* What was noted meanwhile was of facts that are none: the chain is loaded anew for the first question. */
int policy_check_chain(policy *p, err *e) {
  enum { FOR_MS = 3000 };
  char first[ERR_TEXT_MAX] = "", no_file[] = "";
  const policy_check_options o = {.io = p->io, .log = p->log, .link = p->link};
  checking c = {.o = &o,
                .p = p,
                .file = no_file,
                .text = "",
                .told = json_object(),
                .metrics = json_object(),
                .results = json_object(),
                .fn = take_fault,
                .ctx = first};
  int rc =
      c.told && c.metrics && c.results ? 0 : err_set(e, ERR_NOMEM, "check a policy: out of memory");
  start_part(&c, FOR_MS);
  if (rc == 0 && p->data) try_functions(&c);
  if (rc == 0 && p->data && !c.faulty) look_at_must(&c);
  policy_unload(p);
  if (rc == 0 && c.faulty)
    rc = err_set(e, ERR_POLICY, "policy %s: it would fail in a run: %s", p->names, first);
  json_decref(c.told);
  json_decref(c.metrics);
  json_decref(c.results);
  return rc;
}
