/* What policies say, and what training scripts write for them. */
#include "targets.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/packed.h"
#include "decision/policy_impl.h"
#include "lab/events.h"
#include "lab/trace.h"
#include "lua/policy/policy_serve.h"

/* An answer of the policies' helper, of which each hook makes what it can. */
void fuzz_answers(const uint8_t *data, size_t size) {
  enum { ITEMS = 5 };
  json_t *value = NULL;
  policy_kept kept[ITEMS];
  policy_remedy remedy = POLICY_BY_CLASS;
  bool ready = true;
  int word = 0;
  double seconds = 0;
  if (js_parse((const char *)data, size, "answer", &value, NULL) < 0) return;
  err e = {0};
  answer_ready(value, &ready, &e);
  if (answer_word(value, answer_queues, &word, &e) == 0) must(word >= 0 && word < 4);
  if (answer_remedy(value, &remedy, &seconds, &e) == 0)
    must(isfinite(seconds) && seconds >= 0 && seconds <= 24 * 3600);
  answer_names(value, &e);
  names globs = {0};
  if (answer_globs(value, &globs, &e) == 0) must(globs.count <= POLICY_LEFT_MAX);
  for (size_t i = 0; i < globs.count; i++) must(match_exclude_check(globs.at[i], NULL) == 0);
  names_free(&globs);
  memset(kept, 0, sizeof kept);
  if (answer_kept(value, ITEMS, kept, &e) == 0)
    for (int i = 0; i < ITEMS; i++) {
      must(strlen(kept[i].reason) < sizeof kept[i].reason);
      for (const char *at = kept[i].reason; *at; at++) must((unsigned char)*at >= ' ');
    }
  for (const char *at = e.text; *at; at++) must((unsigned char)*at >= ' ');
  json_decref(value);
}

/* The sources, a byte 0x1e, and the file that they read. */
void fuzz_metrics(const uint8_t *data, size_t size) {
  static const char usual[] = "[{\"from\":\"json\",\"file\":\"metrics.json\",\"path\":\"a.b[-1]\"},"
                              "{\"from\":\"jsonl\",\"file\":\"metrics.json\"},"
                              "{\"from\":\"json\",\"file\":\"metrics.json\"}]";
  json_t *sources = NULL;
  char warning[POLICY_REASON_MAX];
  size_t left = size, len = 0;
  const uint8_t *at = data;
  const uint8_t *piece = size ? fuzz_piece(&at, &left, 0x1e, &len) : NULL;
  if (!piece) return;
  if (len == 0) piece = (const uint8_t *)usual, len = sizeof usual - 1;
  if (js_parse((const char *)piece, len, "sources", &sources, NULL) < 0) return;
  fuzz_file("metrics.json", at ? at : (const uint8_t *)"", at ? left : 0);
  if (policy_metrics_check(sources, NULL) == 0) {
    policy p = {.io = fuzz_io(), .data = json_pack("{s:O}", "metrics", sources)};
    const detect_unit unit = {.path = ".", .name = ".", .group = "", .kind = MATCH_DIR};
    char *found = policy_metrics(&p, fuzz_dir(), &unit, "{\"loss\":1}", warning);
    must(!found || (*found == '{' && strlen(found) <= 4096));
    must(strlen(warning) < sizeof warning);
    free(found);
    json_decref(p.data);
  }
  json_decref(sources);
}

static policy_serve *helper(bool lost) {
  static const char load[] =
      "{\"op\":\"load\",\"id\":\"x\",\"settings\":{},\"cover\":true,\"chain\":[{\"name\":\"p\","
      "\"text\":"
      "\"return { api = 1, sync = function(e, m) m.e, m.n = e, (m.n or 0) return 'sync' end,"
      " keep = any { keep.best('loss', 1, 'min'), function(list) return { list[1] }, list[1] and "
      "list[1].name end } }\"}]}";
  static policy_serve *p;
  buf answer;
  if (p && !lost) return p;
  if (!p) p = policy_serve_new(NULL);
  must(p && policy_serve_call(p, load, sizeof load - 1, &answer) == 0);
  must(strstr(answer.data, "\"ok\":true"));
  buf_free(&answer);
  return p;
}

/* A result that a training reported goes into a question to the helper, which can read it, and can
 * remember it or says that it cannot. */
void fuzz_facts(const uint8_t *data, size_t size) {
  static const char ask[] = "{\"op\":\"ask\",\"id\":\"x\",\"hook\":\"sync\",\"memory\":{}}";
  policy asking = {.io = fuzz_io(), .id = "x"};
  policy_serve *p = helper(false);
  json_t *value = NULL;
  buf answer, request;
  char *own = fuzz_text(data, size);
  const policy_facts facts = {.event = "result", .group = "", .result = own, .metrics = own};
  policy_question q = policy_event(&asking, &facts);
  must(buf_failed(&q.about) == 0);
  buf_init(&request, 8 << 20);
  buf_add(&request, ask, sizeof ask); /* with its NUL */
  buf_add(&request, q.about.data, q.about.len);
  must(policy_serve_call(p, request.data, request.len, &answer) == 0);
  must(js_parse(answer.data, answer.len, "answer", &value, NULL) == 0);
  const char *kind = json_string_value(json_object_get(value, "kind"));
  must(!kind || strcmp(kind, "answer") == 0);
  json_decref(value);
  buf_free(&answer);
  buf_free(&request);
  policy_question_free(&q);
  free(own);
}

/* The other side: what the helper makes of a request, and of a memory table out of a store, which
 * it gives back. */
