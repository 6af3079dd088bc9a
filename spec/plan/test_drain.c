#include "with_cmocka.h"

#include <string.h>

#include "base/err.h"
#include "plan/drain.h"

/* A case is a line of checkpoints: a letter for what each is, then its kind; those of one kind are
 * written oldest first. */
typedef struct one_case {
  const char *units; /* W waits, S stored, N unwanted, O open, L left, F failed, G gone */
  int end;
  bool over;
  int status, late; /* place from 1; 0: none */
} one_case;

#define T ERR_TIMEOUT

static const one_case cases[] = {
    /* nothing is complete, or all is there */
    {"", 0, true, 0, 0},
    {"S1", 0, true, 0, 0},
    {"S1 S2", 0, true, 0, 0},
    {"O1", 0, true, 0, 0},
    {"N1", 0, true, 0, 0},
    {"S1 N1 O1", 0, true, 0, 0},
    /* what waits is waited for, an older one, too, until time is up */
    {"W1", 0, false, 0, 1},
    {"W1 S1", 0, false, 0, 0},
    {"W1", T, true, T, 1},
    {"W1 S1", T, true, 0, 0},
    {"S1 W1", T, true, T, 2},
    {"S1 W2", T, true, T, 2},
    {"W1", ERR_FENCED, true, ERR_FENCED, 1},
    {"S1", ERR_FENCED, true, 0, 0},
    /* of several kinds each counts, and the newest that is late is named */
    {"W1 S1 W2", T, true, T, 3},
    {"W2 W1", T, true, T, 2},
    /* what comes to nothing */
    {"F1", 0, true, ERR_NOSPACE, 1},
    {"F1 S1", 0, true, 0, 0},
    {"L1 S2", 0, true, T, 1},
    {"L1 S1", 0, true, 0, 0},
    {"G1", 0, true, ERR_RETIRED, 1},
    {"S1 G1", 0, true, 0, 0},
    {"W1 G1", T, true, T, 1},
    {"W1 N1", T, true, T, 1},
};

static size_t read_case(const char *text, drain_unit *units) {
  static const char letters[] = "?WSNOLFG";
  static const char *const kinds[] = {"a", "b"};
  size_t n = 0;
  for (const char *p = text; *p; p += p[2] ? 3 : 2, n++)
    units[n] = (drain_unit){.is = (drain_is)(strchr(letters, *p) - letters),
                            .status = *p == 'F' ? ERR_NOSPACE : 0,
                            .group = units,
                            .series = kinds[p[1] - '1'],
                            .made_ns = 7,
                            .step = (int64_t)n};
  return n;
}

static void the_newest_of_each_kind_that_is_wanted_has_to_be_durable(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const one_case *c = &cases[i];
    drain_unit units[8];
    drain_answer a = drain_judge(units, read_case(c->units, units), c->end);
    if (a.over != c->over || a.status != c->status || a.late != c->late - 1)
      fail_msg("\"%s\", %d: over %d, status %d, late %td", c->units, c->end, a.over, a.status,
               a.late + 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_newest_of_each_kind_that_is_wanted_has_to_be_durable),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
