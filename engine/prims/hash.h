/* hash: digests of blocks, of files, and of small tables.
 *
 * A file's digest is the digest of the concatenated digests of its 8 MiB blocks, whatever the size
 * of the pieces in which it is moved: pieces may be hashed in any order and by several threads. An
 * empty file has no block. */
#ifndef PRIMS_HASH_H
#define PRIMS_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { HASH_BLOCK = 8 << 20, HASH_BYTES_MAX = 32, HASH_HEX_MAX = 2 * HASH_BYTES_MAX + 1 };

typedef enum hash_kind { HASH_XXH3_128, HASH_SHA256 } hash_kind;

typedef struct digest {
  uint8_t len; /* 16 or 32; 0: none */
  uint8_t bytes[HASH_BYTES_MAX];
  bool summed; /* of a block: `crc` is the CRC-32C of the same bytes; no part of the digest */
  uint32_t crc;
} digest;

const char *hash_name(hash_kind kind);                      /* "xxh3-128", "sha256" */
int hash_kind_of(const char *name, hash_kind *out, err *e); /* ERR_UNSUPPORTED for an unknown one */

/* Makes the digest of some bytes, at once. */
int hash_bytes(hash_kind kind, const void *data, size_t len, digest *out, err *e);

/* Makes digest and CRC-32C of a block, and its CRC64NVME (may be NULL), in one pass over its bytes. */
int hash_block(hash_kind kind, const void *data, size_t len, digest *out, uint64_t *crc64, err *e);

/* A digest over bytes that come in pieces. hash_end frees the state, on failure too. */
typedef struct hash hash;
int hash_begin(hash_kind kind, hash **out, err *e);
int hash_add(hash *h, const void *data, size_t len, err *e);
int hash_end(hash *h, digest *out, err *e); /* out may be NULL: only free; h may be NULL */

/* The same as hash_block over bytes that come in pieces: each is best added while the processor's
 * cache still has it. hash_sums_end frees the state, on failure too. */
typedef struct hash_sums {
  hash *state;
  uint32_t crc;
  uint64_t crc64;
  bool with_crc64;
} hash_sums;
int hash_sums_begin(hash_kind kind, bool crc64, hash_sums *out, err *e);
int hash_sums_add(hash_sums *s, const void *data, size_t len, err *e);
int hash_sums_end(hash_sums *s, digest *out, err *e); /* out may be NULL: only free */

/* Makes the digest of a file from those of its blocks. */
int hash_of_blocks(hash_kind kind, const digest *blocks, size_t count, digest *out, err *e);

/* Returns the number of blocks of a file of this size. */
size_t hash_block_count(uint64_t size);

/* Object stores ask for these two. */
int hash_sha256_hex(const void *data, size_t len, char out[HASH_HEX_MAX], err *e);
int hash_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                     uint8_t out[HASH_BYTES_MAX], err *e);
/* Signs by RSASSA-PKCS1-v1_5 with SHA-256 (RS256), with a private key in PEM. ERR_FORMAT: it is none, or
 * needs a password. The text shows nothing of it. */
enum { HASH_SIGNATURE_MAX = 1024 };
int hash_sign_rs256(const char *pem, const void *data, size_t len, uint8_t out[HASH_SIGNATURE_MAX],
                    size_t *out_len, err *e);
/* MD5 finds damage on the way, no more. ERR_UNSUPPORTED where the system forbids it (FIPS). */
enum { HASH_MD5_BYTES = 16 };
int hash_md5(const void *data, size_t len, uint8_t out[HASH_MD5_BYTES], err *e);

int digest_equal(const digest *a, const digest *b);     /* 1 or 0; two empty ones are not equal */
int hash_block_equal(const digest *a, const digest *b); /* the CRC-32C too, where both have it */
void digest_hex(const digest *d, char out[HASH_HEX_MAX]);
int digest_parse(hash_kind kind, const char *hex, digest *out, err *e); /* ERR_FORMAT */

/* SHA-1, for names of files that others chose so, in hex. It protects nothing. */
enum { HASH_SHA1_HEX = 41 };
int hash_sha1_hex(const void *data, size_t len, char out[HASH_SHA1_HEX], err *e);

#endif
