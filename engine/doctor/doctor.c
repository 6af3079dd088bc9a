#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/seconds.h"
#include "doctor_impl.h"

void doctor_tell(void *ctx, const store_finding *f) {
  doctor *d = ctx;
  if (f->word == STORE_FAULT && d->sum->faults++ == 0) d->sum->status = f->status;
  d->sum->warnings += f->word == STORE_WARNING;
  if (d->fn) d->fn(d->ctx, f);
}

void doctor_say(doctor *d, const char *topic, store_word word, const char *advice,
                const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  doctor_tell(d, &(store_finding){.topic = topic,
                                  .word = word,
                                  .status = word == STORE_FAULT ? ERR_UNSUPPORTED : 0,
                                  .text = text,
                                  .advice = advice});
}

void doctor_fault(doctor *d, const char *topic, const err *why, const char *meaning,
                  const char *advice) {
  char text[ERR_TEXT_MAX + 200];
  snprintf(text, sizeof text, "%s: %s", meaning, why->text);
  doctor_tell(d, &(store_finding){.topic = topic,
                                  .word = STORE_FAULT,
                                  .status = why->code,
                                  .text = text,
                                  .advice = advice});
}

static const char *advice_for(const err *why) {
  switch (why->code) {
  case ERR_ACCESS: return "give credentials that may read and write here";
  case ERR_TIMEOUT:
  case ERR_IO: return "see that the server runs and can be reached from this machine";
  case ERR_NOSTORE: return "make the bucket, or name one that is there";
  default: return "";
  }
}

/* Returns true if the place answers. */
static bool meet(doctor *d, const uri *place, const log_sink *log) {
  err why = {0};
  if (store_open(place, d->io, log, &d->store, &why) < 0) {
    doctor_fault(d, "place", &why, "the place cannot be opened", advice_for(&why));
    return false;
  }
  atomic_store(&d->store->patience_ns, 15 * SECOND_NS);
  int rc = d->store->ops->exists(d->store, &why);
  if (rc == 0) {
    doctor_say(d, "place", STORE_FINE, "", "it is there, and it answers");
  } else if (rc == ERR_NOSTORE) {
    doctor_say(d, "place", STORE_FINE, "", "it answers; nothing is there yet, a save makes it");
  } else {
    doctor_fault(d, "place", &why, "the place does not answer as it should", advice_for(&why));
    return false;
  }
  return true;
}

/* Keys below .ckpt/tmp are nobody's; a directory keeps that place for its own files. */
static int name_base(doctor *d, err *e) {
  char nonce[33];
  int rc = io_nonce(d->io, nonce);
  if (rc < 0) return err_sys(e, rc, "draw a random name");
  snprintf(d->base, sizeof d->base, ".ckpt/%sdoctor-%s", d->dir ? "" : "tmp/", nonce);
  return 0;
}

static int count_key(void *ctx, const char *key, bool is_prefix, const store_object *object) {
  (void)key, (void)is_prefix, (void)object;
  ++*(size_t *)ctx;
  return 0;
}

static void clear(doctor *d) {
  err why = {0};
  size_t left = 0;
  int rc = d->store->ops->remove_prefix(d->store, d->base, &why);
  if (rc == 0) rc = d->store->ops->list(d->store, d->base, false, count_key, &left, &why);
  if (rc == 0 && left == 0)
    doctor_say(d, "left", STORE_FINE, "", "nothing: all that was tried out is removed again");
  else
    doctor_say(d, "left", STORE_WARNING, "remove what is below that key",
               "what was tried out is still below %s%s%s", d->base, *why.text ? ": " : "",
               why.text);
}

static void try_out(doctor *d) {
  names made = {0};
  char key[STORE_KEY_MAX];
  err why = {0};
  doctor_note_dirs(d, &made);
  snprintf(key, sizeof key, "%.500s/examined", d->base);
  const store_ops *ops = d->store->ops;
  int rc = ops->examine ? ops->examine(d->store, key, doctor_tell, d, &why) : 0;
  if (rc < 0 && rc != ERR_ACCESS && rc != ERR_NOSTORE)
    doctor_say(d, "server", STORE_WARNING, "", "it could not be asked what it can do: %s",
               why.text);
  if (rc == ERR_NOSTORE)
    doctor_fault(d, "place", &why, "there is no such bucket", advice_for(&why));
  bool written = rc != ERR_NOSTORE && doctor_try_store(d);
  if (written && d->dir) doctor_try_disk(d);
  if (written) clear(d);
  doctor_drop_dirs(d, &made);
  names_free(&made);
}

int doctor_examine(const io *io, const log_sink *log, const char *where, store_finding_fn *fn,
                   void *ctx, doctor_sum *out, err *e) {
  uri place;
  buf text;
  *out = (doctor_sum){0};
  doctor d = {.io = io, .fn = fn, .ctx = ctx, .sum = out};
  buf_init(&text, URI_MAX);
  int rc = uri_expand(where, &text, e);
  if (rc == 0) rc = uri_parse(text.data ? text.data : "", &place, e);
  buf_free(&text);
  if (rc < 0) return rc;
  d.dir = uri_dir(&place);
  rc = name_base(&d, e);
  if (rc < 0) return rc;
  if (meet(&d, &place, log)) {
    try_out(&d);
    doctor_look_at_logs(&d, log, where);
  }
  store_close(d.store);
  return 0;
}
