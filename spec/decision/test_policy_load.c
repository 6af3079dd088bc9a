#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "decision/policy.h"
#include "io_fault.h"
#include "policy_helper.h"
#include "tmpdir.h"

/* Opening must fail with this code, and with this in the text. */
static void refuses(policy_world *w, const char *text, const policy_options *more, int code,
                    const char *told) {
  policy *p;
  err e = {0};
  int rc = policy_world_open(w, text, more, &p, &e);
  if (rc == 0) fail_msg("accepted: %s", text ? text : "(options)");
  if (rc != code || e.code != code || !strstr(e.text, told))
    fail_msg("%s: %s: %s; wanted %s and \"%s\"", text ? text : "(options)", err_name(rc), e.text,
             err_name(code), told);
  assert_null(p);
}

static void without_names_the_builtin_rule_stands_alone(void **state) {
  policy_world *w = *state;
  policy *p;
  err e = {0};
  assert_int_equal(policy_world_open(w, NULL, NULL, &p, &e), 0);
  assert_string_equal(policy_names(p), "builtin");
  assert_null(policy_note(p, 0));
  assert_null(policy_null_marker(p));
  for (int hook = 0; hook < POLICY_HOOKS; hook++) assert_false(policy_has(p, (policy_hook)hook));
  assert_int_equal(policy_rules(p)->quiet_ns, rules_builtin()->quiet_ns);
  policy_close(p);
  assert_int_equal(policy_link_generation(w->link), 0); /* no helper for it */
  policy_close(NULL);
}

static void what_a_chain_says_of_itself_is_there(void **state) {
  policy *p = policy_world_must(
      *state, "{\"ok\":true,\"notes\":[\"would free\\n3\",\"\",7,\"more\"],\"markers\":{\"null\":"
              "\".null\",\"temp\":\".temp\"},\"has\":{\"sync\":[\"p\",\"q\"],\"keep\":{},"
              "\"dance\":[\"p\"]},\"warnings\":[\"take care\"]}");
  assert_string_equal(policy_names(p), "p");
  assert_string_equal(policy_note(p, 0), "would free 3");
  assert_string_equal(policy_note(p, 1), "more");
  assert_null(policy_note(p, 2));
  assert_string_equal(policy_null_marker(p), ".null");
  assert_string_equal(policy_temp_marker(p), ".temp");
  assert_true(policy_has(p, POLICY_SYNC));
  assert_false(policy_has(p, POLICY_KEEP));
  assert_false(policy_has(p, POLICY_READY));
  assert_string_equal(((policy_world *)*state)->lines.data, "policy p: take care\n");
}

static void what_only_the_newest_keep_is_taken_as_it_is_said(void **state) {
  policy *p = policy_world_must(
      *state, "{\"ok\":true,\"newest_only\":{\"files\":[\"optimizer.pt\",\"states/\"],"
              "\"newest\":3,\"by\":[\"mine\",\"other\"]}}");
  const policy_newest_only *n = policy_newest(p);
  assert_int_equal(n->globs.count, 2);
  assert_string_equal(n->globs.at[1], "states/");
  assert_int_equal(n->newest, 3);
  assert_string_equal(n->policy, "mine, other");
  assert_int_equal(policy_newest(policy_world_must(*state, "{\"ok\":true}"))->globs.count, 0);
  p = policy_world_must(*state,
                        "{\"ok\":true,\"newest_only\":{\"files\":[\"optim-*\"],\"newest\":2},"
                        "\"complete\":{\"done\":\"parts\",\"name\":\"shard-*.pt\",\"count\":2}}");
  assert_int_equal(policy_newest(p)->globs.count, 1);
}

