#include "holding.h"

#include <stdlib.h>
#include <string.h>

bool holding_name(const char *name, int64_t *time_s) {
  enum { DIGITS_MAX = 18, NONCE = 8 };
  size_t digits = strspn(name, "0123456789");
  if (digits == 0 || digits > DIGITS_MAX || name[digits] != '-') return false;
  const char *nonce = name + digits + 1;
  if (strlen(nonce) != NONCE || strspn(nonce, "0123456789abcdef") != NONCE) return false;
  *time_s = 0;
  for (size_t i = 0; i < digits; i++) *time_s = *time_s * 10 + (name[i] - '0');
  return true;
}

static int latest_first(const void *a, const void *b) {
  const holding *x = a, *y = b;
  int kind = strcmp(x->kind, y->kind);
  if (kind != 0) return kind;
  if (x->time_s != y->time_s) return x->time_s > y->time_s ? -1 : 1;
  return strcmp(x->name, y->name);
}

void holdings_judge(holding *all, size_t count, int64_t now_s) {
  size_t later = 0;
  if (count > 0) qsort(all, count, sizeof *all, latest_first);
  for (size_t i = 0; i < count; i++) {
    later = i > 0 && strcmp(all[i].kind, all[i - 1].kind) == 0 ? later + 1 : 0;
    const bool old = all[i].time_s <= now_s && now_s - all[i].time_s > HOLDING_AGE_S;
    all[i].due = old || later >= HOLDING_GENERATIONS;
  }
}
