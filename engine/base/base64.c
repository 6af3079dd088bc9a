#include "base64.h"

#include <string.h>

static const char plain_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64_encode(const void *bytes, size_t len, bool url, buf *out) {
  const uint8_t *from = bytes;
  const char *digits = url ? url_digits : plain_digits;
  for (size_t i = 0; i < len; i += 3) {
    size_t left = len - i;
    uint32_t three = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                     (left > 2 ? from[i + 2] : 0);
    char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                    left > 1 ? digits[three >> 6 & 63] : '=', left > 2 ? digits[three & 63] : '='};
    buf_add(out, four, url && left < 3 ? left + 1 : 4);
  }
}

static int value_of(char c) {
  const char *at = c ? strchr(plain_digits, c) : NULL;
  return at ? (int)(at - plain_digits) : -1;
}

bool base64_decode(const char *text, uint8_t *out, size_t room, size_t *len) {
  size_t n = strlen(text);
  while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r')) n--;
  *len = 0;
  if (n == 0 || n % 4) return false;
  size_t pads = (text[n - 1] == '=') + (text[n - 1] == '=' && text[n - 2] == '=');
  if (n / 4 * 3 - pads > room) return false;
  for (size_t i = 0; i < n; i += 4) {
    uint32_t three = 0;
    for (size_t k = i; k < i + 4; k++) {
      int value = k >= n - pads ? 0 : value_of(text[k]);
      if (value < 0) return false;
      three = three << 6 | (uint32_t)value;
    }
    for (int shift = 16; shift >= 0 && *len < n / 4 * 3 - pads; shift -= 8)
      out[(*len)++] = (uint8_t)(three >> shift);
  }
  return true;
}
