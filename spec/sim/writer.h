/* writer: one rank of a launch, as far as it begins and saves. */
#ifndef SPEC_SIM_WRITER_H
#define SPEC_SIM_WRITER_H

#include "commit/group.h"
#include "sim.h"

struct job;
typedef struct writer writer;
struct writer {
  actor *a;
  const launch_plan *plan;
  ranks ranks;
  group_env env;
  group group;
  uint64_t resumed;
  int64_t renewed;
  /* Told of each try that has ended, while its process lives; NULL: nobody is. */
  void (*on_end)(writer *w, const struct job *j, int64_t begun, int64_t paused);
};

/* Whether it goes on trying after this. */
bool writer_note_failure(const actor *a, int rc, const err *e);
void writer_open(writer *w, actor *a);
int writer_begin(writer *w);
/* As the run queue does it: the same unit again, while it is worth it. */
int writer_save(writer *w, const saved_unit *u, unsigned version);

#endif
