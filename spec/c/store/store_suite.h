/* store_suite: what every store promises, whichever it is. */
#ifndef SPEC_STORE_SUITE_H
#define SPEC_STORE_SUITE_H

/* Runs the suite, as a group of cmocka, on fresh stores of that scheme. How many tests failed. */
int store_suite(const char *scheme);

#endif
