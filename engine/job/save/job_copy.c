/* job_copy: knows a checkpoint that came back out of a store with its table of contents beside it.
 *
 * That table says where to look and what to call it, and nothing else: what is told of the files
 * was read from the files. Times and modes do not count, for a copy has its own. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "commit/manifest_read.h"
#include "job/move/transfer.h"
#include "job_impl.h"

/* Says what the note takes of the table, in as much as a line has room for. */
static void note_not_here(job_work *w, const names *globs) {
  enum { NAME_MAX_SHOWN = 40 };
  const char *first = NULL;
  size_t count = 0;
  buf name;
  for (size_t i = 0; i < w->came_with.count; i++) {
    const manifest_entry *at = &w->came_with.entries[i];
    if (at->type != MANIFEST_FILE || !manifest_thin_means(&w->came_with, at, globs)) continue;
    if (count++ == 0) first = at->name;
  }
  if (count == 0) return;
  buf_init(&name, sizeof w->not_here);
  js_plain(first, NAME_MAX_SHOWN, &name);
  const char *shown = name.data ? name.data : "?";
  if (count == 1)
    snprintf(w->not_here, sizeof w->not_here, ", without %s", shown);
  else
    snprintf(w->not_here, sizeof w->not_here, ", without %zu files, %s first", count, shown);
  buf_free(&name);
}

/* A copy of a checkpoint of which files are gone says so beside its table. */
static int take_note(job_work *w, const char *dir) {
  char path[FS_PATH_MAX];
  manifest_thin_note note = {0};
  buf text;
  if (fs_join(path, dir, MANIFEST_THIN_NAME, NULL) < 0) return 0;
  buf_init(&text, MANIFEST_THIN_BYTES_MAX);
  int rc = fs_read(w->env->io, path, MANIFEST_THIN_BYTES_MAX, &text, NULL);
  if (rc == 0) rc = manifest_thin_parse(text.data, text.len, path, &note, NULL);
  const bool counts = rc == 0 && manifest_thin_is_of(&note, &w->came_with) &&
                      !unit_files_alike(&w->source, &w->came_with);
  if (counts) note_not_here(w, &note.globs);
  rc = counts ? manifest_thin(&w->came_with, &note.globs, NULL) : 0;
  manifest_thin_free(&note);
  buf_free(&text);
  return rc;
}

/* Reads the table beside the files into w->came_with; one that is torn, or of other files, is none.
 * Ranks know their own files alone. */
static bool read_table(job_work *w) {
  const job_env *env = w->env;
  char dir[FS_PATH_MAX], path[FS_PATH_MAX];
  buf text;
  if (!w->source.has_table || env->ranks) return false;
  if (fs_join(dir, env->root, w->job->plan.unit, NULL) < 0 ||
      fs_join(path, dir, MANIFEST_NAME, NULL) < 0)
    return false;
  buf_init(&text, MANIFEST_BYTES_MAX);
  int rc = fs_read(env->io, path, MANIFEST_BYTES_MAX, &text, NULL);
  if (rc == 0) rc = manifest_parse(text.data, text.len, path, &w->came_with, NULL);
  buf_free(&text);
  if (rc == 0) rc = take_note(w, dir);
  w->came_back = rc == 0 && unit_files_alike(&w->source, &w->came_with);
  return w->came_back;
}

/* Finds the commit of the unit that has this very table. What is bad, or lost, is none. */
static const runlog_commit *commit_of_table(const job_work *w) {
  const runlog_state *state = runlog_view(w->job->log);
  for (size_t i = state->commit_count; i-- > 0;) {
    const runlog_commit *c = &state->commits[i];
    if (c->life == RUNLOG_LIVE && !c->bad && c->n != w->job->lost &&
        strcmp(c->unit, job_unit(w->job)) == 0 && digest_equal(&c->root, &w->came_with.root))
      return c;
  }
  return NULL;
}

/* Returns 1 if the files here have the bytes of the commit, by the table that stands in the store. */
static int has_bytes_of(job_work *w, const runlog_commit *c, err *e) {
  const job_env *env = w->env;
  job *j = w->job;
  char key[STORE_KEY_MAX];
  manifest there = {0};
  err why = {0};
  transfer t = {.io = env->io, .store = env->store, .pool = env->pool, .cancel = &j->cancel};
  int rc = runlog_key_dir(j->log, c->dir, key, e);
  if (rc < 0) return rc;
  /* A table that cannot be read is no reason not to save. */
  if (manifest_read_committed(env->store, key, &c->root, &there, NULL) < 0) return 0;
  /* The copy may be older than what was taken of the commit since, and have all of it. */
  if (c->thin.globs.count && !unit_files_alike(&w->source, &there))
    rc = manifest_thin(&there, &c->thin.globs, &why);
  if (rc == 0) rc = transfer_check_copy(&t, &w->source, &there, &why);
  manifest_free(&there);
  if (rc == ERR_CORRUPT) return 0;
  return rc < 0 ? err_set(e, rc, "%s", why.text) : 1;
}

int job_look_copy(job_work *w, err *e) {
  job *j = w->job;
  if (!read_table(w)) return 0;
  const runlog_commit *c = commit_of_table(w);
  if (!c) return 0;
  job_at(j, "comparing it with what is saved");
  int rc = has_bytes_of(w, c, e);
  if (rc <= 0) return rc;
  j->outcome = JOB_TOUCHED;
  snprintf(j->copy_of, sizeof j->copy_of, "entry %llu of the log", (unsigned long long)c->n);
  /* If the commit's entry does not answer, the next run compares the files again. */
  runlog_ref_of(j->log, c->n, &j->commit, NULL);
  return err_set(e, ERR_RETIRED, "%s is a copy of what is saved here already, as %s", j->plan.unit,
                 j->copy_of);
}

/* Whose words the table is in is not known: an attempt that is not spelt as ours are is not told. */
static bool is_attempt(const char *text) {
  size_t len = text ? strlen(text) : 0;
  return len > 0 && len < RUNLOG_NONCE_MAX && strspn(text, "0123456789abcdef") == len;
}

void job_name_copy(job_work *w) {
  const manifest *was = &w->came_with;
  job *j = w->job;
  char root[HASH_HEX_MAX], *what = j->copy_of, policy[RUNLOG_REASON_MAX];
  if (!w->came_back || !manifest_same_bytes(&w->manifest, was)) return;
  w->came_back = false; /* it is said once */
  digest_hex(&was->root, root);
  bool named = is_attempt(was->attempt);
  snprintf(what, sizeof j->copy_of, "a copy of what %s%s saved with root %s%s",
           named ? "attempt " : "another run", named ? was->attempt : "", root, w->not_here);
  memcpy(policy, j->reason, sizeof policy);
  /* The policy's reason gives way: what follows it stands whole. */
  snprintf(j->reason, sizeof j->reason, "%.*s%s%s", (int)(sizeof j->reason - strlen(what) - 3),
           policy, *policy ? "; " : "", what);
}
