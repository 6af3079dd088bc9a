#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "job/move/transfer.h"
#include "io_fault.h"
#include "io_hook.h"
#include "prims/fs.h"
#include "store_place.h"
#include "tmpdir.h"

enum { MIB = 1 << 20 };

/* One test's world: a source tree, a store, and a place to restore into. */
static char *dir;
static store_place place;
static io_fault *fault;
static pool *workers;
static atomic_int cancel;

static const char *in(const char *name) {
  return tmpdir_path(dir, name);
}

static int enter_at(const char *parent) {
  store_place_parent = parent;
  dir = parent ? tmpdir_new_in(parent) : tmpdir_new();
  store_place_make(&place, io_unflushed());
  fault = io_fault_new(io_unflushed());
  cancel = 0;
  umask(022);
  make_dir(in("ck-3"));
  make_dir(in("out"));
  return pool_open(&workers, 4, 16, NULL);
}

/* On the disk, for what is large; in memory, for what makes and removes files by the thousand. */
static int enter_large(void **unused) {
  return enter_at(NULL);
}

static int enter(void **unused) {
  return enter_at(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
}

static int leave(void **unused) {
  pool_close(workers);
  io_fault_free(fault);
  store_place_remove(&place);
  tmpdir_remove(dir);
  return 0;
}

static bool is_mem(void) {
  return strcmp(store_place_scheme, "mem") == 0;
}

static transfer with(const io *io, pool *pool) {
  return (transfer){.io = io, .store = place.s, .pool = pool, .cancel = &cancel};
}

static unit_files scan(const char *path, match_kind kind) {
  unit_files t;
  err e = {0};
  if (unit_files_scan(io_unflushed(), dir, path, kind, rules_builtin(), &t, &e) < 0)
    fail_msg("%s: %s", path, e.text);
  return t;
}

static void set_mtime(const char *path, int64_t s, long ns) {
  struct timespec times[2] = {{s, ns}, {s, ns}};
  if (utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0) abort();
}

static void no_error(int rc, const err *e) {
  if (rc < 0) fail_msg("%s: %s", err_name(rc), e->text);
}

/* A small unit of everything that a manifest can hold. */
static void make_unit(void) {
  make_dir(in("ck-3/empty"));
  make_dir(in("ck-3/sub"));
  make_dir(in("ck-3/sub/deep"));
  write_file(in("ck-3/model.pt"), "weights");
  write_file(in("ck-3/sub/none"), "");
  write_file(in("ck-3/sub/deep/run.sh"), "#!/bin/sh\n");
  write_file(in("ck-3/a\nb\xff"), "an odd name");
  if (symlink("model.pt", in("ck-3/last")) < 0 || symlink("/nowhere/at/all", in("ck-3/far")) < 0)
    abort();
  chmod(in("ck-3/model.pt"), 0600);
  chmod(in("ck-3/sub/deep/run.sh"), 0755);
  chmod(in("ck-3/empty"), 0700);
  set_mtime(in("ck-3/last"), 1234567, 7);
  set_mtime(in("ck-3/model.pt"), 1600000000, 123456789);
  set_mtime(in("ck-3/sub/none"), -100, 999999999);
  set_mtime(in("ck-3/sub/deep"), 1500000000, 1);
  set_mtime(in("ck-3/sub"), 1400000000, 2);
  set_mtime(in("ck-3"), 1300000000, 3);
}

/* Sends the unit to "u" and describes it; the caller frees the manifest. */
static void save(const transfer *t, const char *path, match_kind kind, manifest *m) {
  err e = {0};
  unit_files from = scan(path, kind);
  no_error(transfer_up(t, &from, "u", false, false, &e), &e);
  no_error(unit_files_manifest(&from, fs_base(path), 3, t->hash, m, &e), &e);
  unit_files_free(&from);
}

/* Is out/NAME what the source is, times and modes of directories too? */
static void must_be_restored(const char *from, const char *to) {
  unit_files a = scan(from, MATCH_DIR), b = scan(to, MATCH_DIR);
  assert_int_equal(a.count, b.count);
  assert_int_equal(a.mode, b.mode);
  assert_int_equal(a.mtime_ns, b.mtime_ns);
  for (size_t i = 0; i < a.count; i++) {
    const unit_file *f = &a.files[i], *g = &b.files[i];
    char x[FS_PATH_MAX], y[FS_PATH_MAX];
    assert_string_equal(f->name, g->name);
    assert_int_equal(f->type, g->type);
    assert_int_equal(f->mode, g->mode);
    if (f->mtime_ns != g->mtime_ns) fail_msg("the time of %s", f->name);
    if (f->type == MANIFEST_LINK) assert_string_equal(f->target, g->target);
    unit_files_path(&a, f, x, NULL);
    unit_files_path(&b, g, y, NULL);
    if (f->type == MANIFEST_FILE && !files_equal(x, y)) fail_msg("the bytes of %s", f->name);
  }
  unit_files_free(&a);
  unit_files_free(&b);
}

/* ---- there and back ---- */

static void round_trip(pool *pool, hash_kind hash) {
  err e = {0};
  manifest m;
  int fds = count_fds();
  transfer t = with(io_unflushed(), pool);
  t.hash = hash;
  make_unit();
  save(&t, "ck-3", MATCH_DIR, &m);
  assert_int_equal(m.hash, hash);
  t.hash = HASH_XXH3_128; /* what is restored says itself how it was hashed */
  no_error(transfer_down(&t, &m, "u", in("out"), &e), &e);
  must_be_restored("ck-3", "out");
  assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), 0);
  unit_files copy = scan("out", MATCH_DIR);
  assert_true(unit_files_matches(&copy, &m));
  no_error(transfer_check_local(&t, &copy, &m, &e), &e);
  unit_files_free(&copy);
  manifest_free(&m);
  assert_int_equal(count_fds(), fds);
}

