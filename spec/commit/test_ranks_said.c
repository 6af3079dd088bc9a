#include "with_cmocka.h"

#include <stdio.h>
#include <string.h>

#include "commit/ranks_said.h"
#include "world.h"

enum { WORLD = 4 };

static ranks rank_of(uint32_t rank, const char *launch) {
  ranks r = {.rank = rank, .world = WORLD};
  snprintf(r.launch, sizeof r.launch, "%s", launch);
  return r;
}

static void what_rank_0_says_the_others_hear(void **state) {
  world *w = world_new("mem", world_io());
  store *s = w->env.store;
  const ranks first = rank_of(0, "l"), other = rank_of(2, "l"), stranger = rank_of(2, "m");
  ranks_said said = {.over = true,
                     .why = "the store\nrefuses",
                     .resume = "checkpoint-\xff",
                     .commit = "l/7/e"},
             heard;
  assert_int_equal(ranks_said_get(s, &other, 0, &heard, NULL), ERR_NOENT);
  assert_true(names_add(&said.refused, "g/checkpoint-7") && names_add(&said.refused, "a\xff"));
  assert_int_equal(ranks_said_put(s, &first, &said, NULL), 0);
  assert_int_equal(ranks_said_get(s, &other, 0, &heard, NULL), 0);
  assert_true(heard.over && !heard.ready && !heard.elsewhere);
  assert_string_equal(heard.why, said.why);
  assert_string_equal(heard.resume, said.resume);
  assert_string_equal(heard.commit, "l/7/e");
  assert_true(heard.refused.count == 2 && names_has(&heard.refused, "a\xff") &&
              names_has(&heard.refused, "g/checkpoint-7"));
  ranks_said wrong = {.over = true, .elsewhere = true, .why = "the target is another run's"};
  ranks_said_free(&heard);
  assert_int_equal(ranks_said_put(s, &first, &wrong, NULL), 0);
  assert_int_equal(ranks_said_get(s, &other, 0, &heard, NULL), 0);
  assert_true(heard.over && heard.elsewhere);
  ranks_said nothing;
  assert_int_equal(ranks_said_get(s, &stranger, 0, &nothing, NULL), ERR_NOENT);
  ranks_said_free(&heard);
  ranks_said_free(&said);
  world_free(w);
}

static void a_rank_that_has_ended_is_found_unless_its_part_is_there(void **state) {
  world *w = world_new("mem", world_io());
  store *s = w->env.store;
  const ranks first = rank_of(0, "l"), third = rank_of(3, "l"), stranger = rank_of(1, "m");
  const ranks_said over = {.over = true, .why = "refused"};
  bool there[WORLD] = {true};
  char why[RANKS_SAID_TEXT_MAX];
  uint32_t rank = 0;
  assert_int_equal(ranks_said_over(s, &first, there, &rank, why, NULL), 0);
  assert_int_equal(ranks_said_put(s, &first, &over, NULL), 0); /* rank 0 speaks elsewhere */
  assert_int_equal(ranks_said_put(s, &stranger, &over, NULL), 0);
  assert_int_equal(ranks_said_over(s, &first, there, &rank, why, NULL), 0);
  assert_int_equal(ranks_said_put(s, &third, &over, NULL), 0);
  assert_int_equal(ranks_said_over(s, &first, there, &rank, why, NULL), 1);
  assert_int_equal(rank, 3);
  assert_string_equal(why, "refused");
  there[3] = true;
  assert_int_equal(ranks_said_over(s, &first, there, &rank, why, NULL), 0);
  there[3] = false;
  assert_int_equal(ranks_said_remove(s, &third, NULL), 0); /* it was started again */
  assert_int_equal(ranks_said_over(s, &first, there, &rank, why, NULL), 0);
  world_free(w);
}

/* A rank that is started again takes its word back between our list and our look at it. */
static const store_ops *plain;

static int get_gone(store *s, const char *key, buf *out, err *e) {
  size_t len = strlen(key);
  if (strcmp(key + len - strlen(".over/1"), ".over/1") == 0)
    return err_set(e, ERR_NOENT, "%s", key);
  return plain->get(s, key, out, e);
}

static void a_rank_that_is_back_hides_no_other_one_that_has_ended(void **state) {
  world *w = world_new("mem", world_io());
  store *s = w->env.store;
  const ranks first = rank_of(0, "l"), second = rank_of(1, "l"), third = rank_of(2, "l");
  const ranks_said over = {.over = true, .why = "killed"};
  bool there[WORLD] = {true};
  char why[RANKS_SAID_TEXT_MAX];
  uint32_t rank = 0;
  assert_int_equal(ranks_said_put(s, &second, &over, NULL), 0);
  assert_int_equal(ranks_said_put(s, &third, &over, NULL), 0);
  plain = s->ops;
  store_ops racing = *plain;
  racing.get = get_gone;
  s->ops = &racing;
  assert_int_equal(ranks_said_over(s, &first, there, &rank, why, NULL), 1);
  assert_int_equal(rank, 2);
  s->ops = plain;
  world_free(w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_rank_0_says_the_others_hear),
      cmocka_unit_test(a_rank_that_has_ended_is_found_unless_its_part_is_there),
      cmocka_unit_test(a_rank_that_is_back_hides_no_other_one_that_has_ended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
