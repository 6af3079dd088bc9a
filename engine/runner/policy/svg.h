/* svg: the shapes and texts that a picture is made of. Nothing here can fail but the FILE itself. */
#ifndef RUNNER_POLICY_SVG_H
#define RUNNER_POLICY_SVG_H

#include <stddef.h>
#include <stdio.h>

/* Writes a text so that XML takes it, whatever it is, as text_plain() shows it; behind `max` letters
 * it is cut, of which a wide one is two. */
void svg_put(FILE *out, const char *text, size_t max);

/* Begins a text at a place; what is written then is shown there, until svg_end_text(). */
void svg_begin_text(FILE *out, const char *classes, double x, double y);
void svg_end_text(FILE *out);
/* The same of one that needs no escaping. */
void svg_text(FILE *out, const char *classes, double x, double y, const char *text);

void svg_line(FILE *out, const char *class, double x1, double y1, double x2, double y2);
void svg_box(FILE *out, const char *class, double x, double y, double width, double height);
void svg_dot(FILE *out, double x, double y, double radius);
void svg_cross(FILE *out, double x, double y);

#endif
