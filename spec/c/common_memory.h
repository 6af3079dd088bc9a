/* common_memory: looks for secrets in the memory of this process that a core file would have. For
 * tests. */
#ifndef SPEC_COMMON_MEMORY_H
#define SPEC_COMMON_MEMORY_H

/* Each byte of a text that is looked for is given with these bits changed, since it would be found
 * in itself. */
enum { COMMON_MEMORY_CHANGED = 0x15 };

/* Counts the places where the text stands in memory that can be written, but for what is marked to
 * stay out of core files. */
int common_memory_has(const char *changed);

#endif
