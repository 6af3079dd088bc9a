/* Memory for keys: zeroed, wiped, and in no core file. */
#include "with_cmocka.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/secret.h"

static bool is_zero(const char *p, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (p[i]) return false;
  return true;
}

static void each_size_comes_zeroed_and_apart(void **unused) {
  static const size_t sizes[] = {
      0, 1, 100, 112, 113, 5000, SECRET_PIECE_MAX, SECRET_PIECE_MAX + 1, 1 << 20};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  char *at[2][COUNT];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2 * COUNT; i++) {
      size_t size = sizes[i % COUNT];
      char *p = at[i / COUNT][i % COUNT] = secret_alloc(size);
      assert_non_null(p);
      assert_true((uintptr_t)p % 16 == 0);
      assert_true(is_zero(p, size));
      memset(p, 'a' + i, size);
      assert_int_equal(secret_owns(p), size <= SECRET_PIECE_MAX);
    }
    for (int i = 0; i < 2 * COUNT; i++) {
      const char *p = at[i / COUNT][i % COUNT];
      for (size_t k = 0; k < sizes[i % COUNT]; k++) assert_int_equal(p[k], 'a' + i);
      secret_free(at[i / COUNT][i % COUNT]);
    }
  }
  assert_null(secret_alloc(SIZE_MAX));
  assert_false(secret_owns("elsewhere"));
  secret_free(NULL);
}

/* libcurl's upload buffer is such a piece, and part buffers are whole pages. */
static void a_large_piece_is_no_few_bytes_further_in_its_page_than_whole_pages_are(void **unused) {
  for (size_t size = SECRET_PIECE_MAX + 1; size < 1 << 20; size += 50001) {
    char *p = secret_alloc(size);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 64, 0);
    secret_free(p);
  }
}

static void what_grows_or_shrinks_keeps_its_bytes_and_leaves_none(void **unused) {
  char *p = secret_resize(NULL, 10);
  memcpy(p, "0123456789", 10);
  for (size_t size = 20; size < 300000; size *= 2) {
    p = secret_resize(p, size);
    assert_non_null(p);
    assert_memory_equal(p, "0123456789", 10);
    assert_true(is_zero(p + 10, size - 10));
  }
  p = secret_resize(p, 4);
  p = secret_resize(p, 100000);
  assert_memory_equal(p, "0123", 4);
  secret_free(p);
  char *small = secret_copy("0123456789");
  assert_string_equal(small, "0123456789");
  small = secret_resize(small, 4);
  small = secret_resize(small, 40);
  assert_true(is_zero(small + 4, 36));
  secret_free(small);
}

static void a_secret_buffer_is_never_handed_out(void **unused) {
  buf b;
  buf_init_secret(&b, 1000);
  buf_str(&b, "hidden");
  assert_true(secret_owns(b.data));
  assert_null(buf_take(&b));
  char *where = b.data;
  buf_clear(&b);
  assert_true(is_zero(where, 6));
  for (int i = 0; i < 2000; i++) buf_add(&b, "x", 1);
  assert_true(buf_failed(&b) < 0);
  buf_free(&b);
  buf_free(&b);
}

static void *busy(void *arg) {
  for (size_t i = 0; i < 20000; i++) {
    size_t size = (i * 37) % 3000;
    char *p = secret_alloc(size);
    if (!p || !is_zero(p, size)) return arg;
    memset(p, 1, size);
    secret_free(p);
  }
  return NULL;
}

static void threads_are_not_in_each_others_way(void **unused) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, busy, threads), 0);
  for (int i = 0; i < 4; i++) {
    void *bad;
    pthread_join(threads[i], &bad);
    assert_null(bad);
  }
}

