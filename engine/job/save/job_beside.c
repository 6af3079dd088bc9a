/* What stands beside a unit as it was early: when the unit became complete, and when its save began. By the
 * time that it is sent, a pointer may name the next one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event/pointers.h"
#include "job/save/companions.h"
#include "job_impl.h"

enum { EARLY_MAX = 64 };

struct job_beside {
  job_early items[EARLY_MAX];
  size_t count;
};

void job_beside_free(job_beside *b) {
  for (size_t i = 0; b && i < b->count; i++) {
    free(b->items[i].name);
    free(b->items[i].text);
  }
  free(b);
}

/* Companions are read below the watched directory only: a link in it would let somebody else say
 * which files are taken in, and a save by root may read more than that user. */
int job_hold_root(job_work *w, err *e) {
  if (w->held) return 0;
  int rc = fs_held_new(w->env->io, &w->held, e);
  return rc < 0 ? rc : fs_hold_by_name(w->held, w->env->root, e);
}

const io *job_reading(const job_work *w) {
  return fs_held_io(w->held);
}

bool job_takes_companions(const job_work *w) {
  return w->env->companions && (!w->env->ranks || w->env->ranks->rank == 0);
}

static companions_place place_of(const job_work *w, char group[FS_PATH_MAX]) {
  fs_parent(w->job->plan.unit, group);
  return (companions_place){.io = job_reading(w),
                            .log = w->env->log,
                            .rules = w->env->rules,
                            .root = w->env->root,
                            .group = strcmp(group, ".") == 0 ? "" : group};
}

static bool is_live(const runlog_state *state, const char *name) {
  for (size_t i = 0; i < state->commit_count; i++)
    if (state->commits[i].life == RUNLOG_LIVE && strcmp(state->commits[i].unit, name) == 0)
      return true;
  return false;
}

/* A link that was a checkpoint once (Lightning's `last.ckpt`, which may be either) has that one's name in
 * the store, and nothing is put in its place. */
static void drop_units(const job_work *w, companions *c) {
  const runlog_state *state = runlog_view(w->job->log);
  size_t kept = 0;
  for (size_t i = 0; i < c->count; i++) {
    if (is_live(state, c->items[i].name)) {
      c->bytes -= c->items[i].size;
      free(c->items[i].name);
    } else {
      c->items[kept++] = c->items[i];
    }
  }
  c->count = kept;
}

int job_find_beside(const job_work *w, companions *out, err *e) {
  char group[FS_PATH_MAX];
  companions_place at = place_of(w, group);
  at.near = !w->job->log; /* there is no job yet */
  int rc = companions_find(&at, w->env->companions, out, e);
  if (rc == 0 && w->job->log) drop_units(w, out);
  return rc;
}

bool job_names_it(const job_work *w, const char *name, bool link, const char *text, size_t len) {
  if (job_is_state(name)) return true;
  if (job_is_pointer(name, link))
    return job_word_of(w, &(job_said){name, link, text, len}) == JOB_WORD_FITS;
  return companions_name_unit(text, len, job_unit(w->job), w->job->plan.step);
}

/* A list is read whole, so that it is of one moment, and it is known what it names. */
uint64_t job_small_max(const char *name) {
  return job_is_pointer(name, false) ? HASH_BLOCK : COMPANIONS_POINTER_MAX;
}

int job_path_beside(const job_work *w, const char *name, char path[FS_PATH_MAX], err *e) {
  char group[FS_PATH_MAX], dir[FS_PATH_MAX];
  fs_parent(w->job->plan.unit, group);
  int rc = fs_join(dir, w->env->root, strcmp(group, ".") == 0 ? "" : group, e);
  return rc < 0 ? rc : fs_join(path, dir, name, e);
}

/* ---- reading ---- */

