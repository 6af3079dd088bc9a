/* tmpdir: a scratch directory for a test, and small files in it. For tests: everything here aborts
 * with a message when it fails. It does not use the code under test. */
#ifndef SPEC_TMPDIR_H
#define SPEC_TMPDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A new directory in $TMPDIR, else /tmp; or in `where`. The caller hands it to tmpdir_remove(). */
char *tmpdir_new(void);
char *tmpdir_new_in(const char *where);
/* Removes it with everything in it, read-only directories too, and frees the name. NULL is fine. */
void tmpdir_remove(char *dir);

/* The fixture of a test whose state is such a directory. */
int tmpdir_set_up(void **state);
int tmpdir_tear_down(void **state);
#define IN_A_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, tmpdir_set_up, tmpdir_tear_down)

/* dir + "/" + name. Static memory: the last 8 results are good, in each thread. */
const char *tmpdir_path(const char *dir, const char *name);

void write_file(const char *path, const char *text);
void write_bytes(const char *path, const void *data, size_t len);
/* In place of what the file has, of the same length, and its times stay: who reads it sees it. */
void write_unnoticed(const char *path, const void *data, size_t len);
/* `len` bytes that depend on `seed`. The caller frees them. */
char *make_pattern(size_t len, unsigned seed);
void write_pattern(const char *path, size_t len, unsigned seed);
void make_dir(const char *path);

/* The whole file, with a NUL behind it; NULL if there is none. The caller frees it. */
char *read_file(const char *path, size_t *len);
bool file_is(const char *path, const char *text);
bool files_equal(const char *a, const char *b);
bool path_exists(const char *path); /* a dangling link exists */
mode_t path_mode(const char *path); /* permission bits, of a link itself */

/* Counts the entries of a directory, without "." and "..". */
int count_entries(const char *dir);
/* Counts the descriptors that this process has open. */
int count_fds(void);

#endif
