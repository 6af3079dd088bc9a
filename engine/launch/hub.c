#include "hub.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/seconds.h"
#include "launch/folder.h"
#include "launch/rule/agree.h"

static const int64_t beat_ns =
    10000000000; /* a question at least, so that each knows of the other */
static const int64_t silent_ns = 30000000000;  /* from then on nobody knows what has become of it */
static const int64_t end_pause_ns = 500000000; /* from look to look, when ours has ended; */
static const int64_t busy_pause_ns = 1000000000; /* while something is written */
static const int64_t read_pause_ns = 100000000;
static const int64_t again_ns = 1000000000; /* from question to question, while answers differ */
static const int64_t unwanted_ns = 10000000000; /* nobody looks for the answers any more */
static const int64_t alone_ns = 120000000000;   /* longer than a network file system hides a file */

typedef struct other {
  launch_answer says;
  bool known;       /* it has said something */
  int64_t fresh_at; /* IO_MONO: when it last said something new; the start, before */
} other;

/* Of the unit at the same place in the question. */
typedef struct asked {
  uint64_t number;
  int64_t at, wanted_at; /* IO_MONO; wanted: when the unit's answers were last looked at */
} asked;

struct hub {
  const io *io;
  const log_sink *log;
  char folder[FS_PATH_MAX];
  uint32_t index, count;
  int64_t wait_ns, opened_at;
  launch_question question;
  asked asked[LAUNCH_UNITS_MAX];
  int64_t asked_at, read_at; /* IO_MONO: of the newest question; when answers were last read */
  other *others;
  const launch_answer **answers; /* as agree.h wants them */
  bool ended, clean;             /* our own job */
  int64_t ended_at;
  bool lost; /* one ended badly, */
  int64_t lag_ns;
  uint32_t absent; /* how many are taken not to run below us */
  char *hidden;    /* or NULL */
  bool unknown_said, silent_said, put_said;
  uint32_t absent_said;
};

/* Stands for what one that does not run below us never says. */
static const launch_answer absent_one = {.ended = true, .clean = true};

static int64_t mono(const hub *h) {
  return h->io->now(h->io, IO_MONO);
}

/* ---- asking ---- */

static int put(hub *h, err *e) {
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  h->question.number++;
  h->asked_at = mono(h);
  int rc = launch_print_question(&h->question, &text, e);
  if (rc == 0) rc = folder_put(h->io, h->folder, "question", &text, e);
  buf_free(&text);
  return rc;
}

/* It is asked again before long; till then nothing is complete. */
static void ask(hub *h) {
  err why = {0};
  if (put(h, &why) == 0 || h->put_said) return;
  h->put_said = true;
  log_say(h->log, LOG_WARN, "the other tasks of this launch cannot be asked: %s", why.text);
}

static void drop(hub *h, size_t at) {
  launch_units *units = &h->question.units;
  free(units->at[at].path);
  units->count--;
  for (size_t i = at; i < units->count; i++) {
    units->at[i] = units->at[i + 1];
    h->asked[i] = h->asked[i + 1];
  }
}

static size_t place_of(const hub *h, const char *path) {
  const launch_unit *found = launch_find(&h->question.units, path);
  return found ? (size_t)(found - h->question.units.at) : h->question.units.count;
}

/* Makes room for one more; false: all of them are waited for, and it comes again. */
static bool make_room(hub *h, int64_t now) {
  for (size_t i = h->question.units.count; i-- > 0;)
    if (now - h->asked[i].wanted_at >= unwanted_ns) drop(h, i);
  return h->question.units.count < LAUNCH_UNITS_MAX;
}

static void ask_about(hub *h, const launch_unit *unit) {
  int64_t now = mono(h);
  size_t at = place_of(h, unit->path);
  if (at < h->question.units.count) drop(h, at);
  if (!make_room(h, now) || !launch_add(&h->question.units, unit)) return;
  h->asked[h->question.units.count - 1] = (asked){h->question.number + 1, now, now};
  ask(h);
}

/* ---- reading ---- */

