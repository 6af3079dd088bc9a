#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt.h"
#include "runner/verbs/verbs.h"

static options o;
static char error[OPTIONS_ERROR_MAX];

/* Parses a verb and its words, which end with NULL. */
static int parse(const verb *v, ...) {
  static char *argv[32];
  int argc = 0;
  va_list args;
  options_free(&o);
  va_start(args, v);
  while ((argv[argc] = va_arg(args, char *))) argc++;
  va_end(args);
  return verb_parse(v, &o, argc, argv, error);
}

#define RUN &verb_run, "run", "--dir", "d", "--to", "t"

static int drop_options(void **state) {
  options_free(&o);
  return 0;
}

static void options_come_with_a_blank_or_an_equals_sign(void **state) {
  assert_int_equal(
      parse(&verb_run, "run", "--dir=a=b", "--to", "x", "--state=s", "--", "cmd", NULL), 0);
  assert_string_equal(o.run.dir, "a=b");
  assert_string_equal(o.run.to, "x");
  assert_string_equal(o.run.state, "s");
  assert_string_equal(o.command[0], "cmd");
  assert_null(o.command[1]);
}

static void what_is_not_given_has_its_default(void **state) {
  assert_int_equal(parse(RUN, "--", "cmd", NULL), 0);
  assert_int_equal(o.restore, CKPT_RESTORE_AUTO);
  assert_true(o.grace_s == 30 && o.run.quiet_s == 0);
  assert_null(o.run.units);
  assert_false(o.detach || o.usr1 || o.require_commit || o.run.flags);
}

static void ranks_are_given_whole_or_not_at_all(void **state) {
  assert_int_equal(parse(RUN, "--rank", "0", "--world=2", "--rank-wait", "5m", "--ranks", "node",
                         "--dir-is", "local", "--", "cmd", NULL),
                   0);
  assert_int_equal(o.run.rank, 0);
  assert_int_equal(o.run.world, 2);
  assert_int_equal(o.ranks, RANKS_NODE);
  assert_int_equal(o.dir_is, DIR_IS_LOCAL);
  assert_true(o.run.rank_wait_s == 300);
  assert_int_equal(parse(RUN, "--", "cmd", NULL), 0);
  assert_int_equal(o.run.world, 0);
  assert_int_equal(o.ranks, RANKS_AUTO);
  assert_int_equal(o.dir_is, DIR_IS_FOUND);
  assert_int_equal(parse(RUN, "--rank", "0", "--", "cmd", NULL), -1);
  assert_int_equal(parse(RUN, "--world", "2", "--", "cmd", NULL), -1);
  assert_int_equal(parse(RUN, "--rank", "2", "--world", "2", "--", "cmd", NULL), -1);
  assert_int_equal(parse(RUN, "--rank", "-1", "--world", "2", "--", "cmd", NULL), -1);
  assert_int_equal(parse(RUN, "--ranks", "aut", "--", "cmd", NULL), -1);
  assert_non_null(strstr(error, "auto|off|node|task"));
  assert_int_equal(parse(RUN, "--dir-is", "nfs", "--", "cmd", NULL), -1);
  assert_int_equal(parse(RUN, "--rank-wait", "0", "--", "cmd", NULL), -1);
}

static void options_of_the_command_are_its_own(void **state) {
  assert_int_equal(parse(RUN, "-v", "python", "train.py", "--dir", "x", "-q", NULL), 0);
  assert_string_equal(o.run.dir, "d");
  assert_int_equal(o.level, 1);
  assert_string_equal(o.command[0], "python");
  assert_string_equal(o.command[4], "-q");
  assert_int_equal(parse(RUN, "--", "--odd", "--help", NULL), 0);
  assert_string_equal(o.command[0], "--odd");
  assert_false(o.help);
}

static void all_options_of_run_are_taken(void **state) {
  assert_int_equal(parse(RUN, "--run", "id", "--continue-run", "--take-over", "--launch-id", "l",
                         "--unit", "a-{step}/", "--unit", "b", "--exclude", "*.tmp", "--marker",
                         "done", "--settle", "5", "--poll", "--grace", "2m", "--usr1",
                         "--require-commit", "--on-fenced=detach", "-q", "c", NULL),
                   0);
  assert_string_equal(o.run.run_id, "id");
  assert_string_equal(o.run.launch, "l");
  assert_string_equal(o.run.units[1], "b");
  assert_null(o.run.units[2]);
  assert_null(o.run.excludes[1]);
  assert_string_equal(o.run.markers[0], "done");
  assert_true(o.run.quiet_s == 5 && o.grace_s == 120 && o.level == -1);
  assert_true(o.usr1 && o.require_commit && o.detach);
  assert_int_equal(o.run.flags, CKPT_CONTINUE_RUN | CKPT_TAKE_OVER | CKPT_POLL);
}

