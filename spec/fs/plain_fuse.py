#!/usr/bin/python3
"""A FUSE file system as network drives are: spec/fs/plain_fuse.py SOURCE MOUNTPOINT

It shows SOURCE, and has what all of them have: no hard links (EIO, as rclone's), no flags of
renameat2 (the kernel answers EINVAL for it). Runs until it is unmounted.
"""
import errno
import os
import sys

import fusepy


class Plain(fusepy.Operations):
    def __init__(self, root):
        self.root = root

    def at(self, path):
        return self.root + path

    def getattr(self, path, fh=None):
        st = os.lstat(self.at(path))
        names = "st_atime st_ctime st_gid st_mode st_mtime st_nlink st_size st_uid".split()
        return {name: getattr(st, name) for name in names}

    def readdir(self, path, fh):
        return [".", ".."] + os.listdir(self.at(path))

    def statfs(self, path):
        st = os.statvfs(self.at(path))
        return {name: getattr(st, name) for name in ("f_bavail", "f_bfree", "f_blocks", "f_bsize")}

    def open(self, path, flags):
        return os.open(self.at(path), flags)

    def create(self, path, mode, fi=None):
        return os.open(self.at(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self.at(path), length)

    def fsync(self, path, datasync, fh):
        os.fsync(fh)

    def release(self, path, fh):
        os.close(fh)

    def mkdir(self, path, mode):
        os.mkdir(self.at(path), mode)

    def rmdir(self, path):
        os.rmdir(self.at(path))

    def unlink(self, path):
        os.unlink(self.at(path))

    def rename(self, old, new):
        os.rename(self.at(old), self.at(new))

    def link(self, target, source):
        raise fusepy.FuseOSError(errno.EIO)

    def symlink(self, target, source):
        os.symlink(source, self.at(target))

    def readlink(self, path):
        return os.readlink(self.at(path))

    def chmod(self, path, mode):
        os.chmod(self.at(path), mode)

    def chown(self, path, uid, gid):
        os.chown(self.at(path), uid, gid)

    def utimens(self, path, times=None):
        os.utime(self.at(path), times)


if __name__ == "__main__":
    fusepy.FUSE(Plain(os.path.realpath(sys.argv[1])), sys.argv[2], foreground=True, default_permissions=True)
