/* fault: rules of the engine that a test program leaves out, to see that the judge notices.
 *
 * Only `make FAULTS=yes` compiles them in, into a build of its own. Elsewhere FAULT() is false, the
 * compiler drops what hangs on it, and no name of a fault is in the program: spec/judge holds what
 * is built and installed to that. A fault has one name and stands where its rule is kept. */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

#ifdef CKPT_FAULTS
/* True if CKPT_FAULT in the environment is this name. */
bool fault_chosen(const char *name);
#define FAULT(name) fault_chosen(name)
#else
#define FAULT(name) false
#endif

#endif
