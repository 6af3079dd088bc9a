/* `pack`, `unpack`: a directory as one file, and back. */
#include "command.h"
#include "report.h"
#include "verbs.h"

static int archive(const options *o, int (*work)(ckpt *, const ckpt_archive_options *),
                   const char *made) {
  ckpt *engine = NULL;
  const ckpt_archive_options options = {.size = sizeof options,
                                        .dir = o->dir,
                                        .file = o->file,
                                        .bytes_max = o->size_max,
                                        .entries_max = o->entries_max};
  int code = EXIT_DONE;
  int rc = command_open(&engine, o);
  if (rc == 0) rc = work(engine, &options);
  if (rc < 0)
    code = command_failed(engine, rc);
  else if (o->level >= 0)
    report_info("%s is there", made);
  ckpt_close(engine);
  return command_end(code);
}

int verb_pack(const options *o) {
  return archive(o, ckpt_pack, o->file);
}

int verb_unpack(const options *o) {
  return archive(o, ckpt_unpack, o->dir);
}
