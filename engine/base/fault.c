#include "fault.h"

#ifdef CKPT_FAULTS
#include <stdlib.h>
#include <string.h>

bool fault_chosen(const char *name) {
  const char *chosen = getenv("CKPT_FAULT");
  return chosen && strcmp(chosen, name) == 0;
}
#else
/* ISO C wants something in each file. */
typedef int fault_none;
#endif
