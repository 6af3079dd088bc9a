#include "xml.h"

#include <stdbool.h>
#include <string.h>

#include <expat.h>

#include "base/secret.h"

enum {
  DEPTH_MAX = 16,
  PATH_ROOM = 1024,
  TEXT_MAX = 1 << 20,
  ANSWER_MAX = 64 << 20,
  SECRET_MAX = 64 << 10
};

typedef struct walk {
  XML_Parser parser;
  xml_fn *fn;
  void *ctx;
  char path[PATH_ROOM];
  size_t ends[DEPTH_MAX + 1]; /* how long the path is at each depth */
  unsigned depth;
  bool leaf;       /* the innermost open element has no child so far */
  buf text;        /* of it */
  const char *why; /* the document is refused */
  int code;
  int verdict; /* what fn returned, to end the walk */
} walk;

static void refuse(walk *w, int code, const char *why) {
  if (!w->why) {
    w->why = why;
    w->code = code;
  }
  XML_StopParser(w->parser, XML_FALSE);
}

static void on_start(void *arg, const char *name, const char **attributes) {
  walk *w = arg;
  (void)attributes;
  if (w->why) return;
  size_t len = strlen(name), at = w->ends[w->depth];
  if (w->depth == DEPTH_MAX) {
    refuse(w, ERR_FORMAT, "its elements are nested too deep");
    return;
  }
  if (at + 1 + len >= PATH_ROOM) {
    refuse(w, ERR_FORMAT, "the names of its elements are too long");
    return;
  }
  if (at) w->path[at++] = '/';
  memcpy(w->path + at, name, len + 1);
  w->ends[++w->depth] = at + len;
  w->leaf = true;
  buf_clear(&w->text);
}

static void on_end(void *arg, const char *name) {
  walk *w = arg;
  (void)name;
  if (w->why || w->verdict) return;
  if (w->leaf && !w->text.data) buf_add(&w->text, "", 0);
  if (buf_failed(&w->text)) {
    refuse(w, ERR_NOMEM, "no memory for a text in it");
    return;
  }
  w->verdict = w->fn(w->ctx, w->path, w->leaf ? w->text.data : NULL);
  if (w->verdict) XML_StopParser(w->parser, XML_FALSE);
  w->path[w->ends[--w->depth]] = 0;
  w->leaf = false;
}

static void on_text(void *arg, const char *text, int len) {
  walk *w = arg;
  /* Between the children of an element there are only line ends and indents. */
  if (w->why || !w->leaf) return;
  buf_add(&w->text, text, (size_t)len);
  if (buf_failed(&w->text) == ERR_LIMIT) refuse(w, ERR_FORMAT, "a text in it is too long");
  if (buf_failed(&w->text) == ERR_NOMEM) refuse(w, ERR_NOMEM, "no memory for a text in it");
}

/* A DTD is refused: entities come from it, which grow a kilobyte into a gigabyte or name files. */
static void on_dtd(void *arg, const char *name, const char *system, const char *public, int own) {
  (void)name, (void)system, (void)public, (void)own;
  refuse(arg, ERR_FORMAT, "it has a DTD");
}

static int walk_text(walk w, const char *text, size_t len, const char *what, err *e) {
  if (!w.parser) return err_set(e, ERR_NOMEM, "%s: no memory to read XML", what);
  XML_SetUserData(w.parser, &w);
  XML_SetElementHandler(w.parser, on_start, on_end);
  XML_SetCharacterDataHandler(w.parser, on_text);
  XML_SetStartDoctypeDeclHandler(w.parser, on_dtd);
  bool good = XML_Parse(w.parser, text, (int)len, 1) == XML_STATUS_OK;
  int rc = w.verdict;
  unsigned long line = XML_GetCurrentLineNumber(w.parser);
  enum XML_Error error = XML_GetErrorCode(w.parser);
  if (w.why) {
    rc = err_set(e, w.code, "%s is not to be read as XML, line %lu: %s", what, line, w.why);
  } else if (!rc && !good) {
    rc = err_set(e, error == XML_ERROR_NO_MEMORY ? ERR_NOMEM : ERR_FORMAT,
                 "%s is not XML, line %lu: %s", what, line, XML_ErrorString(error));
  }
  buf_free(&w.text);
  XML_ParserFree(w.parser);
  return rc;
}

int xml_walk(const char *text, size_t len, const char *what, xml_fn *fn, void *ctx, err *e) {
  if (len > ANSWER_MAX)
    return err_set(e, ERR_LIMIT, "%s: %zu bytes of XML are more than are read", what, len);
  walk w = {.parser = XML_ParserCreate(NULL), .fn = fn, .ctx = ctx};
  buf_init(&w.text, TEXT_MAX);
  return walk_text(w, text, len, what, e);
}

int xml_walk_secret(const char *text, size_t len, const char *what, xml_fn *fn, void *ctx, err *e) {
  static const XML_Memory_Handling_Suite memory = {secret_alloc, secret_resize, secret_free};
  if (len > SECRET_MAX)
    return err_set(e, ERR_LIMIT, "%s: %zu bytes of XML are more than are read", what, len);
  walk w = {.parser = XML_ParserCreate_MM(NULL, &memory, NULL), .fn = fn, .ctx = ctx};
  buf_init_secret(&w.text, SECRET_MAX);
  return walk_text(w, text, len, what, e);
}

void xml_escape(const char *text, buf *out) {
  for (; *text; text++) {
    switch (*text) {
    case '&': buf_str(out, "&amp;"); break;
    case '<': buf_str(out, "&lt;"); break;
    case '>': buf_str(out, "&gt;"); break;
    case '"': buf_str(out, "&quot;"); break;
    /* A reader would make a line feed or a space of a raw one. */
    case '\r': buf_str(out, "&#13;"); break;
    case '\n': buf_str(out, "&#10;"); break;
    case '\t': buf_str(out, "&#9;"); break;
    default: buf_add(out, text, 1);
    }
  }
}
