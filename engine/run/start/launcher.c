/* launcher: what a task cannot read is taken at its default: a file of settings of mpirun's, torchrun's
 * command line. */
#include "launcher.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct reading {
  launcher_getenv *get;
  void *ctx;
} reading;

static const char *text_of(const reading *r, const char *name) {
  const char *text = r->get(r->ctx, name);
  return text && *text ? text : NULL;
}

/* Reads a number of seconds. What is none is what the launcher does without it; below 0 no time is left. */
static bool seconds_of(const reading *r, const char *name, double *out) {
  const char *text = text_of(r, name);
  char *end = NULL;
  long number = text ? strtol(text, &end, 10) : 0;
  if (!text || end == text || *end) return false;
  *out = number < 0 ? 0 : (double)number;
  return true;
}

/* Up to version 4 mpirun hands its parameters on to the tasks. Version 5, whose daemons are PRRTE's, has no
 * such parameter, and waits a quarter of a second. */
static double mpirun(const reading *r, const char **who) {
  double seconds = 1;
  if (text_of(r, "PRTE_LAUNCHED")) {
    *who = "mpirun kills it then";
    return 0.25;
  }
  *who = "mpirun kills it then, --mca odls_base_sigkill_timeout 60 gives it more";
  seconds_of(r, "OMPI_MCA_odls_base_sigkill_timeout", &seconds);
  return seconds;
}

static double torchrun(const reading *r, const char **who) {
  double seconds = 30;
  *who = "torchrun kills it then, TORCH_ELASTIC_SHUTDOWN_TIMEOUT gives it more";
  if (!seconds_of(r, "PET_SHUTDOWN_TIMEOUT", &seconds))
    seconds_of(r, "TORCH_ELASTIC_SHUTDOWN_TIMEOUT", &seconds);
  return seconds;
}

double launcher_patience(launcher_getenv *get, void *ctx, char *who, size_t room) {
  const reading r = {get, ctx};
  double least = -1;
  const char *said = "", *here;
  if (text_of(&r, "OMPI_COMM_WORLD_RANK")) {
    least = mpirun(&r, &said);
  }
  if (text_of(&r, "TORCHELASTIC_RUN_ID")) {
    double seconds = torchrun(&r, &here);
    if (least < 0 || seconds < least) {
      least = seconds;
      said = here;
    }
  }
  if (room) snprintf(who, room, "%s", said);
  return least;
}
