#include "crc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

/* Both are reflected: bit i of a word of 64 stands for x^(63 - i), and the first byte comes first.
 * CRC-32C is counted in the low half of such a word: as a remainder it has x^31 in bit 0. */
static const uint64_t poly[] = {UINT64_C(0x82f63b78), UINT64_C(0x9a6c9329ac4bc9b5)};
static const int width[] = {32, 64};
typedef enum kind { CRC_32C, CRC_64NVME } kind;

enum { SLICES = 8, LANE = 16, LANES = 8, STRIDE = LANE * LANES, FOLD_MIN = 2 * STRIDE };
enum { WIDE = 32, WIDES = 8, WIDE_STRIDE = WIDE * WIDES, WIDE_MIN = 1024 };

static struct {
  uint64_t slices[SLICES][256];
  /* What the halves of 16 bytes are multiplied with to be moved over one lane, or over a stride. */
  uint64_t by_lane[2], by_stride[2], by_wide_stride[2];
} tables[2];
static pthread_once_t made = PTHREAD_ONCE_INIT;
static _Atomic crc_ways allowed = CRC_ALL;
static bool has_product, has_wide_product;

/* ---- by tables ---- */

/* Multiplies by x. */
static uint64_t times_x(kind k, uint64_t a) {
  return a >> 1 ^ (a & 1 ? poly[k] : 0);
}

static uint64_t times(kind k, uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  for (int bit = width[k] - 1; bit >= 0; bit--) { /* from x^0 on */
    if (a >> bit & 1) sum ^= b;
    b = times_x(k, b);
  }
  return sum;
}

/* x^n modulo the polynomial. */
static uint64_t x_to(kind k, uint64_t n) {
  uint64_t one = UINT64_C(1) << (width[k] - 1), power = times_x(k, one), sum = one;
  for (; n; n >>= 1) {
    if (n & 1) sum = times(k, sum, power);
    power = times(k, power, power);
  }
  return sum;
}

/* The same as a whole word: the product of two words comes out one bit short. */
static uint64_t folder(kind k, uint64_t bits) {
  return x_to(k, bits - 1) << (64 - width[k]);
}

/* The first half of 16 bytes is 64 bits further from the end than the second. */
static void make_folders(kind k, unsigned bytes, uint64_t out[2]) {
  out[0] = folder(k, 8 * (uint64_t)bytes + 64);
  out[1] = folder(k, 8 * (uint64_t)bytes);
}

static void make_tables(void) {
  for (kind k = CRC_32C; k <= CRC_64NVME; k++) {
    for (unsigned byte = 0; byte < 256; byte++) {
      uint64_t sum = byte;
      for (int bit = 0; bit < 8; bit++) sum = times_x(k, sum);
      tables[k].slices[0][byte] = sum;
    }
    for (int i = 1; i < SLICES; i++)
      for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t sum = tables[k].slices[i - 1][byte];
        tables[k].slices[i][byte] = sum >> 8 ^ tables[k].slices[0][sum & 255];
      }
    make_folders(k, LANE, tables[k].by_lane);
    make_folders(k, STRIDE, tables[k].by_stride);
    make_folders(k, WIDE_STRIDE, tables[k].by_wide_stride);
  }
#if defined __x86_64__
  has_product = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse2");
  has_wide_product =
      has_product && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
#endif
}

static uint64_t load(const unsigned char *at) {
  uint64_t sum = 0;
  for (int i = 0; i < 8; i++) sum |= (uint64_t)at[i] << 8 * i;
  return sum;
}

static uint64_t by_tables(kind k, uint64_t sum, const unsigned char *at, size_t len) {
  const uint64_t(*slices)[256] = tables[k].slices;
  for (; len >= SLICES; at += SLICES, len -= SLICES) {
    uint64_t word = sum ^ load(at);
    sum = 0;
    for (int i = 0; i < SLICES; i++) sum ^= slices[SLICES - 1 - i][word >> 8 * i & 255];
  }
  for (; len; at++, len--) sum = sum >> 8 ^ slices[0][(sum ^ *at) & 255];
  return sum;
}

/* ---- by products ---- */

#if defined __x86_64__
#include <immintrin.h>

#define PRODUCTS __attribute__((target("pclmul,sse2")))
#define WIDE_PRODUCTS __attribute__((target("avx2,vpclmulqdq")))

/* Moves 16 bytes further from the end, to where the next 16 are. */
PRODUCTS static __m128i fold(__m128i lane, __m128i by, __m128i next) {
  __m128i first = _mm_clmulepi64_si128(lane, by, 0x00);
  __m128i second = _mm_clmulepi64_si128(lane, by, 0x11);
  return _mm_xor_si128(next, _mm_xor_si128(first, second));
}

PRODUCTS static __m128i lane_at(const unsigned char *at) {
  return _mm_loadu_si128((const __m128i *)(const void *)at);
}

