/* xml: reads the answers of object stores, with expat: no entities, no external parts, bounded
 * depth and size. */
#ifndef STORE_AWS_XML_H
#define STORE_AWS_XML_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Called at the end of each element that has no child elements, with its path
 * ("ListBucketResult/Contents/Key") and its text (any bytes but NUL, ended by NUL), and at the end
 * of each other one with text NULL. Returns 0 to go on; another value ends the walk and is
 * returned. */
typedef int xml_fn(void *ctx, const char *path, const char *text);
/* Walks a document. ERR_FORMAT with the line, for a text that is no XML, is nested deeper than 16,
 * or has a DTD. `what` names it in errors. */
int xml_walk(const char *text, size_t len, const char *what, xml_fn *fn, void *ctx, err *e);
/* The same of a text with keys in it: it all happens in the memory of base/secret.h. */
int xml_walk_secret(const char *text, size_t len, const char *what, xml_fn *fn, void *ctx, err *e);

/* Appends `text` with & < > " escaped. */
void xml_escape(const char *text, buf *out);

#endif
