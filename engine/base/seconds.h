/* seconds: times that people and programs give in seconds, converted to nanoseconds in this one
 * place. A number that does not fit means for ever; one that is no time is refused, never taken for
 * a default. */
#ifndef BASE_SECONDS_H
#define BASE_SECONDS_H

#include <stdint.h>

#include "err.h"

#define SECOND_NS INT64_C(1000000000)
#define SECONDS_FOREVER INT64_MAX

/* Infinity and all numbers past 292 years become SECONDS_FOREVER; more than 0 is at least 1 ns,
 * since 0 often has a meaning of its own. NaN and less than 0 are ERR_INVAL; `what` is the name of
 * the option. */
int seconds_to_ns(double seconds, const char *what, int64_t *ns, err *e);

/* Converts an option in which 0 stands for the default, which is `otherwise`. */
int seconds_or(double seconds, int64_t otherwise, const char *what, int64_t *ns, err *e);

/* Does as seconds_or, but less than 0 stands for no time at all: *ns is 0 then. */
int seconds_or_none(double seconds, int64_t otherwise, const char *what, int64_t *ns, err *e);

/* Converts back, for show. SECONDS_FOREVER is infinite. */
double seconds_of_ns(int64_t ns);

/* Returns the moment `ns` after another one; SECONDS_FOREVER: it never comes. */
int64_t seconds_later(int64_t at, int64_t ns);

/* Returns how long it is from `now` to that moment; 0: it has come. One that is too far away never comes. */
int64_t seconds_left(int64_t at, int64_t ns, int64_t now);

#endif
