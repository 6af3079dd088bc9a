/* judge_store: changes of the store, each one before or after it is done. */
#include "judge_impl.h"

bool judge_begins(const char *key, const char *where) {
  return strncmp(key, where, strlen(where)) == 0;
}

/* What is staged before it is named: .ckpt/staging/<term>.<nonce>, behind it ".with" if it is what
 * is saved beside it, before it "gone." if it is being removed. */
typedef struct staged {
  bool gone, beside;
  long long term;
  char nonce[40];
} staged;

static bool is_staged(const char *key, staged *out) {
  *out = (staged){0};
  if (!judge_begins(key, ".ckpt/staging/")) return false;
  key += strlen(".ckpt/staging/");
  out->gone = judge_begins(key, "gone.");
  if (out->gone) key += strlen("gone.");
  char *end;
  out->term = strtoll(key, &end, 10);
  if (*end != '.') return false;
  snprintf(out->nonce, sizeof out->nonce, "%.32s", end + 1);
  out->beside = strlen(end) > 33 && judge_begins(end + 33, ".with");
  return true;
}

judge_attempt *judge_attempt_for(const char *key) {
  static const char gone[] = ".ckpt/staging/gone.";
  char dir[STORE_KEY_MAX];
  staged s;
  if (is_staged(key, &s)) return judge_attempt_named(s.nonce);
  for (size_t i = 0; judge_begins(key, gone) && i < known.attempt_count; i++)
    if (judge_begins(key + sizeof gone - 1, known.attempts[i].nonce)) return &known.attempts[i];
  if (judge_begins(key, gone)) return NULL;
  if (judge_begins(key, ".ckpt/staging/") || judge_begins(key, ".ckpt/parts/") ||
      judge_begins(key, ".ckpt/with/"))
    return judge_attempt_of(strtoll(strchr(key + 6, '/') + 1, NULL, 10));
  snprintf(dir, sizeof dir, "%.*s", (int)strcspn(key, "/"), key);
  return judge_attempt_in(dir);
}

static bool of_attempt(const char *key) {
  return !judge_begins(key, ".ckpt/") || judge_begins(key, ".ckpt/staging/") ||
         judge_begins(key, ".ckpt/parts/") || judge_begins(key, ".ckpt/with/");
}

static void may_touch(const actor *by, const staged *s, const char *key) {
  if (!s->gone && s->term == known.newest_term && known.openers[s->term] != by->id)
    BROKEN_RULE("%s is the newest term's own, and %s comes for it", key, by->name);
}

/* What the head names stands, as it says, and nobody takes a number back. */
static void check_head(void) {
  char key[80], hex[HASH_HEX_MAX];
  digest sum;
  const object *head = space_find(".ckpt/head");
  json_t *top = json_loadb(head->data, head->len, 0, NULL);
  const json_t *commit = json_object_get(top, "commit");
  const char *said = json_string_value(json_object_get(commit, "digest"));
  long long n = judge_number(commit, "n");
  if (!top) sim_violation("the head is no object");
  if (n < 0) n = 0;
  if (lost_shows(NULL) || (known.epoch > 0 && n < known.first)) {
    known.head_commit = 0;
    return json_decref(top);
  }
  if (n < known.head_commit)
    sim_violation("the head names commit %lld after %lld", n, known.head_commit);
  known.head_commit = n;
  lost_key(known.epoch, n, key, sizeof key);
  const object *entry = n ? space_find(key) : NULL;
  if (n && (!entry || !judge_commit_at(n)))
    sim_violation("the head names %lld, which is no commit", n);
  if (entry) hash_bytes(HASH_XXH3_128, entry->data, entry->len, &sum, NULL);
  if (entry) digest_hex(&sum, hex);
  if (entry && (!said || strcmp(said, hex) != 0)) sim_violation("the head names another %lld", n);
  json_decref(top);
}

void judge_put(const actor *by, const char *key, bool replaced) {
  if (strcmp(key, ".ckpt/head") == 0) lost_unclear(), check_head();
  if (judge_begins(key, ".ckpt/epoch/") && replaced) sim_violation("%s was overwritten", key);
  if (judge_begins(key, ".ckpt/epoch/")) lost_epoch_taken(by);
  if (judge_begins(key, ".ckpt/log/") || judge_begins(key, ".ckpt/log.")) {
    if (replaced) sim_violation("%s was overwritten", key);
    judge_on_entry(by, space_find(key));
    return;
  }
  staged s;
  if (!of_attempt(key)) return;
  if (is_staged(key, &s)) {
    if (replaced) sim_violation("%s was overwritten", key);
    may_touch(by, &s, key);
    return;
  }
  judge_attempt *a = judge_attempt_for(key);
  if (!a) sim_violation("%s is made, and no attempt was announced there", key);
  judge_commit *c = judge_commit_of(a);
  if (replaced && c && !c->deleted && !judge_begins(key, ".ckpt/")) judge_check_commit(c);
}

/* Where directories are shared by mistake, what one attempt may lose another one needs. */
static void needed_by(const char *key) {
  char dir[STORE_KEY_MAX];
  snprintf(dir, sizeof dir, "%.*s", (int)strcspn(key, "/"), key);
  for (size_t i = 0; i < known.commit_count; i++)
    if (!known.commits[i].deleted && strcmp(known.commits[i].of->dir, dir) == 0)
      sim_violation("%s is removed, and commit %lld stands", key, known.commits[i].n);
}

