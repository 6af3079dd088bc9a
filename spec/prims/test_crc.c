#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "prims/crc/crc.h"

/* ---- the slow way, as the definition says it ---- */

static uint64_t bitwise(uint64_t poly, uint64_t ones, const unsigned char *at, size_t len) {
  uint64_t sum = ones;
  for (size_t i = 0; i < len; i++) {
    sum ^= at[i];
    for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? poly : 0);
  }
  return sum ^ ones;
}

static uint32_t slow_32c(const unsigned char *at, size_t len) {
  return (uint32_t)bitwise(0x82f63b78, 0xffffffff, at, len);
}

static uint64_t slow_64(const unsigned char *at, size_t len) {
  return bitwise(UINT64_C(0x9a6c9329ac4bc9b5), UINT64_MAX, at, len);
}

enum { ROOM = 70000 };
static unsigned char bytes[ROOM];

static int fill(void **unused) {
  uint32_t seed = 1;
  (void)unused;
  for (size_t i = 0; i < ROOM; i++) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = (unsigned char)(seed >> 24);
  }
  return 0;
}

/* ---- each way ---- */

/* RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms. */
static void they_give_the_published_values(void **unused) {
  unsigned char text[32];
  for (crc_ways way = CRC_TABLES; way <= CRC_ALL; way++) {
    crc_allow(way);
    assert_true(crc32c(0, "123456789", 9) == 0xe3069283);
    memset(text, 0, sizeof text);
    assert_true(crc32c(0, text, sizeof text) == 0x8a9136aa);
    memset(text, 0xff, sizeof text);
    assert_true(crc32c(0, text, sizeof text) == 0x62a8ab43);
    for (int i = 0; i < 32; i++) text[i] = (unsigned char)i;
    assert_true(crc32c(0, text, sizeof text) == 0x46dd794e);
    assert_true(crc64nvme(0, "123456789", 9) == UINT64_C(0xae8b14860a799888));
    assert_true(crc32c(0, NULL, 0) == 0);
    assert_true(crc64nvme(0, NULL, 0) == 0);
  }
}

/* 4 KiB of zeros and of ones, as the NVM command set specification has them. */
static void the_vectors_of_nvme_come_out(void **unused) {
  static unsigned char block[4096];
  for (crc_ways way = CRC_TABLES; way <= CRC_ALL; way++) {
    crc_allow(way);
    memset(block, 0, sizeof block);
    assert_true(crc64nvme(0, block, sizeof block) == UINT64_C(0x6482d367eb22b64e));
    memset(block, 0xff, sizeof block);
    assert_true(crc64nvme(0, block, sizeof block) == UINT64_C(0xc0ddba7302eca3ac));
  }
}

static void each_length_at_each_place_is_as_the_definition_says(void **unused) {
  for (crc_ways way = CRC_TABLES; way <= CRC_ALL; way++) {
    crc_allow(way);
    for (size_t len = 0; len < 1700; len++) {
      const unsigned char *at = bytes + len % 17;
      assert_true(crc32c(0, at, len) == slow_32c(at, len));
      assert_true(crc64nvme(0, at, len) == slow_64(at, len));
    }
    assert_true(crc32c(0, bytes, ROOM) == slow_32c(bytes, ROOM));
    assert_true(crc64nvme(0, bytes, ROOM) == slow_64(bytes, ROOM));
  }
}

static void pieces_give_the_sum_of_the_whole(void **unused) {
  const uint32_t all_32 = slow_32c(bytes, ROOM);
  const uint64_t all_64 = slow_64(bytes, ROOM);
  srand(1);
  for (int round = 0; round < 100; round++) {
    uint32_t sum_32 = 0;
    uint64_t sum_64 = 0, joined_64 = 0;
    for (size_t at = 0, n; at < ROOM; at += n) {
      n = (size_t)rand() % 9000;
      if (n > ROOM - at) n = ROOM - at;
      sum_32 = crc32c(sum_32, bytes + at, n);
      sum_64 = crc64nvme(sum_64, bytes + at, n);
      joined_64 = crc64nvme_join(joined_64, crc64nvme(0, bytes + at, n), n);
    }
    assert_true(sum_32 == all_32);
    assert_true(sum_64 == all_64);
    assert_true(joined_64 == all_64);
  }
}

static void one_bit_shows(void **unused) {
  const uint64_t before = crc64nvme(0, bytes, ROOM);
  const uint32_t before_32 = crc32c(0, bytes, ROOM);
  for (size_t at = 0; at < ROOM; at += 997) {
    bytes[at] ^= 1;
    assert_true(crc64nvme(0, bytes, ROOM) != before);
    assert_true(crc32c(0, bytes, ROOM) != before_32);
    bytes[at] ^= 1;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(they_give_the_published_values),
      cmocka_unit_test(the_vectors_of_nvme_come_out),
      cmocka_unit_test(each_length_at_each_place_is_as_the_definition_says),
      cmocka_unit_test(pieces_give_the_sum_of_the_whole),
      cmocka_unit_test(one_bit_shows),
  };
  return cmocka_run_group_tests_name("crc", tests, fill, NULL);
}
