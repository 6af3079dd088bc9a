/* The entry of libFuzzer: one program for all targets, FUZZ_TARGET says which. */
#include "targets.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz_target *target;
  if (!target) {
    const char *name = getenv("FUZZ_TARGET");
    target = name ? fuzz_find(name) : NULL;
    if (!target) {
      fprintf(stderr, "FUZZ_TARGET names one of:");
      for (size_t i = 0; fuzz_name(i); i++) fprintf(stderr, " %s", fuzz_name(i));
      fprintf(stderr, "\n");
      exit(2);
    }
  }
  target(data, size);
  return 0;
}
