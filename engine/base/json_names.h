/* json_names: lists of names (names.h) in JSON. */
#ifndef BASE_JSON_NAMES_H
#define BASE_JSON_NAMES_H

#include "json.h"
#include "names.h"

/* Appends the names of a list, each of at most `room` bytes, as js_name_unescape() reads them; ERR_FORMAT
 * names `what` and `key` if something else is in it. A list that is NULL, or none, has no names. */
int js_take_names(const json_t *list, const char *key, const char *what, size_t room, names *out,
                  err *e);

#endif
