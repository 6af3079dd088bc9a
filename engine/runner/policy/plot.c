#include "plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "runner/cli/report.h"

/* ---- what is taken in ---- */

void plot_span(plot *p, double t) {
  if (!p->begun || t < p->first) p->first = t;
  if (!p->begun || t > p->last) p->last = t;
  p->begun = true;
}

static plot_lane *lane_of(plot *p, const ckpt_moment *m) {
  while (p->lane_count <= m->of) {
    if (!VEC_ROOM(p->lanes, p->lane_count, p->lane_room)) return NULL;
    p->lanes[p->lane_count++] = (plot_lane){0};
  }
  plot_lane *lane = &p->lanes[m->of];
  if (!lane->name) lane->name = strdup(m->trial);
  return lane->name ? lane : NULL;
}

static bool take_made(plot *p, plot_lane *lane, const ckpt_moment *m) {
  if (!VEC_ROOM(p->marks, p->mark_count, p->mark_room)) return false;
  const bool named = lane->made++ < PLOT_ROWS;
  plot_mark *mark = &p->marks[p->mark_count++];
  *mark = (plot_mark){
      .made = m->t, .saved = -1, .gone = -1, .name = named ? strdup(m->name) : NULL, .lane = m->of};
  return mark->name || !named;
}

static bool take_lost(plot *p, plot_lane *lane, const ckpt_moment *m) {
  lane->losses++;
  lane->lost_s += m->lost_s;
  if (p->loss_count == PLOT_LOSSES_ALL) { /* crashes times trials: no file bounds them */
    p->forgotten++;
    return true;
  }
  if (!VEC_ROOM(p->losses, p->loss_count, p->loss_room)) return false;
  p->losses[p->loss_count++] = (plot_loss){.t = m->t, .lost_s = m->lost_s, .lane = m->of};
  return true;
}

static bool take(plot *p, const ckpt_moment *m) {
  plot_lane *lane = lane_of(p, m);
  if (!lane) return false;
  if (m->what == CKPT_MADE) return take_made(p, lane, m);
  if (m->what == CKPT_LOST) return take_lost(p, lane, m);
  if (m->checkpoint == 0 || m->checkpoint > p->mark_count) return true;
  plot_mark *mark = &p->marks[m->checkpoint - 1];
  if (m->what == CKPT_WANTED) mark->wanted = true;
  if (m->what == CKPT_SAVED) {
    mark->saved = m->t;
    lane->saved++;
  }
  if (m->what == CKPT_LET_GO) {
    mark->gone = m->t;
    lane->gone++;
  }
  return true;
}

void plot_take(void *ctx, const ckpt_moment *moment) {
  plot *p = ctx;
  plot_span(p, moment->t);
  if (!p->failed && !take(p, moment)) p->failed = true;
}

void plot_free(plot *p) {
  for (size_t i = 0; i < p->mark_count; i++) free(p->marks[i].name);
  for (size_t i = 0; i < p->lane_count; i++) free(p->lanes[i].name);
  free(p->marks);
  free(p->losses);
  free(p->lanes);
  *p = (plot){0};
}

/* ---- the file ---- */

static bool fails(const char *path, const char *what) {
  report_error("--plot %s: %s: %s; name a file in a directory that can be written to", path, what,
               strerror(errno));
  return false;
}

static bool refuses(const char *path, const char *why) {
  report_error("--plot %s: %s", path, why);
  return false;
}

/* Returns where it is written, to be freed: of a link what it leads to is replaced, not the link. */
static char *place_of(const char *path) {
  char *place = realpath(path, NULL);
  return place ? place : strdup(path);
}

static char *parent_of(const char *place) {
  const char *slash = strrchr(place, '/');
  if (!slash) return strdup(".");
  return strndup(place, slash == place ? 1 : (size_t)(slash - place));
}

/* A wrong word must not cost the events, nor a policy: what is there has to be a picture, or empty. */
static bool can_be_replaced(const char *path) {
  FILE *f = fopen(path, "re");
  if (!f) return errno == ENOENT || fails(path, "what is there cannot be read");
  const int first = fgetc(f);
  const bool good = first == '<' || (first == EOF && !ferror(f));
  fclose(f);
  return good ||
         refuses(path, "what is there is no picture; remove it first, or name another file");
}

bool plot_can_write(const char *path) {
  struct stat st;
  if (strcmp(path, "-") == 0)
    return refuses(path, "a picture is not written to the output; name a file");
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
    return refuses(path, "that is no file; name one that is to be made or replaced");
  if (!can_be_replaced(path)) return false;
  char *place = place_of(path), *dir = place ? parent_of(place) : NULL;
  const bool good = dir && access(dir, W_OK | X_OK) == 0;
  if (!good) fails(path, "no file can be made there");
  free(dir);
  free(place);
  return good;
}

/* Draws it into a file, which is closed. */
static bool fill(const plot *p, const plot_head *head, int fd) {
  FILE *out = fdopen(fd, "w");
  if (!out) {
    close(fd);
    return false;
  }
  const mode_t mask = umask(0);
  umask(mask);
  const bool drawn = plot_draw(p, head, out);
  const bool good =
      drawn && !ferror(out) && fflush(out) == 0 && fsync(fd) == 0 && fchmod(fd, 0666 & ~mask) == 0;
  return fclose(out) == 0 && good;
}

/* Returns the name, in the making, of a file beside `place`, to be freed: a short one, as that of
 * `place` may be as long as a name may be. NULL: out of memory. */
static char *fresh_beside(const char *place) {
  char *dir = parent_of(place), *fresh = NULL;
  if (!dir || asprintf(&fresh, "%s/.plot.XXXXXX", dir) < 0) fresh = NULL;
  free(dir);
  return fresh;
}

/* Makes `fresh` into `place` in one piece. False: errno says why, and nothing of it stays. */
static bool replace(const plot *p, const plot_head *head, char *fresh, const char *place) {
  const int fd = mkstemp(fresh);
  if (fd < 0) return false;
  if (fill(p, head, fd) && rename(fresh, place) == 0) return true;
  const int why = errno;
  unlink(fresh);
  errno = why;
  return false;
}

bool plot_write(const plot *p, const plot_head *head, const char *path) {
  char *place = p->failed ? NULL : place_of(path), *fresh = place ? fresh_beside(place) : NULL;
  if (!fresh) {
    free(place);
    return refuses(path, "out of memory");
  }
  const bool good = replace(p, head, fresh, place) || fails(path, "it cannot be written");
  free(fresh);
  free(place);
  return good;
}