static void a_chain_that_does_not_load_is_an_error(void **state) {
  static const struct {
    const char *text;
    int code;
    const char *told;
  } ways[] = {
      {"{\"ok\":false,\"kind\":\"syntax\",\"text\":\"p.lua:3: what\"}", ERR_POLICY,
       "p.lua:3: what"},
      {"{\"ok\":false,\"kind\":\"setting\",\"text\":\"no option kep\"}", ERR_INVAL,
       "no option kep"},
      {"{\"ok\":false,\"kind\":\"budget\",\"text\":\"\"}", ERR_POLICY, "too long"},
      {"{\"ok\":false,\"kind\":\"memory\",\"text\":\"\"}", ERR_POLICY, "memory"},
      {"{\"ok\":false}", ERR_POLICY, "p"},
      {"nonsense", ERR_POLICY, "JSON"},
      {"!abort", ERR_POLICY, "ABRT"},
      {"{\"ok\":true,\"queue\":\"fast\"}", ERR_POLICY, "\"newest\""},
      {"{\"ok\":true,\"has\":{\"sync\":5}}", ERR_POLICY, "has"},
      {"{\"ok\":true,\"markers\":{\"null\":\"a/b\"}}", ERR_POLICY, "null"},
      {"{\"ok\":true,\"markers\":{\"temp\":\"\"}}", ERR_POLICY, "temp"},
      {"{\"ok\":true,\"markers\":{\"temp\":4}}", ERR_POLICY, "temp"},
      {"{\"ok\":true,\"metrics\":[{\"from\":\"mars\"}]}", ERR_POLICY, "metrics"},
      {"{\"ok\":true,\"unit\":[\"/abs\"]}", ERR_POLICY, "unit"},
      {"{\"ok\":true,\"unit\":[\"{stp}\"]}", ERR_POLICY, "unit"},
      {"{\"ok\":true,\"unit\":\"x\"}", ERR_POLICY, "unit"},
      {"{\"ok\":true,\"unit\":[5]}", ERR_POLICY, "unit"},
      {"{\"ok\":true,\"unit\":[{\"proven\":true}]}", ERR_POLICY, "unit"},
      {"{\"ok\":true,\"exclude\":[\"{step}\"]}", ERR_POLICY, "exclude"},
      {"{\"ok\":true,\"exclude\":7}", ERR_POLICY, "exclude"},
      {"{\"ok\":true,\"complete\":{\"done\":\"marker\",\"name\":\"a/b\"}}", ERR_POLICY, "a/b"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"a/b\"],\"newest\":2}}", ERR_POLICY, "slash"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"*\"],\"newest\":2}}", ERR_POLICY, "all that"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"?*\"],\"newest\":2}}", ERR_POLICY, "all that"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"*/\"],\"newest\":2}}", ERR_POLICY, "all that"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[5],\"newest\":2}}", ERR_POLICY, "no text"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"a\"],\"newest\":0}}", ERR_POLICY, "newest"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"a\"]}}", ERR_POLICY, "newest"},
      {"{\"ok\":true,\"newest_only\":{\"newest\":2}}", ERR_POLICY, "list"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"DON*\"],\"newest\":2},"
       "\"complete\":{\"done\":\"marker\",\"name\":\"DONE\"}}",
       ERR_POLICY, "complete"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"DONE\"],\"newest\":2},"
       "\"complete\":{\"done\":\"known\",\"markers\":[{\"name\":\"DONE\"}]}}",
       ERR_POLICY, "complete"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"shard-0*\"],\"newest\":2},"
       "\"complete\":{\"done\":\"parts\",\"name\":\"shard-*\",\"count\":2}}",
       ERR_POLICY, "complete"},
      {"{\"ok\":true,\"newest_only\":{\"files\":[\"*_[0-9]\"],\"newest\":2},"
       "\"complete\":{\"done\":\"parts\",\"name\":\"rank_?\",\"count\":2}}",
       ERR_POLICY, "complete"},
  };
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    refuses(*state, ways[i].text, NULL, ways[i].code, ways[i].told);
}

static void settings_reach_the_policies(void **state) {
  policy_world *w = *state;
  const char *const settings[] = {"keep=5", "empty=", "text=a=b c", "keep=6", NULL};
  policy_options o = {.quiet_ns = -1, .settings = settings};
  unsetenv("CKPT_O_KEEP");
  policy *p = policy_world_with(w, "!settings", &o);
  assert_string_equal(policy_note(p, 0), "{\"empty\":\"\",\"keep\":\"6\",\"text\":\"a=b c\"}");
}

