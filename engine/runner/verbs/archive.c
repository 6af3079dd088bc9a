#include "archive.h"

#include "runner/cli/command.h"
#include "runner/cli/report.h"

int archive_make(const options *o, int (*work)(ckpt *, const ckpt_archive_options *),
                 const char *made) {
  ckpt *engine = NULL;
  const ckpt_archive_options options = {.size = sizeof options,
                                        .dir = o->dir,
                                        .file = o->file,
                                        .bytes_max = o->size_max,
                                        .entries_max = o->entries_max};
  int rc = command_open(&engine, o);
  if (rc == 0) rc = work(engine, &options);
  if (rc >= 0 && o->level >= 0) report_info("%s is there", made);
  return command_close(engine, rc, EXIT_DONE);
}