PRODUCTS static __m128i factors(const uint64_t by[2]) {
  return _mm_set_epi64x((long long)by[1], (long long)by[0]);
}

/* Makes the remainder of lanes that lie side by side: folded into one, and tables do the rest. */
PRODUCTS static uint64_t reduce(kind k, const __m128i *lanes, int count) {
  const __m128i by = factors(tables[k].by_lane);
  unsigned char left[LANE];
  __m128i one = lanes[0];
  for (int i = 1; i < count; i++) one = fold(one, by, lanes[i]);
  _mm_storeu_si128((__m128i *)(void *)left, one);
  return by_tables(k, 0, left, sizeof left);
}

/* Takes whole strides, and says how many bytes that were. */
PRODUCTS static uint64_t by_products(kind k, uint64_t sum, const unsigned char *at, size_t len,
                                     size_t *taken) {
  __m128i lanes[LANES];
  const __m128i by = factors(tables[k].by_stride);
  for (int i = 0; i < LANES; i++) lanes[i] = lane_at(at + LANE * i);
  lanes[0] = _mm_xor_si128(lanes[0], _mm_set_epi64x(0, (long long)sum));
  *taken = STRIDE;
  for (; len - *taken >= STRIDE; *taken += STRIDE)
    for (int i = 0; i < LANES; i++) lanes[i] = fold(lanes[i], by, lane_at(at + *taken + LANE * i));
  return reduce(k, lanes, LANES);
}

WIDE_PRODUCTS static __m256i wide_fold(__m256i wide, __m256i by, __m256i next) {
  __m256i first = _mm256_clmulepi64_epi128(wide, by, 0x00);
  __m256i second = _mm256_clmulepi64_epi128(wide, by, 0x11);
  return _mm256_xor_si256(next, _mm256_xor_si256(first, second));
}

WIDE_PRODUCTS static __m256i wide_at(const unsigned char *at) {
  return _mm256_loadu_si256((const __m256i *)(const void *)at);
}

/* The same with two lanes in a register. */
WIDE_PRODUCTS static uint64_t by_wide_products(kind k, uint64_t sum, const unsigned char *at,
                                               size_t len, size_t *taken) {
  __m256i wides[WIDES];
  __m128i lanes[WIDE_STRIDE / LANE];
  const __m256i by = _mm256_broadcastsi128_si256(factors(tables[k].by_wide_stride));
  for (int i = 0; i < WIDES; i++) wides[i] = wide_at(at + WIDE * i);
  wides[0] = _mm256_xor_si256(wides[0], _mm256_set_epi64x(0, 0, 0, (long long)sum));
  *taken = WIDE_STRIDE;
  for (; len - *taken >= WIDE_STRIDE; *taken += WIDE_STRIDE)
    for (int i = 0; i < WIDES; i++)
      wides[i] = wide_fold(wides[i], by, wide_at(at + *taken + WIDE * i));
  for (int i = 0; i < WIDES; i++)
    _mm256_storeu_si256((__m256i *)(void *)(lanes + WIDE / LANE * i), wides[i]);
  return reduce(k, lanes, WIDE_STRIDE / LANE);
}

static uint64_t by_processor(kind k, uint64_t sum, const unsigned char *at, size_t len) {
  size_t taken = 0;
  if (len >= WIDE_MIN && has_wide_product && atomic_load(&allowed) == CRC_ALL)
    sum = by_wide_products(k, sum, at, len, &taken);
  else if (len >= FOLD_MIN && has_product)
    sum = by_products(k, sum, at, len, &taken);
  return by_tables(k, sum, at + taken, len - taken);
}
#else
static uint64_t by_processor(kind k, uint64_t sum, const unsigned char *at, size_t len) {
  return by_tables(k, sum, at, len);
}
#endif

/* ---- both ---- */

void crc_allow(crc_ways ways) {
  atomic_store(&allowed, ways);
}

static uint64_t all_ones(kind k) {
  return UINT64_MAX >> (64 - width[k]);
}

static uint64_t add(kind k, uint64_t before, const void *data, size_t len) {
  if (len == 0) return before;
  pthread_once(&made, make_tables);
  uint64_t sum = before ^ all_ones(k);
  crc_ways way = atomic_load(&allowed);
  sum = way == CRC_TABLES ? by_tables(k, sum, data, len) : by_processor(k, sum, data, len);
  return sum ^ all_ones(k);
}

uint32_t crc32c(uint32_t before, const void *data, size_t len) {
  return (uint32_t)add(CRC_32C, before, data, len);
}

uint64_t crc64nvme(uint64_t before, const void *data, size_t len) {
  return add(CRC_64NVME, before, data, len);
}

/* The ones at the beginning and at the end of each sum cancel out. */
uint64_t crc64nvme_join(uint64_t first, uint64_t second, uint64_t len) {
  return first ? times(CRC_64NVME, x_to(CRC_64NVME, 8 * len), first) ^ second : second;
}
