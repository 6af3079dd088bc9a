/* text: how values are written for people (sizes, ages, printable names) and for JSON.
 *
 * All of it writes to a FILE, so that a caller can collect a line in memory (open_memstream) and
 * hand it on in one piece. Nothing here can fail but the FILE itself: test it with ferror(). */
#ifndef RUNNER_TEXT_H
#define RUNNER_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* "0 B", "312 MiB", "1.2 GiB": three digits at most, never "1024 KiB". */
void text_size(FILE *out, uint64_t bytes);

/* "3 s", "5 min", "2 h", "4 d"; "0.4 s" below ten seconds when `fine`. Negative counts as 0. */
void text_age(FILE *out, double seconds, int fine);

/* Nanoseconds since 1970 as RFC 3339 in UTC, without the fraction: "2024-05-01T12:00:00Z". */
void text_time(FILE *out, int64_t ns);

/* The text with control characters, those that turn the direction of what is read, and bytes that
 * are not UTF-8 as \xNN, so that no name can end a line, speak to a terminal, or show as another.
 */
void text_plain(FILE *out, const char *text);

/* A path for the next command: as it is, but to a terminal text_plain(). */
void text_path(FILE *out, const char *path);

/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD: for words, not for names
 * that must come back. */
void text_json(FILE *out, const char *text);

/* JSON that the engine printed, with what is not to be shown escaped: the same values. */
void text_json_printed(FILE *out, const char *json);

/* A file's name as a JSON string with its quotes, as manifests write it: '%', control characters
 * and bytes that are not UTF-8 become %XX, so that each name of a Linux file system survives. */
void text_json_name(FILE *out, const char *name);

#endif