static void a_unit_comes_back_with_names_bytes_modes_times_and_links(void **unused) {
  round_trip(NULL, HASH_XXH3_128);
}

static void it_does_so_with_four_workers_and_another_digest(void **unused) {
  round_trip(workers, HASH_SHA256);
}

static void files_of_all_sizes_around_a_block_come_back(void **unused) {
  static const size_t sizes[] = {1, 4095, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 20 * MIB};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  err e = {0};
  char name[64];
  _Atomic uint64_t done = 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < SIZES; i++) {
    snprintf(name, sizeof name, "ck-3/%zu", sizes[i]);
    write_pattern(in(name), sizes[i], (unsigned)i);
    sum += sizes[i];
  }
  manifest m;
  transfer t = with(io_unflushed(), workers);
  t.done = &done;
  save(&t, "ck-3", MATCH_DIR, &m);
  assert_int_equal(done, sum);
  assert_int_equal(manifest_bytes(&m), sum);
  no_error(transfer_down(&t, &m, "u", in("out"), &e), &e);
  assert_int_equal(done, 2 * sum);
  must_be_restored("ck-3", "out");
  manifest_free(&m);
}

static void single_files_and_groups_come_back(void **unused) {
  err e = {0};
  manifest m;
  transfer t = with(io_unflushed(), NULL);
  write_file(in("one.pt"), "single");
  write_file(in("g-1.index"), "i");
  write_file(in("g-1.data"), "d");
  save(&t, "one.pt", MATCH_FILE, &m);
  assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), 0);
  assert_true(file_is(in("out/one.pt"), "single"));
  manifest_free(&m);
  save(&t, "g-1", MATCH_GROUP, &m);
  assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), 0);
  assert_true(file_is(in("out/g-1.data"), "d") && file_is(in("out/g-1.index"), "i"));
  assert_int_equal(count_entries(in("out")), 3);
  manifest_free(&m);
}

static void what_was_staged_shows_when_it_is_published(void **unused) {
  err e = {0};
  manifest m;
  make_unit();
  unit_files from = scan("ck-3", MATCH_DIR);
  transfer t = with(io_unflushed(), workers);
  no_error(transfer_up(&t, &from, ".ckpt/staging/7", true, false, &e), &e);
  assert_false(store_holds(place.s, "u/model.pt"));
  no_error(unit_files_manifest(&from, "ck-3", 3, t.hash, &m, &e), &e);
  no_error(place.s->ops->publish(place.s, ".ckpt/staging/7", "u", &e), &e);
  assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), 0);
  store_must_hold(place.s, "u/model.pt", "weights");
  unit_files_free(&from);
  manifest_free(&m);
}

