#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/above.h"

static const char *names_in(const char *text, size_t len) {
  static char all[2000];
  names n = {0};
  err e = {0};
  if (above_read(text, len, &n, &e) < 0) fail_msg("%s", e.text);
  all[0] = 0;
  for (size_t i = 0; i < n.count; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", n.at[i]);
  names_free(&n);
  return all;
}

static const char *names_of(const char *text) {
  return names_in(text, strlen(text));
}

static void the_end_of_each_path_is_a_name_once(void **state) {
  (void)state;
  assert_string_equal(names_of("{\"a\":\"/out/exp/t1/checkpoint_000002\","
                               "\"b\":\"/out/exp/t1/checkpoint_000002\",\"c\":\"t0/ck-1\"}"),
                      "t0/ck-1 t1/checkpoint_000002");
  assert_string_equal(names_of(""), "");
  assert_string_equal(names_of("{\"a\":\"checkpoint_1\",\"b\":\"/x\",\"c\":\"x/\",\"d\":\"//\"}"),
                      "");
}

/* As cloudpickle writes a Checkpoint, and as Tune puts it into its JSON. */
static const char object[] =
    "\x80\x05\x8c\nCheckpoint\x94\x93\x94)\x81\x94}\x94(\x8c\x04path\x94\x8cN"
    "/tmp/out/exp/f_4_a=1,b=[2]_19-58-34/checkpoint_000003\x94\x8c\nfiles"
    "\x94\x8c\x05"
    "uml/\xc3\xa4\x94.";

static void a_python_object_is_looked_into(void **state) {
  (void)state;
  const char *both = "f_4_a=1,b=[2]_19-58-34/checkpoint_000003 uml/\xc3\xa4";
  assert_string_equal(names_in(object, sizeof object - 1), both);
  char hex[2 * sizeof object + 40] = "{\"value\": \"";
  for (size_t i = 0; i + 1 < sizeof object; i++)
    snprintf(hex + strlen(hex), 3, "%02x", (unsigned char)object[i]);
  snprintf(hex + strlen(hex), 3, "\"}");
  assert_string_equal(names_of(hex), both);
}

static void any_bytes_can_be_read(void **state) {
  (void)state;
  char bytes[512];
  srand(7);
  for (int round = 0; round < 3000; round++) {
    size_t len = (size_t)rand() % sizeof bytes;
    static const char some[] = "/ab01\"\\ \xc3\xa4\x94";
    for (size_t i = 0; i < len; i++)
      bytes[i] = rand() % 3 ? some[(size_t)rand() % (sizeof some - 1)] : (char)rand();
    char *exact = malloc(len + 1);
    if (!exact) abort();
    memcpy(exact, bytes, len);
    exact = realloc(exact, len ? len : 1); /* so that one byte too far is seen */
    if (!exact) abort();
    names n = {0};
    assert_int_equal(above_read(exact, len, &n, NULL), 0);
    for (size_t i = 0; i < n.count; i++) {
      const char *slash = strchr(n.at[i], '/');
      assert_true(slash && slash > n.at[i] && slash[1] && !strchr(slash + 1, '/'));
      if (i) assert_true(strcmp(n.at[i - 1], n.at[i]) < 0);
    }
    names_free(&n);
    free(exact);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_end_of_each_path_is_a_name_once),
      cmocka_unit_test(a_python_object_is_looked_into),
      cmocka_unit_test(any_bytes_can_be_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
