/* store_file: declarations that the parts of the file store share. store_file.c finds, reads, lists
 * and removes; store_file_put.c makes objects; store_file_tag.c replaces them by their tags;
 * store_file_tmp.c knows the unfinished ones. Nobody else includes this. */
#ifndef STORE_STORE_FILE_H
#define STORE_STORE_FILE_H

#include <pthread.h>
#include <sys/stat.h>

#include "store.h"
#include "prims/fs.h"
#include "prims/fs_held.h"

/* Unfinished objects lie here, below the root. No listing shows it and no key may name it. */
#define FILE_STORE_TMP ".ckpt/tmp"

typedef struct file_store {
  store base; /* its io follows no link below the root */
  fs_held *held;
  char root[FS_PATH_MAX];
  pthread_mutex_t guard;
  char flushed[FS_PATH_MAX]; /* under guard: the directory that was last made durable, or "" */
} file_store;

/* The file at a key. */
typedef struct spot {
  char path[FS_PATH_MAX];
  struct stat st; /* st_mode 0: nothing is there */
  bool blocked;   /* a component above it is a file */
} spot;

/* Begins every call: refuses a text that is no key here, and links on the way (ERR_INVAL), and
 * finds the file at the key. If nothing is there, that is no error. */
int file_locate(store *base, const char *key, spot *at, err *e);

/* Must be called when directories below the root may have gone: they are flushed anew when they are
 * made again. */
void file_forget_flushed(file_store *s);

/* Removes the unfinished files of the staged objects below a prefix. It is fine if there are
 * none. */
int file_remove_unfinished(file_store *s, const char *prefix, err *e);

/* These are the writing half of the vtable (store_file_put.c). */
int file_put(store *base, const char *key, const void *data, size_t len, store_how how, err *e);
int file_write_open(store *base, const char *key, uint64_t size, unsigned how, atomic_int *cancel,
                    store_writer **out, err *e);
int file_write(store_writer *writer, const void *data, size_t len, err *e);
int file_write_close(store_writer *writer, err *e);
void file_write_abort(store_writer *writer);
int file_publish(store *base, const char *from, const char *to, err *e);
int file_flush(store *base, const char *prefix, err *e);

/* These are for tags (store_file_tag.c). */
int file_get(store *base, const char *key, buf *out, err *e);
int file_get_tagged(store *base, const char *key, buf *out, char tag[STORE_TAG_MAX], err *e);
int file_replace_if(store *base, const char *key, const void *data, size_t len, const char *tag,
                    err *e);

/* These are for unfinished objects (store_file_tmp.c). */
int file_unfinished(store *base, const char *prefix, store_unfinished_fn *fn, void *ctx, err *e);
int file_discard(store *base, const store_unfinished *what, err *e);

#endif