static void a_name_that_the_store_cannot_hold_is_an_error_before_any_byte(void **unused) {
  err e = {0};
  char path[1200] = "ck-3", part[256];
  memset(part, 'n', sizeof part);
  part[250] = 0;
  for (int i = 0; i < 4; i++) {
    snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", part);
    make_dir(in(path));
  }
  snprintf(path + strlen(path), sizeof path - strlen(path), "/a-name-that-is-one-too-many");
  write_file(in(path), "x");
  unit_files from = scan("ck-3", MATCH_DIR);
  transfer t = with(io_unflushed(), NULL);
  assert_int_equal(transfer_up(&t, &from, "u", false, false, &e), ERR_LIMIT);
  assert_int_equal(e.code, ERR_LIMIT);
  store_must_list(place.s, "u", false, "");
  unit_files_free(&from);
}

/* ---- the source changes ---- */

struct step {
  long at;
  void (*act)(void);
};

static void on_call(void *ctx, long call) {
  const struct step *s = ctx;
  if (call == s->at) s->act();
}

static void write_in_place(void) {
  struct stat st;
  int fd = open(in("ck-3/model.pt"), O_WRONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) < 0 || pwrite(fd, "X", 1, 0) != 1) abort();
  struct timespec times[2] = {st.st_atim, st.st_mtim}; /* even so: the ctime tells */
  if (futimens(fd, times) < 0) abort();
  close(fd);
}
static void shrink(void) {
  if (truncate(in("ck-3/model.pt"), 100) < 0) abort();
}
static void grow(void) {
  if (truncate(in("ck-3/model.pt"), 30 * MIB) < 0) abort();
}
static void take_away(void) {
  if (rename(in("ck-3/model.pt"), in("aside")) < 0) abort();
}
static void put_a_pipe(void) {
  take_away();
  if (mkfifo(in("ck-3/model.pt"), 0600) < 0) abort();
}
static void put_a_link(void) {
  take_away();
  if (symlink(in("aside"), in("ck-3/model.pt")) < 0) abort();
}
static void put_a_directory(void) {
  take_away();
  make_dir(in("ck-3/model.pt"));
}
static void put_a_socket(void) {
  take_away();
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(to.sun_path, sizeof to.sun_path, "%.100s", in("ck-3/model.pt"));
  if (fd < 0 || bind(fd, (void *)&to, sizeof to) < 0) abort();
  close(fd);
}
static void replace_the_directory(void) {
  if (rename(in("ck-3"), in("ck-old")) < 0) abort();
  write_file(in("ck-3"), "a file now");
}

/* Before each call of a save something is done to the file. After the file was opened, taking its
 * name away changes nothing in what is read (the next scan sees it), but its ctime tells. */
static void a_file_that_changes_while_it_is_read_is_retired_and_does_not_show(void **unused) {
  static void (*const acts[])(void) = {
      write_in_place, shrink,          grow,         put_a_pipe,
      put_a_link,     put_a_directory, put_a_socket, replace_the_directory};
  size_t count = is_mem() ? 2 : sizeof acts / sizeof *acts; /* the rest is the source's alone */
  for (size_t i = 0; i < count; i++) {
    bool over = false;
    for (long n = 1; !over; n++) {
      err e = {0};
      int fds = count_fds();
      write_pattern(in("ck-3/model.pt"), i < 2 ? 8 * MIB + 5 : 5000, 1);
      unit_files from = scan("ck-3", MATCH_DIR);
      usleep(12000); /* past the clock's grain */
      struct step s = {n, acts[i]};
      transfer t = with(io_hook_set(on_call, &s), n % 2 ? workers : NULL);
      int rc = transfer_up(&t, &from, "u", false, false, &e);
      over = io_hook_count() < n;
      bool late = acts[i] == replace_the_directory && rc == 0; /* the file itself is as it was */
      if (over || late)
        no_error(rc, &e);
      else if (rc != ERR_RETIRED || e.code != rc)
        fail_msg("act %zu at call %ld: %d %s", i, n, rc, e.text);
      if (rc < 0) store_must_list(place.s, "", false, "");
      assert_int_equal(count_fds(), fds);
      unit_files_free(&from);
      leave(NULL);
      enter(NULL);
    }
  }
}

