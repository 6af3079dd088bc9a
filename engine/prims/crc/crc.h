/* crc: CRC-32C (Castagnoli) and CRC64NVME, which no library of ours has. Object stores compute the
 * same, so bytes can be compared with what stands there without being read back. They find accidents;
 * they do not hinder one who makes other bytes with an equal sum.
 *
 * The sum of no bytes is 0, and crc32c(crc32c(0, a), b) is the sum of a and b together. Processors
 * with a carry-less product take 16 or 32 bytes at a time; others go by tables. */
#ifndef PRIMS_CRC_CRC_H
#define PRIMS_CRC_CRC_H

#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t before, const void *data, size_t len);
uint64_t crc64nvme(uint64_t before, const void *data, size_t len);

/* Makes the sum of two pieces together from theirs; `len` is of the second one. */
uint64_t crc64nvme_join(uint64_t first, uint64_t second, uint64_t len);

/* For tests: sets which of its ways it may go, as far as the processor has them. */
typedef enum crc_ways { CRC_TABLES, CRC_PRODUCTS, CRC_ALL } crc_ways;
void crc_allow(crc_ways ways);

#endif
