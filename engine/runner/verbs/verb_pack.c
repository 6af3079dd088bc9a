/* `pack`: makes one file of a directory. */
#include "archive.h"
#include "verbs.h"

static int run(const options *o) {
  return archive_make(o, ckpt_pack, o->file);
}

static const char help[] =
    "FILE ends in .tar, .tar.gz, .tgz, .tar.zst or .tzst, and must not exist. Equal directories "
    "give\n"
    "equal archives: names are sorted, modes and times kept, owners and extended attributes left\n"
    "out. Devices, and links that lead out of DIR, are refused.\n";

const verb verb_pack = {
    .name = "pack",
    .synopsis = "pack DIR FILE [options]",
    .summary = "make a tar archive of a directory",
    .text = help,
    .words = {2, 2, "DIR and FILE", {OF(dir), OF(file)}, 0, false},
    .run = run,
};
