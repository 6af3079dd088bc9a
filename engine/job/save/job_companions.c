/* What is saved beside a unit: files outside of it that a resume needs. Only rank 0 does; the
 * others find what it put. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/save/companions.h"
#include "job_impl.h"

/* ---- sending ---- */

/* One file on its way. */
struct sending {
  job_work *w;
  manifest *m;
  const char *prefix, *name, *path;
};

static int add_entry(const struct sending *s, const struct stat *st, uint64_t size,
                     const digest *blocks, err *e) {
  size_t count = hash_block_count(size);
  manifest_entry *entry = manifest_add(s->m, MANIFEST_FILE, s->name, NULL);
  if (!entry) return err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  entry->mode = st->st_mode & 0777;
  entry->mtime_ns = io_time_ns(st->st_mtim);
  entry->size = size;
  entry->blocks = calloc(count ? count : 1, sizeof *entry->blocks);
  if (!entry->blocks) return err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  if (count) memcpy(entry->blocks, blocks, count * sizeof *blocks);
  return hash_of_blocks(s->m->hash, entry->blocks, count, &entry->file, e);
}

static int key_of(const struct sending *s, char key[STORE_KEY_MAX], err *e) {
  if (snprintf(key, STORE_KEY_MAX, "%s/%s", s->prefix, s->name) < STORE_KEY_MAX) return 0;
  return err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", s->name);
}

static int read_blocks(const struct sending *s, const char *key, uint64_t size, char *data,
                       digest *blocks, err *e) {
  store *from = s->w->env->store;
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < hash_block_count(size); i++) {
    uint64_t at = (uint64_t)i * HASH_BLOCK;
    size_t want = size - at < HASH_BLOCK ? (size_t)(size - at) : HASH_BLOCK;
    ssize_t got = from->ops->read(from, key, at, data, want, e);
    if (got < 0) return (int)got;
    if ((size_t)got < want) return err_set(e, ERR_IO, "%s ends too soon", key);
    rc = hash_block(s->m->hash, data, want, &blocks[i], NULL, e);
  }
  return rc;
}

/* Takes a file as an earlier try of ours has put it: it is whole, and its bytes may be that old. It
 * must not be removed to make room: a removal whose answer is lost may be done later, behind the
 * commit. */
static int take_there(const struct sending *s, const char *key, const struct stat *st, err *e) {
  store *from = s->w->env->store;
  store_object there;
  int rc = from->ops->head(from, key, &there, e);
  if (rc < 0) return rc;
  char *data = malloc(there.size < HASH_BLOCK ? (size_t)there.size + 1 : HASH_BLOCK);
  digest *blocks = calloc(hash_block_count(there.size) + 1, sizeof *blocks);
  rc = data && blocks ? 0 : err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  if (rc == 0) rc = read_blocks(s, key, there.size, data, blocks, e);
  if (rc == 0) rc = add_entry(s, st, there.size, blocks, e);
  free(data);
  free(blocks);
  return rc;
}

/* Takes the reading of a small file that names this unit, the first if both do, into malloced
 * memory. */
static int read_best(const struct sending *s, char **text, size_t *len, struct stat *st, err *e) {
  const job_work *w = s->w;
  const job_early *early = job_early_of(w, s->name, false);
  *text = NULL;
  int rc = job_read_small(job_reading(w), s->path, job_small_max(s->name), text, len, st, e);
  if (rc == ERR_NOMEM || (rc < 0 && !early)) return rc;
  if (!early || (*text && !job_names_it(w, s->name, false, early->text, early->len))) return 0;
  free(*text); /* the early reading is better than nothing */
  *text = malloc(early->len + 1);
  if (!*text) return err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  memcpy(*text, early->text, early->len);
  *len = early->len;
  *st = early->st;
  return 0;
}

