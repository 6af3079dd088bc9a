#include "ruling.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

/* ---- what they remember ---- */

bool ruling_remember(ruling_memories *m, const char *group, const char *text) {
  if (!VEC_ROOM(m->at, m->count, m->room)) return false;
  ruling_memory one = {.group = strdup(group), .text = text ? strdup(text) : NULL};
  if (!one.group || (text && !one.text)) {
    free(one.group);
    free(one.text);
    return false;
  }
  m->at[m->count++] = one;
  return true;
}

void ruling_forget(ruling_memories *m) {
  for (size_t i = 0; i < m->count; i++) {
    free(m->at[i].group);
    free(m->at[i].text);
  }
  free(m->at);
  *m = (ruling_memories){0};
}

/* A group that came after the chain was replaced is empty to it. NULL: no memory. */
static char **memory_of(ruling_chain *c, const char *group) {
  for (size_t i = 0; i < c->memories.count; i++)
    if (strcmp(c->memories.at[i].group, group) == 0) return &c->memories.at[i].text;
  if (!ruling_remember(&c->memories, group, NULL)) return NULL;
  return &c->memories.at[c->memories.count - 1].text;
}

/* ---- which of them rule ---- */

static const char *text_of(const ruling_memories *m, const char *group) {
  for (size_t i = 0; i < m->count; i++)
    if (strcmp(m->at[i].group, group) == 0) return m->at[i].text;
  return NULL;
}

static bool covers(const ruling_memories *a, const ruling_memories *b) {
  for (size_t i = 0; i < a->count; i++) {
    const char *one = a->at[i].text, *other = text_of(b, a->at[i].group);
    if (one != other && (!one || !other || strcmp(one, other) != 0)) return false;
  }
  return true;
}

/* One that says the same of all: it was made of the same, and remembers the same. */
static ruling_chain *twin_of(ruling *r, const policy *p, const ruling_memories *m) {
  for (size_t i = 0; i < r->count; i++) {
    ruling_chain *c = &r->at[i];
    if (policy_same(c->policy, p) && covers(&c->memories, m) && covers(m, &c->memories)) return c;
  }
  return NULL;
}

int ruling_add(ruling *r, policy *replaced, int64_t until, ruling_memories *memories, err *e) {
  ruling_chain *twin = twin_of(r, replaced, memories);
  if (twin) {
    if (until > twin->until) twin->until = until;
    r->fallbacks += policy_fallbacks(replaced);
    if (replaced != r->first) policy_close(replaced);
    ruling_forget(memories);
    return 0;
  }
  if (!VEC_ROOM(r->at, r->count, r->room))
    return err_set(e, ERR_NOMEM, "out of memory for the policies that are replaced");
  if (!r->first) r->first = replaced;
  r->at[r->count++] = (ruling_chain){.policy = replaced, .until = until, .memories = *memories};
  *memories = (ruling_memories){0};
  return 0;
}

static void end_one(ruling *r, size_t i) {
  ruling_chain *c = &r->at[i];
  r->fallbacks += policy_fallbacks(c->policy);
  ruling_forget(&c->memories);
  if (c->policy != r->first) policy_close(c->policy);
  memmove(c, c + 1, (--r->count - i) * sizeof *c);
}

size_t ruling_end(ruling *r, int64_t now) {
  const size_t before = r->count;
  for (size_t i = r->count; i-- > 0;)
    if (r->at[i].until <= now) end_one(r, i);
  return before - r->count;
}

int64_t ruling_due(const ruling *r) {
  int64_t due = INT64_MAX;
  for (size_t i = 0; i < r->count; i++)
    if (r->at[i].until < due) due = r->at[i].until;
  return due;
}

int64_t ruling_last(const ruling *r) {
  int64_t last = 0;
  for (size_t i = 0; i < r->count; i++)
    if (r->at[i].until > last) last = r->at[i].until;
  return last;
}

void ruling_close(ruling *r) {
  while (r->count) end_one(r, r->count - 1);
  policy_close(r->first);
  free(r->at);
  *r = (ruling){0};
}

