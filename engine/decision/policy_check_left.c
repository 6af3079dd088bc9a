/* policy_check_left: looks at the globs by which files are left out: those for all checkpoints, and those
 * that a function of `exclude` answers of one. */
#include <stdio.h>

#include "base/names.h"
#include "decision/policy_check_impl.h"
#include "prims/fs.h"
#include "prims/match.h"

/* A name that nobody gives: what fits it fits any. */
#define ANY_NAME "z0-a-name-that-nobody-gives"

void checking_excludes(checking *c) {
  const json_t *globs = json_object_get(c->p->data, "exclude");
  char text[POLICY_REASON_MAX];
  size_t i;
  json_t *glob;
  json_array_foreach((json_t *)globs, i, glob) {
    const char *word = json_string_value(glob);
    if (!word || !match_exclude(word, ANY_NAME, true) || !match_exclude(word, ANY_NAME, false))
      continue;
    snprintf(text, sizeof text,
             "\"%.100s\" leaves out whatever there is: no checkpoint is found then", word);
    checking_tell_word(c, POLICY_DOUBT, "key", word, text);
  }
}

/* A run looks at the same, and saves the checkpoint whole. */
void checking_left(checking *c, const json_t *answer) {
  char text[ERR_TEXT_MAX + 100];
  char any[FS_PATH_MAX];
  names globs = {0};
  err why = {0};
  if (!answer || json_is_null(answer)) return;
  if (answer_globs(answer, &globs, &why) < 0) {
    snprintf(text, sizeof text, "`exclude` returned a glob that a run does not take: %s", why.text);
    checking_tell_key(c, POLICY_FAULT, "function", "exclude", text);
  }
  snprintf(any, sizeof any, "%s/%s", policy_made_up("complete", true).unit->path, ANY_NAME);
  for (size_t i = 0; i < globs.count; i++) {
    if (!match_exclude(globs.at[i], any, false)) continue;
    snprintf(
        text, sizeof text,
        "`exclude` returned \"%.100s\", which leaves nothing of a checkpoint: it is saved whole "
        "then, with a warning. To save none of it is for `sync`",
        globs.at[i]);
    checking_tell_key(c, POLICY_DOUBT, "function", "exclude", text);
  }
  names_free(&globs);
}
