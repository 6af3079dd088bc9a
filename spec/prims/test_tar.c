#include "with_cmocka.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "prims/tar.h"

typedef struct bytes {
  buf b;
  size_t at, step;
  int failure;
} bytes;

static int sink(void *ctx, const void *data, size_t len, err *e) {
  bytes *to = ctx;
  if (to->failure) return err_set(e, to->failure, "the sink is full");
  buf_add(&to->b, data, len);
  return 0;
}

static ssize_t source(void *ctx, const void **block, err *e) {
  bytes *from = ctx;
  size_t left = from->b.len - from->at, n = left < from->step ? left : from->step;
  if (from->failure) return err_set(e, from->failure, "the source is dry");
  *block = from->b.data + from->at;
  from->at += n;
  return (ssize_t)n;
}

static const tar_entry entries[] = {
    {.kind = TAR_DIR, .name = "d/", .mode = 0750, .mtime_ns = 1700000000123456789},
    {.kind = TAR_FILE, .name = "d/\xff\xfe", .mode = 0640, .mtime_ns = 5, .size = 11},
    {.kind = TAR_LINK,
     .name = "d/l",
     .target = "\xc3\xbc/x",
     .mode = 0777,
     .mtime_ns = -1500000000},
    {.kind = TAR_FILE, .name = "d/\xc3\xbc", .mode = 0600, .size = 0},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static void pack(tar_filter filter, bytes *to) {
  tar_writer *w;
  *to = (bytes){.step = SIZE_MAX};
  buf_init(&to->b, 1 << 20);
  assert_int_equal(tar_write_open(filter, sink, to, &w, NULL), 0);
  for (int i = 0; i < ENTRIES; i++) {
    assert_int_equal(tar_write_next(w, &entries[i], NULL), 0);
    if (entries[i].size) {
      assert_int_equal(tar_write_data(w, "hello ", 6, NULL), 0);
      assert_int_equal(tar_write_data(w, "world", 5, NULL), 0);
    }
  }
  assert_int_equal(tar_write_end(w, NULL), 0);
  tar_write_close(w);
}

static void unpack(bytes *from) {
  tar_reader *r;
  tar_entry e;
  const void *data;
  size_t len;
  uint64_t at;
  from->at = 0;
  assert_int_equal(tar_read_open(source, from, &r, NULL), 0);
  for (int i = 0; i < ENTRIES; i++) {
    assert_int_equal(tar_read_next(r, &e, NULL), 1);
    assert_string_equal(e.name, entries[i].name);
    assert_int_equal(e.kind, entries[i].kind);
    assert_int_equal(e.mode, entries[i].mode);
    assert_int_equal(e.mtime_ns, entries[i].mtime_ns);
    assert_int_equal(e.size, entries[i].size);
    if (e.kind == TAR_LINK) assert_string_equal(e.target, entries[i].target);
    if (e.size == 0) continue;
    size_t got = 0;
    int rc;
    while ((rc = tar_read_data(r, &data, &len, &at, NULL)) == 1) {
      assert_true(at == got && got + len <= 11);
      if (len) assert_memory_equal(data, &"hello world"[got], len);
      got += len;
    }
    assert_int_equal(rc, 0);
    assert_int_equal(got, 11);
  }
  assert_int_equal(tar_read_next(r, &e, NULL), 0);
  tar_read_close(r);
}

static void names_times_and_bytes_come_back_through_each_filter(void **unused) {
  static const size_t steps[] = {1, 7, 512, 1000, SIZE_MAX};
  for (int f = TAR_PLAIN; f <= TAR_ZSTD; f++) {
    bytes b;
    pack((tar_filter)f, &b);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
      b.step = steps[i];
      unpack(&b);
    }
    buf_free(&b.b);
  }
}

