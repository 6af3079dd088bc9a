#include "waiting.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run/wait/ticker.h"

struct waiting {
  ticker *ticker;
  const log_sink *sink;
  int64_t every_ns;
  char *what;
};

static void tell(void *ctx, uint64_t n) {
  const waiting *w = ctx;
  log_say(w->sink, LOG_WARN, "still waiting after %" PRId64 " s: %s",
          (int64_t)n * w->every_ns / 1000000000, w->what);
}

waiting *waiting_begin(const log_sink *sink, int64_t every_ns, const char *what) {
  waiting *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  *w = (waiting){.sink = sink, .every_ns = every_ns, .what = strdup(what)};
  if (w->what && ticker_begin(every_ns, tell, w, &w->ticker, NULL) == 0) return w;
  waiting_end(w);
  return NULL;
}

void waiting_end(waiting *w) {
  if (!w) return;
  ticker_end(w->ticker);
  free(w->what);
  free(w);
}
