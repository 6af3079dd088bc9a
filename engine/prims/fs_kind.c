#include "fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>

static const struct {
  uint32_t magic;
  fs_kind kind;
} kinds[] = {
    {0x0000ef53, {"ext4", false}}, /* ext2 and ext3 too: one number for all */
    {0x58465342, {"xfs", false}},     {0x9123683e, {"btrfs", false}},
    {0x01021994, {"tmpfs", false}},   {0x858458f6, {"ramfs", false}},
    {0x794c7630, {"overlay", false}}, {0x2fc12fc1, {"zfs", false}},
    {0xf2f52010, {"f2fs", false}},    {0xca451a4e, {"bcachefs", false}},
    {0x00004d44, {"vfat", false}},    {0x2011bab0, {"exfat", false}},
    {0x00006969, {"nfs", true}},      {0x0000517b, {"smb", true}},
    {0xff534d42, {"cifs", true}},     {0xfe534d42, {"smb2", true}},
    {0x0bd00bd0, {"lustre", true}},   {0x47504653, {"gpfs", true}},
    {0x00c36400, {"ceph", true}},     {0x65735546, {"fuse", true}},
    {0x01021997, {"9p", true}},       {0x5346414f, {"afs", true}},
    {0x6b414653, {"afs", true}},      {0x19830326, {"beegfs", true}},
    {0x20030528, {"orangefs", true}}, {0x01161970, {"gfs2", true}},
    {0x7461636f, {"ocfs2", true}},    {0x73757245, {"coda", true}},
};

int fs_kind_of(const char *path, fs_kind *out, err *e) {
  struct statfs st;
  int rc;
  do rc = statfs(path, &st);
  while (rc < 0 && errno == EINTR);
  if (rc < 0) return err_sys(e, errno, "cannot ask for the file system of %s", path);
  /* A kind that we do not know counts as remote: polling a local one costs some stat calls, but
   * trusting events on a remote one would miss what other hosts write. */
  *out = (fs_kind){"unknown", true};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (kinds[i].magic == (uint32_t)st.f_type) *out = kinds[i].kind;
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
