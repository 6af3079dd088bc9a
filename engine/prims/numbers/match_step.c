#include "prims/numbers/match_step.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 16 };

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return isalpha((unsigned char)c) != 0;
}

static size_t digits_at(const char *at, const char *end) {
  size_t n = 0;
  while (at + n < end && is_digit(at[n])) n++;
  return n;
}

static bool is_one_of(const char *word, size_t len, const char *const *words) {
  for (; len > 0 && *words; words++)
    if (strlen(*words) == len && strncasecmp(word, *words, len) == 0) return true;
  return false;
}

/* ---- words ---- */

static const char *const steps[] = {"step", "steps", NULL};
static const char *const iterations[] = {"iter", "iters", "iteration", "iterations", "ba", NULL};
static const char *const epochs[] = {"epoch", "epochs", "ep", NULL};
static const char *const parts[] = {"rank", "shard", "part", "of", NULL};
/* What is measured, and what a job was started with. */
static const char *const others[] = {
    "loss",   "acc",    "accuracy", "auc",   "auroc",     "auprc",  "map",    "ap",   "ar",
    "iou",    "miou",   "dice",     "bleu",  "rouge",     "meteor", "cer",    "wer",  "ppl",
    "score",  "metric", "psnr",     "ssim",  "lpips",     "fid",    "mse",    "mae",  "rmse",
    "mape",   "err",    "error",    "lr",    "precision", "recall", "reward", "corr", "nll",
    "elbo",   "bpc",    "bpb",      "mrr",   "ndcg",      "return", "kappa",  "val",  "perplexity",
    "top",    "seed",   "fold",     "trial", "run",       "gpu",    "node",   "dim",  "bs",
    "worker", "stage",  "layer",    NULL};
static const char *const versions[] = {"v", "ver", "rev", "version", NULL};
/* Before a "=": what counts up. Any other name before it is that of a value. */
static const char *const counts[] = {"checkpoint", "ckpt",  "model",   "save",   "batch", "update",
                                     "updates",    "round", "samples", "tokens", NULL};
static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                     "aug", "sep", "oct", "nov", "dec", NULL};

typedef struct word {
  const char *at;
  size_t len;
  bool named; /* a "=" stands between it and the number */
} word;

/* Finds the word before a number: "step=", "step_", "step". */
static word word_before(const char *name, const char *at) {
  word w = {0};
  if (at > name && strchr("-_=.", at[-1])) w.named = *--at == '=';
  const char *begin = at;
  while (begin > name && is_letter(begin[-1])) begin--;
  w.at = begin;
  w.len = (size_t)(at - begin);
  return w;
}

/* Finds the word after a number, unless another number follows that: then it is that one's. */
static word word_after(const char *at, const char *end) {
  word w = {0};
  if (at < end && strchr("-_", *at)) at++;
  const char *over = at;
  while (over < end && is_letter(*over)) over++;
  w.at = at;
  w.len = (size_t)(over - at);
  if (over < end && strchr("-_=", *over)) over++;
  if (over < end && is_digit(*over)) w.len = 0;
  return w;
}

static bool told(const word *before, const word *after, const char *const *words) {
  return is_one_of(before->at, before->len, words) || is_one_of(after->at, after->len, words);
}

/* ---- a time of day ---- */

/* Reads exactly `width` digits that are from `low` to `high`. */
static bool field(const char **at, const char *end, int width, int low, int high) {
  int n = 0;
  if (end - *at < width) return false;
  for (int i = 0; i < width; i++) {
    if (!is_digit((*at)[i])) return false;
    n = n * 10 + ((*at)[i] - '0');
  }
  if (n < low || n > high) return false;
  *at += width;
  return true;
}

/* Passes over one of these characters; `sep` is the one that stood there, or 0. */
static bool separator(const char **at, const char *end, const char *set, char *sep) {
  bool there = *at < end && strchr(set, **at) != NULL;
  *sep = there ? **at : '\0';
  if (there) ++*at;
  return there;
}

static bool same_separator(const char **at, const char *end, char sep) {
  if (!sep) return true;
  return *at < end && *(*at)++ == sep;
}