static void the_environment_stands_behind_the_settings(void **state) {
  policy_world *w = *state;
  const char *const settings[] = {"keep=5", NULL};
  policy_options o = {.quiet_ns = -1, .settings = settings};
  setenv("CKPT_O_KEEP", "9", 1);
  setenv("CKPT_O_BEST_OF", "2", 1);
  setenv("CKPT_O_OF_ANOTHER_POLICY", "x", 1); /* no option of this one: no matter */
  policy *p = policy_world_with(w, "!settings", &o);
  assert_string_equal(policy_note(p, 0), "{\"best_of\":\"2\",\"keep\":\"5\"}");
  p = policy_world_with(w, "!settings", NULL);
  assert_string_equal(policy_note(p, 0), "{\"best_of\":\"2\",\"keep\":\"9\"}");
  setenv("CKPT_O_KEEP", "\xff", 1);
  refuses(w, "!settings", NULL, ERR_INVAL, "CKPT_O_KEEP");
  unsetenv("CKPT_O_KEEP");
  unsetenv("CKPT_O_BEST_OF");
}

static void what_is_no_setting_is_refused(void **state) {
  static const char *const wrong[] = {"keep", "=5", "", "5x=1", "a b=1", "k\xc3\xa9=1", "k=\xff"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *const settings[] = {wrong[i], NULL};
    policy_options o = {.quiet_ns = -1, .settings = settings};
    refuses(*state, "{\"ok\":true}", &o, ERR_INVAL, "setting");
  }
  const char *const settings[] = {"keep=5", NULL};
  policy_options o = {.quiet_ns = -1, .settings = settings};
  refuses(*state, NULL, &o, ERR_INVAL, "no policy");
}

static void names_are_looked_up_and_paths_are_not(void **state) {
  policy_world *w = *state;
  char path[4200];
  char *dir = tmpdir_new();
  write_file(tmpdir_path(dir, "default.lua"), "{\"ok\":true,\"notes\":[\"the default\"]}");
  write_file(tmpdir_path(dir, "other.lua"), "{\"ok\":true,\"notes\":[\"the other\"]}");
  write_file(tmpdir_path(w->dir, "mine.lua"), "{\"ok\":true,\"notes\":[\"mine\"]}");
  snprintf(path, sizeof path, "%s/mine.lua", w->dir);
  const char *names[] = {"other", NULL, NULL};
  policy_options o = {.quiet_ns = -1, .names = names, .dir = dir};
  policy *p = policy_world_with(w, NULL, &o);
  assert_string_equal(policy_note(p, 0), "the other");
  assert_string_equal(policy_names(p), "other");
  names[0] = path;
  names[1] = "default";
  p = policy_world_with(w, NULL, &o);
  assert_string_equal(policy_note(p, 0), "mine");
  assert_string_equal(policy_names(p), "mine, default");
  setenv("CKPT_POLICIES", dir, 1);
  names[0] = "default";
  names[1] = NULL;
  o.dir = NULL;
  p = policy_world_with(w, NULL, &o);
  assert_string_equal(policy_note(p, 0), "the default");
  unsetenv("CKPT_POLICIES");
  o.dir = dir;
  names[0] = "defualt";
  refuses(w, NULL, &o, ERR_INVAL, "which has default other");
  names[0] = "./default";
  refuses(w, NULL, &o, ERR_INVAL, "./default");
  names[0] = "default.lua"; /* a path in the working directory */
  refuses(w, NULL, &o, ERR_INVAL, "default.lua");
  names[0] = "";
  refuses(w, NULL, &o, ERR_INVAL, "no name");
  tmpdir_remove(dir);
}

