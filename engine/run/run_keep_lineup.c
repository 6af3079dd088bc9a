/* run_keep_lineup: what waits to be saved is asked about by the rules of what is kept, in a line behind the commits:
 * what `keep` wants of it is not let go for a newer one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/retention.h"
#include "prims/fs.h"
#include "run/run_state.h"

/* ---- the commits ---- */

void run_keep_unlist(run_group *g) {
  for (size_t i = 0; i < g->listed_count; i++) {
    free((char *)g->listed[i].name);
    free((char *)g->listed[i].dir);
    free((char *)g->listed[i].metrics);
    free((char *)g->listed[i].suspect);
  }
  free(g->listed);
  g->listed = NULL;
  g->listed_count = 0;
}

/* Out of memory the list ends early: `keep` is only asked for its opinion. */
void run_keep_list(run *r, run_group *g) {
  const runlog_state *state = g->group.log ? runlog_view(g->group.log) : NULL;
  run_keep_unlist(g);
  if (!state || !run_remembers(r)) return; /* other policies may want to know them */
  g->listed = calloc(state->commit_count + 1, sizeof *g->listed);
  size_t count = g->listed ? retention_items(state, g->listed) : 0;
  if (g->listed) run_starts_note(r, g, g->listed, count);
  for (size_t i = 0; i < count; i++) {
    policy_item *item = &g->listed[i];
    item->suspect = item->suspect ? strdup(item->suspect) : NULL;
    item->name = strdup(item->name ? item->name : "");
    item->dir = strdup(item->dir ? item->dir : "");
    item->metrics = item->metrics ? strdup(item->metrics) : NULL;
  }
  g->listed_count = count;
}

/* ---- what waits ---- */

/* The commits and, behind them in the order in which they are to be commits, what waits. */
typedef struct lineup {
  policy_item *items;
  run_unit **units;
  size_t first, count; /* the first unit's place in `items` */
} lineup;

static void lineup_free(lineup *l) {
  free(l->items);
  free(l->units);
}

static bool is_in_line(const run_unit *u, const run_group *g) {
  return u->group == g && !u->above && (run_unit_queued(u) || u->phase == UNIT_RUNNING);
}

static bool lineup_make(run *r, run_group *g, lineup *l) {
  *l = (lineup){.first = g->listed_count};
  l->items = calloc(g->listed_count + r->unit_count + 1, sizeof *l->items);
  l->units = calloc(r->unit_count + 1, sizeof(void *));
  if (!l->items || !l->units) return false;
  for (size_t i = 0; i < r->unit_count; i++) {
    if (!is_in_line(r->units[i], g)) continue;
    size_t at = l->count++;
    for (; at > 0 && run_order_before(r, r->units[i], l->units[at - 1]); at--)
      l->units[at] = l->units[at - 1];
    l->units[at] = r->units[i];
  }
  return l->count > 1;
}

/* A number is the next one of the log, which it would have. */
static void lineup_fill(run *r, const run_group *g, lineup *l) {
  uint64_t number = g->listed_count ? g->listed[g->listed_count - 1].number : 0;
  for (size_t i = 0; i < g->listed_count; i++) {
    l->items[i] = g->listed[i];
    l->items[i].newest = false;
  }
  for (size_t i = 0; i < l->count; i++) {
    run_unit *u = l->units[i];
    l->items[l->first + i] = (policy_item){.number = ++number,
                                           .name = fs_base(u->path),
                                           .dir = fs_base(u->path),
                                           .step = u->step,
                                           .time_ns = u->made_ns,
                                           .bytes = u->bytes,
                                           .metrics = run_numbers_now(r, u),
                                           .newest = i + 1 == l->count};
  }
}

static bool has_keep(const run *r) {
  return policy_has(r->policy, POLICY_KEEP) || ruling_has(&r->replaced, POLICY_KEEP);
}

/* The policies are asked for their opinion: what they remember is not changed. One without `keep` wishes for
 * nothing here, or the queue would never let go. */
void run_keep_judge(run *r, run_group *g) {
  lineup l = {0};
  if (r->keep_all || run_follows(r)) return;
  const bool unknown = g->remembers != MEMORY_KNOWN; /* then each may be one that it protects */
  policy_kept *said = NULL;
  for (size_t i = 0; i < r->unit_count; i++)
    if (is_in_line(r->units[i], g)) r->units[i]->kept = false;
  if (has_keep(r) && lineup_make(r, g, &l)) {
    lineup_fill(r, g, &l);
    said = calloc(l.first + l.count, sizeof *said);
  }
  bool chosen = said && ruling_opinions(&r->replaced, r->policy, g->memory, POLICY_KEEP,
                                        g->group.prefix, l.items, l.first + l.count, true, said);
  for (size_t i = 0; l.units && i < l.count; i++) {
    run_unit *u = l.units[i];
    u->kept = said && ((chosen && unknown) || said[l.first + i].keep);
    snprintf(u->kept_why, sizeof u->kept_why, "%s",
             !u->kept  ? ""
             : unknown ? "what the policies remember is not known"
                       : said[l.first + i].reason);
  }
  free(said);
  lineup_free(&l);
}