static bool time_of_day(const char **from, const char *end, bool bare) {
  const char *at = *from;
  char sep;
  if (!field(&at, end, 2, 0, 23)) return false;
  if (!separator(&at, end, "-_:.", &sep) && !bare) return false;
  if (!field(&at, end, 2, 0, 59)) return false;
  bool clock = sep == ':';
  const char *minutes = at;
  if (same_separator(&at, end, sep) && field(&at, end, 2, 0, 60)) {
    const char *fraction = at + 1;
    if (at < end && strchr(".,", *at) && digits_at(fraction, end) > 0)
      at = fraction + digits_at(fraction, end);
  } else if (clock) {
    at = minutes;
  } else {
    return false;
  }
  at += digits_at(at, end) * (size_t)(bare && !sep); /* microseconds right behind */
  if (at < end && is_digit(*at)) return false;
  *from = at;
  return true;
}

static bool year_first(const char **from, const char *end) {
  const char *at = *from;
  char sep;
  if (!field(&at, end, 4, 1970, 2199)) return false;
  separator(&at, end, "-_.", &sep);
  if (!field(&at, end, 2, 1, 12) || !same_separator(&at, end, sep) || !field(&at, end, 2, 1, 31))
    return false;
  *from = at;
  return true;
}

static bool year_last(const char **from, const char *end) {
  const char *at = *from;
  char sep;
  if (!field(&at, end, 2, 1, 31) || !separator(&at, end, "-_.", &sep)) return false;
  if (!field(&at, end, 2, 1, 31) || !same_separator(&at, end, sep)) return false;
  if (!field(&at, end, 4, 1970, 2199)) return false;
  *from = at;
  return true;
}

/* Returns where the time of day, or the date, that begins here is over; NULL: none does. */
static const char *moment_end(const char *from, const char *end) {
  const char *at = from;
  char sep;
  if (year_first(&at, end) || year_last(&at, end)) {
    const char *day = at;
    bool apart = separator(&at, end, "T_-. ", &sep);
    if (time_of_day(&at, end, true)) return at;
    return day < end && is_digit(*day) && !apart ? NULL : day;
  }
  return time_of_day(&at, end, false) ? at : NULL;
}

/* ---- names that are no number ---- */

static bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* True for eight, four, four, four and twelve hexadecimal digits with dashes between. */
static bool is_uuid(const char *at, const char *end) {
  if (end - at < 36) return false;
  for (int i = 0; i < 36; i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? at[i] != '-' : !is_hex(at[i])) return false;
  }
  return at + 36 == end || !isalnum((unsigned char)at[36]);
}

/* Finds the digest that this digit is in: a UUID, or at least seven hexadecimal digits that change
 * between letters and numbers as no word does. */
static bool digest_at(const char *name, const char *digit, const char *end, match_number *out) {
  const char *begin = digit;
  size_t changes = 0;
  while (begin > name && isalnum((unsigned char)begin[-1])) begin--;
  const char *at = begin;
  for (; at < end && is_hex(*at); at++) changes += at > begin && is_digit(*at) != is_digit(at[-1]);
  bool uuid = is_uuid(begin, end);
  bool mixed = at - begin >= 7 && changes > 2 && (at == end || !isalnum((unsigned char)*at));
  *out = (match_number){begin, uuid ? begin + 36 : at, MATCH_NUMBER_OTHER};
  return uuid || mixed;
}

/* ---- one number ---- */

/* Returns where the decimals and the exponent behind these digits are over. */
static const char *value_end(const char *at, const char *end) {
  if (at + 1 < end && *at == '.' && is_digit(at[1])) at += 1 + digits_at(at + 1, end);
  if (at + 2 < end && (*at == 'e' || *at == 'E') && strchr("+-", at[1]) && is_digit(at[2]))
    at += 2 + digits_at(at + 2, end);
  return at;
}

static match_number_kind kind_of(const char *name, const char *begin, const char *over,
                                 const char *end) {
  word before = word_before(name, begin), after = word_after(over, end);
  bool tail =
      end - over >= 4 && (strncasecmp(over, "-of-", 4) == 0 || strncasecmp(over, "_of_", 4) == 0);
  if (is_one_of(before.at, before.len, parts) || tail) return MATCH_NUMBER_PART;
  if (told(&before, &after, steps)) return MATCH_NUMBER_STEP;
  if (told(&before, &after, iterations)) return MATCH_NUMBER_ITER;
  if (told(&before, &after, epochs)) return MATCH_NUMBER_EPOCH;
  if (!before.named && is_one_of(before.at, before.len, versions)) return MATCH_NUMBER_VERSION;
  bool value = is_one_of(before.at, before.len, others) || is_one_of(before.at, before.len, months);
  bool key = over < end && *over == '=';
  if (value || key || (before.named && !is_one_of(before.at, before.len, counts)))
    return MATCH_NUMBER_OTHER;
  bool glued = (begin > name && is_letter(begin[-1])) || (over < end && is_letter(*over));
  return glued ? MATCH_NUMBER_GLUED : MATCH_NUMBER_PLAIN;
}