static void quiet_0_means_none_and_not_the_default(void **state) {
  assert_int_equal(parse(RUN, "--settle", "0", "c", NULL), 0);
  assert_true(o.run.quiet_s < 0);
}

static void restore_is_a_word_a_name_or_a_uri(void **state) {
  assert_int_equal(parse(RUN, "--restore", "never", "c", NULL), 0);
  assert_int_equal(o.restore, CKPT_RESTORE_NEVER);
  assert_int_equal(parse(RUN, "--restore", "required", "c", NULL), 0);
  assert_int_equal(o.restore, CKPT_RESTORE_REQUIRED);
  assert_int_equal(parse(RUN, "--restore", "file:///x/checkpoint-3", "c", NULL), 0);
  assert_int_equal(o.restore, CKPT_RESTORE_NAMED);
  assert_string_equal(o.named, "file:///x/checkpoint-3");
  assert_int_equal(parse(RUN, "--restore", "n", "--restore", "auto", "c", NULL), 0);
  assert_null(o.named);
  assert_int_equal(o.run.flags & CKPT_FRESH, 0);
  assert_int_equal(parse(RUN, "--fresh", "c", NULL), 0);
  assert_int_equal(o.run.flags & CKPT_FRESH, CKPT_FRESH);
}

static void mistakes_are_named_with_what_helps(void **state) {
  assert_int_equal(parse(RUN, "--unti", "x", "c", NULL), -1);
  assert_non_null(strstr(error, "did you mean --unit?"));
  assert_int_equal(parse(RUN, "--frobnicate=1", "c", NULL), -1);
  assert_non_null(strstr(error, "'--frobnicate'"));
  assert_non_null(strstr(error, "help run"));
  assert_int_equal(parse(RUN, "-vx", "c", NULL), -1);
  assert_non_null(strstr(error, "'-x'"));
  assert_int_equal(parse(RUN, "--state", NULL), -1);
  assert_non_null(strstr(error, "--state needs a value"));
  assert_int_equal(parse(RUN, "--poll=yes", "c", NULL), -1);
  assert_non_null(strstr(error, "--poll takes no value"));
  assert_int_equal(parse(&verb_run, "run", "--to", "t", "c", NULL), -1);
  assert_non_null(strstr(error, "--dir is missing; usage: "));
  assert_int_equal(parse(&verb_run, "run", "--dir", "t", "c", NULL), -1);
  assert_non_null(strstr(error, "--to is missing"));
  assert_int_equal(parse(RUN, NULL), -1);
  assert_non_null(strstr(error, "COMMAND"));
  assert_int_equal(parse(RUN, "--", NULL), -1);
  assert_int_equal(parse(RUN, "--on-fenced=die", "c", NULL), -1);
  assert_int_equal(parse(RUN, "--restore-parts=some", "c", NULL), -1);
  assert_int_equal(parse(&verb_run, "run", "--dir", "", "--to", "t", "c", NULL), -1);
  assert_non_null(strstr(error, "empty"));
}

static void abbreviations_are_refused(void **state) {
  assert_int_equal(parse(RUN, "--requ", "c", NULL), -1);
  assert_int_equal(parse(RUN, "--stat", "x", "c", NULL), -1);
  assert_non_null(strstr(error, "did you mean --state?"));
  assert_int_equal(parse(RUN, "--stat=x", "c", NULL), -1);
  assert_int_equal(parse(RUN, "--re", "x", "c", NULL), -1);
}

static void numbers_of_seconds_are_checked(void **state) {
  static const char *const bad[] = {"x",   "-1", "nan", "infinity", "1e400",
                                    "5 s", "3w", "1sm", "0x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(parse(RUN, "--grace", bad[i], "c", NULL), -1);
    assert_non_null(strstr(error, "--grace"));
  }
  assert_int_equal(parse(RUN, "--grace", "0", "c", NULL), 0);
  assert_int_equal(parse(RUN, "--grace", "1.5s", "c", NULL), 0);
  assert_true(o.grace_s == 1.5);
}

