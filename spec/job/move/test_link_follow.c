#include "with_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault_dir.h"
#include "base/uri.h"
#include "io_hook.h"
#include "job/move/link_follow.h"
#include "job/move/snapshot.h"
#include "job/move/transfer.h"
#include "job/move/unit_files.h"
#include "prims/fs.h"

/* Users of the attacks; only root can be in their way, or stand for them. */
enum { ALICE = 4321, BOB = 4322 };

/* Not in /dev/shm: nothing is followed there. */
static int enter(void **unused) {
  fault_dir_enter(NULL);
  make_dir(in("out"));
  make_dir(in("out/ck-3"));
  make_dir(in("out/ck-3/sub"));
  write_file(in("out/ck-3/own"), "own");
  make_dir(in("shared"));
  write_file(in("shared/w"), "weights");
  write_file(in("shared/v"), "values");
  return 0;
}

static void link_to(const char *target, const char *name) {
  if (symlink(target, in(name)) != 0) fail_msg("%s: %s", name, strerror(errno));
}

static int scan(const io *io, unit_files *out, err *e) {
  return unit_files_scan(io, dir, "out/ck-3", MATCH_DIR, rules_builtin(), out, e);
}

static unit_files must_scan(void) {
  unit_files t;
  err e = {0};
  if (scan(io_unflushed(), &t, &e) < 0) fail_msg("%s", e.text);
  return t;
}

static const unit_file *find(const unit_files *t, const char *name) {
  const unit_file *f = unit_files_find(t, name);
  if (!f) fail_msg("there is no %s", name);
  return f;
}

static void must_be_link(const unit_files *t, const char *name, const char *target, link_end end) {
  const unit_file *f = find(t, name);
  if (f->type != MANIFEST_LINK) fail_msg("%s is no link", name);
  assert_string_equal(f->target, target);
  if (f->end != (uint8_t)end) fail_msg("%s: end %d, not %d", name, f->end, end);
  assert_null(f->followed);
}

static void must_be_file(const unit_files *t, const char *name, const char *text) {
  const unit_file *f = find(t, name);
  char path[4096], got[64] = "";
  if (f->type != MANIFEST_FILE) fail_msg("%s is a link to %s, end %d", name, f->target, f->end);
  assert_int_equal(f->size, strlen(text));
  assert_int_equal(unit_files_path(t, f, path, NULL), 0);
  int fd = unit_files_open(io_unflushed(), f, path, NULL);
  assert_true(fd >= 0);
  assert_int_equal(read(fd, got, sizeof got - 1), strlen(text));
  close(fd);
  assert_string_equal(got, text);
}

static void a_link_out_of_a_unit_is_the_file_that_it_leads_to(void **unused) {
  chmod(in("shared/w"), 0640);
  link_to("../../shared/w", "out/ck-3/w");
  link_to(in("shared/v"), "out/ck-3/sub/v");
  link_to("shared", "aside");
  link_to("../../aside/../shared/./w2", "out/ck-3/w2");
  link_to("hop", "shared/w2");
  write_file(in("shared/hop"), "by two links");
  unit_files t = must_scan();
  must_be_file(&t, "w", "weights");
  must_be_file(&t, "sub/v", "values");
  must_be_file(&t, "w2", "by two links");
  assert_int_equal(find(&t, "w")->mode, 0640);
  assert_int_equal(t.regular, 4);
  assert_int_equal(t.bytes, 3 + 7 + 6 + 12);
  unit_files_free(&t);
}

static void each_inode_is_there_once_and_the_other_links_lead_to_it(void **unused) {
  make_dir(in("out/ck-3/deep"));
  make_dir(in("out/ck-3/deep/er"));
  link_to("../../shared/w", "out/ck-3/w");
  link_to("../../../../shared/w", "out/ck-3/deep/er/a");
  link_to("../../../shared/w", "out/ck-3/sub/z");
  link_to(in("out/ck-3/own"), "out/ck-3/sub/own");
  assert_int_equal(link(in("shared/v"), in("shared/again")), 0);
  link_to("../../shared/v", "out/ck-3/v1");
  link_to("../../shared/again", "out/ck-3/v2");
  unit_files t = must_scan();
  must_be_file(&t, "deep/er/a", "weights");
  must_be_link(&t, "w", "deep/er/a", LINK_END_WITHIN);
  must_be_link(&t, "sub/z", "../deep/er/a", LINK_END_WITHIN);
  must_be_link(&t, "sub/own", "../own", LINK_END_WITHIN);
  must_be_file(&t, "v1", "values");
  must_be_link(&t, "v2", "v1", LINK_END_WITHIN);
  assert_int_equal(t.bytes, 3 + 7 + 6);
  unit_files_free(&t);
  err e = {0};
  assert_int_equal(unit_files_scan_as(io_unflushed(), dir, "out/ck-3", MATCH_DIR, rules_builtin(),
                                      UNIT_FILES_EACH, &t, &e),
                   0);
  must_be_file(&t, "w", "weights");
  must_be_file(&t, "sub/z", "weights");
  unit_files_free(&t);
}