static void a_file_that_is_gone_before_it_is_read_is_retired(void **unused) {
  err e = {0};
  make_unit();
  unit_files from = scan("ck-3", MATCH_DIR);
  unlink(in("ck-3/sub/deep/run.sh"));
  transfer t = with(io_unflushed(), workers);
  assert_int_equal(transfer_up(&t, &from, "u", false, false, &e), ERR_RETIRED);
  assert_non_null(strstr(e.text, "run.sh"));
  assert_false(store_holds(place.s, "u/sub/deep/run.sh"));
  unit_files_free(&from);
}

/* An io whose times prove nothing: fstat says what it said first, and the second reading of a file
 * gives other bytes. */
static struct stat said;
static int openings;

static int lie_fstat(const io *io, int fd, struct stat *out) {
  *out = said;
  return 0;
}
static int lie_open(const io *io, int dirfd, const char *path, int flags, mode_t mode) {
  openings++;
  return io_unflushed()->open(io_unflushed(), dirfd, path, flags, mode);
}
static ssize_t lie_read(const io *io, int fd, void *to, size_t len) {
  ssize_t got = io_unflushed()->read(io_unflushed(), fd, to, len);
  if (openings > 1 && got > 0) ((char *)to)[got - 1] ^= 1;
  return got;
}

static void with_times_that_prove_nothing_a_second_reading_finds_the_change(void **unused) {
  err e = {0};
  write_file(in("ck-3/model.pt"), "weights");
  stat(in("ck-3/model.pt"), &said);
  unit_files from = scan("ck-3", MATCH_DIR);
  io lying = *io_unflushed();
  lying.fstat = lie_fstat;
  lying.open = lie_open;
  lying.read = lie_read;
  transfer t = with(&lying, NULL);
  openings = 0;
  no_error(transfer_up(&t, &from, "u", false, false, &e), &e);
  openings = 0;
  assert_int_equal(transfer_up(&t, &from, "v", false, true, &e), ERR_RETIRED);
  assert_non_null(strstr(e.text, "model.pt"));
  unit_files_free(&from);
}

/* ---- the store lies ---- */

static void damage(const char *key, void (*how)(buf *)) {
  buf b;
  buf_init(&b, 32 * MIB);
  if (place.s->ops->get(place.s, key, &b, NULL) < 0) abort();
  how(&b);
  if (place.s->ops->put(place.s, key, b.data, b.len, STORE_REPLACE, NULL) < 0) abort();
  buf_free(&b);
}
static void flip_in_block_1(buf *b) {
  b->data[8 * MIB + 17] ^= 1;
}
static void cut_in_block_1(buf *b) {
  b->len = 8 * MIB + 17;
}
static void flip_the_last_byte(buf *b) {
  b->data[b->len - 1] ^= (char)0x80;
}
static void cut_the_last_byte(buf *b) {
  b->len--;
}
static void add_a_byte(buf *b) {
  buf_add(b, "x", 1);
}

static void damaged_bytes_are_never_restored_and_the_error_names_file_and_block(void **unused) {
  static const struct {
    void (*how)(buf *);
    const char *says;
  } rows[] = {{flip_in_block_1, "block 1"}, {cut_in_block_1, "ends at byte 8388625 of 12582912"}};
  for (int i = 0; i < 2; i++) {
    err e = {0};
    manifest m;
    transfer t = with(io_unflushed(), i ? workers : NULL);
    int fds = count_fds();
    write_pattern(in("ck-3/model.pt"), 12 * MIB, 1);
    save(&t, "ck-3", MATCH_DIR, &m);
    damage("u/model.pt", rows[i].how);
    assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), ERR_CORRUPT);
    assert_int_equal(e.code, ERR_CORRUPT);
    assert_non_null(strstr(e.text, "u/model.pt"));
    if (!strstr(e.text, rows[i].says)) fail_msg("%s", e.text);
    assert_int_equal(count_fds(), fds);
    manifest_free(&m);
    leave(NULL);
    enter_large(NULL);
  }
}

struct findings {
  int count;
  char text[4096];
};

static void on_finding(void *ctx, const char *name, const char *text) {
  struct findings *f = ctx;
  f->count++;
  size_t len = strlen(f->text);
  snprintf(f->text + len, sizeof f->text - len, "[%s: %s]", name, text);
}

