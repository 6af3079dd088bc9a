/* The hooks of a decision are asked in one exchange, and answered as if each were asked by itself: beside
 * the helper stands one that is never asked more than one thing. That one is this program, started
 * under the helper's name. */

#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "decision/policy.h"
#include "lua/policy/policy_serve.h"
#include "policy_helper.h"
#include "tmpdir.h"

/* ---- the helper that is asked one thing ---- */

static void take(void *to, size_t len) {
  for (char *at = to; len > 0;) {
    ssize_t n = read(STDIN_FILENO, at, len);
    if (n <= 0) _exit(0);
    at += n;
    len -= (size_t)n;
  }
}

static void give(const void *bytes, size_t len) {
  for (const char *at = bytes; len > 0;) {
    ssize_t n = write(STDOUT_FILENO, at, len);
    if (n <= 0) _exit(0);
    at += n;
    len -= (size_t)n;
  }
}

static int serve_one_by_one(void) {
  policy_serve *serve = policy_serve_new(NULL);
  for (;;) {
    uint32_t len;
    take(&len, sizeof len);
    char *text = malloc(len);
    take(text, len);
    size_t said = strnlen(text, len); /* the event stands behind it */
    json_t *request = json_loadb(text, said, 0, NULL);
    json_object_del(request, "then");
    buf one, answer;
    buf_init(&one, POLICY_FRAME_MAX);
    if (js_print(request, &one, NULL) < 0) _exit(1);
    buf_add(&one, text + said, len - said);
    if (policy_serve_call(serve, one.data, one.len, &answer) < 0) _exit(1);
    len = (uint32_t)answer.len;
    give(&len, sizeof len);
    give(answer.data, answer.len);
    buf_free(&answer);
    buf_free(&one);
    free(text);
    json_decref(request);
  }
}

/* ---- policies ---- */

static const char *const policies[] = {
    /* They hand each other what they remember, in all shapes. */
    "local calls = 0\n"
    "return { api = 1,\n"
    "  ready = function(e, m)\n"
    "    m.n = (m.n or 0) + 1\n"
    "    m.odd = { -0.0, 1e300, '\\xff\\0x', {}, { x = { 1, 2 } } }\n"
    "    m.a = { m.n }\n"
    "    m.b = m.a\n"
    "    if m.n % 5 == 0 then return false, 'not ready: ' .. m.n, '3m' end\n"
    "    return m.n % 3 == 0 or nil, 'ready: ' .. m.n\n"
    "  end,\n"
    "  sync = function(e, m)\n"
    "    calls = calls + 1\n"
    "    m.a[1] = 'changed'\n"
    "    m.n = m.n + 1\n"
    "    if m.n % 4 == 0 then return 'skip', 'no: ' .. m.n .. ' ' .. calls, 20 end\n"
    "    return m.n % 3 == 0 and 'sync' or nil, m.n .. m.odd[3] .. tostring(m.b[1])\n"
    "  end,\n"
    "  queue = function(e, m)\n"
    "    calls = calls + 100\n"
    "    local words = { 'newest', 'all', 'skip', 'block' }\n"
    "    m.seen = (m.seen or '') .. m.n .. tostring(m.a == m.b) .. string.format('%g', m.odd[1])\n"
    "    m.seen = string.sub(m.seen, -100)\n"
    "    return words[m.n % 5 + 1]\n"
    "  end }",
    /* What one holds on to is not what the next one is handed, nor the facts that it changed. */
    "local held, facts\n"
    "return { api = 1,\n"
    "  ready = function(e, m) held, facts = m, e; m.x = 1; e.checkpoint.step = 'gone' end,\n"
    "  sync = function(e, m)\n"
    "    held.x, facts.checkpoint.files = 2, 77\n"
    "    return 'sync', m.x .. tostring(e.checkpoint.step) .. e.checkpoint.files\n"
    "  end,\n"
    "  queue = function(e, m) return m.x == 1 and 'all' or 'newest' end }",
    /* They break down, answer nonsense and remember what nobody can. */
    "return { api = 1,\n"
    "  ready = function(e, m)\n"
    "    m.r = (m.r or 0) + 1\n"
    "    local s = e.checkpoint.step or 0\n"
    "    if s % 3 == 1 then error('no') end\n"
    "    if s % 7 == 1 then m.big = string.rep('x', 70000) end\n"
    "    if s % 7 == 2 then m.big = string.rep('\\1', 20000) end\n"
    "    if s % 7 == 3 then m.big = 0 / 0 end\n"
    "    if s % 5 == 2 then return 'what' end\n"
    "  end,\n"
    "  sync = function(e, m)\n"
    "    m.s = (m.s or 0) + 1\n"
    "    local s = e.checkpoint.step or 0\n"
    "    if s % 4 == 1 then error({}) end\n"
    "    if s % 5 == 1 then return 'wat' end\n"
    "    return 'sync', tostring(m.r) .. m.s\n"
    "  end,\n"
    "  queue = function(e, m)\n"
    "    m.q = (m.q or 0) + 1\n"
    "    local s = e.checkpoint.step or 0\n"
    "    if s == 13 then while true do end end\n"
    "    if s % 6 == 0 then return 5 end\n"
    "    return 'block'\n"
    "  end }",
    /* Rules of the library. */
    "return { api = 1, sync = all { any { when.metric_improved('loss', 'min'),\n"
    "  when.at_most_every('20s') }, function(e, m)\n"
    "  m.last = e.checkpoint.step return (e.checkpoint.step or 0) % 3 ~= 0 end },\n"
    "  queue = function(e, m) return m.last == 4 and 'all' or 'skip' end }",
    "return { api = 1, ready = function(e, m) m.t = m.t or e.now return e.now - m.t > 30, 'later', "
    "31\n"
    "  end, queue = function(e, m) m.q = m.t return 'all' end }",
};
enum { POLICIES = sizeof policies / sizeof *policies };

