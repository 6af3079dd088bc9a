#include "flags_named.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *typed;
} table[] = {
    {"all", "--all"},
    {"alone", "--alone"},
    {"collect", "ckpt-lua gc"},
    {"collect.remove", "gc --remove"},
    {"continue_run", "--continue-run"},
    {"dir", "--dir"},
    {"excludes", "--exclude"},
    {"fresh", "--fresh"},
    {"in_place_every", "--in-place-every"},
    {"launch", "--launch-id"},
    {"list", "ckpt-lua ls"},
    {"mark", "ckpt-lua mark"},
    {"named", "--restore"},
    {"no_delete", "--no-delete"},
    {"notify", "ckpt-lua notify"},
    {"owns_dir", "--owns-dir"},
    {"policies", "-p"},
    {"rank", "--rank"},
    {"rank_wait", "--rank-wait"},
    {"reload", "ckpt-lua policy reload"},
    {"remove", "ckpt-lua rm"},
    {"repair", "ckpt-lua repair"},
    {"restore", "--restore"},
    {"run_id", "--run"},
    {"settle", "--settle"},
    {"show", "ckpt-lua show --json"},
    {"single_writer", "--single-writer"},
    {"restore_parts", "--restore-parts"},
    {"start_anyway", "--start-anyway"},
    {"start_wait", "--start-wait"},
    {"state", "--state"},
    {"take_over", "--take-over"},
    {"tasks", "--tasks"},
    {"to", "--to"},
    {"trust", "--trust"},
    {"unpin", "ckpt-lua unpin"},
    {"verify", "ckpt-lua verify"},
    {"wait_lease", "--wait-lease"},
    {"world", "--world"},
};

/* A name of ours stands between blanks or marks, never within a word: a file may be called x`list`. */
static bool is_apart(const char *before, const char *after) {
  return strchr(" (", *before) && (!*after || strchr(" .,:;)", *after));
}

/* What is typed for the name at `text`, which begins with a backquote; NULL: it is none of ours. */
static const char *typed_for(const char *text, size_t *len) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    size_t n = strlen(table[i].name);
    if (strncmp(text + 1, table[i].name, n) != 0 || text[1 + n] != '`') continue;
    *len = n + 2;
    return table[i].typed;
  }
  return NULL;
}

char *flags_named(const char *text) {
  char *out = NULL;
  size_t size = 0, len;
  FILE *f = open_memstream(&out, &size);
  if (!f) return NULL;
  for (const char *p = text; *p;) {
    const char *typed = *p == '`' ? typed_for(p, &len) : NULL;
    if (typed && is_apart(p == text ? " " : p - 1, p + len))
      fputs(typed, f);
    else
      fwrite(p, typed ? len : 1, 1, f);
    p += typed ? len : 1;
  }
  if (fclose(f) == 0) return out;
  free(out);
  return NULL;
}
