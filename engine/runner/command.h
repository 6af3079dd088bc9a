/* command: what the verbs that look at a target share. */
#ifndef RUNNER_COMMAND_H
#define RUNNER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"
#include "options.h"

/* An engine without threads, whose log goes to stderr. Negative: said on stderr already. The engine
 * is due to be closed in both cases. */
int command_open(ckpt **engine, const options *o);
/* The same for calls that move data: `fn` hears how far they are. */
int command_open_heard(ckpt **engine, const options *o, ckpt_progress_fn *fn, void *ctx);
/* Says the engine's last error and returns its exit code. */
int command_failed(const ckpt *engine, int status);
/* A full disk or a closed pipe must not look like a short list: the buffer is flushed and looked at
 * before all is said to have gone well. Returns the exit code. */
int command_end(int code);

int64_t command_wall_ns(void);

/* "exp/T7/checkpoint-3": by its directory in the store, as names that are saved again and again
 * have generations ("last.pt.~7"), and each can be asked for by that. Control characters are
 * escaped. */
void item_name(FILE *out, const ckpt_item *item);
/* " (2 files, 2.9 KiB)" */
void item_size(FILE *out, const ckpt_item *item);
/* The members of a JSON object, without the braces. */
void item_json(FILE *out, const ckpt_item *item);

/* Is it meant by `name`: its unit's name or its directory, each perhaps with the group before it?
 * NULL means any. */
bool item_is_asked(const ckpt_item *item, const char *name);

/* Prints the newest live checkpoint of o->name (NULL: of any) at o->uri, as `write` does it; of
 * several groups the one that was committed last. Returns the exit code. */
typedef void item_writer(FILE *out, const ckpt_item *item, void *ctx);
int command_newest(const options *o, item_writer *write, void *ctx);

/* ---- tables ---- */

enum { TABLE_COLUMNS = 8 };

/* Rows of cells; each column as wide as its widest cell. */
typedef struct table {
  const char *heads[TABLE_COLUMNS]; /* ended by NULL, if there are fewer */
  unsigned left;                    /* a bit for each column that stands left; the others right */
  char *(*rows)[TABLE_COLUMNS];
  size_t count;
  size_t size; /* of the cell that is open */
  bool failed; /* out of memory */
} table;

/* A new row with empty cells; NULL when out of memory. */
char **table_row(table *t);
/* Opens a cell to write into, one at a time; to be closed with table_close(). NULL when out of
 * memory. */
FILE *table_cell(table *t, char **row, int column);
void table_close(table *t, FILE *cell);
void table_print(const table *t, FILE *out);
void table_free(table *t);

#endif
