/* number: doubles as JSON text that reads well: the shortest that is the same number again. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include "base/buf.h"

enum { NUMBER_MAX = 40 };

/* Prints a finite number: 2.7, 100000.0, 1e-5, never 2.7000000000000002. It has a point or an
 * exponent, so it stays a real, and a point whatever the locale. */
void number_print(double value, char out[NUMBER_MAX]);

/* Copies JSON text, each real in it printed so. The text is valid and has no blanks. */
void number_shorten(const char *json, size_t len, buf *out);

/* Copies JSON as Python writes it: NaN, Infinity and -Infinity, which are none, become texts of that
 * name. What else is wrong with it stays so. */
void number_spell(const char *json, size_t len, buf *out);

/* The other way round: true if a text is one of those names. */
int number_spelt(const char *text, double *out);

#endif