static void links_within_stay_links(void **unused) {
  make_dir(in("out/ck-3/.tmpAbCdEf"));
  write_file(in("out/ck-3/.tmpAbCdEf/left-out"), "excluded");
  link_to("own", "out/ck-3/beside");
  link_to("../own", "out/ck-3/sub/up");
  link_to("sub/../own", "out/ck-3/round");
  link_to("sub", "out/ck-3/dir");
  link_to(".", "out/ck-3/here");
  link_to("w", "out/ck-3/to-w"); /* which is the file */
  link_to("../../shared/w", "out/ck-3/w");
  link_to(".tmpAbCdEf/left-out", "out/ck-3/excluded"); /* which is not of the unit */
  unit_files t = must_scan();
  must_be_link(&t, "beside", "own", LINK_END_WITHIN);
  must_be_link(&t, "sub/up", "../own", LINK_END_WITHIN);
  must_be_link(&t, "round", "sub/../own", LINK_END_WITHIN);
  must_be_link(&t, "dir", "sub", LINK_END_WITHIN);
  must_be_link(&t, "here", ".", LINK_END_WITHIN);
  must_be_link(&t, "to-w", "w", LINK_END_WITHIN);
  must_be_file(&t, "w", "weights");
  must_be_file(&t, "excluded", "excluded");
  unit_files_free(&t);
}

static void of_a_group_only_its_own_names_are_within(void **unused) {
  write_file(in("out/g-3.index"), "index");
  write_file(in("out/other"), "other");
  link_to("g-3.index", "out/g-3.own");
  link_to("other", "out/g-3.other");
  link_to("../shared/w", "out/g-3.data");
  unit_files t;
  err e = {0};
  int rc = unit_files_scan(io_unflushed(), dir, "out/g-3", MATCH_GROUP, rules_builtin(), &t, &e);
  if (rc < 0) fail_msg("%s", e.text);
  must_be_link(&t, "g-3.own", "g-3.index", LINK_END_WITHIN);
  must_be_file(&t, "g-3.other", "other");
  must_be_file(&t, "g-3.data", "weights");
  unit_files_free(&t);
}

static void a_unit_that_is_itself_a_link_is_no_unit(void **unused) {
  unit_files t;
  err e = {0};
  link_to("ck-3", "out/ck-4");
  link_to("../shared/w", "out/one.pt");
  assert_int_equal(
      unit_files_scan(io_unflushed(), dir, "out/ck-4", MATCH_DIR, rules_builtin(), &t, &e),
      ERR_RETIRED);
  assert_int_equal(
      unit_files_scan(io_unflushed(), dir, "out/one.pt", MATCH_FILE, rules_builtin(), &t, &e),
      ERR_RETIRED);
}

/* Opened, a pipe would wait for ever, and a device might do anything. */
static void what_is_no_file_outside_stays_a_link_and_is_never_opened(void **unused) {
  static const struct {
    const char *target;
    link_end end;
  } rows[] = {
      {"../../shared", LINK_END_DIR},
      {"..", LINK_END_DIR},
      {"/", LINK_END_DIR},
      {"../../shared/none", LINK_END_NOWHERE},
      {"missing", LINK_END_NOWHERE},
      {"own/below", LINK_END_NOWHERE},
      {"../../pipe", LINK_END_SPECIAL},
      {"/proc/self/environ", LINK_END_KERNEL},
      {"/proc/self/fd/0", LINK_END_KERNEL},
      {"/proc/self/root/etc/passwd", LINK_END_KERNEL},
      {"/proc/self/cwd/x", LINK_END_KERNEL},
      {"/proc/kcore", LINK_END_KERNEL},
      {"/sys/kernel/notes", LINK_END_KERNEL},
      {"/dev/zero", LINK_END_SPECIAL},
      {"../../proc/version", LINK_END_KERNEL},
      {"circle", LINK_END_NOWHERE},
      {"../../far", LINK_END_NOWHERE},
  };
  link_to("/proc", "proc");
  link_to("farther", "far");
  link_to("far", "farther");
  assert_int_equal(mkfifo(in("pipe"), 0666), 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    link_to(rows[i].target, "out/ck-3/circle");
    unit_files t = must_scan();
    const unit_file *f = find(&t, "circle");
    if (f->type != MANIFEST_LINK || f->end != (uint8_t)rows[i].end)
      fail_msg("%s: end %d, not %d", rows[i].target, f->end, rows[i].end);
    assert_string_equal(f->target, rows[i].target);
    assert_null(t.links);
    unit_files_free(&t);
    unlink(in("out/ck-3/circle"));
  }
}

