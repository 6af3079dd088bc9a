#include "log.h"

#include <stdarg.h>
#include <stdio.h>

const char *log_level_name(log_level level) {
  static const char *const names[] = {"debug", "info", "warning", "error"};
  return level >= LOG_DEBUG && level <= LOG_ERROR ? names[level] : "error";
}

void log_say(const log_sink *sink, log_level level, const char *fmt, ...) {
  if (!sink || !sink->fn || level < sink->min) return;
  char text[2048];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  for (unsigned char *at = (unsigned char *)text; *at; at++) {
    /* U+0080 to U+009F are control characters too: a terminal takes 0xC2 0x9B for ESC [. */
    if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) at[0] = at[1] = '?';
    if (*at < 0x20 || *at == 0x7f) *at = '?';
  }
  sink->fn(sink->ctx, level, text);
}
