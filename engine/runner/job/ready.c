#include "ready.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "prims/proc.h"
#include "state_dir.h"

enum { NAME_ROOM = 200, TEXTS = 7 };

static const char ready_stem[] = "ready.";
static const char ready_head[] = "ckpt-ready 1", failed_head[] = "ckpt-failed 1";

/* Makes the file's name. A launch id may have any bytes; the name has the part that can stand in
 * one, and a sum of all of them. */
static void ready_name(const char *launch, char *out, size_t room) {
  enum { SHOWN = 100 };
  uint64_t sum = UINT64_C(14695981039346656037); /* FNV-1a */
  char shown[SHOWN + 1];
  size_t len = 0;
  for (const char *at = launch; *at; at++) {
    sum = (sum ^ (unsigned char)*at) * UINT64_C(1099511628211);
    if (len < SHOWN) shown[len++] = isalnum((unsigned char)*at) ? *at : '-';
  }
  shown[len] = 0;
  snprintf(out, room, "%s%s.%016llx", ready_stem, shown, (unsigned long long)sum);
}

static int ready_path(const char *state, const char *launch, char *out, size_t room) {
  char name[NAME_ROOM];
  ready_name(launch, name, sizeof name);
  return snprintf(out, room, "%s/%s", state, name) < (int)room ? 0 : -ENAMETOOLONG;
}

/* Removes files of earlier launches: each has ended, or is being pushed aside by us. */
static void forget_others(int state, const char *name) {
  int fd = openat(state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (fd >= 0 && !d) close(fd);
  struct dirent *entry;
  while (d && (entry = readdir(d)))
    if (strncmp(entry->d_name, ready_stem, sizeof ready_stem - 1) == 0 &&
        strcmp(entry->d_name, name) != 0)
      unlinkat(state, entry->d_name, 0); /* if it stays, it is litter */
  if (d) closedir(d);
}

/* Writes each text with its NUL: paths may have any other byte. */
static int write_texts(int state, const char *name, const char *const texts[TEXTS]) {
  FILE *f;
  int rc = state_dir_create(state, name, 0666, &f);
  if (rc < 0) return rc;
  for (int i = 0; i < TEXTS; i++) {
    fputs(texts[i] ? texts[i] : "", f);
    fputc(0, f);
  }
  return state_dir_finish(f);
}

static int put_texts(int state, const char *name, const char *const texts[TEXTS]) {
  char tmp[NAME_ROOM + 8];
  snprintf(tmp, sizeof tmp, "%s.new", name);
  int rc = write_texts(state, tmp, texts);
  if (rc == 0 && renameat(state, tmp, state, name) != 0) rc = -errno;
  if (rc < 0) unlinkat(state, tmp, 0);
  return rc;
}

/* A link in its place is the user's word, for all who see it. */
bool ready_beside(const char *dir, const char *state, char *out) {
  char path[PATH_MAX], real[PATH_MAX];
  struct stat st;
  if (!realpath(dir, real) || snprintf(path, sizeof path, "%s.ckpt", real) >= (int)sizeof path)
    return false;
  return realpath(path, out) && stat(out, &st) == 0 && S_ISDIR(st.st_mode) &&
         strcmp(out, state) != 0;
}

bool ready_place(const char *dir, char real[PATH_MAX], char place[READY_PLACE_MAX]) {
  char boot[PROC_BOOT_MAX];
  struct stat st;
  if (!realpath(dir, real) || stat(real, &st) != 0 || proc_boot_id(boot, NULL) < 0) return false;
  snprintf(place, READY_PLACE_MAX, "%s %ju %ju", boot, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
  return true;
}

bool ready_is_of_another(const ready *r, const char *dir) {
  char real[PATH_MAX], place[READY_PLACE_MAX];
  if (!r->dir || !r->place || !ready_place(dir, real, place) || strcmp(real, r->dir) == 0)
    return false;
  const char *number = strrchr(place, ' '), *theirs = strrchr(r->place, ' ');
  return number && theirs && number - place == theirs - r->place &&
         strncmp(place, r->place, (size_t)(number - place)) == 0 && strcmp(number, theirs) != 0;
}

int ready_say(const char *at, const char *launch, const ready *says) {
  char name[NAME_ROOM];
  int dir = state_dir_open(at);
  if (dir < 0) return dir;
  ready_name(launch, name, sizeof name);
  forget_others(dir, name);
  int rc = put_texts(dir, name,
                     (const char *const[TEXTS]){ready_head, says->resume, says->restored_from,
                                                says->state, says->dir, says->place,
                                                says->asks ? "asks" : NULL});
  close(dir);
  return rc;
}

/* The files of other launches stay: a task that could not begin may have been refused beside a
 * launch that is alive. */
int ready_fail(const char *at, const char *launch, int code) {
  char name[NAME_ROOM], text[16];
  int dir = state_dir_open(at);
  if (dir < 0) return dir;
  ready_name(launch, name, sizeof name);
  snprintf(text, sizeof text, "%d", code);
  int rc = put_texts(dir, name, (const char *const[TEXTS]){failed_head, text});
  close(dir);
  return rc;
}

void ready_forget(const char *at, const char *launch) {
  char name[NAME_ROOM];
  int dir = state_dir_open(at);
  if (dir < 0) return;
  ready_name(launch, name, sizeof name);
  unlinkat(dir, name, 0); /* mostly it is not there */
  close(dir);
}

static char *next_text(FILE *f, bool *bad) {
  char *text = NULL;
  size_t room = 0;
  ssize_t len = getdelim(&text, &room, 0, f);
  if (len > 1 && text[len - 1] == 0) return text;
  if (len != 1 || *text) *bad = true; /* only the empty one is "none" */
  free(text);
  return NULL;
}

int ready_read(const char *at, const char *launch, ready *out) {
  char path[PATH_MAX];
  bool bad = false, short_one = false;
  *out = (ready){0};
  int rc = ready_path(at, launch, path, sizeof path);
  if (rc < 0) return rc;
  FILE *f = fopen(path, "re");
  if (!f) return errno == ENOENT || errno == ENOTDIR || errno == ESTALE ? 0 : -errno;
  char *head = next_text(f, &bad);
  out->resume = next_text(f, &bad);
  out->restored_from = next_text(f, &bad);
  out->state = next_text(f, &bad);
  out->dir = next_text(f, &short_one); /* earlier versions end before it */
  out->place = next_text(f, &short_one);
  char *asks = next_text(f, &short_one);
  out->asks = asks && strcmp(asks, "asks") == 0;
  free(asks);
  bool failed = head && strcmp(head, failed_head) == 0;
  if (failed && out->resume) out->failed = atoi(out->resume);
  bad = bad || !head || (failed ? out->failed < 1 : strcmp(head, ready_head) != 0);
  free(head);
  fclose(f);
  if (!bad) return 1;
  ready_free(out);
  return -EBADMSG;
}

void ready_free(ready *r) {
  free(r->resume);
  free(r->restored_from);
  free(r->state);
  free(r->dir);
  free(r->place);
  *r = (ready){0};
}
