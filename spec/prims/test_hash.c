#include "with_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "prims/crc/crc.h"
#include "prims/hash.h"

static void digest_is(hash_kind kind, const void *data, size_t len, const char *want) {
  digest d;
  char hex[HASH_HEX_MAX];
  assert_int_equal(hash_bytes(kind, data, len, &d, NULL), 0);
  digest_hex(&d, hex);
  assert_string_equal(hex, want);
}

/* The bytes that xxhsum's own self-test uses. */
static void fill(unsigned char *to, size_t len) {
  uint64_t state = 2654435761u;
  for (size_t i = 0; i < len; i++) {
    to[i] = (unsigned char)(state >> 56);
    state *= 11400714785074694797u;
  }
}

static void xxh3_128_gives_the_published_values(void **unused) {
  static const struct {
    size_t len;
    const char *hex;
  } known[] = {
      {0, "99aa06d3014798d86001c324468d497f"},    {1, "a6cd5e9392000f6ac44bdff4074eecdb"},
      {6, "082afe0b8162d12a3e7039bdda43cfc6"},    {12, "6e3efd8fc7802b18061a192713f69ad9"},
      {24, "0ce966e4678d37611e7044d28b1b901d"},   {48, "a002ac4e5478227ef942219aed80f67b"},
      {81, "4952f58181ab00425e8bafb9f95fb803"},   {222, "337e09641b948717f1aebd597cec6b3a"},
      {403, "1b6de21e332dd73dcdeb804d65c6dea4"},  {512, "18d2d110dcc9bca1617e49599013cb6b"},
      {2048, "f736557fd47073a5dd59e2c3a5f038e0"}, {2240, "ccb134fbfa7ce49d6e73a90539cf2948"},
  };
  unsigned char bytes[2240];
  fill(bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    digest_is(HASH_XXH3_128, bytes, known[i].len, known[i].hex);
}

static void sha256_gives_the_published_values(void **unused) {
  digest_is(HASH_SHA256, NULL, 0,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  digest_is(HASH_SHA256, "abc", 3,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  char *million = malloc(1000000);
  assert_non_null(million);
  memset(million, 'a', 1000000);
  digest_is(HASH_SHA256, million, 1000000,
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  free(million);
}

/* The library has the plain functions in every build. */
static void the_functions_that_suit_the_processor_give_the_digest_of_the_plain_ones(void **unused) {
  unsigned char *data = malloc(70000);
  assert_non_null(data);
  fill(data, 70000);
  for (size_t len = 0; len <= 70000; len += len < 1100 ? 1 : 997) {
    XXH128_canonical_t want;
    XXH128_canonicalFromHash(&want, XXH3_128bits(data, len));
    digest at_once, in_pieces;
    hash *h = NULL;
    assert_int_equal(hash_bytes(HASH_XXH3_128, data, len, &at_once, NULL), 0);
    assert_memory_equal(at_once.bytes, want.digest, sizeof want.digest);
    assert_int_equal(hash_begin(HASH_XXH3_128, &h, NULL), 0);
    assert_int_equal(hash_add(h, data, len / 3, NULL), 0);
    assert_int_equal(hash_add(h, data + len / 3, len - len / 3, NULL), 0);
    assert_int_equal(hash_end(h, &in_pieces, NULL), 0);
    assert_true(digest_equal(&at_once, &in_pieces));
  }
  free(data);
}

static void any_split_of_the_data_gives_the_same_digest(void **unused) {
  enum { LEN = 5000, ROUNDS = 200 };
  unsigned char bytes[LEN];
  fill(bytes, LEN);
  srand(1);
  for (int round = 0; round < 2 * ROUNDS; round++) {
    hash_kind kind = round % 2 ? HASH_SHA256 : HASH_XXH3_128;
    size_t len = (size_t)rand() % (LEN + 1);
    digest whole, pieces;
    hash *h;
    assert_int_equal(hash_bytes(kind, bytes, len, &whole, NULL), 0);
    assert_int_equal(hash_begin(kind, &h, NULL), 0);
    for (size_t at = 0, piece; at < len; at += piece) {
      piece = (size_t)rand() % 700; /* pieces of no bytes too */
      if (piece > len - at) piece = len - at;
      assert_int_equal(hash_add(h, bytes + at, piece, NULL), 0);
    }
    assert_int_equal(hash_end(h, &pieces, NULL), 0);
    assert_true(digest_equal(&whole, &pieces));
  }
}

static void a_block_has_the_same_digest_and_all_sums(void **unused) {
  static const size_t lens[] = {0, 1, 65536, 65537, 200000};
  unsigned char *bytes = malloc(200000);
  assert_non_null(bytes);
  fill(bytes, 200000);
  for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
    for (hash_kind kind = HASH_XXH3_128; kind <= HASH_SHA256; kind++) {
      digest plain, block, other;
      uint64_t crc64 = 1;
      assert_int_equal(hash_bytes(kind, bytes, lens[i], &plain, NULL), 0);
      assert_int_equal(hash_block(kind, bytes, lens[i], &block, &crc64, NULL), 0);
      assert_true(lens[i] == 0 || digest_equal(&plain, &block));
      assert_true(block.crc == crc32c(0, bytes, lens[i]));
      assert_true(crc64 == crc64nvme(0, bytes, lens[i]));
      assert_false(plain.summed);
      assert_true(hash_block_equal(&plain, &block)); /* what has none cannot differ in it */
      other = block;
      other.crc ^= 1;
      assert_false(hash_block_equal(&other, &block));
    }
  }
  free(bytes);
}

static void a_blocks_sums_do_not_depend_on_the_pieces_it_comes_in(void **unused) {
  enum { LEN = 300000 };
  static const size_t pieces[] = {1, 63, 4096, 65537, LEN};
  unsigned char *bytes = malloc(LEN);
  assert_non_null(bytes);
  fill(bytes, LEN);
  for (hash_kind kind = HASH_XXH3_128; kind <= HASH_SHA256; kind++) {
    digest block, joined;
    uint64_t crc64;
    assert_int_equal(hash_block(kind, bytes, LEN, &block, &crc64, NULL), 0);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
      hash_sums sums;
      assert_int_equal(hash_sums_begin(kind, true, &sums, NULL), 0);
      for (size_t at = 0; at < LEN; at += pieces[i]) {
        size_t n = LEN - at < pieces[i] ? LEN - at : pieces[i];
        assert_int_equal(hash_sums_add(&sums, bytes + at, n, NULL), 0);
      }
      assert_int_equal(hash_sums_end(&sums, &joined, NULL), 0);
      assert_true(digest_equal(&joined, &block));
      assert_true(joined.summed && joined.crc == block.crc);
      assert_true(sums.crc64 == crc64);
    }
  }
  free(bytes);
}

static void a_digest_that_is_given_up_frees_its_state(void **unused) {
  for (int kind = 0; kind < 2; kind++) {
    hash *h;
    assert_int_equal(hash_begin((hash_kind)kind, &h, NULL), 0);
    assert_int_equal(hash_add(h, "x", 1, NULL), 0);
    assert_int_equal(hash_end(h, NULL, NULL), 0);
  }
  assert_int_equal(hash_end(NULL, NULL, NULL), 0);
}

static void a_files_digest_is_that_of_its_blocks_digests(void **unused) {
  for (int kind = 0; kind < 2; kind++) {
    digest blocks[3], got, want;
    unsigned char joined[3 * HASH_BYTES_MAX];
    size_t len = 0;
    for (int i = 0; i < 3; i++) {
      assert_int_equal(hash_bytes((hash_kind)kind, &i, sizeof i, &blocks[i], NULL), 0);
      memcpy(joined + len, blocks[i].bytes, blocks[i].len);
      len += blocks[i].len;
    }
    assert_int_equal(hash_of_blocks((hash_kind)kind, blocks, 3, &got, NULL), 0);
    assert_int_equal(hash_bytes((hash_kind)kind, joined, len, &want, NULL), 0);
    assert_true(digest_equal(&got, &want));
    assert_int_equal(hash_of_blocks((hash_kind)kind, NULL, 0, &got, NULL), 0);
    assert_int_equal(hash_bytes((hash_kind)kind, "", 0, &want, NULL), 0);
    assert_true(digest_equal(&got, &want));
  }
}

static void a_block_without_a_digest_is_refused(void **unused) {
  digest blocks[2] = {{0}}, out;
  err e = {0};
  assert_int_equal(hash_bytes(HASH_SHA256, "", 0, &blocks[0], NULL), 0);
  assert_int_equal(hash_of_blocks(HASH_SHA256, blocks, 2, &out, &e), ERR_INVAL);
  assert_non_null(strstr(e.text, "block 1 of 2"));
  assert_int_equal(hash_of_blocks(HASH_XXH3_128, blocks, 1, &out, &e), ERR_INVAL);
}

static void block_counts_are_right_at_the_edges(void **unused) {
  assert_int_equal(hash_block_count(0), 0);
  assert_int_equal(hash_block_count(1), 1);
  assert_int_equal(hash_block_count(HASH_BLOCK), 1);
  assert_int_equal(hash_block_count((uint64_t)HASH_BLOCK + 1), 2);
  assert_int_equal(hash_block_count(UINT64_MAX), UINT64_MAX / HASH_BLOCK + 1);
}

static void names_lead_back_to_kinds(void **unused) {
  hash_kind kind;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(hash_kind_of(hash_name((hash_kind)i), &kind, NULL), 0);
    assert_int_equal(kind, i);
  }
  err e = {0};
  assert_int_equal(hash_kind_of("md5", &kind, &e), ERR_UNSUPPORTED);
  assert_non_null(strstr(e.text, "md5"));
  assert_int_equal(hash_kind_of("", &kind, NULL), ERR_UNSUPPORTED);
}

static void hex_goes_there_and_back(void **unused) {
  for (int kind = 0; kind < 2; kind++) {
    digest d, back;
    char hex[HASH_HEX_MAX];
    assert_int_equal(hash_bytes((hash_kind)kind, "round", 5, &d, NULL), 0);
    digest_hex(&d, hex);
    assert_int_equal(strlen(hex), 2 * d.len);
    assert_int_equal(digest_parse((hash_kind)kind, hex, &back, NULL), 0);
    assert_true(digest_equal(&d, &back));
  }
}

static void text_that_is_no_digest_is_refused(void **unused) {
  static const char *const bad[] = {
      "",
      "99aa06d3014798d86001c324468d497",   /* short */
      "99aa06d3014798d86001c324468d497f0", /* long */
      "99AA06D3014798D86001C324468D497F",  /* another spelling */
      "99aa06d3014798d86001c324468d497g",
      " 9aa06d3014798d86001c324468d497f",
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", /* another kind */
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    digest d;
    assert_int_equal(digest_parse(HASH_XXH3_128, bad[i], &d, NULL), ERR_FORMAT);
    assert_int_equal(d.len, 0);
  }
}

static void no_digest_equals_nothing(void **unused) {
  digest none = {0}, also_none = {0}, some;
  char hex[HASH_HEX_MAX];
  assert_int_equal(hash_bytes(HASH_XXH3_128, "", 0, &some, NULL), 0);
  assert_false(digest_equal(&none, &also_none));
  assert_false(digest_equal(&none, &some));
  digest other = some;
  other.bytes[15] ^= 1;
  assert_false(digest_equal(&other, &some));
  digest_hex(&none, hex);
  assert_string_equal(hex, "");
}

/* RFC 4231, cases 1, 2, 3 and 6. */
static void hmac_gives_the_published_values(void **unused) {
  unsigned char long_key[131], dd[50], ones[20], aa[20];
  memset(long_key, 0xaa, sizeof long_key);
  memset(dd, 0xdd, sizeof dd);
  memset(ones, 0x0b, sizeof ones);
  memset(aa, 0xaa, sizeof aa);
  static const char larger[] = "Test Using Larger Than Block-Size Key - Hash Key First";
  const struct {
    const void *key;
    size_t key_len;
    const void *data;
    size_t len;
    const char *hex;
  } known[] = {
      {ones, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", 4, "what do ya want for nothing?", 28,
       "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {aa, 20, dd, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {long_key, 131, larger, sizeof larger - 1,
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
      {NULL, 0, NULL, 0, "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    digest d = {.len = 32};
    char hex[HASH_HEX_MAX];
    assert_int_equal(hash_hmac_sha256(known[i].key, known[i].key_len, known[i].data, known[i].len,
                                      d.bytes, NULL),
                     0);
    digest_hex(&d, hex);
    assert_string_equal(hex, known[i].hex);
  }
}

static void md5_gives_the_published_values(void **unused) {
  const struct {
    const char *text, *hex;
  } known[] = {{"", "d41d8cd98f00b204e9800998ecf8427e"},
               {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"}};
  for (size_t i = 0; i < 2; i++) {
    digest d = {.len = HASH_MD5_BYTES};
    char hex[HASH_HEX_MAX];
    assert_int_equal(hash_md5(known[i].text, strlen(known[i].text), d.bytes, NULL), 0);
    digest_hex(&d, hex);
    assert_string_equal(hex, known[i].hex);
  }
  uint8_t out[HASH_MD5_BYTES];
  assert_int_equal(hash_md5(NULL, 0, out, NULL), 0);
}

static void sha256_comes_as_hex_too(void **unused) {
  char hex[HASH_HEX_MAX];
  assert_int_equal(hash_sha256_hex("abc", 3, hex, NULL), 0);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(xxh3_128_gives_the_published_values),
      cmocka_unit_test(sha256_gives_the_published_values),
      cmocka_unit_test(the_functions_that_suit_the_processor_give_the_digest_of_the_plain_ones),
      cmocka_unit_test(any_split_of_the_data_gives_the_same_digest),
      cmocka_unit_test(a_block_has_the_same_digest_and_all_sums),
      cmocka_unit_test(a_blocks_sums_do_not_depend_on_the_pieces_it_comes_in),
      cmocka_unit_test(a_digest_that_is_given_up_frees_its_state),
      cmocka_unit_test(a_files_digest_is_that_of_its_blocks_digests),
      cmocka_unit_test(a_block_without_a_digest_is_refused),
      cmocka_unit_test(block_counts_are_right_at_the_edges),
      cmocka_unit_test(names_lead_back_to_kinds),
      cmocka_unit_test(hex_goes_there_and_back),
      cmocka_unit_test(text_that_is_no_digest_is_refused),
      cmocka_unit_test(no_digest_equals_nothing),
      cmocka_unit_test(hmac_gives_the_published_values),
      cmocka_unit_test(md5_gives_the_published_values),
      cmocka_unit_test(sha256_comes_as_hex_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
