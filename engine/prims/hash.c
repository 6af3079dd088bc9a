#include "hash.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <xxhash.h>

#include "prims/crc/crc.h"

/* A distribution builds the library for the oldest processor of its architecture, and these go by the
 * one that runs: three times as fast with AVX2. Weak, as not every build of the
 * library has them, and the one at hand may be another than that of the compilation. */
__attribute__((weak)) XXH128_hash_t XXH3_128bits_dispatch(const void *data, size_t len);
__attribute__((weak)) XXH_errorcode XXH3_128bits_update_dispatch(XXH3_state_t *to, const void *data,
                                                                 size_t len);

struct hash {
  hash_kind kind;
  bool failed; /* a piece is missing: hash_end must not give a digest */
  XXH3_state_t *xxh;
  EVP_MD_CTX *evp;
};

static const struct {
  const char *name;
  uint8_t len;
} kinds[] = {
    [HASH_XXH3_128] = {"xxh3-128", 16},
    [HASH_SHA256] = {"sha256", 32},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

const char *hash_name(hash_kind kind) {
  return kinds[kind].name;
}

int hash_kind_of(const char *name, hash_kind *out, err *e) {
  for (int i = 0; i < KINDS; i++) {
    if (strcmp(name, kinds[i].name) != 0) continue;
    *out = (hash_kind)i;
    return 0;
  }
  return err_set(e, ERR_UNSUPPORTED, "unknown digest \"%.64s\": use xxh3-128 or sha256", name);
}

static XXH128_hash_t xxh_of(const void *data, size_t len) {
  return XXH3_128bits_dispatch ? XXH3_128bits_dispatch(data, len) : XXH3_128bits(data, len);
}

static void xxh_add(XXH3_state_t *to, const void *data, size_t len) {
  if (XXH3_128bits_update_dispatch)
    XXH3_128bits_update_dispatch(to, data, len);
  else
    XXH3_128bits_update(to, data, len);
}

/* The big-endian form is what xxhsum prints, and the same on every machine. */
static void put_xxh(XXH128_hash_t value, digest *out) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, value);
  memset(out, 0, sizeof *out);
  out->len = sizeof bytes.digest;
  memcpy(out->bytes, bytes.digest, sizeof bytes.digest);
}

static int openssl_failed(err *e) {
  return err_set(e, ERR_INTERNAL, "OpenSSL cannot compute SHA-256: is its provider disabled?");
}

int hash_bytes(hash_kind kind, const void *data, size_t len, digest *out, err *e) {
  if (!data) data = "";
  if (kind == HASH_XXH3_128) {
    put_xxh(xxh_of(data, len), out);
    return 0;
  }
  memset(out, 0, sizeof *out);
  if (!EVP_Digest(data, len, out->bytes, NULL, EVP_sha256(), NULL)) return openssl_failed(e);
  out->len = kinds[kind].len;
  return 0;
}

static void free_hash(hash *h) {
  if (!h) return;
  XXH3_freeState(h->xxh);
  EVP_MD_CTX_free(h->evp);
  free(h);
}

int hash_begin(hash_kind kind, hash **out, err *e) {
  *out = NULL;
  hash *h = calloc(1, sizeof *h);
  if (!h) goto no_memory;
  h->kind = kind;
  if (kind == HASH_XXH3_128) {
    h->xxh = XXH3_createState();
    if (!h->xxh) goto no_memory;
    XXH3_128bits_reset(h->xxh);
  } else {
    h->evp = EVP_MD_CTX_new();
    if (!h->evp) goto no_memory;
    if (!EVP_DigestInit_ex(h->evp, EVP_sha256(), NULL)) {
      free_hash(h);
      return openssl_failed(e);
    }
  }
  *out = h;
  return 0;
no_memory:
  free_hash(h);
  return err_set(e, ERR_NOMEM, "no memory for the state of a %s digest", hash_name(kind));
}

int hash_add(hash *h, const void *data, size_t len, err *e) {
  if (len == 0) return 0;
  if (h->kind == HASH_XXH3_128) {
    xxh_add(h->xxh, data, len);
    return 0;
  }
  if (EVP_DigestUpdate(h->evp, data, len)) return 0;
  h->failed = true;
  return openssl_failed(e);
}

int hash_end(hash *h, digest *out, err *e) {
  int rc = 0;
  if (!h) return 0;
  if (out) memset(out, 0, sizeof *out);
  if (!out) goto end;
  if (h->kind == HASH_XXH3_128) {
    put_xxh(XXH3_128bits_digest(h->xxh), out);
  } else if (h->failed || !EVP_DigestFinal_ex(h->evp, out->bytes, NULL)) {
    rc = openssl_failed(e);
  } else {
    out->len = kinds[h->kind].len;
  }
end:
  free_hash(h);
  return rc;
}

/* ---- blocks ---- */

int hash_sums_begin(hash_kind kind, bool crc64, hash_sums *out, err *e) {
  *out = (hash_sums){.with_crc64 = crc64};
  return hash_begin(kind, &out->state, e);
}

int hash_sums_add(hash_sums *s, const void *data, size_t len, err *e) {
  enum { PIECE = 64 << 10 }; /* stays in the cache for all sums */
  int rc = 0;
  for (size_t at = 0; rc == 0 && at < len; at += PIECE) {
    const char *piece = (const char *)data + at;
    size_t n = len - at < PIECE ? len - at : PIECE;
    s->crc = crc32c(s->crc, piece, n);
    if (s->with_crc64) s->crc64 = crc64nvme(s->crc64, piece, n);
    rc = hash_add(s->state, piece, n, e);
  }
  return rc;
}