static void a_secret_json_is_all_in_this_memory(void **unused) {
  static const char text[] = "{\"key\":\"hidden-in-json\",\"list\":[1,{\"a\":\"b\"}]}";
  json_t *value = NULL, *common = json_string("common");
  err e = {0};
  assert_int_equal(js_parse_secret(text, strlen(text), "x", &value, &e), 0);
  assert_true(secret_owns(value));
  assert_true(secret_owns(json_string_value(json_object_get(value, "key"))));
  json_t *later = json_string("later");
  assert_false(secret_owns(later));
  buf out;
  buf_init_secret(&out, 1000);
  assert_int_equal(js_print_secret(value, &out, &e), 0);
  assert_string_equal(out.data, text);
  buf_free(&out);
  json_decref(value);
  json_decref(later);
  json_decref(common); /* it is older than our functions */
  assert_int_equal(js_parse_secret("{\"hidden\" 1}", 12, "x", &value, &e), ERR_FORMAT);
  assert_null(strstr(e.text, "hidden"));
}

/* A secret that is in no core file is looked for as its complement: the text itself must not be in
 * this program. */
static const volatile unsigned char hidden[] = {0x8c, 0x9a, 0x9c, 0x8d, 0x9a, 0x8b, 0xd2, 0xcb,
                                                0xcd, 0xd2, 0x8c, 0x9a, 0x9c, 0x8d, 0x9a, 0x8b};
static const volatile unsigned char shown_[] = {0x90, 0x8f, 0x9a, 0x91, 0xd2, 0xcb, 0xcd, 0xd2,
                                                0x90, 0x8f, 0x9a, 0x91, 0xd2, 0x90, 0x8f, 0x9a};

/* Byte for byte: a core has the registers, too. */
static void reveal(volatile char *to, const volatile unsigned char text[16]) {
  for (int i = 0; i < 16; i++) to[i] = (char)(text[i] ^ 0xffU);
}

static bool holds(const char *data, size_t len, const volatile unsigned char text[16]) {
  char plain[16];
  reveal(plain, text);
  return memmem(data, len, plain, sizeof plain) != NULL;
}

/* The kernel's core of a child that has one text here and one in common memory. */
static void no_core_file_has_it(void **unused) {
  char dir[] = "/tmp/ckpt-secret.XXXXXX", pattern[256] = "", name[320];
  int fd = open("/proc/sys/kernel/core_pattern", O_RDONLY);
  if (fd < 0 || read(fd, pattern, sizeof pattern - 1) <= 0 || *pattern == '|' ||
      strchr(pattern, '/'))
    skip(); /* a program takes the cores of this machine: the kernel writes none here */
  close(fd);
  assert_non_null(mkdtemp(dir));
  pid_t pid = fork();
  if (pid == 0) {
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &all);
    if (chdir(dir) != 0) _exit(1);
    reveal(secret_alloc(16), hidden);
    reveal(secret_alloc(SECRET_PIECE_MAX * 2), hidden);
    reveal(malloc(16), shown_);
    raise(SIGABRT);
  }
  int status;
  waitpid(pid, &status, 0);
  bool there = false;
  const char *const names[] = {"core", "core."};
  for (int i = 0; i < 2 && !there; i++) {
    if (i == 0)
      snprintf(name, sizeof name, "%s/%s", dir, names[0]);
    else
      snprintf(name, sizeof name, "%s/%s%d", dir, names[1], (int)pid);
    there = access(name, R_OK) == 0;
  }
  if (!there) {
    rmdir(dir);
    skip(); /* the hard limit forbids cores */
  }
  FILE *f = fopen(name, "re");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  size_t len = (size_t)ftell(f);
  rewind(f);
  char *data = malloc(len);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, len, f), len);
  fclose(f);
  unlink(name);
  rmdir(dir);
  assert_true(holds(data, len, shown_)); /* else this test looks at nothing */
  assert_false(holds(data, len, hidden));
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_size_comes_zeroed_and_apart),
      cmocka_unit_test(a_large_piece_is_no_few_bytes_further_in_its_page_than_whole_pages_are),
      cmocka_unit_test(what_grows_or_shrinks_keeps_its_bytes_and_leaves_none),
      cmocka_unit_test(a_secret_buffer_is_never_handed_out),
      cmocka_unit_test(threads_are_not_in_each_others_way),
      cmocka_unit_test(a_secret_json_is_all_in_this_memory),
      cmocka_unit_test(no_core_file_has_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
