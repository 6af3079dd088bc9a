/* The public API, its part about archives. */

#include "ckpt_state.h"
#include "job/pack/pack.h"
#include "job/pack/unpack.h"

static int take(ckpt *c, const ckpt_archive_options *options, ckpt_archive_options *out) {
  int rc = ckpt_enter(c);
  if (rc == 0) rc = ckpt_take(out, sizeof *out, options, "ckpt_archive_options", &c->error);
  if (rc == 0 && (!out->dir || !*out->dir || !out->file || !*out->file))
    rc = err_set(&c->error, ERR_INVAL, "ckpt_archive_options: dir and file are needed");
  return rc;
}

int ckpt_pack(ckpt *c, const ckpt_archive_options *options) {
  ckpt_archive_options o;
  int rc = take(c, options, &o);
  if (rc < 0) return rc;
  const pack_options how = {
      .io = c->env.io, .libexec = c->options.libexec, .dir = o.dir, .file = o.file};
  return pack_archive(&how, &c->error);
}

int ckpt_unpack(ckpt *c, const ckpt_archive_options *options) {
  ckpt_archive_options o;
  int rc = take(c, options, &o);
  if (rc < 0) return rc;
  const unpack_options how = {.io = c->env.io,
                              .libexec = c->options.libexec,
                              .dir = o.dir,
                              .file = o.file,
                              .bytes_max = o.bytes_max,
                              .entries_max = o.entries_max};
  return unpack_archive(&how, &c->error);
}
