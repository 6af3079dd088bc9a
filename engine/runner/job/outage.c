#include "outage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runner/cli/flags_named.h"
#include "runner/cli/report.h"
#include "runner/cli/text.h"

enum { EVERY_S = 45 };

void outage_init(outage *o) {
  *o = (outage){.next_at = INFINITY};
}

bool outage_take(outage *o, const ckpt_completion *c, double now, double *after) {
  bool failure = c->kind == CKPT_RETRYING && (c->status == CKPT_EIO || c->status == CKPT_ETIMEOUT);
  if (after) *after = 0;
  if (failure) {
    bool first = !o->on;
    if (first) {
      o->on = true;
      o->since = now;
      o->next_at = now + EVERY_S;
    }
    snprintf(o->reason, sizeof o->reason, "%s", c->reason ? c->reason : "");
    return first;
  }
  if (c->kind != CKPT_COMMITTED || !o->on) return true;
  if (after) *after = now - o->since;
  outage_init(o);
  return true;
}

bool outage_due(outage *o, double now, unsigned pending) {
  if (now < o->next_at) return false;
  o->next_at = now + EVERY_S;
  if (pending > 0) return true;
  outage_init(o); /* nobody waits for its end */
  return false;
}

static char *age_of(double seconds) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  if (!f) return NULL;
  text_age(f, seconds, 0);
  if (fclose(f) == 0) return text;
  free(text);
  return NULL;
}

void outage_say(const outage *o, double now, unsigned pending) {
  char *age = age_of(now - o->since), *reason = flags_named(o->reason);
  report_warning("saving has failed for %s, and is tried again; %u checkpoint%s wait%s: %s",
                 age ? age : "a while", pending, pending == 1 ? "" : "s", pending == 1 ? "s" : "",
                 reason ? reason : o->reason);
  free(age);
  free(reason);
}

void outage_say_over(double after) {
  char *age = age_of(after);
  report_info("saving works again, after %s", age ? age : "a while");
  free(age);
}