/* Its files stand where they are to be, all of them: they came there in one step. */
static bool is_shown(const judge_attempt *a) {
  char key[256];
  snprintf(key, sizeof key, "%s/%s", a->dir, MANIFEST_NAME);
  return space_find(key) != NULL;
}

/* Of what was saved beside it a commit names that of one term. */
static bool names_term(const judge_commit *c, const char *key) {
  const char *term = strchr(key + strlen(".ckpt/with/"), '/');
  return c->with_term >= 0 && term && strtoll(term + 1, NULL, 10) == c->with_term;
}

/* One by one only its own writer takes anything out of it, and only before it is named. */
static void may_leave_staging(const actor *by, const staged *s, const char *key) {
  const judge_attempt *a = judge_attempt_named(s->nonce);
  if (s->gone) return;
  if (known.openers[s->term] != by->id && known.openers_then[s->term] != by->id + 1)
    BROKEN_RULE("%s is removed by %s, who did not rename it first", key, by->name);
  if (a && a->fate == FATE_OPEN && !is_shown(a))
    BROKEN_RULE("%s is removed, and its attempt stands", key);
}

static void may_move_staging(const actor *by, const staged *s, const char *from, const char *to) {
  const judge_attempt *a = judge_attempt_named(s->nonce);
  char with[64];
  staged t;
  bool again = is_staged(to, &t);
  if (again && a && a->forgotten) a = NULL; /* nobody can know that it was announced */
  if (again && a && a->fate == FATE_OPEN && !is_shown(a))
    BROKEN_RULE("%s is taken away, and its attempt stands", from);
  if (again) {
    if (!a) may_touch(by, s, from);
    if (!t.gone && (a || known.openers[t.term] != by->id || s->term >= t.term))
      BROKEN_RULE("%s is renamed to %s by %s", from, to, by->name);
    return;
  }
  if (!a) sim_violation("%s is shown as %s, and no attempt says so", from, to);
  snprintf(with, sizeof with, ".ckpt/with/%lld/%lld", a->n, s->term);
  if (strcmp(to, s->beside ? with : a->dir) != 0)
    sim_violation("%s is renamed to %s, which is not its own", from, to);
}

/* In a bucket the next one removes by what a manifest says that has gone. */
static void keeps_text(const judge_attempt *a, const char *key) {
  char name[256];
  snprintf(name, sizeof name, "%s/%s", a->dir, MANIFEST_NAME);
  if (sim_weather.files || strcmp(key, name) != 0) return;
  snprintf(name, sizeof name, ".ckpt/clearing/%s", a->nonce);
  const object *kept = space_find(name), *manifest = space_find(key);
  if (kept && manifest && kept->len == manifest->len &&
      memcmp(kept->data, manifest->data, kept->len) == 0)
    return;
  snprintf(name, sizeof name, ".ckpt/cleared/%s", a->nonce);
  if (!space_find(name)) BROKEN_RULE("%s is removed, and its text is kept nowhere", key);
}

static void may_go(const char *key) {
  if (judge_is_visitors(key)) sim_violation("%s, which is somebody else's, is removed", key);
  const judge_attempt *a = judge_attempt_for(key);
  if (!a) sim_violation("%s is removed, and nobody knows whose it is", key);
  const judge_commit *c = judge_commit_of(a);
  if (judge_is_over(a)) {
    if (c) keeps_text(a, key);
    needed_by(key);
    return;
  }
  /* What a save needed on its way is not needed behind the commit. */
  if (c && (judge_begins(key, ".ckpt/staging/") || judge_begins(key, ".ckpt/parts/"))) return;
  if (judge_begins(key, ".ckpt/staging/") && is_shown(a)) return;
  if (c && judge_begins(key, ".ckpt/with/") && !names_term(c, key)) return;
  sim_violation("%s is removed, and its %s stands", key,
                c ? c->dropped ? "commit (dropped only)" : "commit" : "attempt");
}

void judge_remove(const actor *by, const char *key) {
  if (judge_begins(key, ".ckpt/log/") || judge_begins(key, ".ckpt/log.") ||
      judge_begins(key, ".ckpt/epoch/"))
    sim_violation("%s is removed", key);
  staged s;
  if (is_staged(key, &s))
    may_leave_staging(by, &s, key);
  else if (of_attempt(key))
    may_go(key);
  for (int i = 0; i < ACTORS_MAX; i++) {
    const actor *a = actor_at(i);
    if (a && a != by && !a->dead && strcmp(a->pin, key) == 0 && !a->pin_lapsed &&
        sim_now <= a->pin_until)
      sim_violation("%s, which %s holds, is removed", key, a->name);
  }
}

void judge_publish(const actor *by, const char *from, const char *to) {
  char below[STORE_KEY_MAX];
  staged s;
  if (is_staged(from, &s)) {
    may_move_staging(by, &s, from, to);
    return;
  }
  bool shows = judge_begins(from, ".ckpt/staging/");
  snprintf(below, sizeof below, "%s/", shows ? from : to);
  const judge_attempt *a = judge_attempt_for(below);
  if (!a || strcmp(a->dir, shows ? to : from) != 0)
    sim_violation("%s is renamed to %s, which is not its own", from, to);
  if (shows) return;
  snprintf(below, sizeof below, "%s/", from);
  may_go(below);
}
