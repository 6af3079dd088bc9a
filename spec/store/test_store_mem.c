#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "store_place.h"

static store *open_at(const char *text, const io *io) {
  uri where;
  store *s;
  assert_int_equal(uri_parse(text, &where, NULL), 0);
  assert_int_equal(store_open(&where, io, NULL, &s, NULL), 0);
  return s;
}

static void contents_live_as_long_as_somebody_has_them_open(void **state) {
  store *a = open_at("mem://shared", io_system());
  store *b = open_at("mem://shared", io_system());
  assert_int_equal(store_put_text(a, "k", "x", STORE_IF_ABSENT), 0);
  store_close(a);
  store_must_hold(b, "k", "x");
  store_close(b);
  a = open_at("mem://shared", io_system());
  assert_int_equal(a->ops->exists(a, NULL), ERR_NOSTORE);
  store_close(a);
}

static void names_do_not_share(void **state) {
  store *a = open_at("mem://one", io_system());
  store *b = open_at("mem://one-more", io_system());
  store *c = open_at("mem://on", io_system());
  assert_int_equal(store_put_text(a, "k", "x", STORE_IF_ABSENT), 0);
  store_must_list(b, "", false, "");
  store_must_list(c, "", false, "");
  store_close(b); /* the middle, then the ends */
  store_close(a);
  store_close(c);
}

static int64_t at_noon(const io *io, io_clock clock) {
  return clock == IO_WALL ? *(int64_t *)io->ctx : 1;
}

static void the_clock_is_the_wall_clock_of_the_io(void **state) {
  int64_t noon = 12345;
  io io = *io_system();
  io.ctx = &noon;
  io.now = at_noon;
  store *s = open_at("mem://clock", &io);
  store_object o;
  assert_int_equal(store_put_text(s, "k", "x", STORE_IF_ABSENT), 0);
  noon = 23456;
  assert_int_equal(s->ops->head(s, "k", &o, NULL), 0);
  assert_int_equal(o.mtime_ns, 12345);
  assert_int_equal(store_put_text(s, "k", "y", STORE_REPLACE), 0);
  assert_int_equal(s->ops->head(s, "k", &o, NULL), 0);
  assert_int_equal(o.mtime_ns, 23456);
  store_close(s);
}

static void nothing_can_be_published_or_staged(void **state) {
  store *s = open_at("mem://p", io_system());
  store_writer *w = (store_writer *)s;
  assert_false(store_can(s, STORE_CAP_PUBLISH));
  assert_null(s->ops->publish);
  assert_int_equal(s->ops->write_open(s, "k", 1, true, NULL, &w, NULL), ERR_UNSUPPORTED);
  assert_null(w);
  store_close(s);
}

static void a_key_may_be_an_object_and_a_prefix_as_in_a_bucket(void **state) {
  store *s = open_at("mem://both/run", io_system());
  assert_int_equal(store_put_text(s, "a/b/c", "below", STORE_IF_ABSENT), 0);
  assert_int_equal(store_put_text(s, "a", "object", STORE_IF_ABSENT), 0);
  assert_int_equal(store_put_text(s, "a/b", "between", STORE_IF_ABSENT), 0);
  store_must_list(s, "", false, "a a/b a/b/c");
  store_must_list(s, "", true, "a a/");
  store_must_list(s, "a", true, "a/b a/b/");
  assert_int_equal(s->ops->remove_prefix(s, "a/b", NULL), 0);
  store_must_list(s, "", false, "a a/b");
  assert_int_equal(s->ops->remove(s, "a", NULL), 0);
  store_must_list(s, "", false, "a/b");
  store_close(s);
}

static void an_absurd_size_takes_no_memory_before_its_bytes_come(void **state) {
  store *s = open_at("mem://big", io_system());
  store_writer *w;
  assert_int_equal(s->ops->write_open(s, "k", UINT64_C(1) << 60, false, NULL, &w, NULL), 0);
  assert_int_equal(s->ops->write(w, "x", 1, NULL), 0);
  assert_int_equal(s->ops->write_close(w, NULL), ERR_INVAL);
  assert_int_equal(s->ops->write_open(s, "k", UINT64_MAX, false, NULL, &w, NULL), ERR_NOMEM);
  store_close(s);
}

int main(void) {
  const struct CMUnitTest promises[] = {
      cmocka_unit_test(contents_live_as_long_as_somebody_has_them_open),
      cmocka_unit_test(names_do_not_share),
      cmocka_unit_test(the_clock_is_the_wall_clock_of_the_io),
      cmocka_unit_test(nothing_can_be_published_or_staged),
      cmocka_unit_test(a_key_may_be_an_object_and_a_prefix_as_in_a_bucket),
      cmocka_unit_test(an_absurd_size_takes_no_memory_before_its_bytes_come),
  };
  return cmocka_run_group_tests(promises, NULL, NULL);
}
