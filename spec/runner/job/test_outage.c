#include "with_cmocka.h"

#include <math.h>

#include "runner/job/outage.h"

static ckpt_completion of(uint32_t kind, int status) {
  return (ckpt_completion){.size = sizeof(ckpt_completion),
                           .kind = kind,
                           .status = status,
                           .unit = "checkpoint-1",
                           .reason = "refused"};
}

static void an_outage_is_a_line_at_once_one_now_and_then_and_one_at_its_end(void **unused) {
  const ckpt_completion bad = of(CKPT_RETRYING, CKPT_EIO), good = of(CKPT_COMMITTED, CKPT_OK);
  outage o;
  double after = -1;
  int said = 0, due = 0;
  outage_init(&o);
  for (int s = 0; s < 300; s++) {
    if (s % 5 == 0) said += outage_take(&o, &bad, s, &after);
    due += outage_due(&o, s, 3);
  }
  assert_int_equal(said, 1);
  assert_int_equal(due, 6);
  assert_true(after == 0);
  assert_true(outage_take(&o, &good, 300, &after));
  assert_true(after == 300);
  assert_true(isinf(o.next_at));
  assert_true(outage_take(&o, &good, 301, &after));
  assert_true(after == 0);
  assert_true(outage_take(&o, &bad, 400, &after)); /* the next one is told at once, too */
}

static void what_is_no_outage_is_said_each_time(void **unused) {
  const ckpt_completion others[] = {of(CKPT_RETRYING, CKPT_ENOSPACE),
                                    of(CKPT_RETRYING, CKPT_ECONFLICT), of(CKPT_FAILED, CKPT_EIO),
                                    of(CKPT_DROPPED, CKPT_OK)};
  outage o;
  outage_init(&o);
  for (int i = 0; i < 8; i++) assert_true(outage_take(&o, &others[i % 4], i, NULL));
  assert_false(outage_due(&o, 1000, 1));
}

static void nothing_is_said_where_nothing_waits(void **unused) {
  const ckpt_completion bad = of(CKPT_RETRYING, CKPT_ETIMEOUT);
  outage o;
  outage_init(&o);
  assert_true(outage_take(&o, &bad, 0, NULL));
  assert_false(outage_due(&o, 50, 0));
  assert_false(outage_due(&o, 100, 1));
  assert_true(outage_take(&o, &bad, 101, NULL)); /* another one */
}

int main(void) {
  const struct CMUnitTest promises[] = {
      cmocka_unit_test(an_outage_is_a_line_at_once_one_now_and_then_and_one_at_its_end),
      cmocka_unit_test(what_is_no_outage_is_said_each_time),
      cmocka_unit_test(nothing_is_said_where_nothing_waits),
  };
  return cmocka_run_group_tests(promises, NULL, NULL);
}
