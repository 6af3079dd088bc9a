#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>

/* A flush of 9p and FUSE (virtiofs has its number too) ends where another program on the way says
 * that it does, often in the cache of the machine below; Coda takes it while no server is there; a
 * disk that hosts share is a disk, with caches of its own. They are not taken at their word. */
enum { LOCAL, REMOTE, SERVED };
static const struct {
  uint32_t magic;
  const char *name;
  int how;
} kinds[] = {
    {0x0000ef53, "ext4", LOCAL}, /* ext2 and ext3 too: one number for all */
    {0x58465342, "xfs", LOCAL},       {0x9123683e, "btrfs", LOCAL},
    {0x01021994, "tmpfs", LOCAL},     {0x858458f6, "ramfs", LOCAL},
    {0x794c7630, "overlay", LOCAL},   {0x2fc12fc1, "zfs", LOCAL},
    {0xf2f52010, "f2fs", LOCAL},      {0xca451a4e, "bcachefs", LOCAL},
    {0x00004d44, "vfat", LOCAL},      {0x2011bab0, "exfat", LOCAL},
    {0x00006969, "nfs", SERVED},      {0x0000517b, "smb", REMOTE},
    {0xff534d42, "cifs", SERVED},     {0xfe534d42, "smb2", SERVED},
    {0x0bd00bd0, "lustre", SERVED},   {0x47504653, "gpfs", SERVED},
    {0x00c36400, "ceph", SERVED},     {0x65735546, "fuse", REMOTE},
    {0x01021997, "9p", REMOTE},       {0x5346414f, "afs", REMOTE},
    {0x6b414653, "afs", REMOTE},      {0x19830326, "beegfs", SERVED},
    {0x20030528, "orangefs", REMOTE}, {0x01161970, "gfs2", REMOTE},
    {0x7461636f, "ocfs2", REMOTE},    {0x73757245, "coda", REMOTE},
};

int fs_kind_of(const char *path, fs_kind *out, err *e) {
  struct statfs st;
  int rc;
  do rc = statfs(path, &st);
  while (rc < 0 && errno == EINTR);
  if (rc < 0) return err_sys(e, errno, "cannot ask for the file system of %s", path);
  /* A kind that we do not know counts as remote: polling a local one costs some stat calls, but
   * trusting events on a remote one would miss what other hosts write. */
  *out = (fs_kind){.name = "unknown", .remote_writers = true};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (kinds[i].magic == (uint32_t)st.f_type)
      *out = (fs_kind){kinds[i].name, kinds[i].how != LOCAL, kinds[i].how == SERVED};
  return 0;
}

int fs_is_mount_point(const char *path, err *e) {
  struct statx here, above;
  if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, &here) < 0)
    return err_sys(e, errno, "cannot look at %s", path);
  if (!S_ISDIR(here.stx_mode)) return err_set(e, ERR_INVAL, "%s is not a directory", path);
  /* Only this attribute shows a bind mount of the same file system, and containers are full of
   * those; kernels before 5.8 do not have it. */
  bool told = here.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT;
  if (told && here.stx_attributes & STATX_ATTR_MOUNT_ROOT) return 1;
  char up[FS_PATH_MAX];
  int rc = fs_join(up, path, "..", e);
  if (rc < 0) return rc;
  if (statx(AT_FDCWD, up, 0, STATX_BASIC_STATS, &above) < 0)
    return err_sys(e, errno, "cannot look at %s", up);
  bool other_device =
      here.stx_dev_major != above.stx_dev_major || here.stx_dev_minor != above.stx_dev_minor;
  /* The root of a chroot is no mount, but nothing can stand beside it either. */
  bool root = !other_device && here.stx_ino == above.stx_ino;
  return root || (!told && other_device);
}

static int device_of(const io *io, const char *path, dev_t *out, err *e) {
  /* A descriptor is opened so that a link counts as what it points to. */
  int fd = io->open(io, AT_FDCWD, path, O_PATH, 0);
  if (fd < 0) return err_sys(e, fd, "cannot look at %s", path);
  struct stat st;
  int rc = io->fstat(io, fd, &st);
  io->close(io, fd); /* nothing was written: nothing can be lost */
  if (rc < 0) return err_sys(e, rc, "cannot look at %s", path);
  *out = st.st_dev;
  return 0;
}

int fs_same_device(const io *io, const char *a, const char *b, err *e) {
  dev_t first, second;
  int rc = device_of(io, a, &first, e);
  if (rc == 0) rc = device_of(io, b, &second, e);
  return rc < 0 ? rc : first == second;
}
