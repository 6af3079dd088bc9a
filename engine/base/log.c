#include "log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_MAX = 10, EXAMPLE_MAX = 300 };
static const int64_t AGAIN_NS = INT64_C(3600) * 1000000000;

struct log_kind {
  struct log_kind *next;
  const char *name;
  log_level level;
  uint64_t told, counted; /* counted: since one was told */
  int64_t told_ns;        /* IO_MONO: when the last one was told */
  char example[EXAMPLE_MAX];
};

const char *log_level_name(log_level level) {
  static const char *const names[] = {"debug", "info", "warning", "error"};
  return level >= LOG_DEBUG && level <= LOG_ERROR ? names[level] : "error";
}

/* ---- counting ---- */

void log_counts_init(log_counts *c, const io *io) {
  *c = (log_counts){.io = io};
  pthread_mutex_init(&c->mutex, NULL);
}

void log_counts_free(log_counts *c) {
  for (struct log_kind *k = c->kinds, *next; k; k = next) {
    next = k->next;
    free(k);
  }
  pthread_mutex_destroy(&c->mutex);
}

/* Finds or adds a kind. The list grows no longer than the number of places in the code. NULL: no
 * memory. */
static struct log_kind *kind_of(log_counts *c, const char *name) {
  struct log_kind *k = c->kinds;
  while (k && strcmp(k->name, name) != 0) k = k->next;
  if (k) return k;
  k = calloc(1, sizeof *k);
  if (!k) return NULL;
  k->name = name;
  k->next = c->kinds;
  return c->kinds = k;
}

static void tell_counted(const log_sink *sink, const struct log_kind *k) {
  char text[EXAMPLE_MAX + 64];
  snprintf(text, sizeof text, "and %" PRIu64 " more of this kind, for example: %s", k->counted,
           k->example);
  sink->fn(sink->ctx, k->level, text);
}

/* True if this one is only counted. Otherwise *before gets the count of those before it. */
static bool is_counted(log_counts *c, struct log_kind *k, log_level level, const char *text,
                       struct log_kind *before) {
  int64_t now = c->io->now(c->io, IO_MONO);
  k->level = level;
  if (k->told >= TOLD_MAX && now - k->told_ns < AGAIN_NS) {
    if (k->counted++ == 0) snprintf(k->example, sizeof k->example, "%s", text);
    return true;
  }
  *before = *k;
  k->told++;
  k->told_ns = now;
  k->counted = 0;
  return false;
}

void log_tell(const log_sink *sink, const char *kind, log_level level, const char *text) {
  struct log_kind before = {0};
  if (!sink || !sink->fn || level < sink->min) return;
  if (sink->counts && sink->min > LOG_DEBUG && level >= LOG_WARN) {
    pthread_mutex_lock(&sink->counts->mutex);
    struct log_kind *k = kind_of(sink->counts, kind);
    bool counted = k && is_counted(sink->counts, k, level, text, &before);
    pthread_mutex_unlock(&sink->counts->mutex);
    if (counted) return;
  }
  if (before.counted) tell_counted(sink, &before);
  sink->fn(sink->ctx, level, text);
}

void log_counts_say(const log_sink *sink) {
  log_counts *c = sink->counts;
  if (!c || !sink->fn) return;
  pthread_mutex_lock(&c->mutex);
  for (struct log_kind *k = c->kinds; k; k = k->next) {
    if (k->counted) tell_counted(sink, k);
    k->counted = 0;
  }
  pthread_mutex_unlock(&c->mutex);
}

/* ---- saying ---- */

void log_say_of(const log_sink *sink, const char *kind, log_level level, const char *fmt, ...) {
  if (!sink || !sink->fn || level < sink->min) return;
  char text[2048];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  for (unsigned char *at = (unsigned char *)text; *at; at++) {
    /* U+0080 to U+009F are control characters too: a terminal takes 0xC2 0x9B for ESC [. */
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) at[0] = at[1] = '?';
    if (*at < 0x20 || *at == 0x7f) *at = '?';
  }
  log_tell(sink, kind, level, text);
}