int hash_sums_end(hash_sums *s, digest *out, err *e) {
  int rc = hash_end(s->state, out, e);
  s->state = NULL;
  if (rc < 0 || !out) return rc;
  out->summed = true;
  out->crc = s->crc;
  return 0;
}

int hash_block(hash_kind kind, const void *data, size_t len, digest *out, uint64_t *crc64, err *e) {
  hash_sums s;
  int rc = hash_sums_begin(kind, crc64 != NULL, &s, e);
  if (rc == 0) rc = hash_sums_add(&s, data, len, e);
  int ended = hash_sums_end(&s, rc == 0 ? out : NULL, e);
  if (rc == 0) rc = ended;
  if (rc == 0 && crc64) *crc64 = s.crc64;
  return rc;
}

int hash_of_blocks(hash_kind kind, const digest *blocks, size_t count, digest *out, err *e) {
  hash *h = NULL;
  int rc = hash_begin(kind, &h, e);
  if (rc < 0) return rc;
  for (size_t i = 0; i < count && rc == 0; i++) {
    if (blocks[i].len != kinds[kind].len)
      rc = err_set(e, ERR_INVAL, "block %zu of %zu has no %s digest", i, count, hash_name(kind));
    else
      rc = hash_add(h, blocks[i].bytes, blocks[i].len, e);
  }
  int ended = hash_end(h, rc == 0 ? out : NULL, e);
  return rc < 0 ? rc : ended;
}

size_t hash_block_count(uint64_t size) {
  return (size_t)(size / HASH_BLOCK + (size % HASH_BLOCK != 0));
}

int digest_equal(const digest *a, const digest *b) {
  return a->len > 0 && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

int hash_block_equal(const digest *a, const digest *b) {
  return digest_equal(a, b) && (!a->summed || !b->summed || a->crc == b->crc);
}

void digest_hex(const digest *d, char out[HASH_HEX_MAX]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < d->len; i++) {
    out[2 * i] = digits[d->bytes[i] >> 4];
    out[2 * i + 1] = digits[d->bytes[i] & 15];
  }
  out[2 * d->len] = 0;
}

/* Lower case only: there is one spelling of a digest, so texts can be compared too. */
static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

int digest_parse(hash_kind kind, const char *hex, digest *out, err *e) {
  memset(out, 0, sizeof *out);
  size_t len = kinds[kind].len;
  if (strnlen(hex, HASH_HEX_MAX) != 2 * len) goto bad;
  for (size_t i = 0; i < len; i++) {
    int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0) goto bad;
    out->bytes[i] = (uint8_t)(high << 4 | low);
  }
  out->len = (uint8_t)len;
  return 0;
bad:
  memset(out, 0, sizeof *out);
  return err_set(e, ERR_FORMAT, "\"%.80s\" is not a %s digest: %zu lower-case hex digits expected",
                 hex, hash_name(kind), 2 * len);
}

int hash_sha256_hex(const void *data, size_t len, char out[HASH_HEX_MAX], err *e) {
  digest d;
  out[0] = 0;
  int rc = hash_bytes(HASH_SHA256, data, len, &d, e);
  if (rc == 0) digest_hex(&d, out);
  return rc;
}

int hash_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
                     uint8_t out[HASH_BYTES_MAX], err *e) {
  /* OpenSSL takes a NULL key for "the one before". */
  if (!key) key = "";
  if (key_len > INT_MAX) return err_set(e, ERR_LIMIT, "a key of %zu bytes", key_len);
  return HMAC(EVP_sha256(), key, (int)key_len, data, len, out, NULL) ? 0 : openssl_failed(e);
}

int hash_md5(const void *data, size_t len, uint8_t out[HASH_MD5_BYTES], err *e) {
  if (EVP_Digest(data ? data : "", len, out, NULL, EVP_md5(), NULL)) return 0;
  return err_set(e, ERR_UNSUPPORTED, "OpenSSL computes no MD5 here: is it in FIPS mode?");
}

int hash_sha1_hex(const void *data, size_t len, char out[HASH_SHA1_HEX], err *e) {
  unsigned char bytes[20];
  out[0] = 0;
  if (!EVP_Digest(data ? data : "", len, bytes, NULL, EVP_sha1(), NULL))
    return err_set(e, ERR_UNSUPPORTED, "OpenSSL computes no SHA-1 here: is it in FIPS mode?");
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return 0;
}

/* Without this OpenSSL would ask the terminal. */
static int no_password(char *to, int room, int writing, void *ctx) {
  (void)to, (void)room, (void)writing, (void)ctx;
  return -1;
}

static EVP_PKEY *read_key(const char *pem) {
  size_t len = strlen(pem);
  BIO *from = len <= INT_MAX ? BIO_new_mem_buf(pem, (int)len) : NULL;
  EVP_PKEY *key = from ? PEM_read_bio_PrivateKey(from, NULL, no_password, NULL) : NULL;
  BIO_free(from);
  return key;
}

int hash_sign_rs256(const char *pem, const void *data, size_t len, uint8_t out[HASH_SIGNATURE_MAX],
                    size_t *out_len, err *e) {
  EVP_PKEY *key = read_key(pem);
  *out_len = HASH_SIGNATURE_MAX;
  if (!key || EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA ||
      EVP_PKEY_get_size(key) > HASH_SIGNATURE_MAX) {
    EVP_PKEY_free(key);
    return err_set(e, ERR_FORMAT, "the private key is no RSA key in PEM without a password");
  }
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  bool good = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
              EVP_DigestSign(ctx, out, out_len, data, len) == 1;
  EVP_MD_CTX_free(ctx);
  EVP_PKEY_free(key);
  return good ? 0 : openssl_failed(e);
}