static void a_file_that_is_none_is_refused(void **state) {
  policy_world *w = *state;
  char path[4200];
  const char *names[] = {path, NULL};
  policy_options o = {.quiet_ns = -1, .names = names};
  size_t len = (256 << 10) + 1;
  char *much = malloc(len + 1);
  memset(much, ' ', len);
  much[len] = '\0';
  snprintf(path, sizeof path, "%s/much.lua", w->dir);
  write_file(path, much);
  refuses(w, NULL, &o, ERR_INVAL, "much.lua is over 256 KiB");
  free(much);
  snprintf(path, sizeof path, "%s/bytes.lua", w->dir);
  write_file(path, "\x1bLJ\x02\xff\xfe");
  refuses(w, NULL, &o, ERR_POLICY, "bytes.lua is not UTF-8");
  snprintf(path, sizeof path, "%s/nul.lua", w->dir);
  write_bytes(path, "return {\n\0api = 1 }", 19);
  refuses(w, NULL, &o, ERR_INVAL, "nul.lua has a byte 0 in line 2");
  snprintf(path, sizeof path, "%s/fifo.lua", w->dir);
  assert_int_equal(mkfifo(path, 0600), 0);
  refuses(w, NULL, &o, ERR_INVAL, "fifo.lua");
  snprintf(path, sizeof path, "%s/dir.lua", w->dir);
  make_dir(path);
  refuses(w, NULL, &o, ERR_INVAL, "dir.lua");
  int n = snprintf(path, sizeof path, "%s/", w->dir);
  memset(path + n, 'n', 100);
  memcpy(path + n + 100, ".lua", 5);
  write_file(path, "{\"ok\":true}");
  refuses(w, NULL, &o, ERR_INVAL, "longer than");
}

static void too_many_policies_are_refused(void **state) {
  policy_world *w = *state;
  char path[4200];
  const char *names[18] = {0};
  policy_options o = {.quiet_ns = -1, .names = names};
  snprintf(path, sizeof path, "%s/p.lua", w->dir);
  write_file(path, "{\"ok\":true}");
  for (int i = 0; i < 16; i++) names[i] = path;
  policy_world_with(w, NULL, &o);
  names[16] = path;
  refuses(w, NULL, &o, ERR_INVAL, "more than 16");
}

static void a_chain_without_a_helper_is_refused(void **state) {
  policy_world *w = *state;
  policy_link *link = w->link;
  char path[4200];
  snprintf(path, sizeof path, "%s/ckpt-policy", w->dir);
  assert_int_equal(remove(path), 0);
  refuses(w, "{\"ok\":true}", NULL, ERR_NOENT, "ckpt-policy");
  w->link = NULL;
  refuses(w, "{\"ok\":true}", NULL, ERR_INVAL, "run policies");
  w->link = link;
}

/* ---- rules ---- */

static policy *with_rules(policy_world *w, const char *text, const policy_options *o) {
  policy *p;
  err e = {0};
  if (policy_world_open(w, text, o, &p, &e) < 0) fail_msg("%s: %s", text, e.text);
  return p;
}

static void units_and_excludes_become_rules(void **state) {
  policy *p = with_rules(*state,
                         "{\"ok\":true,\"unit\":[\"ck-{step}/\",{\"glob\":\"{step}/\",\"proven\":"
                         "true},{\"glob\":\"*.pt\"}],\"exclude\":[\"*.part\"]}",
                         NULL);
  const rules *r = policy_rules(p);
  assert_string_equal(r->units[0], "ck-{step}/");
  assert_string_equal(r->units[1], "{step}/");
  assert_string_equal(r->units[2], "*.pt");
  assert_null(r->units[3]);
  assert_true(rules_needs_proof(r, "{step}/"));
  assert_false(rules_needs_proof(r, "ck-{step}/"));
  assert_true(rules_excluded(r, "a/x.part", false));
  assert_true(rules_excluded(r, "x.tmp", false)); /* the built-in ones stay */
  assert_int_equal(r->test_count, 0);
  policy_close(p);
}

static void empty_lists_are_as_built_in(void **state) {
  policy *p = with_rules(*state, "{\"ok\":true,\"unit\":{},\"exclude\":{},\"metrics\":{}}", NULL);
  const rules *r = policy_rules(p), *builtin = rules_builtin();
  for (size_t i = 0; builtin->units[i]; i++) assert_string_equal(r->units[i], builtin->units[i]);
  assert_true(rules_needs_proof(r, "{step}/"));
  policy_close(p);
}

