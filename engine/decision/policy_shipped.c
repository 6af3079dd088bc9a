/* policy_shipped: the policies that come with us, which names without a slash mean. */
#include <stdio.h>
#include <string.h>

#include "decision/policy_impl.h"
#include "prims/fs_find.h"

int policy_shipped_dir(const io *io, const char *given, char *dir, err *e) {
  /* Beside the runner or the library, beside the program of scripts in libexec/ckpt-lua, and beside
   * the Lua module in lib/lua/5.1/ckpt. */
  const fs_find_place place = {.given = given,
                               .variable = "CKPT_POLICIES",
                               .file = "default.lua",
                               .beside = {"policies", "../share/ckpt-lua/policies",
                                          "../../share/ckpt-lua/policies",
                                          "../../../../share/ckpt-lua/policies"},
                               .installed = CKPT_PREFIX "/share/ckpt-lua/policies"};
  return fs_find(io, &place, dir, e);
}

typedef struct walk {
  const io *io;
  const char *dir;
  policy_shipped_fn *fn;
  void *ctx;
} walk;

/* Takes the first line of the comment with which a file begins. */
static void take_about(const char *text, char *to, size_t room) {
  char line[POLICY_REASON_MAX];
  *to = 0;
  if (strncmp(text, "--", 2) != 0) return;
  text += 2 + strspn(text + 2, "- ");
  snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\r\n"), text);
  policy_plain(line, to, room);
}

static int tell(void *ctx, const fs_entry *entry, err *e) {
  const walk *w = ctx;
  const size_t len = strlen(entry->name);
  char path[FS_PATH_MAX], name[FS_NAME_MAX], about[POLICY_REASON_MAX];
  buf text;
  err why;
  if (len <= 4 || strcmp(entry->name + len - 4, ".lua") != 0) return 0;
  int rc = fs_join(path, w->dir, entry->name, e);
  if (rc < 0) return rc;
  snprintf(name, sizeof name, "%.*s", (int)(len - 4), entry->name);
  buf_init(&text, POLICY_FILE_MAX);
  if (policy_read_file(w->io, path, &text, &why) < 0) {
    rc = w->fn(w->ctx, &(policy_shipped_one){.name = name, .path = path, .why = why.text});
  } else {
    const char *content = text.data ? text.data : "";
    take_about(content, about, sizeof about);
    rc = w->fn(w->ctx, &(policy_shipped_one){name, path, about, content, NULL});
  }
  buf_free(&text);
  return rc;
}

int policy_shipped(const io *io, const char *dir, policy_shipped_fn *fn, void *ctx, err *e) {
  char found[FS_PATH_MAX];
  int rc = policy_shipped_dir(io, dir, found, e);
  walk w = {.io = io, .dir = found, .fn = fn, .ctx = ctx};
  return rc < 0 ? rc : fs_list(io, found, tell, &w, e);
}
