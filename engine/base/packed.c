#include "packed.h"

#include <stdint.h>
#include <string.h>

static const uint32_t absent = UINT32_MAX;

void packed_put_number(buf *out, double value) {
  buf_add(out, &value, sizeof value);
}

void packed_put_text(buf *out, const char *text) {
  size_t len = text ? strlen(text) : 0;
  uint32_t said = !text ? absent : len < absent ? (uint32_t)len : absent;
  size_t room = sizeof said + (said != absent ? len + 1 : 0);
  char *to = buf_reserve(out, room);
  if (!to) return;
  memcpy(to, &said, sizeof said);
  if (said != absent) memcpy(to + sizeof said, text, len + 1);
  buf_grown(out, room);
}

void packed_put_byte(buf *out, unsigned char byte) {
  buf_add(out, &byte, 1);
}

static void put_kind(buf *out, unsigned char kind, double number) {
  char both[1 + sizeof number];
  both[0] = (char)kind;
  memcpy(both + 1, &number, sizeof number);
  buf_add(out, both, sizeof both);
}

void packed_put_string(buf *out, const char *text) {
  packed_put_byte(out, PACKED_STRING);
  packed_put_text(out, text);
}

void packed_put_real(buf *out, double value) {
  put_kind(out, PACKED_NUMBER, value);
}

void packed_put_bool(buf *out, bool yes) {
  packed_put_byte(out, yes ? PACKED_TRUE : PACKED_FALSE);
}

packed_table packed_open(buf *out, enum packed_kind kind) {
  put_kind(out, (unsigned char)kind, 0);
  return (packed_table){.out = out, .place = out->len - sizeof(double)};
}

void packed_member(packed_table *t, const char *key) {
  t->count++;
  if (key) packed_put_text(t->out, key);
}

void packed_close(const packed_table *t) {
  double count = (double)t->count;
  if (buf_failed(t->out) == 0) memcpy(t->out->data + t->place, &count, sizeof count);
}

void packed_put_json(buf *out, const json_t *value) {
  size_t i;
  const char *key;
  json_t *member;
  switch (json_typeof(value)) {
  case JSON_OBJECT:
    put_kind(out, PACKED_OBJECT, (double)json_object_size(value));
    json_object_foreach((json_t *)value, key, member) {
      packed_put_text(out, key);
      packed_put_json(out, member);
    }
    break;
  case JSON_ARRAY:
    put_kind(out, PACKED_ARRAY, (double)json_array_size(value));
    json_array_foreach(value, i, member) packed_put_json(out, member);
    break;
  case JSON_STRING: packed_put_string(out, json_string_value(value)); break;
  case JSON_INTEGER:
  case JSON_REAL: packed_put_real(out, json_number_value(value)); break;
  case JSON_TRUE:
  case JSON_FALSE: packed_put_bool(out, json_is_true(value)); break;
  case JSON_NULL: packed_put_byte(out, PACKED_NULL); break;
  }
}

static bool take(packed *from, void *to, size_t len) {
  if ((size_t)(from->end - from->at) < len) {
    from->at = from->end;
    return false;
  }
  memcpy(to, from->at, len);
  from->at += len;
  return true;
}

bool packed_number(packed *from, double *out) {
  return take(from, out, sizeof *out);
}

bool packed_text(packed *from, const char **out, size_t *len) {
  uint32_t said;
  *out = NULL;
  *len = 0;
  if (!take(from, &said, sizeof said)) return false;
  if (said == absent) return true;
  size_t left = (size_t)(from->end - from->at);
  if (said >= left || memchr(from->at, '\0', (size_t)said + 1) != from->at + said) {
    from->at = from->end;
    return false;
  }
  *out = from->at;
  *len = said;
  from->at += (size_t)said + 1;
  return true;
}

bool packed_byte(packed *from, unsigned char *out) {
  return take(from, out, 1);
}
