#include "ready.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char ready_stem[] = "ready.";
static const char ready_head[] = "ckpt-ready 1", failed_head[] = "ckpt-failed 1";

/* A launch id may have any bytes; the part that can stand in a name, and a sum of all of them. */
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
  char name[200];
  ready_name(launch, name, sizeof name);
  return snprintf(out, room, "%s/%s", state, name) < (int)room ? 0 : -ENAMETOOLONG;
}

/* An earlier launch has ended, or is being pushed aside by us. */
static void forget_others(const char *state, const char *path) {
  char other[PATH_MAX];
  DIR *d = opendir(state);
  struct dirent *entry;
  while (d && (entry = readdir(d))) {
    if (strncmp(entry->d_name, ready_stem, sizeof ready_stem - 1) != 0) continue;
    if (snprintf(other, sizeof other, "%s/%s", state, entry->d_name) >= (int)sizeof other) continue;
    if (strcmp(other, path) != 0) unlink(other); /* litter, if it stays */
  }
  if (d) closedir(d);
}

/* Three texts, each with its NUL: paths may have any other byte. */
static int write_texts(const char *path, const char *const texts[3]) {
  FILE *f = fopen(path, "we");
  if (!f) return -errno;
  for (int i = 0; i < 3; i++) {
    fputs(texts[i] ? texts[i] : "", f);
    fputc(0, f);
  }
  bool bad = fflush(f) != 0 || fsync(fileno(f)) != 0;
  int error = bad ? errno : 0;
  if (fclose(f) != 0 && !bad) error = errno;
  return -error;
}

static int put_texts(const char *path, const char *const texts[3]) {
  char tmp[PATH_MAX + 8];
  snprintf(tmp, sizeof tmp, "%s.new", path);
  int rc = write_texts(tmp, texts);
  if (rc == 0 && rename(tmp, path) != 0) rc = -errno;
  if (rc < 0) unlink(tmp);
  return rc;
}

int ready_say(const char *state, const char *launch, const char *resume,
              const char *restored_from) {
  char path[PATH_MAX];
  int rc = ready_path(state, launch, path, sizeof path);
  if (rc < 0) return rc;
  forget_others(state, path);
  return put_texts(path, (const char *const[3]){ready_head, resume, restored_from});
}

/* Others stay: whoever could not begin may have been refused beside a launch that is alive. */
int ready_fail(const char *state, const char *launch, int code) {
  char path[PATH_MAX], text[16];
  int rc = ready_path(state, launch, path, sizeof path);
  snprintf(text, sizeof text, "%d", code);
  return rc < 0 ? rc : put_texts(path, (const char *const[3]){failed_head, text, NULL});
}

void ready_forget(const char *state, const char *launch) {
  char path[PATH_MAX];
  if (ready_path(state, launch, path, sizeof path) == 0) unlink(path); /* mostly it is not there */
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

int ready_read(const char *state, const char *launch, ready *out) {
  char path[PATH_MAX];
  bool bad = false;
  *out = (ready){0};
  int rc = ready_path(state, launch, path, sizeof path);
  if (rc < 0) return rc;
  FILE *f = fopen(path, "re");
  if (!f) return errno == ENOENT || errno == ENOTDIR || errno == ESTALE ? 0 : -errno;
  char *head = next_text(f, &bad);
  out->resume = next_text(f, &bad);
  out->restored_from = next_text(f, &bad);
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
  *r = (ready){0};
}