static void verify_counts_and_names_each_thing_that_is_wrong(void **unused) {
  err e = {0};
  manifest m;
  struct findings found = {0};
  transfer t = with(io_unflushed(), workers);
  make_unit();
  write_file(in("ck-3/b"), "bbbb");
  write_file(in("ck-3/c"), "cccc");
  save(&t, "ck-3", MATCH_DIR, &m);
  assert_int_equal(transfer_verify(&t, &m, "u", on_finding, &found, &e), 0);
  damage("u/model.pt", flip_the_last_byte);
  damage("u/b", cut_the_last_byte);
  damage("u/c", add_a_byte);
  place.s->ops->remove(place.s, "u/sub/none", NULL); /* empty, but it has to be there */
  assert_int_equal(transfer_verify(&t, &m, "u", on_finding, &found, &e), 4);
  assert_int_equal(found.count, 4);
  if (!strstr(found.text, "[model.pt: ") || !strstr(found.text, "block 0"))
    fail_msg("%s", found.text);
  assert_non_null(strstr(found.text, "[b: u/b has 3 bytes, saved were 4]"));
  assert_non_null(strstr(found.text, "[c: u/c has 5 bytes, saved were 4]"));
  assert_non_null(strstr(found.text, "[sub/none: missing]"));
  manifest_free(&m);
}

/* The sum of each block is checked beside its digest, so it cannot be wrong for years. */
static void a_crc_that_is_not_that_of_its_block_is_found(void **unused) {
  err e = {0};
  manifest m;
  struct findings found = {0};
  transfer t = with(io_unflushed(), workers);
  make_unit();
  write_file(in("ck-3/b"), "123456789");
  save(&t, "ck-3", MATCH_DIR, &m);
  for (size_t i = 0; i < m.count; i++)
    if (m.entries[i].type == MANIFEST_FILE && m.entries[i].size)
      assert_true(m.entries[i].blocks[0].summed);
  digest *block = manifest_find(&m, "b")->blocks;
  assert_true(block->crc == 0xe3069283);
  block->crc ^= 1;
  assert_int_equal(transfer_verify(&t, &m, "u", on_finding, &found, &e), 1);
  if (!strstr(found.text, "[b: ")) fail_msg("%s", found.text);
  block->summed = false; /* as 1.0 has saved it */
  assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), 0);
  manifest_free(&m);
}

static void a_local_copy_with_other_bytes_is_found_though_its_time_is_right(void **unused) {
  err e = {0};
  manifest m;
  transfer t = with(io_unflushed(), workers);
  make_unit();
  save(&t, "ck-3", MATCH_DIR, &m);
  write_file(in("ck-3/model.pt"), "weightz");
  set_mtime(in("ck-3/model.pt"), 1600000000, 123456789);
  unit_files local = scan("ck-3", MATCH_DIR);
  assert_true(unit_files_matches(&local, &m));
  assert_int_equal(transfer_check_local(&t, &local, &m, &e), ERR_CORRUPT);
  assert_non_null(strstr(e.text, "model.pt"));
  unit_files_free(&local);
  write_file(in("ck-3/zzz"), "more files than the manifest has");
  local = scan("ck-3", MATCH_DIR);
  assert_int_equal(transfer_check_local(&t, &local, &m, &e), ERR_CORRUPT);
  unit_files_free(&local);
  manifest_free(&m);
}

/* ---- cancel ---- */

static void on_call_cancel(void *ctx, long call) {
  if (call == *(long *)ctx) cancel = 1;
}

static void a_cancelled_save_shows_nothing(void **unused) {
  write_pattern(in("ck-3/model.pt"), 16 * MIB + 5, 1);
  int canceled = 0;
  for (long n = 1;; n++) {
    err e = {0};
    cancel = 0;
    int fds = count_fds();
    unit_files from = scan("ck-3", MATCH_DIR);
    transfer t = with(io_hook_set(on_call_cancel, &n), n % 2 ? workers : NULL);
    int rc = transfer_up(&t, &from, "u", false, false, &e);
    unit_files_free(&from);
    assert_int_equal(count_fds(), fds);
    if (rc == 0) {                        /* the flag came after the last whole block */
      assert_int_equal(canceled, 2 + 16); /* open, fstat, a read for each MiB of two blocks */
      break;
    }
    canceled++;
    assert_int_equal(rc, ERR_CANCELED);
    store_must_list(place.s, "", false, "");
  }
}

