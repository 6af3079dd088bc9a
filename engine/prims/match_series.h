/* match_series: tells which names are saves of one kind. */
#ifndef PRIMS_MATCH_SERIES_H
#define PRIMS_MATCH_SERIES_H

#include <stdbool.h>
#include <stddef.h>

/* Turns "checkpoint-12" into "checkpoint-#", which is the same for all saves of one kind. */
void match_series(const char *unit_name, char *out, size_t len);
/* True if both names are of one kind. */
bool match_same_series(const char *unit_name, const char *other);

#endif