static void files_below_dev_are_not_followed_though_they_are_regular(void **unused) {
  if (access("/dev/shm", W_OK) != 0) skip();
  char *shm = tmpdir_new_in("/dev/shm");
  write_file(tmpdir_path(shm, "w"), "weights");
  link_to(tmpdir_path(shm, "w"), "out/ck-3/w");
  unit_files t = must_scan();
  must_be_link(&t, "w", tmpdir_path(shm, "w"), LINK_END_KERNEL);
  unit_files_free(&t);
  tmpdir_remove(shm);
}

static void links_are_followed_only_where_it_is_asked_for(void **unused) {
  unit_files t;
  err e = {0};
  link_to("../../shared/w", "out/ck-3/w");
  assert_int_equal(unit_files_scan_as(io_unflushed(), dir, "out/ck-3", MATCH_DIR, rules_builtin(),
                                      UNIT_FILES_PLAIN, &t, &e),
                   0);
  must_be_link(&t, "w", "../../shared/w", LINK_END_WITHIN);
  unit_files_free(&t);
}

/* ---- while somebody works against it ---- */

struct step {
  long at;
  void (*act)(void);
};

static void on_call(void *ctx, long call) {
  const struct step *s = ctx;
  if (call == s->at) s->act();
}

static void replace(const char *name, const char *target) {
  if (unlink(in(name)) != 0) abort();
  link_to(target, name);
}

static void lead_to_another(void) {
  replace("out/ck-3/w", "../../shared/v");
}

static void lead_to_a_pipe(void) {
  replace("out/ck-3/w", "../../pipe");
}

static void lead_to_zeros(void) {
  replace("out/ck-3/w", "/dev/zero");
}

static void lead_to_the_kernel(void) {
  replace("out/ck-3/w", "/proc/self/environ");
}

static void put_a_pipe_there(void) {
  if (rename(in("pipe"), in("shared/w")) != 0) abort();
}

static void write_it(void) {
  write_file(in("shared/w"), "written");
}

static void put_a_link_there(void) {
  if (unlink(in("shared/w")) != 0) abort();
  link_to("/dev/zero", "shared/w");
}

/* Each happens before each single call of a listing and of the opening that follows. What is read
 * is then what was listed, or it is retired, or no file at all: nothing waits, and nothing else is
 * read. */
static void a_link_that_is_swapped_at_any_call_gives_nothing_else(void **unused) {
  static void (*const acts[])(void) = {
      lead_to_another,  lead_to_a_pipe,   lead_to_zeros, lead_to_the_kernel,
      put_a_pipe_there, put_a_link_there, write_it};
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
    for (long n = 1;; n++) {
      unit_files t;
      err e = {0};
      char path[4096], got[64] = "";
      link_to("../../shared/w", "out/ck-3/w");
      assert_int_equal(mkfifo(in("pipe"), 0666), 0);
      struct step s = {n, acts[i]};
      const io *io = io_hook_set(on_call, &s);
      int rc = scan(io, &t, &e);
      if (rc != 0 && rc != ERR_RETIRED) fail_msg("act %zu at call %ld: %s", i, n, e.text);
      const unit_file *f = rc == 0 ? find(&t, "w") : NULL;
      if (f && f->type == MANIFEST_FILE) {
        assert_int_equal(unit_files_path(&t, f, path, NULL), 0);
        int fd = unit_files_open(io, f, path, &e);
        struct stat st;
        if (fd < 0 && fd != ERR_RETIRED) fail_msg("act %zu at call %ld: %s", i, n, e.text);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
          assert_true(read(fd, got, sizeof got - 1) > 0);
          bool same = st.st_ino == f->inode;
          assert_true(strcmp(got, "weights") == 0 || strcmp(got, "values") == 0 ||
                      strcmp(got, "written") == 0);
          if (same && st.st_size == (off_t)f->size && io_time_ns(st.st_ctim) == f->ctime_ns &&
              f->size == 7)
            assert_true(strcmp(got, "weights") == 0 || acts[i] == write_it);
        }
        if (fd >= 0) assert_true(S_ISREG(st.st_mode));
        if (fd >= 0) close(fd);
      }
      bool over = io_hook_count() < n;
      unit_files_free(&t);
      io_hook_set(NULL, NULL);
      fault_dir_leave(NULL);
      enter(NULL);
      if (over) break;
    }
}