static void a_cancelled_restore_ends_without_an_open_file(void **unused) {
  manifest m;
  transfer t = with(io_unflushed(), NULL);
  make_unit();
  save(&t, "ck-3", MATCH_DIR, &m);
  int canceled = 0;
  for (long n = 1;; n++) {
    err e = {0};
    cancel = 0;
    int fds = count_fds();
    t = with(io_hook_set(on_call_cancel, &n), n % 2 ? workers : NULL);
    int rc = transfer_down(&t, &m, "u", in("out"), &e);
    assert_int_equal(count_fds(), fds);
    if (rc != 0) assert_int_equal(rc, ERR_CANCELED);
    canceled += rc != 0;
    if (rc == 0) must_be_restored("ck-3", "out");
    fs_remove_tree(io_unflushed(), in("out"), NULL);
    make_dir(in("out"));
    if (io_hook_count() < n) break;
  }
  assert_true(canceled > 0);
  manifest_free(&m);
}

/* ---- failing calls ---- */

static void a_restore_in_which_any_call_fails_is_an_error_or_whole(void **unused) {
  static const int errnums[] = {EIO, ENOSPC, ENOENT};
  manifest m;
  transfer t = with(io_unflushed(), NULL);
  make_unit();
  save(&t, "ck-3", MATCH_DIR, &m);
  for (int i = 0; i < (is_mem() ? 1 : 3); i++)
    for (long n = 1;; n++) {
      err e = {0};
      int fds = count_fds();
      io_fault_once(fault, CALL_ANY, n, errnums[i]);
      t = with(io_fault_io(fault), n % 4 == 0 ? workers : NULL);
      int rc = transfer_down(&t, &m, "u", in("out"), &e);
      if (rc == 0)
        must_be_restored("ck-3", "out");
      else if (e.code != rc || !*e.text)
        fail_msg("call %ld: %d, but %d %s", n, rc, e.code, e.text);
      assert_int_equal(count_fds(), fds);
      fs_remove_tree(io_unflushed(), in("out"), NULL);
      make_dir(in("out"));
      if (io_fault_failed(fault, CALL_ANY) == 0) break;
    }
  manifest_free(&m);
}

/* The number of the line "fsync NAME" of the log, from `from` on. */
static int flushed(const char *name, int from) {
  char line[4200];
  snprintf(line, sizeof line, "fsync %s", in(name));
  int at = io_fault_find(fault, from, line);
  if (at < 0) fail_msg("%s is not flushed", name);
  return at;
}

static void a_restore_flushes_files_then_their_directories(void **unused) {
  manifest m;
  err e = {0};
  transfer t = with(io_fault_io(fault), NULL);
  make_unit();
  save(&t, "ck-3", MATCH_DIR, &m);
  io_fault_set(fault, (io_fault_plan){0});
  no_error(transfer_down(&t, &m, "u", in("out"), &e), &e);
  int deep = flushed("out/sub/deep", flushed("out/sub/deep/run.sh", 0) + 1);
  int sub = flushed("out/sub", deep + 1);
  flushed("out", sub + 1);
  flushed("out/model.pt", 0);
  flushed("out/sub/none", 0);
  manifest_free(&m);
}

static void a_save_in_which_any_call_fails_shows_the_file_whole_or_not(void **unused) {
  write_file(in("ck-3/model.pt"), "weights");
  for (long n = 1;; n++) {
    err e = {0};
    int fds = count_fds();
    unit_files from = scan("ck-3", MATCH_DIR);
    io_fault_once(fault, CALL_ANY, n, EIO);
    transfer t = with(io_fault_io(fault), NULL);
    int rc = transfer_up(&t, &from, "u", false, false, &e);
    unit_files_free(&from);
    assert_int_equal(count_fds(), fds);
    if (rc == 0) {
      store_must_hold(place.s, "u/model.pt", "weights");
      place.s->ops->remove_prefix(place.s, "u", NULL);
    } else {
      assert_int_equal(rc, ERR_IO);
      assert_int_equal(e.code, rc);
      store_must_list(place.s, "", false, "");
    }
    if (io_fault_failed(fault, CALL_ANY) == 0) break;
  }
}