/* ---- what they keep ---- */

void ruling_join(policy_kept *kept, const policy_kept *by, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (by[i].keep && !kept[i].keep) kept[i] = by[i];
}

static void keep_all(policy_kept *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = (policy_kept){.keep = true, .policy = "builtin"};
}

bool ruling_opinion(policy *p, policy_hook hook, const char *group, const policy_item *items,
                    size_t count, const char *memory, policy_kept *out) {
  char *copy = memory ? strdup(memory) : NULL;
  if (memory && !copy) {
    /* By an empty memory it may let go what it remembers to keep. */
    keep_all(out, count);
    return false;
  }
  bool answered = policy_select(p, hook, group, items, count, &copy, out);
  free(copy);
  return answered;
}

bool ruling_has(const ruling *r, policy_hook hook) {
  for (size_t i = 0; i < r->count; i++)
    if (policy_has(r->at[i].policy, hook)) return true;
  return false;
}

bool ruling_opinions(ruling *r, policy *newest, const char *memory, policy_hook hook,
                     const char *group, const policy_item *items, size_t count, bool wishes,
                     policy_kept *out) {
  bool answered = false;
  policy_kept *one = calloc(count + 1, sizeof *one);
  for (size_t i = 0; i < count; i++) out[i] = (policy_kept){.keep = false};
  for (size_t i = r->count + 1; one && i-- > 0;) {
    policy *p = i == r->count ? newest : r->at[i].policy;
    if (wishes && !policy_has(p, hook)) continue;
    char **own = i == r->count ? NULL : memory_of(&r->at[i], group);
    if (i < r->count && !own)
      keep_all(one, count);
    else if (ruling_opinion(p, hook, group, items, count, own ? *own : memory, one))
      answered = true;
    else if (wishes)
      continue;
    if (i == r->count)
      memcpy(out, one, count * sizeof *out);
    else
      ruling_join(out, one, count);
  }
  if (!one) keep_all(out, count);
  free(one);
  return answered;
}

static bool ask(ruling_chain *c, policy_hook hook, const char *group, const policy_item *items,
                size_t count, policy_kept *out) {
  char **memory = memory_of(c, group);
  if (memory) return policy_select(c->policy, hook, group, items, count, memory, out);
  keep_all(out, count);
  return false;
}

bool ruling_select(ruling *r, policy_hook hook, const char *group, const policy_item *items,
                   size_t count, policy_kept *out) {
  bool answered = true;
  for (size_t i = 0; i < count; i++) out[i] = (policy_kept){.keep = false};
  policy_kept *one = r->count ? calloc(count + 1, sizeof *one) : NULL;
  if (r->count && !one) {
    keep_all(out, count);
    return false;
  }
  for (size_t i = r->count; i-- > 0;) {
    ruling_chain *c = &r->at[i];
    if (!ask(c, hook, group, items, count, one)) answered = false;
    ruling_join(out, one, count);
  }
  free(one);
  return answered;
}

void ruling_tell(ruling *r, policy_hook hook, const policy_facts *facts) {
  for (size_t i = 0; i < r->count; i++) {
    char **memory = policy_has(r->at[i].policy, hook) ? memory_of(&r->at[i], facts->group) : NULL;
    if (memory) policy_tell(r->at[i].policy, hook, facts, memory);
  }
}

bool ruling_keeps_few(const ruling *r) {
  for (size_t i = 0; i < r->count; i++)
    if (!policy_keeps_few(r->at[i].policy)) return false;
  return true;
}

uint64_t ruling_fallbacks(const ruling *r) {
  uint64_t sum = r->fallbacks;
  for (size_t i = 0; i < r->count; i++) sum += policy_fallbacks(r->at[i].policy);
  return sum;
}

void ruling_names(const ruling *r, buf *out) {
  for (size_t i = r->count; i-- > 0;)
    buf_fmt(out, "%s%s", i + 1 < r->count ? "; " : "", policy_names(r->at[i].policy));
}
