/* store_replace: what every store promises of objects that are replaced: in a stream, and by one of
 * several who saw the same content. */
#ifndef SPEC_STORE_REPLACE_H
#define SPEC_STORE_REPLACE_H

/* As store_suite(). */
int store_replace_suite(const char *scheme);

#endif
