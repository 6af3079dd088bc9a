#include "member.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "event/rules.h"
#include "job/move/unit_files.h"
#include "launch/folder.h"
#include "launch/rule/launch_record.h"
#include "prims/fs.h"
#include "prims/proc.h"

/* A network file system asks its server at each look. */
static const int64_t local_pause_ns = 500000000, remote_pause_ns = 2000000000;

struct member {
  const io *io;
  char dir[FS_PATH_MAX], folder[FS_PATH_MAX], name[16];
  int64_t pause_ns;
  int64_t asked_at; /* IO_MONO: when the question was last another one */
  bool over;
  launch_answer says; /* as it was last written */
};

static int put(member *m, err *e) {
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  int rc = launch_print_answer(&m->says, &text, e);
  if (rc == 0) rc = folder_put(m->io, m->folder, m->name, &text, e);
  buf_free(&text);
  return rc;
}

static bool find_folder(member *m, const member_options *o) {
  struct stat st;
  const char *const places[] = {o->home, o->state};
  for (size_t i = 0; i < 2; i++)
    if (*places[i] && folder_path(places[i], o->launch, m->folder, NULL) == 0 &&
        m->io->lstat(m->io, AT_FDCWD, m->folder, &st) == 0 && S_ISDIR(st.st_mode))
      return true;
  return false;
}

int member_join(const member_options *o, member **out, err *e) {
  struct utsname host;
  fs_kind kind = {.remote_writers = true};
  *out = NULL;
  member *m = calloc(1, sizeof *m);
  if (!m) return err_set(e, ERR_NOMEM, "join a launch: out of memory");
  m->io = o->io;
  m->asked_at = m->io->now(m->io, IO_MONO);
  m->says.task = o->task;
  snprintf(m->says.host, sizeof m->says.host, "%s", uname(&host) == 0 ? host.nodename : "?");
  snprintf(m->dir, sizeof m->dir, "%s", o->dir);
  snprintf(m->name, sizeof m->name, "%u", o->index);
  fs_kind_of(o->dir, &kind, NULL);
  m->pause_ns = kind.remote_writers ? remote_pause_ns : local_pause_ns;
  int rc = find_folder(m, o)
               ? put(m, e)
               : err_set(e, ERR_NOENT, "nobody asks the tasks of launch \"%s\"", o->launch);
  if (rc < 0)
    member_close(m);
  else
    *out = m;
  return rc;
}

int64_t member_pause_ns(const member *m) {
  return m->pause_ns;
}

/* ---- a question ---- */

/* A group's files have nothing in common but their name's beginning. */
static bool is_open(const proc_writers *w, const unit_files *files, const char *path) {
  char file[FS_PATH_MAX];
  if (!w) return true; /* out of memory: nobody can say that there is none */
  if (files->kind != MATCH_GROUP) return proc_writers_has(w, path);
  for (size_t i = 0; i < files->count; i++)
    if (unit_files_path(files, &files->files[i], file, NULL) < 0 || proc_writers_has(w, file))
      return true;
  return false;
}

/* A unit that cannot be listed here is not the one that was seen elsewhere. */
static void look_at(const member *m, const rules *rules, const proc_writers *w, launch_unit *u) {
  char path[FS_PATH_MAX];
  unit_files files = {0};
  u->stamp = 0;
  u->open = false;
  if (fs_beneath_check(u->path, NULL) < 0 || fs_join(path, m->dir, u->path, NULL) < 0) return;
  if (unit_files_scan_as(m->io, m->dir, u->path, u->kind, rules, UNIT_FILES_PLAIN, &files, NULL) <
      0)
    return;
  u->stamp = unit_files_stamp(&files);
  u->open = is_open(w, &files, path);
  unit_files_free(&files);
}

/* Whoever has a file open is looked for first: one that is closed after that is listed as it is then. */
static int answer(member *m, const launch_question *q, err *e) {
  rules *rules = NULL;
  int rc = rules_custom(NULL, names_list(&q->excludes), NULL, -1, &rules, e);
  if (rc < 0) return rc;
  launch_answer next = m->says;
  next.units = (launch_units){0};
  next.number = q->number;
  proc_writers *w = q->units.count > 0 ? proc_writers_take(m->dir) : NULL;
  for (size_t i = 0; rc == 0 && i < q->units.count; i++) {
    launch_unit u = q->units.at[i];
    look_at(m, rules, w, &u);
    if (!launch_add(&next.units, &u)) rc = err_set(e, ERR_NOMEM, "answer a launch: out of memory");
  }
  proc_writers_free(w);
  rules_free(rules);
  if (rc < 0) {
    launch_free_answer(&next);
    return rc;
  }
  launch_free_answer(&m->says);
  m->says = next;
  rc = put(m, e);
  if (rc < 0) m->says.number = 0; /* it is answered again */
  return rc;
}

int member_step(member *m, int64_t *quiet_ns, bool *over, err *e) {
  launch_question q = {0};
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  int rc = folder_get(m->io, m->folder, "question", &text, e);
  if (rc == 0) rc = launch_parse_question(&text, &q, e);
  buf_free(&text);
  if (rc == 0) m->over = q.over;
  if (rc == 0 && q.number != m->says.number) {
    m->asked_at = m->io->now(m->io, IO_MONO);
    rc = answer(m, &q, e);
  }
  launch_free_question(&q);
  *quiet_ns = m->io->now(m->io, IO_MONO) - m->asked_at;
  *over = m->over;
  return rc;
}

int member_end(member *m, bool clean, err *e) {
  m->says.ended = true;
  m->says.clean = clean;
  return put(m, e);
}

void member_close(member *m) {
  if (!m) return;
  launch_free_answer(&m->says);
  free(m);
}
