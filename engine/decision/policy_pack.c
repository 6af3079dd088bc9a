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

void policy_pack_name(const char *name, buf *out) {
  if (!name || is_text(name)) {
    packed_put_text(out, name);
    return;
  }
  buf shown;
  buf_init(&shown, POLICY_FRAME_MAX);
  js_name_escape(name, &shown);
  if (buf_failed(&shown))
    out->failure = buf_failed(&shown);
  else
    packed_put_text(out, shown.data);
  buf_free(&shown);
}

double policy_pack_count(uint64_t n) {
  return n < INT64_MAX ? (double)n : (double)INT64_MAX;
}

void policy_pack_item(const policy_item *item, double age, buf *out) {
  unsigned char flags = 0;
  if (item->newest) flags |= POLICY_PACKED_NEWEST;
  if (item->pinned) flags |= POLICY_PACKED_PINNED;
  if (item->durable) flags |= POLICY_PACKED_DURABLE;
  packed_put_byte(out, flags);
  packed_put_number(out, age);
  packed_put_number(out, item->number ? policy_pack_count(item->number) : NAN);
  packed_put_number(out, item->step != MATCH_NO_STEP ? (double)item->step : NAN);
  packed_put_number(out, (double)item->time_ns / 1e9);
  packed_put_number(out, policy_pack_count(item->files));
  packed_put_number(out, policy_pack_count(item->bytes));
  packed_put_number(out, item->left_out ? policy_pack_count(item->left_out) : NAN);
  policy_pack_name(item->name, out);
  policy_pack_name(item->dir, out);
  policy_pack_name(item->kind ? item->kind : "perm", out);
  policy_pack_name(item->suspect, out);
  packed_put_text(out, item->metrics);
}