static void take(hub *h, uint32_t i, launch_answer *says, int64_t now) {
  other *o = &h->others[i];
  if (!o->known || says->number != o->says.number || says->ended) o->fresh_at = now;
  if (says->ended && !says->clean) {
    int64_t lag = now - h->read_at;
    h->lag_ns = h->lost && h->lag_ns > lag ? h->lag_ns : lag;
    h->lost = true;
  }
  launch_free_answer(&o->says);
  o->says = *says;
  o->known = true;
  h->answers[i] = &o->says;
}

static void read_one(hub *h, uint32_t i, int64_t now) {
  char name[16];
  launch_answer says;
  err why = {0};
  buf text;
  buf_init(&text, LAUNCH_BYTES_MAX);
  snprintf(name, sizeof name, "%u", i);
  int rc = folder_get(h->io, h->folder, name, &text, &why);
  if (rc == 0) rc = launch_parse_answer(&text, &says, &why);
  buf_free(&text);
  if (rc == 0)
    take(h, i, &says, now);
  else if (rc != ERR_NOENT)
    log_say(h->log, LOG_DEBUG, "task %u of those in this directory: %s", i, why.text);
}

/* ---- those that never come ---- */

static bool anybody_came(const hub *h) {
  uint32_t i = 0;
  while (i < h->count && !h->others[i].known) i++;
  return i < h->count;
}

/* Where one has come the others are likely to run below us too, and are late. */
static int64_t patience(const hub *h) {
  return anybody_came(h) || h->wait_ns < alone_ns ? h->wait_ns : alone_ns;
}

static void say_absent(hub *h) {
  if (h->absent == h->absent_said) return;
  h->absent_said = h->absent;
  if (h->absent > 0)
    log_say(h->log, LOG_WARN,
            "%" PRIu32 " of the %" PRIu32 " tasks in this directory have reported nothing for "
            "%" PRId64 " s: they are taken not to run below us, and a checkpoint is "
            "complete without their word. Start each of them below us, with the same directory; or "
            "`tasks` 1, if they never are, asks nobody",
            h->absent, h->count, patience(h) / 1000000000);
}

/* A task says something before its command begins. One that never does would have nothing saved, ever,
 * where its user starts the first task alone below us. One that comes after all counts again. */
static void give_up(hub *h, int64_t now) {
  bool over = !h->hidden && now - h->opened_at >= patience(h);
  h->absent = 0;
  for (uint32_t i = 0; i < h->count; i++) {
    if (i == h->index || h->others[i].known) continue;
    h->answers[i] = over ? &absent_one : NULL;
    h->absent += over;
  }
  say_absent(h);
}

/* One that has ended says nothing more. */
static void read_all(hub *h) {
  int64_t now = mono(h);
  for (uint32_t i = 0; i < h->count; i++)
    if (i != h->index && !h->others[i].says.ended) read_one(h, i, now);
  h->read_at = now;
  give_up(h, now);
}

/* Whether there is nothing to wait for from this one: it is us, or has ended, or is absent. */
static bool is_done(const hub *h, uint32_t i) {
  return i == h->index || (h->answers[i] && h->answers[i]->ended);
}

static agree_facts facts_of(const hub *h) {
  return (agree_facts){.answers = h->answers, .count = h->count, .self = h->index};
}

/* ---- texts ---- */

static bool is_silent(const hub *h, uint32_t i, int64_t now) {
  return !h->others[i].says.ended && now - h->others[i].fresh_at >= silent_ns;
}

/* By what its launcher calls it, where it has said so. */
static void name_one(const hub *h, uint32_t i, char *text, size_t room) {
  const other *o = &h->others[i];
  if (o->known)
    snprintf(text, room, "task %u (on %.64s)", o->says.task, o->says.host);
  else
    snprintf(text, room, "number %u of the %u tasks in this directory", i, h->count);
}

static void explain(const hub *h, const agree_finding *f, char *why, size_t room) {
  char name[128];
  int64_t now = mono(h);
  name_one(h, f->index, name, sizeof name);
  if (f->word == AGREE_UNKNOWN)
    snprintf(why, room, "%s has not reported yet", name);
  else if (is_silent(h, f->index, now))
    snprintf(why, room, "%s has said nothing for %" PRId64 " s: it is not known to have ended",
             name, (now - h->others[f->index].fresh_at) / 1000000000);
  else if (f->word == AGREE_OPEN)
    snprintf(why, room, "%s: somebody there has a file of it open for writing", name);
  else if (f->word == AGREE_DIFFERS)
    snprintf(why, room, "%s does not see the same files there", name);
  else
    snprintf(why, room, "%s has not said yet what it sees there, %u of %u tasks agree", name,
             h->count - f->missing, h->count);
}