static void the_command_line_comes_before_the_policies(void **state) {
  const char *const units[] = {"mine-{step}/", NULL}, *const excludes[] = {"*.skip", NULL},
                    *const markers[] = {"DONE", NULL};
  policy_options o = {.quiet_ns = 7, .units = units, .excludes = excludes, .markers = markers};
  policy *p = with_rules(*state,
                         "{\"ok\":true,\"unit\":[\"ck-{step}/\"],\"exclude\":[\"*.part\"],"
                         "\"complete\":{\"done\":\"known\",\"quiet_ns\":5e9,\"settled_ns\":0,"
                         "\"markers\":[{\"name\":\"A\",\"newer\":true}]}}",
                         &o);
  const rules *r = policy_rules(p);
  assert_string_equal(r->units[0], "mine-{step}/");
  assert_null(r->units[1]);
  assert_true(rules_excluded(r, "x.part", false));
  assert_true(rules_excluded(r, "x.skip", false));
  assert_non_null(rules_marker_named(r, "DONE"));
  assert_null(rules_marker_named(r, "A"));
  assert_int_equal(r->quiet_ns, 7);
  assert_int_equal(r->test_count, 0);
  policy_close(p);
  /* Who names it means it, whatever the policy says of the same pattern. */
  const char *const numbers[] = {"{step}/", NULL};
  policy_options same = {.quiet_ns = -1, .units = numbers};
  p = with_rules(*state, "{\"ok\":true,\"unit\":[{\"glob\":\"{step}/\",\"proven\":true}]}", &same);
  assert_false(rules_needs_proof(policy_rules(p), "{step}/"));
  policy_close(p);
  const char *const broken[] = {"/abs", NULL};
  policy_options wrong = {.quiet_ns = -1, .units = broken};
  refuses(*state, "{\"ok\":true}", &wrong, ERR_INVAL, "/abs");
}

static void known_markers_and_times_are_taken(void **state) {
  policy *p = with_rules(*state,
                         "{\"ok\":true,\"complete\":{\"done\":\"known\",\"quiet_ns\":5e9,"
                         "\"marked_ns\":1000000,\"settled_ns\":0,\"markers\":[{\"name\":\"A\","
                         "\"newer\":true},{\"name\":\"B\",\"when\":\"*.x\",\"newer\":false,"
                         "\"final\":true}]}}",
                         NULL);
  const rules *r = policy_rules(p);
  assert_int_equal(r->quiet_ns, INT64_C(5000000000));
  assert_int_equal(r->marked_ns, 1000000);
  assert_true(r->settled_ns <= 1);
  assert_int_equal(r->marker_count, 2);
  assert_true(rules_marker_named(r, "A")->newest && !rules_marker_named(r, "A")->final);
  assert_true(rules_marker_named(r, "B")->final);
  assert_string_equal(rules_marker_named(r, "B")->signature, "*.x");
  policy_close(p);
  p = with_rules(*state, "{\"ok\":true,\"complete\":{\"done\":\"known\",\"markers\":{}}}", NULL);
  assert_int_equal(policy_rules(p)->marker_count, 0);
  policy_close(p);
  p = with_rules(*state, "{\"ok\":true,\"complete\":{\"done\":\"known\"}}", NULL);
  assert_int_equal(policy_rules(p)->marker_count, rules_builtin()->marker_count);
  policy_close(p);
}

/* The tree as text: (all renamed (any closed marker:DONE+)). */
static void print_test(const rules *r, unsigned at, buf *out) {
  static const char *const names[] = {"all",   "any",   "none",   "renamed", "closed", "superset",
                                      "sound", "quiet", "marker", "parts",   "known"};
  const rules_test *t = &r->tests[at];
  if (t->op > RULES_NONE) {
    buf_str(out, names[t->op]);
    if (t->op == RULES_MARKER) buf_fmt(out, ":%s%s", t->name, t->newer ? "+" : "");
    if (t->op == RULES_PARTS) buf_fmt(out, ":%s/%u", t->name, t->count);
    if (t->op == RULES_QUIET) buf_fmt(out, ":%lld", (long long)t->ns);
    return;
  }
  buf_fmt(out, "(%s", names[t->op]);
  for (unsigned i = 0; i < t->count; i++) {
    buf_str(out, " ");
    print_test(r, t->first + i, out);
  }
  buf_str(out, ")");
}