static void of_many_failures_the_code_and_the_text_are_of_the_same_one(void **unused) {
  char name[64];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "ck-3/%02d", i);
    write_file(in(name), "x");
  }
  for (int i = 0; i < 30; i++) {
    err e = {0};
    unit_files from = scan("ck-3", MATCH_DIR);
    for (size_t k = 0; k < from.count; k++)
      if (k % 2) from.files[k].inode++; /* retired; the others fail to be read */
    io_fault_set(fault, (io_fault_plan){CALL_READ, 1, EIO, true, false});
    transfer t = with(io_fault_io(fault), workers);
    int rc = transfer_up(&t, &from, "u", false, false, &e);
    assert_true(rc == ERR_IO || rc == ERR_RETIRED);
    assert_int_equal(e.code, rc);
    unit_files_free(&from);
  }
}

/* ---- hostile manifests ---- */

static void a_manifest_that_nobody_checked_is_not_touched(void **unused) {
  static const char *const names[] = {"../outside", "/tmp/outside", "a/../../outside", "fine"};
  for (int i = 0; i < 4; i++) {
    err e = {0};
    manifest m;
    manifest_init(&m);
    manifest_add(&m, MANIFEST_FILE, names[i], NULL);
    transfer t = with(io_unflushed(), NULL);
    assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), ERR_INVAL);
    assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), ERR_INVAL);
    unit_files local = scan("ck-3", MATCH_DIR);
    assert_int_equal(transfer_check_local(&t, &local, &m, &e), ERR_INVAL);
    unit_files_free(&local);
    assert_int_equal(count_entries(in("out")), 0);
    assert_false(path_exists(in("outside")));
    manifest_free(&m);
  }
}

/* Even with a forged root digest: links are made after all files. */
static void nothing_is_written_through_a_link_of_the_manifest(void **unused) {
  err e = {0};
  manifest m;
  make_dir(in("outside"));
  assert_int_equal(store_put_text(place.s, "u/a/x", "payload", STORE_REPLACE), 0);
  manifest_init(&m);
  manifest_add(&m, MANIFEST_LINK, "a", in("outside"));
  manifest_entry *f = manifest_add(&m, MANIFEST_FILE, "a/x", NULL);
  f->size = 7;
  f->mode = 0644;
  f->blocks = calloc(1, sizeof *f->blocks);
  hash_bytes(m.hash, "payload", 7, f->blocks, NULL);
  m.root.len = 16;
  transfer t = with(io_unflushed(), NULL);
  assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), ERR_EXISTS);
  assert_int_equal(count_entries(in("outside")), 0);
  manifest_free(&m);
}

static void a_restore_never_writes_over_or_through_what_is_there(void **unused) {
  err e = {0};
  manifest m;
  transfer t = with(io_unflushed(), NULL);
  write_file(in("ck-3/model.pt"), "weights");
  save(&t, "ck-3", MATCH_DIR, &m);
  write_file(in("victim"), "mine");
  if (symlink(in("victim"), in("out/model.pt")) < 0) abort();
  assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), ERR_EXISTS);
  assert_true(file_is(in("victim"), "mine"));
  manifest_free(&m);
}

static void set_user_id_bits_are_not_restored(void **unused) {
  err e = {0};
  manifest m;
  transfer t = with(io_unflushed(), NULL);
  write_file(in("ck-3/tool"), "x");
  chmod(in("ck-3/tool"), 04755);
  save(&t, "ck-3", MATCH_DIR, &m);
  assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), 0);
  assert_int_equal(path_mode(in("out/tool")), 0755);
  manifest_free(&m);
}

static void metadata_that_was_set_later_comes_with_a_restore(void **unused) {
  err e = {0};
  manifest m;
  transfer t = with(io_unflushed(), workers);
  make_unit();
  save(&t, "ck-3", MATCH_DIR, &m);
  assert_int_equal(store_put_text(place.s, "u/.metadata.json", "{\"note\":1}", STORE_REPLACE), 0);
  assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), 0);
  no_error(transfer_down(&t, &m, "u", in("out"), &e), &e);
  assert_false(
      path_exists(in("out/.metadata.json"))); /* a tree's own downloads find it by themselves */
  t.later = true;
  make_dir(in("again"));
  no_error(transfer_down(&t, &m, "u", in("again"), &e), &e);
  assert_true(file_is(in("again/.metadata.json"), "{\"note\":1}"));
  assert_int_equal(path_mode(in("again/.metadata.json")), 0644);
  unit_files copy = scan("again", MATCH_DIR);
  assert_true(unit_files_matches(&copy, &m)); /* it is that checkpoint all the same */
  no_error(transfer_check_local(&t, &copy, &m, &e), &e);
  unit_files_free(&copy);
  assert_int_equal(place.s->ops->remove(place.s, "u/.metadata.json", NULL), 0);
  make_dir(in("third"));
  no_error(transfer_down(&t, &m, "u", in("third"), &e), &e);
  must_be_restored("ck-3", "third");
  manifest_free(&m);
}