static void each_verb_has_its_own_options_and_arguments(void **state) {
  assert_int_equal(parse(&verb_watch, "watch", "--dir", "d", "--to", "t", "--usr1", NULL), -1);
  assert_int_equal(parse(&verb_watch, "watch", "--dir", "d", "--to", "t", "cmd", NULL), -1);
  assert_int_equal(parse(&verb_watch, "watch", "--dir", "d", "--to", "t", NULL), 0);
  assert_int_equal(parse(&verb_restore, "restore", "u", "--dir", "d", "n", NULL), 0);
  assert_string_equal(o.uri, "u");
  assert_string_equal(o.name, "n");
  assert_int_equal(parse(&verb_restore, "restore", "u", NULL), -1);
  assert_int_equal(parse(&verb_ls, "ls", "u", "--json", NULL), 0);
  assert_true(o.json);
  assert_int_equal(parse(&verb_ls, "ls", NULL), -1);
  assert_int_equal(parse(&verb_ls, "ls", "u", "n", NULL), -1);
  assert_non_null(strstr(error, "'n'"));
  assert_int_equal(parse(&verb_ls, "ls", "", NULL), -1);
  assert_int_equal(parse(&verb_verify, "verify", "--", "-u", "n", NULL), 0);
  assert_string_equal(o.uri, "-u");
  assert_int_equal(parse(&verb_version, "version", "x", NULL), -1);
  assert_int_equal(parse(&verb_help, "help", "run", NULL), 0);
  assert_string_equal(o.name, "run");
}

static void help_needs_nothing_else(void **state) {
  assert_int_equal(parse(&verb_run, "run", "--help", NULL), 0);
  assert_true(o.help);
  assert_int_equal(parse(&verb_restore, "restore", "-h", "--nonsense", NULL), 0);
  assert_true(o.help);
}

static void the_help_lists_each_option_once(void **state) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  verb_list_options(&verb_run, f);
  fclose(f);
  const char *at = strstr(text, "--dir DIR");
  assert_non_null(at);
  assert_null(strstr(at + 1, "--dir DIR"));
  assert_non_null(strstr(text, "-h, --help"));
  assert_null(strstr(text, "--json"));
  free(text);
}

static void an_open_quote_is_a_mistake_at_the_start(void **state) {
  assert_int_equal(parse(RUN, "--resume-arg", "--r '{}", "c", NULL), -1);
  assert_non_null(strstr(error, "--resume-arg"));
  assert_int_equal(parse(RUN, "--resume-arg", "--r '{}'", "c", NULL), 0);
}

static void policies_stand_in_the_order_given_and_default_is_implied(void **state) {
  assert_int_equal(parse(RUN, "-p", "mine.lua", "--policy=default", "-o", "keep=5", "c", NULL), 0);
  const char *const *p = options_policies(&o);
  assert_string_equal(p[0], "mine.lua");
  assert_string_equal(p[1], "default");
  assert_null(p[2]);
  assert_string_equal(o.run.settings[0], "keep=5");
  assert_int_equal(parse(RUN, "c", NULL), 0);
  assert_string_equal(options_policies(&o)[0], "default");
  assert_null(options_policies(&o)[1]);
  assert_int_equal(parse(RUN, "-p", "builtin", "c", NULL), 0);
  assert_null(options_policies(&o));
}

static void builtin_stands_alone_and_settings_have_names(void **state) {
  assert_int_equal(parse(RUN, "-p", "builtin", "-p", "x", "c", NULL), -1);
  assert_int_equal(parse(RUN, "-p", "x", "-p", "builtin", "c", NULL), -1);
  assert_non_null(strstr(error, "alone"));
  assert_int_equal(parse(RUN, "-p", "builtin", "-o", "a=1", "c", NULL), -1);
  assert_int_equal(parse(RUN, "-o", "keep", "c", NULL), -1);
  assert_non_null(strstr(error, "NAME=VALUE"));
  assert_int_equal(parse(RUN, "-o", "=5", "c", NULL), -1);
  assert_int_equal(parse(RUN, "-o", "keep=", "c", NULL), 0); /* for the policy to judge */
}

static void deleting_is_bounded_by_a_share_and_a_time(void **state) {
  assert_int_equal(parse(RUN, "--max-delete", "50%", "--no-delete", "--grace-delete", "7d",
                         "--single-writer", "--policy-in-process", "c", NULL),
                   0);
  assert_true(o.run.max_delete == 0.5 && o.run.grace_delete_s == 7 * 86400.0);
  assert_true(o.policy_in_process);
  assert_int_equal(o.run.flags, CKPT_NO_DELETE | CKPT_SINGLE_WRITER);
  assert_int_equal(parse(RUN, "--grace-delete", "0", "c", NULL), 0);
  assert_true(o.run.grace_delete_s < 0); /* none; 0 would be the default to the engine */
  assert_int_equal(parse(RUN, "--max-delete", "3", "c", NULL), -1);
  assert_non_null(strstr(error, "25%"));
}

