/* durations: reads times, shares and sizes as they are typed. */
#ifndef RUNNER_CLI_DURATIONS_H
#define RUNNER_CLI_DURATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Reads "2.5" (seconds), "30s", "5m", "24h", "7d", "inf" (without end). False for anything else. A
 * time that is too long for the engine has no end either: the engine sees to that. */
bool duration_read(const char *text, double *seconds);

/* Reads "25%" or "0.25": above 0, at most 1. A whole number above 0 is neither: false. */
bool share_read(const char *text, double *share);

/* Reads "500", "20GiB", "20G", "1.5MiB": bytes, by powers of 1024. False for anything else, for 0,
 * and for a number that does not fit 63 bits. */
bool size_read(const char *text, uint64_t *bytes);

#endif