static void a_write_to_what_a_link_leads_to_is_a_change_of_the_unit(void **unused) {
  static void (*const acts[])(void) = {lead_to_another, lead_to_a_pipe, put_a_link_there, write_it};
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
    err e = {0};
    struct stat before, after;
    link_to("../../shared/w", "out/ck-3/w");
    assert_int_equal(mkfifo(in("pipe"), 0666), 0);
    unit_files t = must_scan();
    assert_int_equal(unit_files_unchanged(io_unflushed(), dir, "out/ck-3", rules_builtin(), &t, &e),
                     0);
    assert_int_equal(stat(in("shared/w"), &before), 0);
    do acts[i]();
    while (acts[i] == write_it && stat(in("shared/w"), &after) == 0 &&
           io_time_ns(before.st_ctim) == io_time_ns(after.st_ctim));
    assert_int_equal(unit_files_unchanged(io_unflushed(), dir, "out/ck-3", rules_builtin(), &t, &e),
                     ERR_RETIRED);
    unit_files_free(&t);
    fault_dir_leave(NULL);
    enter(NULL);
  }
}

static store *open_store(void) {
  store *s = NULL;
  uri where;
  err e = {0};
  if (uri_parse("mem://links", &where, &e) < 0 ||
      store_open(&where, io_unflushed(), NULL, &s, &e) < 0)
    fail_msg("%s", e.text);
  return s;
}

static void what_is_sent_of_a_link_is_what_was_listed_or_nothing(void **unused) {
  static void (*const acts[])(void) = {NULL, lead_to_another, put_a_link_there, write_it};
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
    err e = {0};
    char got[64] = "";
    struct stat st;
    store *s = open_store();
    const transfer t = {.io = io_unflushed(), .store = s, .hash = HASH_XXH3_128};
    link_to("../../shared/w", "out/ck-3/w");
    unit_files from = must_scan();
    const int64_t listed = find(&from, "w")->ctime_ns;
    do
      if (acts[i]) acts[i]();
    while (acts[i] == write_it && stat(in("shared/w"), &st) == 0 &&
           io_time_ns(st.st_ctim) == listed);
    int rc = transfer_up(&t, &from, "u", 0, true, &e);
    if (rc != (acts[i] ? ERR_RETIRED : 0)) fail_msg("act %zu: %d %s", i, rc, e.text);
    ssize_t len = s->ops->read(s, "u/w", 0, got, sizeof got, NULL);
    if (!acts[i]) assert_true(len == 7 && strcmp(got, "weights") == 0);
    if (acts[i]) assert_true(len < 0);
    unit_files_free(&from);
    store_close(s);
    fault_dir_leave(NULL);
    enter(NULL);
  }
}

static void a_snapshot_has_the_bytes_and_follows_no_link_of_its_own(void **unused) {
  err e = {0};
  unit_files copy;
  _Atomic uint64_t alive = 0;
  make_dir(in("staging"));
  link_to("../../shared/w", "out/ck-3/w");
  link_to("../../shared/w", "out/ck-3/x");
  link_to("../../lure", "out/ck-3/y"); /* it is there only beside the copy */
  write_file(in("staging/lure"), "of another");
  unit_files from = must_scan();
  must_be_link(&from, "y", "../../lure", LINK_END_NOWHERE);
  int rc = snapshot_take(io_unflushed(), dir, "out/ck-3", rules_builtin(), &from, in("staging"),
                         true, NULL, &alive, &copy, &e);
  if (rc < 0) fail_msg("%s", e.text);
  unlink(in("shared/w"));
  must_be_file(&copy, "w", "weights");
  must_be_link(&copy, "x", "w", LINK_END_WITHIN);
  must_be_link(&copy, "y", "../../lure", LINK_END_WITHIN);
  assert_null(copy.links);
  unit_files_free(&from);
  unit_files_free(&copy);
}

