/* evict: what it costs to end a job now: what is lost, and how long it takes until less is. Pure: what
 * a run knows of itself goes in, one record comes out. */
#ifndef PLAN_EVICT_H
#define PLAN_EVICT_H

#include <stdbool.h>
#include <stdint.h>

/* Times are IO_WALL; 0: there is none, or it is not known. */
typedef struct evict_facts {
  int64_t now_ns;
  int64_t started_ns;  /* since when the run watches */
  bool beside;         /* the job may have worked before that */
  int64_t complete_ns; /* when what the newest checkpoint of the target has was whole here */
  bool over;           /* nobody writes any more; */
  bool safe;           /* then: all that is wanted is in the target, */
  int64_t last_ns;     /* or this is when the newest one that is not was whole; 0: not known */
  uint32_t pending;    /* checkpoints that are complete and wanted, and not in the target, */
  double takes_s; /* and what these take by the pace of the saves before; negative: not known */
  double rests_s; /* before that, their own pace lets none begin */
  bool fenced;    /* a newer run saves there: nothing of this one's comes any more */
} evict_facts;

typedef struct evict_cost {
  int64_t lost_since_ns; /* what was worked out since then is lost by a kill; 0: nothing is */
  double lost_s;         /* seconds of work: from then until now, or until the job was over */
  double durable_in_s;   /* negative: nobody knows */
} evict_cost;

evict_cost evict_judge(const evict_facts *f);

#endif
