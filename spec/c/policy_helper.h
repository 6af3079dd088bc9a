/* policy_helper: a policy helper that does what it is told, for tests of the C side. It is the test
 * program itself, started under the name of the helper: so a test's main() begins with
 * `if (policy_helper_is_meant(argv)) return policy_helper_run();`.
 *
 * It knows which ids are loaded, as the real one does, and answers "unknown" for others. "load" is
 * answered with the text of the first file of the chain, as it stands; "ask" with the
 * member "answer" of the memory, as it stands. A text that begins with '!' is an order:
 *   !exit N     ends with this code      !abort      ends by a signal
 *   !hang       answers nothing          !spin       burns CPU time
 *   !close      closes its end, lives    !half       sends half a frame, and ends
 *   !huge       announces 2 GiB          !long N     sends N blanks
 *   !extra      answers {"ok":true} and then says more
 *   !settings   answers {"ok":true,"notes":[the settings as text],"options":[..]}
 *   !forget     drops all, as if there were too many, and answers {"ok":true,"answer":"skip"}
 *   !remember   answers {"ok":true,"answer":null,"memory":the event}
 * "check" is answered with {"ok":true}, or as the member "note" of what was loaded says: a text behind
 * "//". */
#ifndef SPEC_POLICY_HELPER_H
#define SPEC_POLICY_HELPER_H

#include <stdbool.h>

#include "base/json.h"
#include "decision/policy.h"

bool policy_helper_is_meant(char **argv);
int policy_helper_run(void);
/* Reads what stands packed behind a question, a list as a member of the event. A new reference. */
json_t *policy_helper_event(const char *about, size_t len);
/* Makes DIR/ckpt-policy, which is this program. */
void policy_helper_install(const char *dir);

enum { POLICY_WORLD_MAX = 64 };

/* A link to such a helper, and what was logged (each line ends with a line end). */
typedef struct policy_world {
  char *dir;
  policy_link *link;
  log_sink log;
  buf lines;
  unsigned warnings;
  policy *opened[POLICY_WORLD_MAX]; /* by policy_world_must */
  size_t count;
} policy_world;
policy_world *policy_world_new(void);
void policy_world_free(policy_world *w);
/* The fixture of a test whose state is such a world. */
int policy_world_set_up(void **state);
int policy_world_tear_down(void **state);
#define IN_POLICY_WORLD(test)                                                                      \
  cmocka_unit_test_setup_teardown(test, policy_world_set_up, policy_world_tear_down)

/* Opens a chain of one file, "p.lua", with this text: what the helper answers to "load". `more`
 * (may be NULL) has the rest of the options. */
int policy_world_open(policy_world *w, const char *text, const policy_options *more, policy **out,
                      err *e);
/* Open a policy and fail the test if that fails. The world closes it. */
policy *policy_world_must(policy_world *w, const char *text);
policy *policy_world_with(policy_world *w, const char *text, const policy_options *more);
/* {"answer":TEXT}: a memory by which the helper answers just this. The caller frees it. */
char *policy_world_memory(const char *text);

#endif
