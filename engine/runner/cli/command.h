/* command: functions that the verbs share which look at a target. */
#ifndef RUNNER_CLI_COMMAND_H
#define RUNNER_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ckpt.h"
#include "options.h"
#include "record.h"

/* Opens an engine without threads, whose log goes to stderr. Negative: it was said on stderr
 * already. The caller closes the engine in both cases. */
int command_open(ckpt **engine, const options *o);
/* Does the same for calls that move data: `fn` hears how far they are. */
int command_open_heard(ckpt **engine, const options *o, ckpt_progress_fn *fn, void *ctx);
/* Says the engine's last error and returns its exit code. */
int command_failed(const ckpt *engine, int status);
/* Ends a verb: says the engine's last error if `status` is one, and closes it. Returns the exit
 * code, which is `code` if all went well. */
int command_close(ckpt *engine, int status, int code);
/* Flushes the buffer and checks it, since a full disk or a closed pipe must not look like a short
 * list. Returns the exit code. */
int command_end(int code);

int64_t command_wall_ns(void);

/* Writes "exp/T7/checkpoint-3": by its directory in the store, as names that are saved again and
 * again have generations ("last.pt.~7"), and each can be asked for by that. Control characters are
 * escaped. */
void item_name(FILE *out, const ckpt_item *item);
/* Writes " (2 files, 2.9 KiB)". */
void item_size(FILE *out, const ckpt_item *item);
/* Tells each of the other checkpoints that it names. */
typedef void item_need(void *ctx, const char *name);
void item_each_need(const ckpt_item *item, item_need *fn, void *ctx);
/* Adds everything that is known of it; the second one ends the line with that. */
void item_json(record *r, const ckpt_item *item);
void item_json_line(record *r, const ckpt_item *item);

/* True if `name` means it: its unit's name or its directory, each perhaps with the group before it.
 * NULL means any. */
bool item_is_asked(const ckpt_item *item, const char *name);

/* Prints the newest live checkpoint of o->name (NULL: of any) at o->uri, as `write` does it; of
 * several groups the one that was committed last. Returns the exit code. */
typedef void item_writer(FILE *out, const ckpt_item *item, void *ctx);
int command_newest(const options *o, item_writer *write, void *ctx);

/* ---- tables ---- */

enum { TABLE_COLUMNS = 8 };

/* Rows of cells; each column as wide as its widest cell. It stays where it is from its first row on:
 * the stream writes into it. */
typedef struct table {
  const char *heads[TABLE_COLUMNS]; /* ended by NULL, if there are fewer */
  unsigned left;                    /* a bit for each column that stands left; the others right */
  FILE *cells;                      /* of all rows, one after the other, each ended by NUL */
  char *text;                       /* what is written there */
  size_t size;
  size_t count;
  bool failed; /* out of memory */
} table;

/* Adds a row, of which `write` writes each cell. */
typedef void cell_writer(FILE *out, int column, const void *ctx);
void table_add(table *t, cell_writer *write, const void *ctx);
void table_print(const table *t, FILE *out);
void table_free(table *t);

#endif