static void a_sync_takes_its_directory_either_way_and_never_twice(void **state) {
  assert_int_equal(parse(&verb_sync, "sync", "out", "--to", "t", "-n", NULL), 0);
  assert_string_equal(o.run.dir, "out");
  assert_true(o.dry_run);
  assert_int_equal(parse(&verb_sync, "sync", "--dir", "out", "--to", "t", NULL), 0);
  assert_int_equal(parse(&verb_sync, "sync", "out", "--dir", "out", "--to", "t", NULL), -1);
  assert_non_null(strstr(error, "twice"));
  assert_int_equal(parse(&verb_sync, "sync", "--to", "t", NULL), -1);
  assert_int_equal(parse(&verb_sync, "sync", "out", NULL), -1);
  assert_non_null(strstr(error, "--to"));
  assert_int_equal(parse(&verb_sync, "sync", "o", "--to", "t", "--max-delete", "9%", NULL), -1);
}

static void removing_all_has_to_be_said(void **state) {
  assert_int_equal(parse(&verb_rm, "rm", "u", NULL), -1);
  assert_non_null(strstr(error, "--all"));
  assert_int_equal(parse(&verb_rm, "rm", "u", "n", "--all", NULL), -1);
  assert_int_equal(parse(&verb_rm, "rm", "u", "--all", NULL), 0);
  assert_true(o.all);
  assert_int_equal(parse(&verb_rm, "rm", "u", "n", NULL), 0);
  assert_string_equal(o.name, "n");
  assert_false(o.all);
}

static void pins_have_a_name_and_perhaps_a_time(void **state) {
  assert_int_equal(parse(&verb_pin, "pin", "u", "n", "--for", "7d", NULL), 0);
  assert_true(o.pin_s == 7 * 86400.0);
  assert_int_equal(parse(&verb_pin, "pin", "u", "n", "--for", "0", NULL), -1);
  assert_int_equal(parse(&verb_pin, "pin", "u", NULL), -1);
  assert_non_null(strstr(error, "NAME"));
  assert_int_equal(parse(&verb_unpin, "unpin", "u", "id", NULL), 0);
}

static void a_notification_is_words_and_options_in_any_order(void **state) {
  assert_int_equal(parse(&verb_notify, "notify", "a=1", "--wait", "b=-2", "--dir", "d", NULL), 0);
  assert_string_equal(o.words[0], "a=1");
  assert_string_equal(o.words[1], "b=-2");
  assert_null(o.words[2]);
  assert_true(o.wait);
  assert_int_equal(parse(&verb_notify, "notify", NULL), -1);
  assert_non_null(strstr(error, "KEY=VALUE"));
}

static void options_of_a_script_are_its_own(void **state) {
  assert_int_equal(parse(&verb_exec, "exec", "-v", "x.lua", "--json", "-q", NULL), 0);
  assert_string_equal(o.command[0], "x.lua");
  assert_string_equal(o.command[1], "--json");
  assert_int_equal(o.level, 1);
  assert_int_equal(parse(&verb_exec, "exec", NULL), -1);
  assert_non_null(strstr(error, "FILE"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_come_with_a_blank_or_an_equals_sign),
      cmocka_unit_test(what_is_not_given_has_its_default),
      cmocka_unit_test(ranks_are_given_whole_or_not_at_all),
      cmocka_unit_test(options_of_the_command_are_its_own),
      cmocka_unit_test(all_options_of_run_are_taken),
      cmocka_unit_test(quiet_0_means_none_and_not_the_default),
      cmocka_unit_test(restore_is_a_word_a_name_or_a_uri),
      cmocka_unit_test(mistakes_are_named_with_what_helps),
      cmocka_unit_test(abbreviations_are_refused),
      cmocka_unit_test(numbers_of_seconds_are_checked),
      cmocka_unit_test(each_verb_has_its_own_options_and_arguments),
      cmocka_unit_test(help_needs_nothing_else),
      cmocka_unit_test(the_help_lists_each_option_once),
      cmocka_unit_test(an_open_quote_is_a_mistake_at_the_start),
      cmocka_unit_test(policies_stand_in_the_order_given_and_default_is_implied),
      cmocka_unit_test(builtin_stands_alone_and_settings_have_names),
      cmocka_unit_test(deleting_is_bounded_by_a_share_and_a_time),
      cmocka_unit_test(a_sync_takes_its_directory_either_way_and_never_twice),
      cmocka_unit_test(removing_all_has_to_be_said),
      cmocka_unit_test(pins_have_a_name_and_perhaps_a_time),
      cmocka_unit_test(a_notification_is_words_and_options_in_any_order),
      cmocka_unit_test(options_of_a_script_are_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, drop_options);
}
