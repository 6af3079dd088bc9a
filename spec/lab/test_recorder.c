/* What a recorder writes is read again as what happened. */
#include "with_cmocka.h"

#include "base/io.h"
#include "lab/recorder.h"
#include "prims/numbers/match_step.h"
#include "tmpdir.h"

static void a_save_that_failed_by_a_code_without_a_name_is_read_as_what_it_was(void **state) {
  enum { NAMELESS = -9999 };
  const log_sink quiet = {0};
  const char *path = tmpdir_path(*state, "r.jsonl");
  lab_history h;
  err e = {0};
  lab_recorder *r = lab_recorder_open(io_system(), &quiet, path);
  assert_non_null(r);
  lab_recorder_add(r, &(lab_event){.what = LAB_TRANSFER,
                                   .trial = (char *)"",
                                   .name = (char *)"checkpoint-1",
                                   .step = MATCH_NO_STEP,
                                   .transfer_s = 1,
                                   .outcome = LAB_FAIL,
                                   .fault = NAMELESS});
  lab_recorder_close(r);
  if (lab_history_read(io_system(), path, &h, &e) < 0) fail_msg("%s", e.text);
  assert_int_equal(h.count, 1);
  assert_int_equal(h.events[0].outcome, LAB_FAIL);
  assert_string_equal(err_name(h.events[0].fault), err_name(NAMELESS));
  assert_int_equal(err_class_of(h.events[0].fault), err_class_of(NAMELESS));
  lab_history_free(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_A_DIRECTORY(a_save_that_failed_by_a_code_without_a_name_is_read_as_what_it_was),
  };
  return cmocka_run_group_tests_name("recorder", tests, NULL, NULL);
}
