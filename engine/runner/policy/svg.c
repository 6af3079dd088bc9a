#include "svg.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runner/cli/text.h"

/* Writes one character, or a byte of it; returns the bytes that it took. */
static size_t put_character(FILE *out, const char *p) {
  /* The two of Unicode's that are none of XML's, and that text_plain() lets through. */
  if (strncmp(p, "\xef\xbf\xbe", 3) == 0 || strncmp(p, "\xef\xbf\xbf", 3) == 0) {
    fputs("\xef\xbf\xbd", out);
    return 3;
  }
  switch (*p) {
  case '&': fputs("&amp;", out); break;
  case '<': fputs("&lt;", out); break;
  case '>': fputs("&gt;", out); break;
  default: fputc(*p, out);
  }
  return 1;
}

/* As its first byte tells: those of three bytes and more are wide ones, nearly all; what follows is none. */
static size_t width_of(unsigned char byte) {
  return byte >= 0xe0 ? 2 : (byte & 0xc0) != 0x80;
}

void svg_put(FILE *out, const char *text, size_t max) {
  char *plain = NULL;
  size_t size = 0, width = 0;
  FILE *f = open_memstream(&plain, &size);
  if (f) text_plain(f, text);
  if (!f || fclose(f) != 0) { /* a text that is not there is better than no picture */
    free(plain);
    return;
  }
  for (const char *p = plain; *p; p += put_character(out, p)) {
    width += width_of((unsigned char)*p);
    if (width > max) {
      fputs("\xe2\x80\xa6", out);
      break;
    }
  }
  free(plain);
}

void svg_begin_text(FILE *out, const char *classes, double x, double y) {
  fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.0f\">", classes, x, y);
}

void svg_end_text(FILE *out) {
  fputs("</text>\n", out);
}

void svg_text(FILE *out, const char *classes, double x, double y, const char *text) {
  svg_begin_text(out, classes, x, y);
  fputs(text, out);
  svg_end_text(out);
}

void svg_line(FILE *out, const char *class, double x1, double y1, double x2, double y2) {
  fprintf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\"/>", class, x1,
          y1, x2, y2);
}

void svg_box(FILE *out, const char *class, double x, double y, double width, double height) {
  fprintf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", class,
          x, y, width, height);
}

void svg_dot(FILE *out, double x, double y, double radius) {
  fprintf(out, "<circle cx=\"%.1f\" cy=\"%.0f\" r=\"%.0f\"/>", x, y, radius);
}

void svg_cross(FILE *out, double x, double y) {
  fprintf(out, "<path d=\"M%.1f %.0fl8 8m0-8l-8 8\"/>", x - 4, y - 4);
}
