/* with_cmocka: cmocka, and the four headers that it wants before it. */
#ifndef SPEC_WITH_CMOCKA_H
#define SPEC_WITH_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A test is handed a state also where it has no fixture, and what it puts in the place of a
 * callback is handed more than it looks at. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#endif