static void expect_tree(policy_world *w, const char *complete, const policy_options *o,
                        const char *tree) {
  char text[1000];
  buf out;
  buf_init(&out, 1000);
  snprintf(text, sizeof text, "{\"ok\":true,\"complete\":%s}", complete);
  policy *p = with_rules(w, text, o);
  print_test(policy_rules(p), 0, &out);
  assert_string_equal(out.data, tree);
  buf_free(&out);
  policy_close(p);
}

static const char a_tree[] =
    "{\"all\":[{\"done\":\"renamed\"},{\"any\":[{\"done\":\"closed\"},{\"done\":\"marker\","
    "\"name\":"
    "\"DONE\",\"newer\":true},{\"none\":[{\"done\":\"superset\"}]}]},{\"done\":\"quiet\",\"ns\":"
    "5e9},"
    "{\"done\":\"sound\"},{\"done\":\"known\",\"markers\":[{\"name\":\"M\"}]}]}";

static void conditions_become_a_tree(void **state) {
  expect_tree(
      *state, a_tree, NULL,
      "(all renamed (any closed marker:DONE+ (none superset)) quiet:5000000000 sound known)");
  expect_tree(*state, "{\"done\":\"closed\"}", NULL, "closed");
  expect_tree(*state, "{\"done\":\"quiet\",\"ns\":0}", NULL, "quiet:0");
  expect_tree(*state, "{\"done\":\"marker\",\"name\":\"D\"}", NULL, "marker:D");
}

/* The user's markers are required by the built-in conditions. */
static void the_command_lines_markers_and_quiet_time_hold_in_a_tree(void **state) {
  const char *const markers[] = {"DONE", NULL};
  policy_options o = {.quiet_ns = 9, .markers = markers};
  expect_tree(*state, "{\"any\":[{\"done\":\"closed\"},{\"done\":\"quiet\",\"ns\":5}]}", &o,
              "(all known (any closed quiet:9))");
}

static void conditions_that_are_none_are_refused(void **state) {
  static const char *const wrong[] = {
      "5",
      "[]",
      "{}",
      "{\"done\":\"dinner\"}",
      "{\"done\":7}",
      "{\"all\":[]}",
      "{\"all\":{}}",
      "{\"all\":5}",
      "{\"any\":[5]}",
      "{\"done\":\"quiet\"}",
      "{\"done\":\"quiet\",\"ns\":-1}",
      "{\"done\":\"quiet\",\"ns\":1.5}",
      "{\"done\":\"quiet\",\"ns\":1e30}",
      "{\"done\":\"quiet\",\"ns\":\"5s\"}",
      "{\"done\":\"marker\"}",
      "{\"done\":\"marker\",\"name\":\"\"}",
      "{\"all\":[{\"done\":\"known\"},{\"done\":\"known\"}]}",
      "{\"done\":\"known\",\"markers\":5}",
      "{\"done\":\"known\",\"markers\":[{}]}",
      "{\"done\":\"known\",\"markers\":[{\"name\":\"x\",\"when\":5}]}",
      "{\"done\":\"known\",\"quiet_ns\":-5}",
  };
  char text[4000];
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text, "{\"ok\":true,\"complete\":%s}", wrong[i]);
    refuses(*state, text, NULL, ERR_POLICY, "policy p: ");
  }
  buf many;
  buf_init(&many, 4000);
  buf_str(&many, "{\"ok\":true,\"complete\":{\"all\":[{\"done\":\"closed\"}");
  for (int i = 0; i < 63; i++) buf_str(&many, ",{\"done\":\"closed\"}");
  buf_str(&many, "]}}");
  refuses(*state, many.data, NULL, ERR_POLICY, "too many");
  buf_clear(&many);
  buf_str(&many, "{\"ok\":true,\"complete\":");
  for (int i = 0; i < 20; i++) buf_str(&many, "{\"all\":[");
  buf_str(&many, "{\"done\":\"closed\"}");
  for (int i = 0; i < 20; i++) buf_str(&many, "]}");
  buf_str(&many, "}");
  refuses(*state, many.data, NULL, ERR_POLICY, "complete");
  buf_free(&many);
}

