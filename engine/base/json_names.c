#include "json_names.h"

int js_take_names(const json_t *list, const char *key, const char *what, size_t room, names *out,
                  err *e) {
  int rc = 0;
  for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
    const char *text = json_string_value(json_array_get(list, i));
    buf name;
    buf_init(&name, room);
    rc = text ? js_name_unescape(text, &name, e)
              : err_set(e, ERR_FORMAT, "%s: \"%s\" is no list of names", what, key);
    if (rc == 0 && !names_add(out, name.data ? name.data : ""))
      rc = err_set(e, ERR_NOMEM, "%s: out of memory", what);
    buf_free(&name);
  }
  return rc;
}
