/* manifest_links: where the links of a manifest lead, as far as its own table tells. */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "manifest.h"

enum { NAME_MAX_BYTES = 4096, LINKS_MAX = 40 };

/* A way through the table. */
typedef struct way {
  const manifest *m;
  char at[NAME_MAX_BYTES]; /* a directory; "": the top */
  char rest[2 * NAME_MAX_BYTES];
  int links;
  bool at_link; /* it ended, for now, at another link: that one's end is its own */
} way;

/* Goes on, or is at the end with the lead. */
enum { ON = -1 };

static int is_below(const void *dir, const void *entry) {
  const char *name = ((const manifest_entry *)entry)->name;
  size_t len = strlen(dir);
  int order = strncmp(dir, name, len);
  return order ? order : '/' - (int)(unsigned char)name[len];
}

/* Directories need not be in the table. */
static bool is_dir(const manifest *m, const char *name) {
  return vec_find(name, m->entries, m->count, sizeof *m->entries, is_below);
}

static int follow(way *w, const char *target) {
  char rest[2 * NAME_MAX_BYTES];
  size_t len = strlen(target), left = strlen(w->rest);
  if (*target == '/') return MANIFEST_LEADS_OUT;
  if (++w->links > LINKS_MAX || len + left + 2 > sizeof rest) return MANIFEST_LEADS_NOWHERE;
  memcpy(rest, target, len);
  rest[len] = '/';
  memcpy(rest + len + 1, w->rest, left + 1);
  memcpy(w->rest, rest, len + left + 2);
  return ON;
}

static int enter(way *w, const char *name, bool last) {
  const manifest_entry *entry = manifest_find(w->m, name);
  if (entry && entry->type == MANIFEST_LINK) {
    w->at_link |= last;
    return follow(w, entry->target);
  }
  if (entry && entry->type == MANIFEST_FILE)
    return last ? MANIFEST_LEADS_WITHIN : MANIFEST_LEADS_NOWHERE;
  if (entry || is_dir(w->m, name)) {
    memcpy(w->at, name, strlen(name) + 1);
    return ON;
  }
  /* Beside a group stand files that are not of it. */
  return w->m->kind == MATCH_DIR ? MANIFEST_LEADS_NOWHERE : MANIFEST_LEADS_OUT;
}

static int step(way *w) {
  char name[NAME_MAX_BYTES];
  const char *part = w->rest + strspn(w->rest, "/");
  size_t len = strcspn(part, "/"), at = strlen(w->at);
  const char *left = part + len + strspn(part + len, "/");
  bool last = !*left;
  if (len == 2 && memcmp(part, "..", 2) == 0) {
    char *slash = strrchr(w->at, '/');
    if (at == 0) return MANIFEST_LEADS_OUT;
    *(slash ? slash : w->at) = 0;
    len = 0;
  }
  bool stays = len == 0 || (len == 1 && *part == '.');
  if (!stays && at + len + 2 > sizeof name) return MANIFEST_LEADS_NOWHERE;
  memcpy(name, w->at, at);
  if (at) name[at++] = '/';
  if (!stays) memcpy(name + at, part, len);
  name[at + (stays ? 0 : len)] = 0;
  memmove(w->rest, left, strlen(left) + 1);
  return stays ? ON : enter(w, name, last);
}

manifest_lead manifest_link_leads(const manifest *m, const manifest_entry *link) {
  way w = {.m = m};
  const char *slash = strrchr(link->name, '/');
  size_t len = slash ? (size_t)(slash - link->name) : 0;
  if (len >= sizeof w.at) return MANIFEST_LEADS_NOWHERE;
  memcpy(w.at, link->name, len);
  int lead = follow(&w, link->target);
  while (lead == ON && *w.rest) lead = step(&w);
  if (lead == ON) lead = MANIFEST_LEADS_WITHIN;
  return w.at_link && w.links <= LINKS_MAX ? MANIFEST_LEADS_WITHIN : (manifest_lead)lead;
}