static int read_link(const struct sending *s, char **text, size_t *len, err *e) {
  const job_work *w = s->w;
  const job_early *early = job_early_of(w, s->name, true);
  bool then = early && job_names_it(w, s->name, true, early->text, early->len);
  if (!then) return job_read_target(job_reading(w), s->path, text, len, e);
  *text = strdup(early->text);
  *len = early->len;
  return *text ? 0 : err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
}

/* Reads a small file or a link as it fits this unit: *text NULL: it does not, and is left out. */
static int read_fitting(const struct sending *s, bool link, char **text, size_t *len,
                        struct stat *st, err *e) {
  job_work *w = s->w;
  for (;;) {
    int rc = link ? read_link(s, text, len, e) : read_best(s, text, len, st, e);
    if (rc < 0) return rc;
    const job_said said = {fs_base(s->name), link, *text, *len};
    job_word word = strchr(s->name, '/') ? JOB_WORD_FITS : job_word_of(w, &said);
    if (word == JOB_WORD_FITS) return strchr(s->name, '/') ? 0 : job_note_needs(w, &said, e);
    bool kept_up =
        job_word_is_kept_up(w, &said) && !(link && job_other_link_names_it(w, said.name));
    char *ours = word == JOB_WORD_NEWER ? job_word_for_us(w, &said, len) : NULL;
    free(*text);
    *text = ours;
    if (ours) return 0;
    if (word == JOB_WORD_OLDER && kept_up && job_word_wait(w)) continue;
    job_word_left_out(w, s->path);
    return 0;
  }
}

static int send_small(const struct sending *s, err *e, bool *ours) {
  job_work *w = s->w;
  store *to = w->env->store;
  char key[STORE_KEY_MAX], *text = NULL;
  struct stat st = {0};
  digest block = {0};
  size_t len = 0;
  *ours = true;
  int rc = read_fitting(s, false, &text, &len, &st, e);
  if (rc == 0 && !text) return 0;
  if (rc == 0) rc = key_of(s, key, e);
  if (rc == 0 && len) rc = hash_block(s->m->hash, text, len, &block, NULL, e);
  if (rc < 0) goto out;
  *ours = false;
  rc = store_put_marked(to, key, text, len, STORE_IF_ABSENT, w->mark, e);
  if (rc == 0)
    rc = add_entry(s, &st, len, &block, e);
  else if (rc == ERR_EXISTS)
    rc = take_there(s, key, &st, e);
out:
  free(text);
  return rc;
}

static int copy_blocks(const struct sending *s, const job_source *from, digest *blocks,
                       store_writer *to, bool *ours, err *e) {
  uint64_t size = (uint64_t)from->st.st_size;
  size_t count = hash_block_count(size);
  char *data = malloc(size < HASH_BLOCK ? (size_t)size + 1 : HASH_BLOCK);
  int rc = data ? 0 : err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  for (size_t i = 0; rc == 0 && i < count; i++) {
    uint64_t left = size - (uint64_t)i * HASH_BLOCK;
    size_t want = left < HASH_BLOCK ? (size_t)left : HASH_BLOCK;
    if (atomic_load(&s->w->job->cancel)) {
      *ours = false;
      rc = err_set(e, ERR_CANCELED, "cancelled");
      break;
    }
    ssize_t got = fs_fill(from->io, from->fd, data, want);
    if (got < 0)
      rc = err_sys(e, (int)got, "read %s", s->path);
    else if ((size_t)got < want)
      rc = err_set(e, ERR_RETIRED, "%s is being written", s->path);
    if (rc == 0) rc = hash_block(s->m->hash, data, want, &blocks[i], NULL, e);
    if (rc < 0) break;
    rc = to->store->ops->write(to, data, want, e);
    if (rc < 0) *ours = false;
  }
  free(data);
  return rc;
}