/* ---- both ways ---- */

static int64_t wall_ns = INT64_C(1795372205123456789);

static int64_t told_now(const io *io, io_clock clock) {
  return clock == IO_WALL ? wall_ns : io_system()->now(io, clock);
}

static io world;

typedef struct way {
  policy_link *link;
  policy *p;
  char *memory;
  policy_asked asked[POLICY_DECIDING];
} way;

static void open_way(way *w, const char *libexec, const char *file) {
  const char *names[] = {file, NULL};
  err e = {0};
  *w = (way){0};
  policy_link_options link = {.io = &world, .libexec = libexec};
  if (policy_link_open(&link, &w->link, &e) < 0) fail_msg("%s", e.text);
  policy_options o = {.io = &world,
                      .link = w->link,
                      .id = "run-1",
                      .names = names,
                      .quiet_ns = -1,
                      .untried = true};
  if (policy_open(&o, &w->p, &e) < 0) fail_msg("%s", e.text);
}

static void close_way(way *w) {
  policy_asked_clear(w->asked);
  policy_close(w->p);
  policy_link_close(w->link);
  free(w->memory);
}

static uint64_t seed;
static unsigned draw(unsigned below) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(seed >> 33) % below;
}

static decision decide(way *w, const detect_unit *unit, const char *metrics, bool again) {
  policy_facts facts = {.event = again ? "time" : "complete",
                        .group = "",
                        .unit = unit,
                        .since.seconds = (double)unit->files * 8,
                        .metrics = metrics,
                        .asked = w->asked};
  decision d;
  memset(&d, 0, sizeof d);
  if (!again) policy_asked_clear(w->asked);
  policy_decide(w->p, &facts, &w->memory, &d);
  return d;
}

static void must_be_equal(const decision *a, const decision *b) {
  assert_string_equal(a->reason, b->reason);
  assert_int_equal(a->action, b->action);
  assert_int_equal(a->queue, b->queue);
  assert_true(a->again_s == b->again_s);
  assert_string_equal(a->policy, b->policy);
}

static void hooks_are_answered_as_if_each_were_asked_by_itself(void **unused) {
  enum { ROUNDS = 120 };
  const char *build = getenv("CKPT_BUILD");
  char *dir = tmpdir_new(), libexec[4096];
  snprintf(libexec, sizeof libexec, "%s/libexec", build ? build : "build");
  policy_helper_install(dir);
  for (int n = 0; n < POLICIES; n++) {
    const char *file = tmpdir_path(dir, "p.lua");
    way one, each;
    write_file(file, policies[n]);
    open_way(&one, libexec, file);
    open_way(&each, dir, file);
    seed = (uint64_t)n + 1;
    unsigned seen[4] = {0};
    for (int i = 0; i < ROUNDS; i++) {
      detect_unit unit = {.path = "ck",
                          .name = "ck",
                          .group = "",
                          .step = draw(9) ? (int64_t)draw(18) : MATCH_NO_STEP,
                          .state = draw(4) ? DETECT_COMPLETE : DETECT_UNPROVEN,
                          .files = draw(5),
                          .reason = "renamed"};
      bool again = draw(3) == 0;
      char metrics[40];
      snprintf(metrics, sizeof metrics, "{\"loss\":%u}", 500 - (unsigned)i + draw(9));
      decision a = decide(&one, &unit, metrics, again), b = decide(&each, &unit, metrics, again);
      must_be_equal(&a, &b);
      assert_string_equal(one.memory ? one.memory : "", each.memory ? each.memory : "");
      assert_int_equal(policy_fallbacks(one.p), policy_fallbacks(each.p));
      seen[a.action]++;
      wall_ns += (int64_t)draw(20) * 1000000000;
    }
    assert_true(seen[POLICY_SAVE] > 0 && seen[POLICY_SAVE_IF_SOUND] > 0);
    close_way(&one);
    close_way(&each);
  }
  tmpdir_remove(dir);
}

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return serve_one_by_one();
  world = *io_system();
  world.now = told_now;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hooks_are_answered_as_if_each_were_asked_by_itself),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
