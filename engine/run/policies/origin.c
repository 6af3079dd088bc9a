#include "run/policies/origin.h"

#include <stdlib.h>
#include <string.h>

static bool copy(origin *o, const policy_options *said) {
  o->says_units = said->units != NULL;
  o->says_excludes = said->excludes != NULL;
  o->says_markers = said->markers != NULL;
  o->dir = o->files.dir ? strdup(o->files.dir) : NULL;
  o->quiet_ns = said->quiet_ns;
  return names_add_all(&o->settings, said->settings) && names_add_all(&o->units, said->units) &&
         names_add_all(&o->excludes, said->excludes) && names_add_all(&o->markers, said->markers) &&
         (!o->files.dir || o->dir);
}

int origin_read(origin *o, const policy_options *said, err *e) {
  int rc = policy_files_read(said->io, said->dir, said->names, &o->files, e);
  if (rc == 0 && !(copy(o, said) && origin_paths(&o->files, &o->paths)))
    rc = err_set(e, ERR_NOMEM, "read the policies: out of memory");
  return rc;
}

void origin_free(origin *o) {
  policy_files_free(&o->files);
  names_free(&o->paths);
  names_free(&o->settings);
  names_free(&o->units);
  names_free(&o->excludes);
  names_free(&o->markers);
  free(o->dir);
  *o = (origin){0};
}

policy_options origin_options(const origin *o, const policy_files *files, const names *settings) {
  return (policy_options){.files = files,
                          .settings = names_list(settings),
                          .dir = o->dir,
                          .units = o->says_units ? names_list(&o->units) : NULL,
                          .excludes = o->says_excludes ? names_list(&o->excludes) : NULL,
                          .markers = o->says_markers ? names_list(&o->markers) : NULL,
                          .quiet_ns = o->quiet_ns};
}

bool origin_paths(const policy_files *files, names *out) {
  for (size_t i = 0; i < files->count; i++)
    if (!names_add(out, files->at[i].path)) {
      names_free(out);
      return false;
    }
  return true;
}

void origin_take(origin *o, policy_files *files, names *paths, names *settings) {
  policy_files_free(&o->files);
  o->files = *files;
  *files = (policy_files){0};
  names_free(&o->paths);
  o->paths = *paths;
  *paths = (names){0};
  names_free(&o->settings);
  o->settings = *settings;
  *settings = (names){0};
}
