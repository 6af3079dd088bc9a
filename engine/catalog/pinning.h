/* pinning: pins by hand, on a checkpoint of a target. It works as a guest: no run is opened, and
 * nobody is fenced. */
#ifndef CATALOG_PINNING_H
#define CATALOG_PINNING_H

#include "asked.h"

/* Pins the newest live checkpoint that is meant for so long (0: for ever). ERR_CONFLICT: it was
 * dropped meanwhile, and there is no pin. */
int pinning_put(const asked *a, int64_t life_ns, char id[33], err *e);

/* Removes the pins that the name means: by a pin's id, or all of a checkpoint of that name. An
 * object that cannot be read as a pin can be removed by its id all the same. Returns how many went;
 * ERR_NOENT: none. */
int pinning_remove(const asked *a, err *e);

#endif