static int send_large(const struct sending *s, err *e, bool *ours) {
  store *to = s->w->env->store;
  job_source from = {.io = job_reading(s->w), .path = s->path};
  store_writer *writer = NULL;
  char key[STORE_KEY_MAX];
  digest *blocks = NULL;
  *ours = true;
  int rc = job_source_open(&from, e);
  if (rc < 0) return rc;
  uint64_t size = (uint64_t)from.st.st_size;
  rc = key_of(s, key, e);
  if (rc == 0 && !(blocks = calloc(hash_block_count(size) + 1, sizeof *blocks)))
    rc = err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  if (rc == 0 && (rc = to->ops->write_open(to, key, size, 0, &s->w->job->cancel, &writer, e)) < 0)
    *ours = false;
  if (rc == 0) store_write_mark(writer, s->w->mark);
  if (rc == 0) rc = copy_blocks(s, &from, blocks, writer, ours, e);
  if (rc == 0) rc = job_source_unchanged(&from, e);
  if (writer && rc == 0) {
    rc = to->ops->write_close(writer, e);
    *ours = rc == 0;
  } else if (writer) {
    to->ops->write_abort(writer);
  }
  if (rc == 0)
    rc = add_entry(s, &from.st, size, blocks, e);
  else if (rc == ERR_EXISTS)
    rc = take_there(s, key, &from.st, e);
  free(blocks);
  from.io->close(from.io, from.fd);
  return rc;
}

/* Sends a file. If it is not there any more, or does not hold still, it is left out; an error of
 * the store is the job's business. */
static int send_file(const struct sending *s, uint64_t size, err *e) {
  enum { TRIES = 2 };
  err why = {0};
  bool ours = true;
  int rc = 0;
  for (int i = 0; i < TRIES; i++) {
    why = (err){0};
    rc = size > job_small_max(s->name) ? send_large(s, &why, &ours) : send_small(s, &why, &ours);
    if (rc == 0 || !ours || rc == ERR_NOMEM) break;
    if (rc == ERR_LIMIT) size = job_small_max(s->name) + 1; /* it has grown */
  }
  if (rc == 0) return 0;
  if (!ours || rc == ERR_NOMEM) {
    if (e) *e = why;
    return rc;
  }
  log_say(s->w->env->log, LOG_WARN, "%s is not saved beside %s: %s", s->path, s->w->job->plan.unit,
          why.text);
  return 0;
}

/* Adds the reading of a link that names this unit, as with small files. */
static int add_link(const struct sending *s, err *e) {
  const io *io = job_reading(s->w);
  struct stat st;
  char *target = NULL;
  size_t len;
  if (io->lstat(io, AT_FDCWD, s->path, &st) < 0) return 0; /* it has gone */
  int rc = read_fitting(s, true, &target, &len, &st, e);
  if (rc < 0 && rc != ERR_NOMEM) return 0;
  if (rc < 0 || !target) return rc;
  manifest_entry *entry = manifest_add(s->m, MANIFEST_LINK, s->name, target);
  free(target);
  if (!entry) return err_set(e, ERR_NOMEM, "save %s: out of memory", s->path);
  entry->mode = 0777;
  entry->mtime_ns = io_time_ns(st.st_mtim);
  return 0;
}

/* Says how they are spelt, if that is a difference. */
static int spell(const job_work *w, const companions *all, const char *prefix, err *e) {
  store_spelling how = w->plain_keys ? STORE_SPELT_PLAIN : STORE_SPELT_1;
  for (size_t i = 0; i < all->count; i++)
    if (manifest_name_is_odd(all->items[i].name)) return store_spell(w->env->store, prefix, how, e);
  return 0;
}

static int send_all(job_work *w, const companions *all, const char *prefix, manifest *m, err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < all->count; i++) {
    const companion *c = &all->items[i];
    char path[FS_PATH_MAX];
    struct sending s = {.w = w, .m = m, .prefix = prefix, .name = c->name, .path = path};
    if (job_path_beside(w, c->name, path, NULL) < 0) continue;
    rc = c->type == MANIFEST_LINK ? add_link(&s, e) : send_file(&s, c->size, e);
  }
  return rc;
}