/* Warns once of each kind: a checkpoint that is never saved must not be found out at the end. */
static void warn(hub *h, const agree_finding *f) {
  char name[128];
  int64_t now = mono(h);
  bool unknown = f->word == AGREE_UNKNOWN;
  bool *said = unknown ? &h->unknown_said : &h->silent_said;
  if (*said || !is_silent(h, f->index, now)) return;
  *said = true;
  name_one(h, f->index, name, sizeof name);
  if (unknown && h->hidden)
    log_say(h->log, LOG_WARN,
            "%s has reported nothing: no checkpoint is complete here until each of them has, since "
            "it may still write: %s",
            name, h->hidden);
  else if (unknown)
    log_say(h->log, LOG_WARN,
            "%s has reported nothing: no checkpoint is complete here until each of them has, since "
            "it may still write, or for %" PRId64
            " s after the start. Each has to be started below "
            "us; `tasks` says how many they are, if not as many as their launcher says",
            name, patience(h) / 1000000000);
  else
    log_say(h->log, LOG_WARN,
            "%s has said nothing for %" PRId64
            " s: no checkpoint is complete until it does, or has ended",
            name, silent_ns / 1000000000);
}

/* ---- asked about a unit ---- */

bool hub_agrees(hub *h, const char *path, match_kind kind, uint64_t stamp, char *why, size_t room,
                int64_t *wait) {
  launch_unit unit = {.path = (char *)path, .kind = kind, .stamp = stamp};
  int64_t now = mono(h);
  size_t at = place_of(h, path);
  bool there = at < h->question.units.count && h->question.units.at[at].stamp == stamp;
  if (there) h->asked[at].wanted_at = now;
  if (now - h->read_at >= read_pause_ns) read_all(h);
  const agree_facts facts = facts_of(h);
  const agree_unit about = {path, stamp, there ? h->asked[at].number : UINT64_MAX};
  const agree_finding found = agree_about(&facts, &about);
  if (found.word == AGREE_YES) {
    if (at < h->question.units.count) drop(h, at);
    return true;
  }
  explain(h, &found, why, room);
  warn(h, &found);
  bool again = found.word == AGREE_DIFFERS || found.word == AGREE_OPEN;
  if (!there || (again && now - h->asked[at].at >= again_ns)) ask_about(h, &unit);
  *wait = there && now - h->asked_at > 5 * again_ns ? again_ns : again_ns / 4;
  return false;
}

/* ---- the end ---- */

void hub_ended(hub *h, bool clean) {
  h->ended = true;
  h->clean = clean;
  h->ended_at = mono(h);
  if (h->absent > 0) read_all(h);
}

bool hub_alone(const hub *h) {
  return h->absent == h->count - 1;
}

/* The others are told no sooner than now that they may begin, too. */
void hub_begun(hub *h) {
  h->ended = false;
  if (h->absent == 0) h->opened_at = mono(h);
}

/* Returns when the last of those that are left said something; INT64_MAX while one of them is known to
 * live. */
static int64_t quiet_since(const hub *h, int64_t now) {
  int64_t since = 0;
  for (uint32_t i = 0; i < h->count; i++) {
    if (is_done(h, i)) continue;
    if (h->others[i].known && !is_silent(h, i, now)) return INT64_MAX;
    if (h->others[i].fresh_at > since) since = h->others[i].fresh_at;
  }
  return since;
}

/* Where nothing is being written, nothing hangs on those of which nobody knows. */
static hub_state state_at_end(const hub *h, bool busy, int64_t now, int64_t end_at) {
  const agree_facts facts = facts_of(h);
  const agree_ends ends = agree_ends_of(&facts);
  if (ends.living == 0 && ends.unknown == 0) return HUB_OVER;
  int64_t since = quiet_since(h, now), wait = h->wait_ns;
  if (busy && since < h->ended_at) since = h->ended_at;
  if (!busy && wait > silent_ns) wait = silent_ns;
  bool given_up = since < INT64_MAX && now >= seconds_later(since, wait);
  return now >= end_at || given_up ? HUB_UNKNOWN : HUB_LIVES;
}

