/* The stores that need nobody else. */
#include "store_replace.h"
#include "store_suite.h"

int main(void) {
  return store_suite("file") + store_suite("mem") + store_replace_suite("file") +
         store_replace_suite("mem");
}