int job_source_open(job_source *s, err *e) {
  s->fd = s->io->open(s->io, AT_FDCWD, s->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
  if (s->fd < 0) return err_sys(e, s->fd, "open %s", s->path);
  int rc = s->io->fstat(s->io, s->fd, &s->st);
  if (rc < 0)
    rc = err_sys(e, rc, "look at %s", s->path);
  else if (!S_ISREG(s->st.st_mode))
    rc = err_set(e, ERR_RETIRED, "%s is no file any more", s->path);
  if (rc < 0) s->io->close(s->io, s->fd);
  return rc;
}

/* Checks that the bytes that were read are of one moment: nothing was written meanwhile, or only
 * behind them. */
int job_source_unchanged(const job_source *s, err *e) {
  struct stat now;
  int rc = s->io->fstat(s->io, s->fd, &now);
  if (rc < 0) return err_sys(e, rc, "look at %s", s->path);
  bool same = now.st_size == s->st.st_size && io_time_ns(now.st_mtim) == io_time_ns(s->st.st_mtim);
  if (same || now.st_size > s->st.st_size) return 0;
  return err_set(e, ERR_RETIRED, "%s is being written", s->path);
}

/* Reads a small file whole, into malloced memory; *st is of the same moment. */
int job_read_small(const io *io, const char *path, uint64_t most, char **text, size_t *len,
                   struct stat *st, err *e) {
  job_source s = {.io = io, .path = path};
  char *data = NULL;
  int rc = job_source_open(&s, e);
  if (rc < 0) return rc;
  *len = (size_t)s.st.st_size;
  if ((uint64_t)s.st.st_size > most)
    rc = err_set(e, ERR_LIMIT, "%s is too large for a pointer", path);
  else if (!(data = malloc(*len + 1)))
    rc = err_set(e, ERR_NOMEM, "read %s: out of memory", path);
  ssize_t got = rc == 0 ? fs_fill(io, s.fd, data, *len) : 0;
  if (got < 0) rc = err_sys(e, (int)got, "read %s", path);
  if (rc == 0 && (size_t)got < *len) rc = err_set(e, ERR_RETIRED, "%s is being written", path);
  if (rc == 0) rc = job_source_unchanged(&s, e);
  io->close(io, s.fd);
  if (rc < 0) {
    free(data);
    return rc;
  }
  *text = data;
  *st = s.st;
  return 0;
}

/* Reads the target of a link, into malloced memory. */
int job_read_target(const io *io, const char *path, char **text, size_t *len, err *e) {
  char target[FS_PATH_MAX];
  ssize_t got = io->readlink(io, AT_FDCWD, path, target, sizeof target - 1);
  if (got < 0) return err_sys(e, (int)got, "read the link %s", path);
  if (!(*text = malloc((size_t)got + 1)))
    return err_set(e, ERR_NOMEM, "read the link %s: out of memory", path);
  memcpy(*text, target, (size_t)got);
  (*text)[got] = 0;
  *len = (size_t)got;
  return 0;
}

job_early *job_early_of(const job_work *w, const char *name, bool link) {
  job_beside *b = w->job->beside;
  for (size_t i = 0; b && i < b->count; i++)
    if (b->items[i].link == link && strcmp(b->items[i].name, name) == 0) return &b->items[i];
  return NULL;
}

static bool leads_to_it(const job_work *w, const job_early *link) {
  char base[FS_PATH_MAX];
  return pointers_follow_newest(link->name, true) && pointers_base(link->text, base, sizeof base) &&
         strcmp(base, job_unit(w->job)) == 0;
}

bool job_other_link_names_it(const job_work *w, const char *name) {
  const job_beside *b = w->job->beside;
  for (size_t i = 0; b && i < b->count; i++)
    if (b->items[i].link && strcmp(b->items[i].name, name) != 0 && leads_to_it(w, &b->items[i]))
      return true;
  return false;
}

static bool is_small(const companion *c) {
  return !strchr(c->name, '/') && (c->type == MANIFEST_LINK ||
                                   (c->type == MANIFEST_FILE && c->size <= job_small_max(c->name)));
}

/* Keeps the last reading, or the first one that names this unit. */
static int look_at_one(job_work *w, const companion *c, err *e) {
  const io *io = job_reading(w);
  job_beside *all = w->job->beside;
  char path[FS_PATH_MAX];
  bool link = c->type == MANIFEST_LINK;
  job_early now = {.link = link}, *known = job_early_of(w, c->name, link);
  if (!is_small(c) || job_path_beside(w, c->name, path, NULL) < 0 ||
      (known ? job_names_it(w, c->name, link, known->text, known->len) : all->count == EARLY_MAX))
    return 0;
  int rc =
      link ? job_read_target(io, path, &now.text, &now.len, NULL)
           : job_read_small(io, path, job_small_max(c->name), &now.text, &now.len, &now.st, NULL);
  if (rc < 0) return 0;
  if (!known) {
    known = &all->items[all->count];
    if ((now.name = strdup(c->name))) all->count++;
  } else {
    now.name = known->name;
    free(known->text);
  }
  *known = now;
  if (now.name) return 0;
  free(now.text);
  return err_set(e, ERR_NOMEM, "read %s: out of memory", path);
}

/* Reads pointers early. A file that cannot be read now is read later, or left out. */
int job_look_companions(job_work *w, err *e) {
  companions all;
  job *j = w->job;
  if (!job_takes_companions(w)) return 0;
  int rc = job_hold_root(w, e);
  if (rc == 0) rc = job_find_beside(w, &all, e);
  if (rc < 0) return rc;
  if (!j->beside) j->beside = calloc(1, sizeof *j->beside);
  if (!j->beside) rc = err_set(e, ERR_NOMEM, "read what is saved beside a unit: out of memory");
  for (size_t i = 0; rc == 0 && i < all.count; i++) rc = look_at_one(w, &all.items[i], e);
  companions_free(&all);
  return rc;
}

/* ---- before there is a job ---- */

/* True of one that follows its unit, and does not yet. */
static bool is_late(const job_work *w, const job_early *it) {
  return job_is_pointer(it->name, it->link) &&
         !job_names_it(w, it->name, it->link, it->text, it->len);
}

int job_beside_look(const job_env *env, const char *unit, int64_t step, job_beside **known,
                    bool *late, err *e) {
  job j = {.env = env, .beside = *known};
  job_work w = {.job = &j, .env = env, .attempt = RUNLOG_NONE};
  *late = false;
  if (snprintf(j.plan.unit, sizeof j.plan.unit, "%s", unit) >= (int)sizeof j.plan.unit) return 0;
  j.plan.step = step;
  int rc = job_look_companions(&w, e);
  for (size_t i = 0; j.beside && i < j.beside->count; i++)
    *late |= is_late(&w, &j.beside->items[i]);
  *known = j.beside;
  fs_held_free(w.held);
  return rc;
}