static void any_call_that_fails_is_told_and_leaves_nothing_open(void **unused) {
  link_to("../../shared/w", "out/ck-3/w");
  for (int kind = 0; kind < 2; kind++)
    for (long n = 1;; n++) {
      unit_files t;
      err e = {0};
      int fds = count_fds();
      io_fault_once(fault, CALL_ANY, n, kind ? EIO : EMFILE);
      int rc = scan(io_, &t, &e);
      bool closed = io_fault_failed(fault, CALL_CLOSE) > 0,
           over = io_fault_failed(fault, CALL_ANY) == 0;
      unit_files_free(&t);
      assert_int_equal(count_fds(), fds);
      if (over) break;
      if (rc != ERR_IO && !(rc == 0 && closed)) fail_msg("call %ld: %d %s", n, rc, e.text);
    }
}

/* ---- of others: only root can look at this ---- */

static void give(const char *name, uid_t user) {
  if (lchown(in(name), user, user) != 0) fail_msg("%s: %s", name, strerror(errno));
}

static bool is_root(void) {
  if (geteuid() != 0) return false;
  chmod(dir, 0755);
  write_file(in("probe"), "");
  bool can = lchown(in("probe"), ALICE, ALICE) == 0;
  unlink(in("probe"));
  return can;
}

static void as_root_a_link_leads_to_files_of_its_owner_alone(void **unused) {
  if (!is_root()) skip();
  static const struct {
    uid_t link, file;
    mode_t mode, dir;
    link_end end;
  } rows[] = {
      {ALICE, ALICE, 0600, 0755, LINK_END_FILE},
      {ALICE, 0, 0644, 0755, LINK_END_DENIED},   /* root's, though all may read it */
      {ALICE, BOB, 0644, 0755, LINK_END_DENIED}, /* another user's */
      {ALICE, ALICE, 0000, 0755, LINK_END_DENIED},
      {ALICE, ALICE, 0644, 0700, LINK_END_DENIED}, /* in a directory that is closed to him */
      {0, ALICE, 0644, 0755, LINK_END_DENIED},
      {0, 0, 0600, 0700, LINK_END_FILE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    link_to("../../shared/w", "out/ck-3/w");
    give("out/ck-3/w", rows[i].link);
    give("shared/w", rows[i].file);
    chmod(in("shared/w"), rows[i].mode);
    chmod(in("shared"), rows[i].dir);
    unit_files t = must_scan();
    if (rows[i].end == LINK_END_FILE)
      must_be_file(&t, "w", "weights");
    else
      must_be_link(&t, "w", "../../shared/w", rows[i].end);
    unit_files_free(&t);
    unlink(in("out/ck-3/w"));
  }
  /* Our own rights are back. */
  chmod(in("shared"), 0);
  assert_true(file_is(in("shared/w"), "weights"));
}

static void as_root_no_link_of_a_third_user_is_followed_on_the_way(void **unused) {
  if (!is_root()) skip();
  link_to("../../by/w", "out/ck-3/w");
  link_to("shared", "by");
  give("out/ck-3/w", ALICE);
  give("shared/w", ALICE);
  give("by", BOB);
  unit_files t = must_scan();
  must_be_link(&t, "w", "../../by/w", LINK_END_DENIED);
  unit_files_free(&t);
  give("by", 0); /* as /var/run is one */
  t = must_scan();
  must_be_file(&t, "w", "weights");
  unit_files_free(&t);
}

/* In the middle of a walk this is done with her own rights: then it is hers already. */
static void make_hers(const char *name) {
  struct stat st;
  if (lchown(in(name), ALICE, ALICE) != 0 && (lstat(in(name), &st) != 0 || st.st_uid != ALICE))
    abort();
}

static void lead_to_the_secret(void) {
  replace("shared/w", "../secret/w");
  make_hers("shared/w");
}

static void put_the_secret_directory_there(void) {
  if (rename(in("shared"), in("before")) != 0) abort();
  link_to("secret", "shared");
  make_hers("shared");
}

static void put_the_links_directory_away(void) {
  if (rename(in("out/ck-3/sub"), in("before")) != 0) abort();
  link_to("../../secret/links", "out/ck-3/sub");
  make_hers("out/ck-3/sub");
}

static void put_the_unit_away(void) {
  if (rename(in("out/ck-3"), in("before")) != 0) abort();
  link_to("../secret/unit", "out/ck-3");
  make_hers("out/ck-3");
}

static void put_the_group_away(void) {
  if (rename(in("out"), in("before")) != 0) abort();
  link_to("secret/out", "out");
  make_hers("out");
}

/* Alice owns all but "secret", which is root's and Bob's. */
static void give_alice_all(void) {
  static const char *const hers[] = {"out",          "out/ck-3", "out/ck-3/sub",
                                     "out/ck-3/own", "shared",   "shared/w"};
  for (size_t i = 0; i < sizeof hers / sizeof *hers; i++) give(hers[i], ALICE);
  make_dir(in("secret"));
  make_dir(in("secret/links"));
  make_dir(in("secret/out"));
  make_dir(in("secret/out/ck-3"));
  make_dir(in("secret/out/ck-3/sub"));
  make_dir(in("secret/unit"));
  make_dir(in("secret/unit/sub"));
  write_file(in("secret/w"), "secret!");
  write_file(in("secret/bob"), "secret!");
  link_to("../bob", "secret/links/w");
  link_to("../../bob", "secret/unit/sub/w");
  link_to("../../../bob", "secret/out/ck-3/sub/w");
  give("secret/bob", BOB);
  give("secret/links/w", BOB);
  give("secret/unit/sub/w", BOB);
  give("secret/out/ck-3/sub/w", BOB);
  give("secret", BOB);
  chmod(in("secret"), 0700);
  link_to("../../../shared/w", "out/ck-3/sub/w");
  give("out/ck-3/sub/w", ALICE);
}

/* She swaps whatever she may, before each single call: no byte of others is read for her. */
static void as_root_no_swap_leads_to_a_file_of_others(void **unused) {
  static void (*const acts[])(void) = {lead_to_the_secret, put_the_secret_directory_there,
                                       put_the_links_directory_away, put_the_unit_away,
                                       put_the_group_away};
  if (!is_root()) skip();
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
    for (long n = 1;; n++) {
      unit_files t;
      err e = {0};
      char path[4096];
      give("", ALICE);
      give_alice_all();
      struct step s = {n, acts[i]};
      const io *io = io_hook_set(on_call, &s);
      int rc = scan(io, &t, &e);
      const unit_file *f = rc == 0 ? unit_files_find(&t, "sub/w") : NULL;
      if (f && f->type == MANIFEST_FILE) {
        struct stat st;
        assert_int_equal(unit_files_path(&t, f, path, NULL), 0);
        int fd = unit_files_open(io, f, path, &e);
        if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_ino != f->inode || st.st_uid != ALICE))
          fail_msg("act %zu at call %ld: a file of user %u", i, n, st.st_uid);
        if (fd >= 0) close(fd);
      }
      bool over = io_hook_count() < n;
      unit_files_free(&t);
      io_hook_set(NULL, NULL);
      fault_dir_leave(NULL);
      enter(NULL);
      if (over) break;
    }
}

