/* policy_pack: lists of checkpoints for the policies' process, as policy_link.h describes them. Most
 * of what is asked is such a list, and nearly the same one each time. */
#include <math.h>
#include <string.h>

#include "base/packed.h"
#include "base/shown.h"
#include "decision/policy_impl.h"

static bool is_text(const char *name) {
  for (const unsigned char *at = (const unsigned char *)name; *at;) {
    size_t len = *at < 0x80 ? 1 : shown_utf8_len(at);
    if (len == 0) return false;
    at += len;
  }
  return true;
}

/* Bytes that are no text are shown as %XX. */
static int put_name(const char *name, buf *out) {
  if (!name || is_text(name)) {
    packed_put_text(out, name);
    return 0;
  }
  buf shown;
  buf_init(&shown, POLICY_FRAME_MAX);
  js_name_escape(name, &shown);
  int rc = buf_failed(&shown);
  if (rc == 0) packed_put_text(out, shown.data);
  buf_free(&shown);
  return rc;
}

/* Lua has one kind of number; what is above that of JSON's integers is their last one. */
static double count_of(uint64_t n) {
  return n < INT64_MAX ? (double)n : (double)INT64_MAX;
}

int policy_pack_item(const policy_item *item, double age, buf *out) {
  unsigned char flags = 0;
  if (item->newest) flags |= POLICY_PACKED_NEWEST;
  if (item->pinned) flags |= POLICY_PACKED_PINNED;
  if (item->durable) flags |= POLICY_PACKED_DURABLE;
  packed_put_byte(out, flags);
  packed_put_number(out, age);
  packed_put_number(out, item->number ? count_of(item->number) : NAN);
  packed_put_number(out, item->step != MATCH_NO_STEP ? (double)item->step : NAN);
  packed_put_number(out, (double)item->time_ns / 1e9);
  packed_put_number(out, count_of(item->files));
  packed_put_number(out, count_of(item->bytes));
  packed_put_number(out, item->left_out ? count_of(item->left_out) : NAN);
  int rc = put_name(item->name, out);
  if (rc == 0) rc = put_name(item->dir, out);
  if (rc == 0) rc = put_name(item->kind ? item->kind : "perm", out);
  if (rc == 0) rc = put_name(item->suspect, out);
  packed_put_text(out, item->metrics);
  return rc < 0 ? rc : buf_failed(out);
}