void fuzz_memory(const uint8_t *data, size_t size) {
  static bool lost;
  policy_serve *p = helper(lost);
  json_t *value = NULL;
  buf answer, request;
  must(policy_serve_call(p, (const char *)data, size, &answer) == 0);
  must(js_parse(answer.data, answer.len, "answer", &value, NULL) == 0);
  json_decref(value);
  buf_free(&answer);
  if (js_parse((const char *)data, size, "memory", &value, NULL) < 0) return;
  buf_init(&request, 8 << 20);
  buf_str(&request,
          "{\"op\":\"ask\",\"id\":\"x\",\"hook\":\"sync\",\"event\":{\"step\":3},\"memory\":");
  must(js_print(value, &request, NULL) == 0);
  buf_str(&request, "}");
  json_decref(value);
  must(policy_serve_call(p, request.data, request.len, &answer) == 0);
  must(js_parse(answer.data, answer.len, "answer", &value, NULL) == 0);
  lost = !json_is_true(json_object_get(value, "ok"));
  json_decref(value);
  buf_free(&answer);
  buf_free(&request);
}

/* How many items a packed list has, by the reader alone; -1: it is broken. */
static ssize_t count_items(const uint8_t *data, size_t size) {
  enum { NUMBERS = 7, TEXTS = 5, FLAGS = 7 };
  ssize_t count = 0;
  for (packed from = {(const char *)data, (const char *)data + size}; from.at < from.end; count++) {
    unsigned char flags;
    double number;
    const char *text;
    size_t len;
    bool whole = packed_byte(&from, &flags) && flags <= FLAGS;
    for (int i = 0; whole && i < NUMBERS; i++) whole = packed_number(&from, &number);
    for (int i = 0; whole && i < TEXTS; i++) {
      whole = packed_text(&from, &text, &len);
      must(!text || (whole && strlen(text) == len));
    }
    if (!whole) return -1;
  }
  return count;
}

/* A packed list behind a question: one that is whole is judged, and each item of it. */
void fuzz_list(const uint8_t *data, size_t size) {
  static const char ask[] =
      "{\"op\":\"ask\",\"id\":\"x\",\"hook\":\"keep\",\"event\":{\"event\":\"keep\"}}";
  static bool lost;
  policy_serve *p = helper(lost);
  json_t *value = NULL;
  buf answer, request;
  ssize_t count = count_items(data, size);
  buf_init(&request, 8 << 20);
  buf_add(&request, ask, sizeof ask);
  buf_add(&request, data, size);
  must(policy_serve_call(p, request.data, request.len, &answer) == 0);
  must(js_parse(answer.data, answer.len, "answer", &value, NULL) == 0);
  lost = !json_is_true(json_object_get(value, "ok"));
  must(!lost || count < 0);
  const json_t *said = json_object_get(value, "answer");
  if (!lost) must(json_string_length(json_object_get(said, "keep")) == (size_t)count);
  if (!lost) must(json_array_size(json_object_get(said, "why")) == (size_t)count);
  json_decref(value);
  buf_free(&answer);
  buf_free(&request);
}

/* A packed event behind a question: whatever it is, the helper lives on and answers. */
void fuzz_event(const uint8_t *data, size_t size) {
  static const char ask[] = "{\"op\":\"ask\",\"id\":\"x\",\"hook\":\"sync\"}";
  static bool lost;
  policy_serve *p = helper(lost);
  json_t *value = NULL;
  buf answer, request;
  buf_init(&request, 8 << 20);
  buf_add(&request, ask, sizeof ask);
  buf_add(&request, data, size);
  must(policy_serve_call(p, request.data, request.len, &answer) == 0);
  must(js_parse(answer.data, answer.len, "answer", &value, NULL) == 0);
  lost = !json_is_true(json_object_get(value, "ok"));
  json_decref(value);
  buf_free(&answer);
  buf_free(&request);
}

static void check_event(const lab_event *event, int64_t after_ns) {
  must(event->at_ns >= after_ns && event->at_ns <= INT64_C(1000000000) * 1000000000);
  must(event->what < LAB_WHATS && event->trial && *event->trial != '/');
  must(!event->name || (*event->name && !strchr(event->name, '/')));
  must(event->bytes <= UINT64_C(1) << 60 && event->step >= -1);
  must(isfinite(event->transfer_s) && isfinite(event->grace_s) && event->grace_s >= 0);
  must(event->what != LAB_RESULT || event->result);
  must(!event->makes || event->what == LAB_RESULT || event->what == LAB_CHECKPOINT);
}

/* What a simulation is told: one line, and a file of them, of events or of changes of files. */
void fuzz_events(const uint8_t *data, size_t size) {
  lab_event event;
  lab_history h;
  err e = {0};
  if (lab_event_read((const char *)data, size, "f:1", 5, &event, &e) == 0) {
    check_event(&event, 5);
    lab_event_free(&event);
  } else {
    must(strncmp(e.text, "f:1: ", 5) == 0);
  }
  for (const char *at = e.text; *at; at++) must((unsigned char)*at >= ' ');
  if (lab_history_read(fuzz_io(), fuzz_file("events.jsonl", data, size), &h, &e) < 0) return;
  const trace_rules by = {rules_builtin(), NULL, "temp"};
  if (lab_trace_play(&h, "f", &by, NULL, &e) < 0) must(*e.text);
  for (size_t i = 0; i < h.count; i++) check_event(&h.events[i], i ? h.events[i - 1].at_ns : 0);
  lab_history_free(&h);
}
