#include "edits.h"

#include <string.h>

#include "base/seconds.h"

static void tell(const edits *e, policy_files *files, const log_sink *log, const char *dir) {
  const policy_files *seen = reading_files(e->look);
  for (size_t i = 0; i < files->count && i < seen->count; i++) {
    policy_file *f = &files->at[i];
    /* One that was loaded since is another file. */
    if (!reading_edited(e->look, i) || strcmp(f->path, seen->at[i].path) != 0) continue;
    f->device = seen->at[i].device;
    f->inode = seen->at[i].inode;
    f->size = seen->at[i].size;
    f->changed_ns = seen->at[i].changed_ns;
    log_say(
        log, LOG_WARN,
        "policy %s was edited, and the one that was loaded goes on ruling: `reload` %s takes it",
        f->path, dir);
  }
}

/* Nobody edits those that come with us: a run with no other is not woken up for them. */
static bool may_be_edited(const policy_files *files) {
  for (size_t i = 0; i < files->count; i++)
    if (strchr(files->at[i].name, '/') || strstr(files->at[i].name, ".lua")) return true;
  return false;
}

int64_t edits_step(edits *e, const io *io, policy_files *files, int64_t now, const log_sink *log,
                   const char *dir) {
  err why = {0};
  if (e->look && reading_is_over(e->look)) {
    tell(e, files, log, dir);
    edits_drop(e);
  }
  if (!may_be_edited(files)) return INT64_MAX;
  if (now < e->at) return e->at;
  e->at = seconds_later(now, 10 * SECOND_NS);
  if (!e->look && reading_look(io, files, &e->look, &why) < 0)
    log_say(log, LOG_DEBUG, "the policies' files were not looked at: %s", why.text);
  return e->at;
}

void edits_drop(edits *e) {
  reading_drop(e->look);
  e->look = NULL;
}
