/* `unpack`: makes a directory of an archive. */
#include "archive.h"
#include "runner/cli/durations.h"
#include "verbs.h"

static int run(const options *o) {
  return archive_make(o, ckpt_unpack, o->dir);
}

static int take_size(options *o, const option_spec *spec, const char *value, char *error) {
  if (size_read(value, option_member(o, spec))) return 0;
  return OPTIONS_FAIL(error, "--max-size: '%s' is no size; say 500MiB or 20GiB", value);
}

static int take_entries(options *o, const option_spec *spec, const char *value, char *error) {
  if (size_read(value, option_member(o, spec))) return 0;
  return OPTIONS_FAIL(error, "--max-entries: '%s' is no number above 0", value);
}

static const option_spec opt_dir = {
    "dir",     "DIR",         "where to put it: absent, or an empty directory",
    take_text, .at = OF(dir), .needed = true};
static const option_spec opt_max_size = {"max-size", "SIZE",
                                         "what it may grow to, e.g. 20GiB (default: 1TiB)",
                                         take_size, .at = OF(size_max)};
static const option_spec opt_max_entries = {"max-entries", "N",
                                            "how many it may hold (default: 4194304)", take_entries,
                                            .at = OF(entries_max)};

static const char help[] =
    "The archive may be anybody's: nothing is ever written outside of DIR, and whatever is no "
    "file,\n"
    "no directory and no link that stays inside is refused, as is what grows too large. FILE -\n"
    "is standard input.\n";

const verb verb_unpack = {
    .name = "unpack",
    .synopsis = "unpack FILE --dir DIR [options]",
    .summary = "make a directory of a tar archive, all of it or nothing",
    .text = help,
    .options = (const option_spec *const[]){&opt_dir, &opt_max_size, &opt_max_entries, NULL},
    .words = {1, 1, "FILE", {OF(file)}, 0, false},
    .run = run,
};
