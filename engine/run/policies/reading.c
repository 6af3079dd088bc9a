#include "reading.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "prims/pool.h"

/* The thread's and the owner's: whoever lets go of it last frees it. */
struct reading {
  atomic_int holders;
  atomic_bool over;
  const io *io;
  bool looks;
  char *dir; /* NULL: none was named */
  names names;
  policy_files files;
  bool edited[POLICY_CHAIN_MAX];
  int status;
  err error;
};

static void let_go(reading *r) {
  if (atomic_fetch_sub(&r->holders, 1) > 1) return;
  policy_files_free(&r->files);
  names_free(&r->names);
  free(r->dir);
  free(r);
}

static void read_on_thread(void *arg) {
  reading *r = arg;
  if (r->looks) {
    for (size_t i = 0; i < r->files.count; i++)
      r->edited[i] = policy_file_edited(r->io, &r->files.at[i]);
  } else {
    r->status = policy_files_read(r->io, r->dir, names_list(&r->names), &r->files, &r->error);
  }
  atomic_store(&r->over, true);
  let_go(r);
}

/* Its thread ends with it: one that hangs is nobody's, and the next one has its own. */
static int begin(reading *r, reading **out, err *e) {
  pool *thread = NULL;
  atomic_store(&r->holders, 2);
  int rc = pool_open(&thread, 1, 1, e);
  if (rc == 0) rc = pool_submit(thread, read_on_thread, NULL, r, e);
  if (rc < 0) {
    pool_close(thread);
    atomic_store(&r->holders, 1);
    let_go(r);
    return rc;
  }
  pool_leave(thread);
  *out = r;
  return 0;
}

static int no_memory(reading *r, err *e) {
  reading_drop(r);
  return err_set(e, ERR_NOMEM, "read the files of the policies: out of memory");
}

static reading *make(const io *io) {
  reading *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->io = io;
  atomic_store(&r->holders, 1);
  return r;
}

int reading_begin(const io *io, const char *dir, const char *const *names, reading **out, err *e) {
  *out = NULL;
  reading *r = make(io);
  if (!r || (dir && !(r->dir = strdup(dir)))) return no_memory(r, e);
  int rc = policy_files_place(names, &r->names, e);
  if (rc < 0) {
    reading_drop(r);
    return rc;
  }
  return begin(r, out, e);
}

/* Copies by what an edit is seen, and no texts. */
static bool copy_looks(const policy_files *from, policy_files *to) {
  to->at = calloc(from->count, sizeof *to->at);
  for (; to->at && to->count < from->count; to->count++) {
    policy_file *f = &to->at[to->count];
    *f = from->at[to->count];
    f->text = (buf){0};
    f->name = NULL;
    f->path = strdup(from->at[to->count].path);
    if (!f->path) return false;
  }
  return to->at != NULL;
}

int reading_look(const io *io, const policy_files *files, reading **out, err *e) {
  *out = NULL;
  reading *r = make(io);
  if (!r || !copy_looks(files, &r->files)) return no_memory(r, e);
  r->looks = true;
  return begin(r, out, e);
}

bool reading_is_over(const reading *r) {
  return atomic_load(&r->over);
}

int reading_status(const reading *r, err *e) {
  return r->status < 0 ? err_set(e, r->status, "%s", r->error.text) : 0;
}

policy_files *reading_files(reading *r) {
  return &r->files;
}

bool reading_edited(const reading *r, size_t i) {
  return i < POLICY_CHAIN_MAX && r->edited[i];
}

void reading_drop(reading *r) {
  if (r) let_go(r);
}
