/* store_file: what the parts of the file store share. store_file.c finds, reads, lists and removes;
 * store_file_put.c makes; store_file_tmp.c knows what was never finished. Nobody else includes
 * this. */
#ifndef STORE_STORE_FILE_H
#define STORE_STORE_FILE_H

#include <pthread.h>
#include <sys/stat.h>

#include "store.h"
#include "prims/fs.h"
#include "prims/fs_held.h"

/* Where unfinished objects lie, below the root. No listing shows it and no key may name it. */
#define FILE_STORE_TMP ".ckpt/tmp"

typedef struct file_store {
  store base; /* its io follows no link below the root */
  fs_held *held;
  char root[FS_PATH_MAX];
  pthread_mutex_t guard;
  char flushed[FS_PATH_MAX]; /* under guard: the directory that was last made durable, or "" */
} file_store;

/* What lies at a key. */
typedef struct spot {
  char path[FS_PATH_MAX];
  struct stat st; /* st_mode 0: nothing is there */
  bool blocked;   /* a component above it is a file */
} spot;

/* The door of every call: refuses what is no key here, and links on the way (ERR_INVAL), and finds
 * what lies at the key. That nothing is there is no error. */
int file_locate(store *base, const char *key, spot *at, err *e);

/* To be called when directories below the root may have gone: they are flushed anew when they are
 * made again. */
void file_forget_flushed(file_store *s);

/* Removes what was cut of the staged objects below a prefix. Fine if there is nothing. */
int file_remove_unfinished(file_store *s, const char *prefix, err *e);

/* The writing half of the vtable. */
int file_put(store *base, const char *key, const void *data, size_t len, store_how how, err *e);
int file_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                    store_writer **out, err *e);
int file_write(store_writer *writer, const void *data, size_t len, err *e);
int file_write_close(store_writer *writer, err *e);
void file_write_abort(store_writer *writer);
int file_publish(store *base, const char *from, const char *to, err *e);
int file_flush(store *base, const char *prefix, err *e);

/* Tags: store_file_tag.c. */
int file_get(store *base, const char *key, buf *out, err *e);
int file_get_tagged(store *base, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e);
int file_replace_if(store *base, const char *key, const void *data, size_t len, const char *tag,
                    err *e);

/* Leftovers: store_file_tmp.c. */
int file_unfinished(store *base, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e);
int file_discard(store *base, const store_unfinished *what, err *e);

#endif
