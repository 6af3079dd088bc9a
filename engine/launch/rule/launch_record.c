#include "launch_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_names.h"

enum { FORMAT = 1 };

static const char question[] = "question of a launch", answer[] = "answer of a task";

/* ---- units ---- */

static void free_units(launch_units *units) {
  for (size_t i = 0; i < units->count; i++) free(units->at[i].path);
  *units = (launch_units){0};
}

bool launch_add(launch_units *units, const launch_unit *unit) {
  char *path = units->count < LAUNCH_UNITS_MAX ? strdup(unit->path) : NULL;
  if (!path) return false;
  units->at[units->count] = *unit;
  units->at[units->count++].path = path;
  return true;
}

const launch_unit *launch_find(const launch_units *units, const char *path) {
  for (size_t i = 0; i < units->count; i++)
    if (strcmp(units->at[i].path, path) == 0) return &units->at[i];
  return NULL;
}

void launch_free_question(launch_question *q) {
  names_free(&q->excludes);
  free_units(&q->units);
  *q = (launch_question){0};
}

void launch_free_answer(launch_answer *a) {
  free_units(&a->units);
  *a = (launch_answer){0};
}

/* ---- printing ---- */

static json_t *units_json(const launch_units *units, int *bad) {
  json_t *list = json_array();
  for (size_t i = 0; i < units->count; i++) {
    const launch_unit *u = &units->at[i];
    json_t *o = json_object();
    js_set(o, "path", js_name_new(u->path), bad);
    js_set(o, "kind", json_integer(u->kind), bad);
    js_set(o, "stamp", json_integer((json_int_t)u->stamp), bad);
    js_set(o, "open", json_boolean(u->open), bad);
    if (json_array_append_new(list, o) < 0) *bad = 1;
  }
  return list;
}

static json_t *head(uint64_t number, const launch_units *units, int *bad) {
  json_t *o = json_object();
  js_set(o, "format", json_integer(FORMAT), bad);
  js_set(o, "reader", json_integer(FORMAT), bad);
  js_set(o, "number", json_integer((json_int_t)number), bad);
  js_set(o, "units", units_json(units, bad), bad);
  return o;
}

static int print(json_t *o, int bad, const char *what, buf *out, err *e) {
  int rc = bad ? err_set(e, ERR_NOMEM, "%s: out of memory", what) : js_print(o, out, e);
  json_decref(o);
  return rc;
}

int launch_print_question(const launch_question *q, buf *out, err *e) {
  int bad = 0;
  json_t *o = head(q->number, &q->units, &bad), *excludes = json_array();
  for (size_t i = 0; i < q->excludes.count; i++)
    if (json_array_append_new(excludes, js_name_new(q->excludes.at[i])) < 0) bad = 1;
  js_set(o, "excludes", excludes, &bad);
  js_set(o, "over", json_boolean(q->over), &bad);
  return print(o, bad, question, out, e);
}

int launch_print_answer(const launch_answer *a, buf *out, err *e) {
  int bad = 0;
  json_t *o = head(a->number, &a->units, &bad);
  js_set(o, "task", json_integer(a->task), &bad);
  js_set(o, "host", js_name_new(a->host), &bad);
  js_set(o, "ended", json_boolean(a->ended), &bad);
  js_set(o, "clean", json_boolean(a->clean), &bad);
  return print(o, bad, answer, out, e);
}

/* ---- parsing ---- */

static int number_of(const json_t *o, const char *key, const char *what, int64_t most, int64_t *out,
                     err *e) {
  int rc = js_get_int(o, key, what, out, e);
  if (rc < 0) return rc;
  return *out < 0 || *out > most ? err_set(e, ERR_FORMAT, "%s: %s is out of range", what, key) : 0;
}

static int take_unit(const json_t *o, const char *what, launch_units *out, err *e) {
  launch_unit u = {0};
  int64_t kind = 0, stamp = 0;
  int rc = js_get_name(o, "path", what, &u.path, e);
  if (rc == 0) rc = number_of(o, "kind", what, MATCH_GROUP, &kind, e);
  if (rc == 0) rc = js_get_int(o, "stamp", what, &stamp, e); /* any: it is a sum */
  if (rc == 0) rc = js_opt_bool(o, "open", what, false, &u.open, e);
  u.kind = (match_kind)kind;
  u.stamp = (uint64_t)stamp;
  if (rc == 0 && launch_find(out, u.path))
    rc = err_set(e, ERR_FORMAT, "%s: %.200s is there twice", what, u.path);
  if (rc == 0 && !launch_add(out, &u)) rc = err_set(e, ERR_NOMEM, "%s: out of memory", what);
  free(u.path);
  return rc;
}

static int take_units(const json_t *o, const char *what, launch_units *out, err *e) {
  json_t *list;
  int rc = js_get_array(o, "units", what, &list, e);
  if (rc == 0 && json_array_size(list) > LAUNCH_UNITS_MAX)
    rc = err_set(e, ERR_LIMIT, "%s: more than %d units", what, LAUNCH_UNITS_MAX);
  for (size_t i = 0; rc == 0 && i < json_array_size(list); i++)
    rc = take_unit(json_array_get(list, i), what, out, e);
  return rc;
}

static int take_excludes(const json_t *o, names *out, err *e) {
  json_t *list;
  int rc = js_get_array(o, "excludes", question, &list, e);
  if (rc == 0 && json_array_size(list) > LAUNCH_EXCLUDES_MAX)
    rc = err_set(e, ERR_LIMIT, "%s: more than %d excludes", question, LAUNCH_EXCLUDES_MAX);
  return rc < 0 ? rc : js_take_names(list, "excludes", question, LAUNCH_BYTES_MAX, out, e);
}

int launch_parse_question(const buf *text, launch_question *out, err *e) {
  json_t *o = NULL;
  int64_t number = 0;
  *out = (launch_question){0};
  int rc = js_read(text, question, FORMAT, &o, e);
  if (rc == 0) rc = number_of(o, "number", question, INT64_MAX, &number, e);
  if (rc == 0) rc = js_opt_bool(o, "over", question, false, &out->over, e);
  if (rc == 0) rc = take_excludes(o, &out->excludes, e);
  if (rc == 0) rc = take_units(o, question, &out->units, e);
  json_decref(o);
  out->number = (uint64_t)number;
  if (rc < 0) launch_free_question(out);
  return rc;
}

static int take_host(const json_t *o, launch_answer *out, err *e) {
  char *host = NULL;
  int rc = js_get_name(o, "host", answer, &host, e);
  if (rc == 0) snprintf(out->host, sizeof out->host, "%s", host);
  free(host);
  return rc;
}

int launch_parse_answer(const buf *text, launch_answer *out, err *e) {
  json_t *o = NULL;
  int64_t number = 0, task = 0;
  *out = (launch_answer){0};
  int rc = js_read(text, answer, FORMAT, &o, e);
  if (rc == 0) rc = number_of(o, "number", answer, INT64_MAX, &number, e);
  if (rc == 0) rc = number_of(o, "task", answer, UINT32_MAX, &task, e);
  if (rc == 0) rc = js_opt_bool(o, "ended", answer, false, &out->ended, e);
  if (rc == 0) rc = js_opt_bool(o, "clean", answer, false, &out->clean, e);
  if (rc == 0) rc = take_host(o, out, e);
  if (rc == 0) rc = take_units(o, answer, &out->units, e);
  json_decref(o);
  out->number = (uint64_t)number;
  out->task = (uint32_t)task;
  if (rc < 0) launch_free_answer(out);
  return rc;
}
