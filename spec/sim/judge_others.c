/* judge_others: somebody else's files in the places of saves, which stay. */
#include "judge_impl.h"

bool judge_is_over(const judge_attempt *a) {
  const judge_commit *c = judge_commit_of(a);
  return a->fate == FATE_SWEPT || (c && c->deleted);
}

static const char visitors[] = "thesis";

void judge_visit(void) {
  char key[256];
  judge_attempt *a = known.attempt_count ? &known.attempts[sim_roll(known.attempt_count)] : NULL;
  if (!a || a->visited || !judge_is_over(a)) return;
  snprintf(key, sizeof key, "%s/%s", a->dir, visitors);
  space_put(key, "mine", 4, "");
  a->visited = true;
  sim_count->visits++;
  sim_trace("somebody puts %s", key);
}

void judge_swap(const char *dir) {
  char key[256];
  judge_attempt *a = judge_attempt_in(dir);
  const judge_commit *other =
      known.commit_count ? &known.commits[sim_roll(known.commit_count)] : NULL;
  if (!a || a->visited || a->swapped || !other || other->attempt == a->n || !other->manifest)
    return;
  for (const object *o = NULL; (o = space_at(space_from(dir))) && space_below(o->key, dir);)
    space_remove(o->key);
  snprintf(key, sizeof key, "%s/%s", dir, visitors);
  space_put(key, "mine", 4, "");
  snprintf(key, sizeof key, "%s/%s", dir, MANIFEST_NAME);
  space_put(key, other->manifest, strlen(other->manifest), "");
  a->visited = a->swapped = true;
  sim_count->swaps++;
  sim_trace("somebody puts another checkpoint in the place of %s", dir);
}

/* A copy of a manifest, where nobody may take it for the save's own any more: the save is cleared,
 * or its removal was cut short: its directory was renamed, or the copy is younger than the commit.
 */
static void restore_backup(judge_attempt *a, const judge_commit *c) {
  char key[256], name[128];
  snprintf(name, sizeof name, ".ckpt/staging/gone.%s/", a->nonce);
  const object *gone = space_at(space_from(name));
  bool begun = gone && judge_begins(gone->key, name);
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  snprintf(name, sizeof name, ".ckpt/cleared/%s", a->nonce);
  bool cleared = space_find(name) != NULL;
  snprintf(name, sizeof name, ".ckpt/clearing/%s", a->nonce);
  if (space_find(key) || (!cleared && !begun && !space_find(name))) return;
  if (c && !c->manifest) return; /* its entry names one that did not stand there */
  const char *text = c ? c->manifest : "{}";
  space_put(key, text, strlen(text), cleared && !sim_weather.files ? a->nonce : "");
  a->backup = true;
  if (c && !cleared) lost_removed(c);
  sim_count->backups++;
  sim_trace("somebody copies %s back", key);
}

void judge_restore_backups(void) {
  for (size_t i = 0; i < known.attempt_count; i++)
    if (judge_is_over(&known.attempts[i]))
      restore_backup(&known.attempts[i], judge_commit_of(&known.attempts[i]));
}

bool judge_is_visitors(const char *key) {
  size_t len = strlen(key), own = sizeof visitors - 1;
  return len > own && key[len - own - 1] == '/' && strcmp(key + len - own, visitors) == 0;
}

static bool is_moved(const judge_attempt *a, const char *name) {
  char key[256];
  snprintf(key, sizeof key, ".ckpt/staging/gone.%s/%s", a->nonce, name);
  return space_find(key) != NULL;
}

/* It is where it was put. What dies behind the rename of a directory leaves it there. */
void judge_check_visitors(void) {
  char key[256];
  for (size_t i = 0; i < known.attempt_count; i++) {
    snprintf(key, sizeof key, "%s/%s", known.attempts[i].dir, MANIFEST_NAME);
    if (known.attempts[i].backup && !space_find(key)) sim_violation("the backup %s is gone", key);
    if (!known.attempts[i].visited) continue;
    if (known.attempts[i].swapped && !is_moved(&known.attempts[i], MANIFEST_NAME) &&
        !space_find(key))
      sim_violation("the manifest of another checkpoint, %s, is gone", key);
    snprintf(key, sizeof key, "%s/%s", known.attempts[i].dir, visitors);
    if (space_find(key)) continue;
    if (!is_moved(&known.attempts[i], visitors)) sim_violation("%s of somebody else is gone", key);
  }
}
