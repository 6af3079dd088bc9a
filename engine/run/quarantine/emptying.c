#include "emptying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "plan/holding.h"
#include "prims/fs.h"
#include "run/quarantine/copy.h"

#define REMOVING ".removing"

/* What stands there, and is being looked through. */
struct pass {
  emptying *all;
  holding *copies; /* their texts are ours */
  size_t count, room;
  names removing; /* a crash has left them */
  runlog *log;    /* the last one that was asked for */
  char group[FS_PATH_MAX];
  int status; /* of the first that failed */
  err error;
};

static bool is_stopped(const emptying *all) {
  return atomic_load(all->cancel) != 0;
}

static void note_failure(struct pass *p, int rc, const err *e) {
  if (p->status == 0) p->error = *e;
  if (p->status == 0) p->status = rc;
}

/* ---- what is there ---- */

static int note_copy(struct pass *p, const char *name, int64_t time_s, const char *kind, err *e) {
  holding now = {.kind = strdup(kind), .name = strdup(name), .time_s = time_s};
  if (now.kind && now.name && VEC_ROOM(p->copies, p->count, p->room)) {
    p->copies[p->count++] = now;
    return 0;
  }
  free((char *)now.kind);
  free((char *)now.name);
  return err_set(e, ERR_NOMEM, "look through %s: out of memory", p->all->root);
}

static bool is_left(const char *name) {
  char base[FS_NAME_MAX];
  int64_t ignored;
  size_t len = strlen(name), end = strlen(REMOVING);
  if (len <= end || strcmp(name + len - end, REMOVING) != 0) return false;
  snprintf(base, sizeof base, "%.*s", (int)(len - end), name);
  return holding_name(base, &ignored);
}

static int list_copy(const struct pass *p, const char *name, unit_files *out, err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(path, p->all->root, name, e);
  return rc < 0 ? rc : copy_list(p->all->io, path, out, e);
}

/* One that cannot be listed stays, and is no reason to leave the others. */
static int on_entry(void *ctx, const fs_entry *entry, err *e) {
  struct pass *p = ctx;
  char group[FS_PATH_MAX], kind[2 * FS_PATH_MAX];
  unit_files copy;
  int64_t time_s;
  err why = {0};
  if (is_stopped(p->all)) return err_set(e, ERR_CANCELED, "it was stopped");
  if (!S_ISDIR(entry->st->st_mode)) return 0;
  if (is_left(entry->name))
    return names_add(&p->removing, entry->name)
               ? 0
               : err_set(e, ERR_NOMEM, "look through %s: out of memory", p->all->root);
  if (!holding_name(entry->name, &time_s)) return 0;
  int rc = list_copy(p, entry->name, &copy, &why);
  if (rc < 0) {
    p->all->stay++;
    note_failure(p, rc, &why);
    return 0;
  }
  if (copy_kind(&copy, p->all->groups, group, kind))
    rc = note_copy(p, entry->name, time_s, kind, e);
  unit_files_free(&copy);
  return rc;
}

/* ---- removal ---- */

static int remove_left(const struct pass *p, const char *name, err *e) {
  char path[FS_PATH_MAX];
  int rc = fs_join(path, p->all->root, name, e);
  return rc < 0 ? rc : fs_remove_tree(p->all->io, path, e);
}

/* Renames and removes it, if it is still what was read: whoever had a file open may have written more. */
static int remove_copy(const struct pass *p, const char *name, const unit_files *read, err *e) {
  char from[FS_PATH_MAX], left[FS_NAME_MAX], to[FS_PATH_MAX];
  unit_files now;
  snprintf(left, sizeof left, "%s" REMOVING, name);
  int rc = fs_join(from, p->all->root, name, e);
  if (rc == 0) rc = fs_join(to, p->all->root, left, e);
  if (rc == 0) rc = copy_list(p->all->io, from, &now, e);
  if (rc < 0) return rc;
  rc = unit_files_same(read, &now, e);
  unit_files_free(&now);
  if (rc == 0) rc = fs_publish(p->all->io, from, to, e);
  return rc < 0 ? rc : remove_left(p, left, e);
}