/* ---- failures ---- */

static void each_failing_call_is_an_error_and_leaks_nothing(void **state) {
  policy_world *w = *state;
  io_fault *f = io_fault_new(io_system());
  char path[4200];
  const char *names[] = {path, NULL};
  snprintf(path, sizeof path, "%s/p.lua", w->dir);
  write_file(path, "{\"ok\":true}");
  int fds = 0;
  for (long nth = 1;; nth++) {
    policy *p;
    err e = {0};
    policy_options o = {.quiet_ns = -1, .names = names, .io = io_fault_io(f)};
    io_fault_set(f, (io_fault_plan){.nth = nth, .errnum = 5});
    int rc = policy_world_open(w, NULL, &o, &p, &e);
    bool hit = io_fault_failed(f, CALL_ANY) > 0;
    policy_close(p);
    if (nth == 1) fds = count_fds();
    if (!hit) {
      assert_int_equal(rc, 0);
      assert_true(nth > 3);
      break;
    }
    assert_true(rc == 0 || *e.text);
  }
  assert_in_range(count_fds(), fds, fds + 2); /* those of the helper that runs now */
  io_fault_free(f);
}

/* ---- the real one ---- */

static void the_shipped_policies_load(void **unused) {
  static const char *const shipped[] = {"default",   "adaptdl",  "excludes",       "markers",
                                        "retention", "ray_tune", "sync_thresholds"};
  char libexec[4200], helper[4300];
  const char *build = getenv("CKPT_BUILD");
  snprintf(libexec, sizeof libexec, "%s/libexec", build ? build : "");
  snprintf(helper, sizeof helper, "%s/ckpt-policy", libexec);
  if (!build || !path_exists(helper) || !path_exists("policies/default.lua")) skip();
  policy_link *link;
  policy_link_options lo = {.libexec = libexec};
  assert_int_equal(policy_link_open(&lo, &link, NULL), 0);
  for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++) {
    const char *names[] = {shipped[i], "default", NULL};
    if (i == 0) names[1] = NULL;
    policy *p;
    err e = {0};
    policy_options o = {.io = io_system(),
                        .link = link,
                        .id = "r",
                        .names = names,
                        .dir = "policies",
                        .quiet_ns = -1};
    if (policy_open(&o, &p, &e) < 0) fail_msg("%s: %s", shipped[i], e.text);
    policy_close(p);
  }
  policy_link_close(link);
}

int main(int argc, char **argv) {
  if (policy_helper_is_meant(argv)) return policy_helper_run();
  const struct CMUnitTest tests[] = {
      IN_POLICY_WORLD(without_names_the_builtin_rule_stands_alone),
      IN_POLICY_WORLD(what_a_chain_says_of_itself_is_there),
      IN_POLICY_WORLD(a_chain_that_does_not_load_is_an_error),
      IN_POLICY_WORLD(settings_reach_the_policies),
      IN_POLICY_WORLD(the_environment_stands_behind_the_settings),
      IN_POLICY_WORLD(what_is_no_setting_is_refused),
      IN_POLICY_WORLD(names_are_looked_up_and_paths_are_not),
      IN_POLICY_WORLD(a_file_that_is_none_is_refused),
      IN_POLICY_WORLD(too_many_policies_are_refused),
      IN_POLICY_WORLD(a_chain_without_a_helper_is_refused),
      IN_POLICY_WORLD(units_and_excludes_become_rules),
      IN_POLICY_WORLD(empty_lists_are_as_built_in),
      IN_POLICY_WORLD(the_command_line_comes_before_the_policies),
      IN_POLICY_WORLD(known_markers_and_times_are_taken),
      IN_POLICY_WORLD(conditions_become_a_tree),
      IN_POLICY_WORLD(the_command_lines_markers_and_quiet_time_hold_in_a_tree),
      IN_POLICY_WORLD(conditions_that_are_none_are_refused),
      IN_POLICY_WORLD(what_only_the_newest_keep_is_taken_as_it_is_said),
      IN_POLICY_WORLD(each_failing_call_is_an_error_and_leaks_nothing),
      cmocka_unit_test(the_shipped_policies_load),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
