/* links: the links of a checkpoint that lead out of it or nowhere, as `show` and `verify` name
 * them. */
#ifndef RUNNER_VERBS_LINKS_H
#define RUNNER_VERBS_LINKS_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

/* Writes the first few, a line each after `head`, and how many more there are. `links` is the
 * library's array of them. */
void links_write(FILE *out, const char *head, const json_t *links, uint64_t count);
/* Does the same for its text. */
void links_write_text(FILE *out, const char *head, const char *text, uint64_t count);

#endif
