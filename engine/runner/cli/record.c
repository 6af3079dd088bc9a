#include "record.h"

#include "text.h"

record record_begin(FILE *out) {
  fputc('{', out);
  return (record){.out = out};
}

void record_end(record *r) {
  fputc('}', r->out);
}

void record_end_line(record *r) {
  fputs("}\n", r->out);
}

FILE *record_key(record *r, const char *key) {
  fprintf(r->out, "%s\"%s\":", r->more ? "," : "", key);
  r->more = true;
  return r->out;
}

void record_text(record *r, const char *key, const char *text) {
  FILE *f = record_key(r, key);
  if (text)
    text_json(f, text);
  else
    fputs("null", f);
}

void record_prose(record *r, const char *key, const char *text) {
  text_json_prose(record_key(r, key), text ? text : "");
}

void record_json(record *r, const char *key, const char *json) {
  text_json_printed(record_key(r, key), json);
}

void record_name(record *r, const char *key, const char *name) {
  text_json_name(record_key(r, key), name ? name : "");
}

void record_bool(record *r, const char *key, bool value) {
  fputs(value ? "true" : "false", record_key(r, key));
}

void record_count(record *r, const char *key, uint64_t count) {
  fprintf(record_key(r, key), "%llu", (unsigned long long)count);
}

void record_step(record *r, const char *key, int64_t step) {
  if (step < 0)
    record_text(r, key, NULL);
  else
    record_count(r, key, (uint64_t)step);
}

void record_seconds(record *r, const char *key, double seconds) {
  if (seconds < 0)
    record_text(r, key, NULL);
  else
    fprintf(record_key(r, key), "%.0f", seconds);
}

void record_time(record *r, const char *key, int64_t ns) {
  FILE *f = record_key(r, key);
  fputc('"', f);
  text_time(f, ns);
  fputc('"', f);
}
