/* Pins by hand. What they hold is tested where something would go. */
#include "with_cmocka.h"

#include <string.h>

#include "catalog/pinning.h"
#include "commit/pins.h"
#include "filled.h"

static int put(filled *f, const char *name, int64_t life_ns, char id[33]) {
  asked a;
  return pinning_put(filled_ask(f, f->uri, name, &a), life_ns, id, NULL);
}

static int take(filled *f, const char *name) {
  asked a;
  return pinning_remove(filled_ask(f, f->uri, name, &a), NULL);
}

static size_t held_in(filled *f, const char *prefix) {
  pins all;
  assert_int_equal(pins_list(f->w->env.store, prefix, &all, NULL), 0);
  size_t count = all.count;
  pins_free(&all);
  return count;
}

static void all_pins_of_a_checkpoint_go_by_its_name(void **state) {
  filled *f = *state;
  char a[33], b[33], c[33];
  assert_int_equal(put(f, "checkpoint-2", 0, a), 0);
  assert_int_equal(put(f, "checkpoint-2", 500000000, b), 0);
  assert_int_equal(put(f, "exp/T1/checkpoint-9", 0, c), 0);
  assert_int_equal(held_in(f, ""), 2);
  assert_int_equal(held_in(f, "exp/T1"), 1);
  assert_int_equal(take(f, "checkpoint-2"), 2);
  assert_int_equal(take(f, "checkpoint-2"), ERR_NOENT);
  assert_int_equal(take(f, c), 1);
  assert_int_equal(held_in(f, "") + held_in(f, "exp/T1"), 0);
}

static void a_pin_of_nothing_is_refused(void **state) {
  char id[33] = "x";
  assert_int_equal(put(*state, "checkpoint-77", 0, id), ERR_NOENT);
  assert_string_equal(id, "");
  assert_int_equal(take(*state, NULL), ERR_INVAL);
}

static void what_nobody_can_read_as_a_pin_can_be_removed(void **state) {
  filled *f = *state;
  store_put_text(f->w->env.store, ".ckpt/pins/odd", "?", STORE_IF_ABSENT);
  assert_int_equal(take(f, "odd"), 1);
  assert_false(store_holds(f->w->env.store, ".ckpt/pins/odd"));
}

#define ON_A_TARGET(test) cmocka_unit_test_setup_teardown(test, filled_set_up, filled_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_A_TARGET(all_pins_of_a_checkpoint_go_by_its_name),
      ON_A_TARGET(a_pin_of_nothing_is_refused),
      ON_A_TARGET(what_nobody_can_read_as_a_pin_can_be_removed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