static bool is_worded(match_number_kind kind) {
  return kind <= MATCH_NUMBER_EPOCH;
}

/* Takes the sign of a value that is named, too: "loss=-6.6". */
static void take_sign(const char *name, const char *over, const char *end, match_number *n) {
  if (n->begin - name < 2 || !strchr("+-", n->begin[-1]) || n->begin[-2] != '=') return;
  n->begin--;
  if (!is_worded(kind_of(name, n->begin, over, end))) n->kind = MATCH_NUMBER_OTHER;
}

static void read_number(const char *name, const char *at, const char *end, match_number *out) {
  const char *over = at + digits_at(at, end), *whole = value_end(over, end);
  *out = (match_number){at, over, kind_of(name, at, over, end)};
  if (out->kind == MATCH_NUMBER_PART) return;
  if (!is_worded(out->kind)) {
    match_number digest;
    const char *moment = moment_end(at, end);
    if (moment) {
      whole = moment;
      out->kind = MATCH_NUMBER_OTHER;
    }
    if (!moment && digest_at(name, at, end, &digest)) {
      *out = digest;
      return;
    }
  }
  if (whole > over) {
    out->end = whole;
    if (out->kind != MATCH_NUMBER_VERSION) out->kind = MATCH_NUMBER_OTHER;
  }
  take_sign(name, over, end, out);
}

/* "loss=nan" is called as the ones before it, but for the number. */
static size_t no_number_at(const char *name, const char *at, const char *end) {
  static const char *const words[] = {"nan", "inf", "-inf"};
  if (at == name || at[-1] != '=') return 0;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t len = strlen(words[i]);
    if ((size_t)(end - at) >= len && strncasecmp(at, words[i], len) == 0 &&
        (at + len == end || !isalnum((unsigned char)at[len])))
      return len;
  }
  return 0;
}

bool match_number_next(const char *name, const char *from, const char *end, match_number *out) {
  for (const char *at = from; at < end; at++) {
    size_t none = no_number_at(name, at, end);
    if (none) {
      *out = (match_number){at, at + none, MATCH_NUMBER_OTHER};
      return true;
    }
    if (!is_digit(*at)) continue;
    read_number(name, at, end, out);
    if (out->begin < from) out->begin = from;
    return true;
  }
  return false;
}

/* ---- the step ---- */

static int64_t value_of(const match_number *n) {
  int64_t value = 0;
  for (const char *at = n->begin; at < n->end; at++) {
    if (!is_digit(*at)) continue;
    int digit = *at - '0';
    if (value > (INT64_MAX - digit) / 10) return MATCH_NO_STEP;
    value = value * 10 + digit;
  }
  return value;
}

int64_t match_step_between(const char *name, const char *from, const char *end) {
  match_number n, best = {.kind = MATCH_NUMBER_PART};
  while (match_number_next(name, from, end, &n)) {
    if (n.kind < MATCH_NUMBER_PART && n.kind <= best.kind) best = n;
    from = n.end;
  }
  return best.kind < MATCH_NUMBER_PART ? value_of(&best) : MATCH_NO_STEP;
}

int64_t match_step(const char *path) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  return match_step_between(name, name, name + strlen(name));
}

bool match_numbered_between(const char *name, const char *from, const char *end) {
  match_number n;
  while (match_number_next(name, from, end, &n)) {
    if (n.kind != MATCH_NUMBER_PART && n.kind != MATCH_NUMBER_VERSION) return true;
    from = n.end;
  }
  return false;
}

/* "12.pt" and "ckpt-12.pt" count. */
static bool is_called(const char *name, const match_number *n) {
  word before = word_before(name, n->begin);
  if (n->kind == MATCH_NUMBER_PLAIN)
    return before.len > 0 && !is_one_of(before.at, before.len, counts);
  return n->kind == MATCH_NUMBER_GLUED;
}

bool match_called_between(const char *name, const char *from, const char *end) {
  match_number n;
  bool any = false;
  for (; match_number_next(name, from, end, &n); from = n.end) {
    if (n.kind == MATCH_NUMBER_PART || n.kind == MATCH_NUMBER_VERSION) continue;
    if (!is_called(name, &n)) return false;
    any = true;
  }
  return any;
}
