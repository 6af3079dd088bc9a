#include "fault_dir.h"

#include <sys/stat.h>
#include <unistd.h>

char *dir;
io_fault *fault;
const io *io_;

const char *in(const char *name) {
  return tmpdir_path(dir, name);
}

void fault_dir_enter(const char *place) {
  dir = place ? tmpdir_new_in(place) : tmpdir_new();
  fault = io_fault_new(io_unflushed());
  io_ = io_fault_io(fault);
  umask(022);
}

int fault_dir_leave(void **state) {
  (void)state;
  io_fault_free(fault);
  tmpdir_remove(dir);
  return 0;
}

const char *fault_dir_memory(void) {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL;
}