/* Whoever replaced it in the store wants it back so, and nothing is wrong with the checkpoint. */
static void metadata_that_was_replaced_in_the_store_is_restored_as_it_is_now(void **unused) {
  err e = {0};
  manifest m;
  transfer t = with(io_unflushed(), workers);
  make_unit();
  write_file(in("ck-3/.metadata.json"), "{\"note\":1}");
  save(&t, "ck-3", MATCH_DIR, &m);
  assert_int_equal(transfer_down(&t, &m, "u", in("out"), &e), 0);
  must_be_restored("ck-3", "out");
  make_dir(in("again"));
  assert_int_equal(store_put_text(place.s, "u/.metadata.json", "{\"note\":22}", STORE_REPLACE), 0);
  assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), 0);
  no_error(transfer_down(&t, &m, "u", in("again"), &e), &e);
  assert_true(file_is(in("again/.metadata.json"), "{\"note\":22}"));
  unit_files copy = scan("again", MATCH_DIR);
  assert_true(unit_files_matches(&copy, &m)); /* it is that checkpoint all the same */
  no_error(transfer_check_local(&t, &copy, &m, &e), &e);
  unit_files_free(&copy);
  assert_int_equal(place.s->ops->remove(place.s, "u/.metadata.json", NULL), 0);
  assert_int_equal(transfer_verify(&t, &m, "u", NULL, NULL, &e), 1);
  manifest_free(&m);
}

#define T(name) cmocka_unit_test_setup_teardown(name, enter, leave)
#define LARGE(name) cmocka_unit_test_setup_teardown(name, enter_large, leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      LARGE(a_unit_comes_back_with_names_bytes_modes_times_and_links),
      T(it_does_so_with_four_workers_and_another_digest),
      LARGE(files_of_all_sizes_around_a_block_come_back),
      T(single_files_and_groups_come_back),
      T(a_name_that_the_store_cannot_hold_is_an_error_before_any_byte),
      T(a_file_that_changes_while_it_is_read_is_retired_and_does_not_show),
      T(a_file_that_is_gone_before_it_is_read_is_retired),
      T(with_times_that_prove_nothing_a_second_reading_finds_the_change),
      LARGE(damaged_bytes_are_never_restored_and_the_error_names_file_and_block),
      T(verify_counts_and_names_each_thing_that_is_wrong),
      T(a_crc_that_is_not_that_of_its_block_is_found),
      T(a_local_copy_with_other_bytes_is_found_though_its_time_is_right),
      T(a_cancelled_save_shows_nothing),
      T(a_cancelled_restore_ends_without_an_open_file),
      T(a_restore_in_which_any_call_fails_is_an_error_or_whole),
      T(a_restore_flushes_files_then_their_directories),
      T(a_save_in_which_any_call_fails_shows_the_file_whole_or_not),
      T(of_many_failures_the_code_and_the_text_are_of_the_same_one),
      T(a_manifest_that_nobody_checked_is_not_touched),
      T(nothing_is_written_through_a_link_of_the_manifest),
      T(a_restore_never_writes_over_or_through_what_is_there),
      T(set_user_id_bits_are_not_restored),
      T(metadata_that_was_set_later_comes_with_a_restore),
      T(metadata_that_was_replaced_in_the_store_is_restored_as_it_is_now),
  };
  const struct CMUnitTest can_publish[] = {T(what_was_staged_shows_when_it_is_published)};
  int failed = cmocka_run_group_tests_name("file, staged", can_publish, NULL, NULL);
  failed += cmocka_run_group_tests_name("file", tests, NULL, NULL);
  store_place_scheme = "mem";
  return failed + cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