static void note_removed(emptying *all, const char *group, const runlog_commit *by,
                         uint64_t bytes) {
  size_t len = strlen(all->of);
  all->removed++;
  all->bytes += bytes;
  snprintf(all->of + len, sizeof all->of - len, "%s%s%s%s (commit %llu)", len ? ", " : "", group,
           *group ? "/" : "", by->dir, (unsigned long long)by->n);
}

/* ---- the test ---- */

/* It is read anew in each pass: what is dropped by now keeps nothing. */
static int open_log(struct pass *p, const char *group, err *e) {
  if (!p->log || strcmp(p->group, group) != 0) {
    runlog_close(p->log);
    p->log = NULL;
    int rc = runlog_open(p->all->store, group, &p->log, e);
    if (rc < 0) return rc;
    snprintf(p->group, sizeof p->group, "%s", group);
  }
  int rc = runlog_refresh(p->log, e);
  return rc < 0 ? rc : runlog_check_damage(p->log, e);
}

/* Returns 1 if it was removed. */
static int test(struct pass *p, const holding *h, const unit_files *copy, bool *read, err *e) {
  char group[FS_PATH_MAX], kind[2 * FS_PATH_MAX];
  const emptying *all = p->all;
  const runlog_commit *by = NULL;
  transfer t = {.io = all->io, .store = all->store, .cancel = all->cancel};
  if (!copy_kind(copy, all->groups, group, kind)) return 0;
  int rc = open_log(p, group, e);
  if (rc == 0) rc = copy_is_kept(&t, copy, group, p->log, &by, read, e);
  if (rc <= 0 || !by) return rc;
  rc = remove_copy(p, h->name, copy, e);
  if (rc < 0) return rc;
  note_removed(p->all, group, by, copy->bytes);
  return 1;
}

static void test_one(struct pass *p, const holding *h, unsigned *tests) {
  unit_files copy;
  err why = {0};
  bool read = false;
  int rc = list_copy(p, h->name, &copy, &why);
  if (rc == 0) {
    rc = test(p, h, &copy, &read, &why);
    unit_files_free(&copy);
  }
  *tests += read;
  if (rc <= 0) p->all->stay++;
  if (rc < 0) note_failure(p, rc, &why);
}

/* Those that were tested in vain must not stand before the others for ever: each pass begins somewhere
 * else. */
static void test_due(struct pass *p, int64_t now_s) {
  unsigned tests = 0;
  for (size_t i = 0; i < p->count; i++) {
    const holding *h = &p->copies[((uint64_t)now_s + i) % p->count];
    const bool stop = is_stopped(p->all) || tests >= EMPTYING_TESTS;
    if (h->due && !stop) {
      test_one(p, h, &tests);
    } else {
      p->all->stay++;
      p->all->more |= h->due;
    }
  }
}

static void pass_free(struct pass *p) {
  for (size_t i = 0; i < p->count; i++) {
    free((char *)p->copies[i].kind);
    free((char *)p->copies[i].name);
  }
  free(p->copies);
  names_free(&p->removing);
  runlog_close(p->log);
}

int emptying_run(emptying *all, err *e) {
  struct pass p = {.all = all};
  struct stat st;
  err why = {0};
  const int64_t now_s = all->io->now(all->io, IO_WALL) / 1000000000;
  if (all->io->lstat(all->io, AT_FDCWD, all->root, &st) == -ENOENT) return 0;
  int rc = fs_list(all->io, all->root, on_entry, &p, &why);
  for (size_t i = 0; rc == 0 && i < p.removing.count; i++)
    rc = remove_left(&p, p.removing.at[i], &why);
  holdings_judge(p.copies, p.count, now_s);
  if (rc == 0)
    test_due(&p, now_s);
  else
    note_failure(&p, rc, &why);
  if (is_stopped(all)) p.status = err_set(&p.error, ERR_CANCELED, "it was stopped");
  rc = p.status;
  if (rc < 0 && e) *e = p.error;
  pass_free(&p);
  return rc;
}
