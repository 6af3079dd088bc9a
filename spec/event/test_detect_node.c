#include "with_cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/detect_node.h"
#include "prims/fs.h"

static node *add(node *dir, const char *name, node_type type) {
  node *n = node_new(name, strlen(name), type);
  assert_int_equal(node_attach(dir, n, NULL), 0);
  return n;
}

static void children_stay_in_byte_order(void **state) {
  node *top = node_new("", 0, NODE_DIR);
  char name[16];
  for (int i = 0; i < 500; i++) {
    snprintf(name, sizeof name, "%d", i * 37 % 500);
    add(top, name, NODE_FILE);
  }
  add(top, "\xff\x01", NODE_FILE);
  assert_int_equal(top->count, 501);
  for (size_t i = 1; i < top->count; i++)
    assert_true(strcmp(top->children[i - 1]->name, top->children[i]->name) < 0);
  assert_non_null(node_child(top, "499xyz", 3));
  assert_null(node_child(top, "500", 3));
  node *n = node_child(top, "7", 1);
  node_detach(n);
  assert_null(node_child(top, "7", 1));
  assert_int_equal(top->count, 500);
  node_free(n);
  node_free(top);
}

static void paths_lead_there_and_back(void **state) {
  char path[FS_PATH_MAX];
  const char *name;
  node *top = node_new("", 0, NODE_DIR), *parent;
  node *a = add(top, "a", NODE_DIR), *b = add(a, "b", NODE_DIR), *c = add(b, "c", NODE_FILE);
  assert_int_equal(node_path(c, path, NULL), 0);
  assert_string_equal(path, "a/b/c");
  assert_int_equal(node_path(top, path, NULL), 0);
  assert_string_equal(path, "");
  assert_ptr_equal(node_find(top, "a/b/c", &parent, &name), c);
  assert_ptr_equal(parent, b);
  assert_null(node_find(top, "a/b/d", &parent, &name));
  assert_ptr_equal(parent, b);
  assert_string_equal(name, "d");
  assert_null(node_find(top, "a/x/d", &parent, &name));
  assert_null(parent);
  assert_null(node_find(top, "a/b/c/d", &parent, &name)); /* below a file */
  assert_null(parent);
  b->excluded = true;
  assert_null(node_find(top, "a/b/c", &parent, &name));
  assert_null(parent);
  assert_true(node_within(a, c));
  assert_false(node_within(c, a));
  node_free(top);
}

static void a_path_that_is_too_long_is_an_error(void **state) {
  char name[201], path[FS_PATH_MAX];
  err e = {0};
  node *top = node_new("", 0, NODE_DIR), *n = top;
  memset(name, 'n', 200);
  name[200] = '\0';
  for (int i = 0; i < 20; i++) n = add(n, name, NODE_DIR);
  assert_int_equal(node_path(n, path, &e), 0);
  n = add(n, name, NODE_DIR);
  assert_int_equal(node_path(n, path, &e), ERR_LIMIT);
  node_free(top);
}

static void a_node_is_the_same_by_size_time_and_inode(void **state) {
  struct stat st = {.st_ino = 5, .st_size = 10, .st_mtim = {7, 8}};
  node *n = node_new("n", 1, NODE_FILE);
  assert_false(node_same(n, &st)); /* nothing is known */
  node_set(n, &st);
  assert_true(node_same(n, &st));
  st.st_ctim.tv_sec = 99; /* a new mode changes nothing */
  assert_true(node_same(n, &st));
  st.st_mtim.tv_nsec = 9;
  assert_false(node_same(n, &st));
  node_free(n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(children_stay_in_byte_order),
      cmocka_unit_test(paths_lead_there_and_back),
      cmocka_unit_test(a_path_that_is_too_long_is_an_error),
      cmocka_unit_test(a_node_is_the_same_by_size_time_and_inode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