#define OF(test) cmocka_unit_test_setup_teardown(test, enter, fault_dir_leave)

int main(void) {
  const struct CMUnitTest tests[] = {
      OF(a_link_out_of_a_unit_is_the_file_that_it_leads_to),
      OF(each_inode_is_there_once_and_the_other_links_lead_to_it),
      OF(links_within_stay_links),
      OF(of_a_group_only_its_own_names_are_within),
      OF(a_unit_that_is_itself_a_link_is_no_unit),
      OF(what_is_no_file_outside_stays_a_link_and_is_never_opened),
      OF(files_below_dev_are_not_followed_though_they_are_regular),
      OF(links_are_followed_only_where_it_is_asked_for),
      OF(a_link_that_is_swapped_at_any_call_gives_nothing_else),
      OF(a_write_to_what_a_link_leads_to_is_a_change_of_the_unit),
      OF(what_is_sent_of_a_link_is_what_was_listed_or_nothing),
      OF(a_snapshot_has_the_bytes_and_follows_no_link_of_its_own),
      OF(any_call_that_fails_is_told_and_leaves_nothing_open),
      OF(as_root_a_link_leads_to_files_of_its_owner_alone),
      OF(as_root_no_link_of_a_third_user_is_followed_on_the_way),
      OF(as_root_no_swap_leads_to_a_file_of_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
