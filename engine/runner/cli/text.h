/* text: writes values for people (sizes, ages, printable names) and for JSON.
 *
 * All of it writes to a FILE, so that a caller can collect a line in memory (open_memstream) and
 * hand it on in one piece. Nothing here can fail but the FILE itself: test it with ferror(). */
#ifndef RUNNER_CLI_TEXT_H
#define RUNNER_CLI_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Writes "0 B", "312 MiB", "1.2 GiB": three digits at most, never "1024 KiB". */
void text_size(FILE *out, uint64_t bytes);

/* Writes "3 s", "5 min", "2 h", "4 d"; "0.4 s" below ten seconds when `fine`. A negative age counts
 * as 0. */
void text_age(FILE *out, double seconds, int fine);

/* Writes nanoseconds since 1970 as RFC 3339 in UTC, without the fraction:
 * "2024-05-01T12:00:00Z". */
void text_time(FILE *out, int64_t ns);

/* Writes the text with control characters, characters that change the direction of the text, and
 * bytes that are not UTF-8 as \xNN, so that no name can end a line, speak to a terminal, or look
 * like another one. */
void text_plain(FILE *out, const char *text);

/* Does the same for a text of the library, with flags for the options that it names
 * (flags_named.h). */
void text_prose(FILE *out, const char *text);

/* Writes "key        value" with a line end, the value as text_plain() writes it. */
void text_member(FILE *out, const char *key, const char *value);

/* Writes a path for the next command: as it is, but to a terminal as text_plain() does. */
void text_path(FILE *out, const char *path);

/* Writes a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD: it is for words,
 * not for names that must come back. */
void text_json(FILE *out, const char *text);

/* Does the same for a text of the library, as text_prose() has it. */
void text_json_prose(FILE *out, const char *text);

/* Writes JSON that the engine printed, with characters escaped that are not to be shown: the same
 * values. */
void text_json_printed(FILE *out, const char *json);

/* Writes a file's name as a JSON string with its quotes, as manifests do: '%', control characters
 * and bytes that are not UTF-8 become %XX, so that each name of a Linux file system survives. */
void text_json_name(FILE *out, const char *name);

#endif
