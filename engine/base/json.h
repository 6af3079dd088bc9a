/* json: the one home of jansson, with getters that say which key of which document is wrong.
 *
 * All getters take the name of the document (`what`) for their error text. Integers are exact
 * 64-bit; a number with a fraction is no integer. Strings that are returned belong to the value. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/* Parses one whole document (duplicate keys, trailing bytes and a depth over 64 are refused). *out
 * is a new reference: json_decref() it. ERR_LIMIT, before anything is allocated, for a text whose
 * tree would take more than JS_WEIGHT_MAX bytes: a text of brackets alone takes a hundred times its
 * size, and others wrote it. */
#define JS_WEIGHT_MAX ((size_t)64 << 20)
int js_parse(const char *text, size_t len, const char *what, json_t **out, err *e);

/* js_parse() of a text with keys or tokens in it, of at most JS_SECRET_MAX bytes (ERR_LIMIT): the tree
 * is in the memory of secret.h, and so is what jansson needs on its way. The error shows nothing of
 * the text. */
enum { JS_SECRET_MAX = 32 << 10 };
int js_parse_secret(const char *text, size_t len, const char *what, json_t **out, err *e);
/* js_print() of such a tree, into a secret buffer. */
int js_print_secret(const json_t *value, buf *out, err *e);

/* Makes the first check of js_parse() alone, for callers that parse in another way. */
int js_weigh(const char *text, size_t len, const char *what, err *e);

/* Parses without that check, for documents with larger bounds of their own: call js_check_weight()
 * first. */
int js_parse_large(const char *text, size_t len, const char *what, json_t **out, err *e);

/* ERR_LIMIT if the text has more than `nests` objects and arrays, or more than `values` commas. */
int js_check_weight(const char *text, size_t len, size_t nests, size_t values, const char *what,
                    err *e);

/* Appends the compact form with sorted keys: equal values print equal bytes. Reals are as short as
 * they can be. */
int js_print(const json_t *value, buf *out, err *e);
/* The same with 17 digits of each real, as 1.0 printed them: for digests. */
int js_print_in_full(const json_t *value, buf *out, err *e);

/* Sets a member. jansson takes a NULL value, of which there was no memory, for an error: all of them
 * add up in *bad, which is looked at once, at the end. */
void js_set(json_t *object, const char *key, json_t *value, int *bad);

/* js_parse() of a buffer, and js_check_reader(). *out may be set on failure, too. */
int js_read(const buf *text, const char *what, int64_t known, json_t **out, err *e);

/* Required members of an object. ERR_FORMAT names `what` and `key` if it is absent or of another
 * type. */
int js_get_str(const json_t *object, const char *key, const char *what, const char **out, err *e);
int js_get_int(const json_t *object, const char *key, const char *what, int64_t *out, err *e);
int js_get_array(const json_t *object, const char *key, const char *what, json_t **out, err *e);

/* These read optional members: the default if it is absent, ERR_FORMAT if it is of another type. */
int js_opt_str(const json_t *object, const char *key, const char *what, const char *otherwise,
               const char **out, err *e);
int js_opt_int(const json_t *object, const char *key, const char *what, int64_t otherwise,
               int64_t *out, err *e);
int js_opt_bool(const json_t *object, const char *key, const char *what, bool otherwise, bool *out,
                err *e);

/* Copies a string into a fixed array; ERR_FORMAT if it does not fit. */
int js_copy_str(const json_t *object, const char *key, const char *what, char *out, size_t room,
                err *e);

/* A file's name stands in JSON as a string in which bytes that are not UTF-8, control characters
 * and '%' become %XX, so that every name of a Linux file system survives the trip. Unescaping
 * returns ERR_FORMAT for a broken escape or an escaped NUL. */
void js_name_escape(const char *name, buf *out);
int js_name_unescape(const char *text, buf *out, err *e);

/* Appends a text for people, cut to at most `max` bytes of whole characters, so that it can stand
 * in JSON and on a terminal: characters that are not to be shown (base/shown.h) become a space, a
 * byte that is not UTF-8 "?". */
void js_plain(const char *text, size_t max, buf *out);

/* Returns the escaped name as a new JSON string; NULL when out of memory. */
json_t *js_name_new(const char *name);
/* Reads a required member that is such a name, unescaped. *out is the caller's to free(). */
int js_get_name(const json_t *object, const char *key, const char *what, char **out, err *e);

/* Looks at "format" and "reader" of one of our documents: ERR_FORMAT if it has none, ERR_VERSION
 * if it needs a reader above `known`. */
int js_check_reader(const json_t *object, const char *what, int64_t known, err *e);

#endif