hub_state hub_step(hub *h, bool busy, int64_t end_at, int64_t *due) {
  int64_t now = mono(h), pause = h->ended ? end_pause_ns : busy ? busy_pause_ns : beat_ns;
  if (now - h->asked_at >= beat_ns) ask(h);
  if (now - h->read_at >= pause) read_all(h);
  hub_state state = h->ended ? state_at_end(h, busy, now, end_at) : HUB_LIVES;
  /* That is said once, so by what there is now: those that never came are given up in the same moment. */
  if (state == HUB_UNKNOWN && h->read_at < now) {
    read_all(h);
    state = state_at_end(h, busy, now, end_at);
  }
  *due = seconds_later(h->read_at, pause);
  if (seconds_later(h->asked_at, beat_ns) < *due) *due = seconds_later(h->asked_at, beat_ns);
  if (h->ended && end_at < *due) *due = end_at;
  if (state != HUB_LIVES) *due = INT64_MAX;
  return state;
}

bool hub_clean(const hub *h) {
  const agree_facts facts = facts_of(h);
  return h->clean && agree_ends_of(&facts).unclean == 0;
}

uint32_t hub_left(const hub *h, uint32_t *unknown) {
  int64_t now = mono(h);
  uint32_t left = 0;
  *unknown = 0;
  for (uint32_t i = 0; i < h->count; i++) {
    if (is_done(h, i)) continue;
    left++;
    *unknown += !h->others[i].known || is_silent(h, i, now);
  }
  return left;
}

bool hub_lost_one(hub *h, int64_t *lag_ns) {
  bool lost = h->lost;
  *lag_ns = h->lag_ns;
  h->lost = false;
  return lost;
}

void hub_name_left(const hub *h, char *text, size_t room) {
  uint32_t left = 0, first = 0;
  for (uint32_t i = h->count; i-- > 0;) {
    if (is_done(h, i)) continue;
    left++;
    first = i;
  }
  char name[128];
  name_one(h, first, name, sizeof name);
  snprintf(text, room, left > 1 ? "%s and %u more are" : "%s is", name, left - 1);
}

/* ---- open and close ---- */

int hub_open(const hub_options *o, hub **out, err *e) {
  *out = NULL;
  hub *h = calloc(1, sizeof *h);
  if (h) h->others = calloc(o->count, sizeof *h->others);
  if (h) h->answers = calloc(o->count, sizeof(void *));
  int rc = h && h->others && h->answers ? 0 : ERR_NOMEM;
  if (rc == 0) {
    *h = (hub){.io = o->io,
               .log = o->log,
               .index = o->index,
               .count = o->count,
               .wait_ns = o->wait_ns,
               .others = h->others,
               .answers = h->answers};
    h->read_at = h->opened_at = mono(h);
    for (uint32_t i = 0; i < h->count; i++) h->others[i].fresh_at = h->read_at;
    if (!names_add_all(&h->question.excludes, o->excludes)) rc = ERR_NOMEM;
  }
  if (rc < 0) err_set(e, rc, "ask the tasks of a launch: out of memory");
  if (rc == 0 && h->question.excludes.count > LAUNCH_EXCLUDES_MAX)
    rc = err_set(e, ERR_LIMIT, "at most %d `excludes` where several tasks write into one directory",
                 LAUNCH_EXCLUDES_MAX);
  if (rc == 0 && o->hidden && !(h->hidden = strdup(o->hidden)))
    rc = err_set(e, ERR_NOMEM, "ask the tasks of a launch: out of memory");
  if (rc == 0) rc = folder_make(h->io, o->home, o->launch, h->folder, e);
  if (rc == 0) rc = put(h, e);
  if (rc == 0)
    *out = h;
  else
    hub_close(h, false);
  return rc;
}

void hub_close(hub *h, bool over) {
  if (!h) return;
  h->question.over = over;
  if (over) ask(h);
  for (uint32_t i = 0; h->others && i < h->count; i++) launch_free_answer(&h->others[i].says);
  free(h->others);
  free(h->answers);
  free(h->hidden);
  launch_free_question(&h->question);
  free(h);
}