static int put_manifest(const job_work *w, const char *prefix, const manifest *m, err *e) {
  store *to = w->env->store;
  char key[STORE_KEY_MAX];
  buf text;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = manifest_print(m, &text, e);
  if (rc == 0 && snprintf(key, sizeof key, "%s/%s", prefix, MANIFEST_NAME) >= (int)sizeof key)
    rc = err_set(e, ERR_LIMIT, "%s: the store's name for it is too long", prefix);
  if (rc == 0) rc = store_put_marked(to, key, text.data, text.len, STORE_IF_ABSENT, w->mark, e);
  buf_free(&text);
  return rc;
}

static int save(job_work *w, uint64_t term, const char *prefix, err *e) {
  companions all;
  manifest m;
  err why = {0};
  manifest_init(&m);
  int rc = job_hold_root(w, e);
  if (rc == 0) rc = job_find_beside(w, &all, e);
  if (rc < 0) return rc;
  m.kind = MATCH_DIR;
  m.step = w->job->plan.step;
  m.mode = 0755;
  m.hash = HASH_XXH3_128;
  m.created_ns = m.mtime_ns = w->env->io->now(w->env->io, IO_WALL);
  m.unit = strdup(job_unit(w->job));
  m.attempt = strdup(w->mark); /* a repair finds by it whose they are */
  if (!m.unit || !m.attempt)
    rc = err_set(e, ERR_NOMEM, "save what is beside a unit: out of memory");
  job_set_keys(w, &m);
  if (rc == 0) rc = spell(w, &all, prefix, e);
  if (rc == 0) rc = send_all(w, &all, prefix, &m, e);
  if (rc == 0 && m.count > 0 && manifest_seal(&m, &why) < 0) {
    log_say(w->env->log, LOG_WARN, "nothing is saved beside %s: %s", w->job->plan.unit, why.text);
  } else if (rc == 0 && m.count > 0) {
    rc = job_check_stands(w, prefix, &m, e);
    if (rc == 0) rc = put_manifest(w, prefix, &m, e);
    if (rc == 0)
      w->companions = (runlog_companions){
          .term = term, .files = m.count, .bytes = manifest_bytes(&m), .root = m.root};
  }
  companions_free(&all);
  manifest_free(&m);
  return rc;
}

/* Gives the place of the companions: beside the staging, or, once there is an attempt, where its
 * commit names them. */
static int find_place(const job_work *w, uint64_t term, char out[STORE_KEY_MAX], err *e) {
  if (!w->ahead) return runlog_key_companions(runlog_prefix(w->job->log), w->attempt, term, out, e);
  memcpy(out, w->place.companions, STORE_KEY_MAX);
  return 0;
}

int job_find_companions(job_work *w, err *e) {
  uint64_t term = runlog_view(w->job->log)->term.n;
  char prefix[STORE_KEY_MAX];
  int rc = find_place(w, term, prefix, e);
  return rc < 0 ? rc : companions_look_at(w->env->store, prefix, term, &w->companions, e);
}

/* Saves the companions. If an earlier try of ours has put them, or a part of them, those are taken:
 * they may be that old. */
int job_companions(job_work *w, err *e) {
  store *s = w->env->store;
  uint64_t term = runlog_view(w->job->log)->term.n;
  char prefix[STORE_KEY_MAX];
  w->companions = (runlog_companions){0}; /* it may be of an attempt that was given up */
  if (!job_takes_companions(w)) return 0;
  int rc = find_place(w, term, prefix, e);
  if (rc == 0 && w->resumed) rc = companions_look_at(s, prefix, term, &w->companions, e);
  if (rc < 0 || w->companions.files) return rc;
  job_at(w->job, "saving what is beside it");
  rc = job_note_wishes(w, e);
  if (rc == 0) rc = save(w, term, prefix, e);
  if (rc != ERR_EXISTS) return rc;
  /* The manifest of an earlier try came late. */
  rc = companions_look_at(s, prefix, term, &w->companions, e);
  return rc < 0 || w->companions.files ? rc
                                       : err_set(e, ERR_EXISTS, "%s: it cannot be read", prefix);
}