static void equal_entries_give_equal_bytes(void **unused) {
  for (int f = TAR_PLAIN; f <= TAR_ZSTD; f++) {
    bytes a, b;
    pack((tar_filter)f, &a);
    pack((tar_filter)f, &b);
    assert_int_equal(a.b.len, b.b.len);
    assert_memory_equal(a.b.data, b.b.data, a.b.len);
    buf_free(&a.b);
    buf_free(&b.b);
  }
}

/* How many entries came, or a negative ERR_*. */
static int read_all(bytes *from) {
  tar_reader *r;
  tar_entry e;
  err why = {0};
  const void *data;
  size_t len;
  uint64_t at;
  int count = 0;
  from->at = 0;
  int rc = tar_read_open(source, from, &r, &why);
  while (rc >= 0 && (rc = tar_read_next(r, &e, &why)) == 1) {
    count++;
    while ((rc = tar_read_data(r, &data, &len, &at, &why)) == 1) continue;
  }
  tar_read_close(r);
  if (rc < 0) assert_true(*why.text);
  return rc < 0 ? rc : count;
}

static void one_that_is_cut_off_anywhere_never_looks_whole(void **unused) {
  for (int f = TAR_PLAIN; f <= TAR_ZSTD; f++) {
    bytes b;
    pack((tar_filter)f, &b);
    b.step = 300;
    assert_int_equal(read_all(&b), ENTRIES);
    size_t whole = b.b.len, last = f == TAR_PLAIN ? whole - 1024 : whole - 8;
    for (size_t cut = 0; cut < last; cut += f == TAR_PLAIN ? 64 : 1) {
      b.b.len = cut;
      if (read_all(&b) >= 0) fail_msg("filter %d cut off at %zu of %zu", f, cut, whole);
    }
    buf_free(&b.b);
  }
}

static void what_its_source_or_its_sink_says_comes_through(void **unused) {
  bytes b;
  err e = {0};
  tar_reader *r;
  tar_writer *w;
  pack(TAR_PLAIN, &b);
  b.failure = ERR_ACCESS;
  b.at = 0;
  assert_int_equal(tar_read_open(source, &b, &r, &e), ERR_ACCESS);
  assert_string_equal(e.text, "the source is dry");
  assert_null(r);
  b.failure = ERR_NOSPACE;
  assert_int_equal(tar_write_open(TAR_PLAIN, sink, &b, &w, NULL), 0);
  int rc = tar_write_next(w, &entries[0], &e);
  for (int i = 0; rc == 0 && i < 100; i++) rc = tar_write_next(w, &entries[3], &e);
  assert_int_equal(rc, ERR_NOSPACE);
  tar_write_close(w);
  buf_free(&b.b);
}

static void a_file_has_as_many_bytes_as_it_said(void **unused) {
  bytes b = {.step = SIZE_MAX};
  tar_writer *w;
  buf_init(&b.b, 1 << 20);
  assert_int_equal(tar_write_open(TAR_PLAIN, sink, &b, &w, NULL), 0);
  assert_int_equal(tar_write_next(w, &entries[1], NULL), 0);
  assert_int_equal(tar_write_data(w, "x", 1, NULL), 0);
  assert_int_equal(tar_write_next(w, &entries[3], NULL), ERR_INVAL);
  assert_int_equal(tar_write_data(w, "0123456789a", 11, NULL), ERR_INVAL);
  assert_int_equal(tar_write_end(w, NULL), ERR_INVAL);
  tar_write_close(w);
  buf_free(&b.b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_times_and_bytes_come_back_through_each_filter),
      cmocka_unit_test(equal_entries_give_equal_bytes),
      cmocka_unit_test(one_that_is_cut_off_anywhere_never_looks_whole),
      cmocka_unit_test(what_its_source_or_its_sink_says_comes_through),
      cmocka_unit_test(a_file_has_as_many_bytes_as_it_said),
  };
  setenv("LC_ALL", "C.UTF-8", 1);
  setlocale(LC_CTYPE, "");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
