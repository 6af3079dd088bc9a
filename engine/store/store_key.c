#include "store_key.h"

#include <string.h>

/* One rule for all stores, or a checkpoint could be put into one and not be copied to another. "."
 * and ".." would leave the root of a file store; an empty component is one name on a disk and
 * another one in a bucket. */
int store_key_check(const char *key, err *e) {
  if (!key || !*key) return err_set(e, ERR_INVAL, "an empty key names no object");
  if (strnlen(key, STORE_KEY_MAX + 1) > STORE_KEY_MAX)
    return err_set(e, ERR_LIMIT, "the key \"%.60s...\" is longer than %d bytes", key,
                   STORE_KEY_MAX);
  for (const char *at = key;; at++) {
    size_t len = strcspn(at, "/");
    if (len == 0)
      return err_set(e, ERR_INVAL,
                     "the key \"%.200s\" has an empty component: no slash may lead, "
                     "trail or be doubled",
                     key);
    if (at[0] == '.' && (len == 1 || (len == 2 && at[1] == '.')))
      return err_set(e, ERR_INVAL, "the key \"%.200s\" has a component \"%.*s\"", key, (int)len,
                     at);
    at += len;
    if (!*at) return 0;
  }
}

/* The slash ranks below every byte, and the end of a key below the slash. */
static int rank_of(char c) {
  return c == 0 ? 0 : c == '/' ? 1 : 2 + (unsigned char)c;
}

int store_key_order(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return rank_of(*a) - rank_of(*b);
}
