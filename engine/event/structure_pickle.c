#include <string.h>

#include "structure_format.h"

/* Walks the opcodes of a pickle from PROTO to STOP. The large payloads (tensors, arrays) are jumped
 * over, so that little is read; past WALK_MAX the question stays open. */
enum { WALK_MAX = 4 << 20 };

typedef enum pickle_step { STEP_ON, STEP_STOP, STEP_CUT, STEP_ODD } pickle_step;

/* Reads the next `bytes` bytes as a number; 1, 0 past the end, or an error. */
static int number(format_window *w, int bytes, uint64_t *out) {
  *out = 0;
  for (int i = 0; i < bytes; i++) {
    uint8_t b;
    int rc = format_byte(w, &b);
    if (rc <= 0) return rc;
    *out |= (uint64_t)b << (8 * i);
  }
  return 1;
}

static int skip_line(format_window *w) {
  for (uint64_t c = 0; c != '\n';) {
    int rc = number(w, 1, &c);
    if (rc <= 0) return rc;
  }
  return 1;
}

/* Returns the width of a length that stands in front of the opcode's payload; 0: it has none. */
static int length_width(int op) {
  if (strchr("U\x8c\x8a"
             "C",
             op))
    return 1;
  if (strchr("TXB\x8b", op)) return 4;
  return op == 0x8d || op == 0x8e || op == 0x96 ? 8 : 0;
}

static int fixed_width(int op) {
  if (strchr("Kqh\x80\x82", op)) return 1;
  if (strchr("M\x83", op)) return 2;
  if (strchr("Jrj\x84", op)) return 4;
  return op == 'G' || op == 0x95 ? 8 : -1;
}

/* True for opcodes without an argument. */
static bool is_bare(int op) {
  return strchr("(012NQRabde]lost)u}\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", op);
}

static int one_opcode(format_window *w, pickle_step *step) {
  uint64_t op, n;
  int rc = number(w, 1, &op);
  *step = STEP_ON;
  if (rc > 0 && op == '.') {
    *step = STEP_STOP;
    return 1;
  }
  if (rc > 0 && op == 0) {
    *step = STEP_ODD;
  } else if (rc > 0 && length_width((int)op)) {
    rc = number(w, length_width((int)op), &n);
    if (rc > 0) rc = format_skip(w, n);
  } else if (rc > 0 && fixed_width((int)op) > 0) {
    rc = format_skip(w, (uint64_t)fixed_width((int)op));
  } else if (rc > 0 && strchr("FILVSPgp", (int)op)) {
    rc = skip_line(w);
  } else if (rc > 0 && (op == 'c' || op == 'i')) {
    rc = skip_line(w);
    if (rc > 0) rc = skip_line(w);
  } else if (rc > 0 && !is_bare((int)op)) {
    *step = STEP_ODD;
  }
  if (rc == 0) *step = STEP_CUT;
  return rc < 0 ? rc : 1;
}

int format_pickle(format_file *f) {
  format_window w = {.f = f};
  uint8_t last;
  int rc = format_read(f, f->size - 1, &last, 1);
  pickle_step step = STEP_ON;
  while (rc >= 0 && step == STEP_ON && w.read < WALK_MAX) rc = one_opcode(&w, &step);
  if (rc < 0) return rc;
  if (step == STEP_STOP && w.at == f->size)
    return format_says(f, STRUCTURE_SOUND, "pickle: ends with STOP");
  /* joblib puts raw arrays between the opcodes: then the walk proves nothing, and the last byte,
   * which is a STOP in each whole pickle, has to do. */
  if (step == STEP_CUT && last != '.')
    return format_says(f, STRUCTURE_TORN, "pickle: it breaks off");
  return format_says(f, STRUCTURE_UNKNOWN, "pickle: of a kind apart");
}
