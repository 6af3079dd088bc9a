/* detect_same: is what a detector knows what a new one finds? For tests. */
#ifndef SPEC_DETECT_SAME_H
#define SPEC_DETECT_SAME_H

#include "event/detect.h"

/* Lists the tree anew and compares the units: paths, kinds, number of files, and the bytes of
 * those that are complete (the others' are as of the last look). NULL if they are the same, or what
 * is not; static memory. The detector must be idle. */
const char *detect_same(detect *d, const char *root, const rules *rules);

#endif
