#include "links.h"

#include <string.h>

#include "runner/cli/text.h"

static const char *member(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

void links_write(FILE *out, const char *head, const json_t *links, uint64_t count) {
  enum { SHOWN = 10 };
  size_t i = 0;
  for (; i < json_array_size(links) && i < SHOWN; i++) {
    const json_t *link = json_array_get(links, i);
    fputs(head, out);
    text_prose(out, member(link, "name"));
    fputs(" -> ", out);
    text_prose(out, member(link, "target"));
    fprintf(out, ": leads %s, and what is there was not saved\n", member(link, "leads"));
  }
  if (count > i) fprintf(out, "%s%llu more\n", head, (unsigned long long)(count - i));
}

void links_write_text(FILE *out, const char *head, const char *text, uint64_t count) {
  json_t *links = NULL;
  if (count > 0 && js_parse(text, strlen(text), "links", &links, NULL) == 0)
    links_write(out, head, links, count);
  json_decref(links);
}
