#!/usr/bin/python3 -IS
"""Runs a command on a terminal of its own, 80 columns wide, and prints all that it showed.

  terminal.py COMMAND...

Ends with the command's exit code.
"""
import fcntl
import os
import pty
import struct
import sys
import termios


def main():
    ready, go = os.pipe()
    pid, master = pty.fork()
    if pid == 0:
        os.close(go)
        os.read(ready, 1)  # the size comes first
        os.execvp(sys.argv[1], sys.argv[1:])
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.close(go)
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # EIO: nobody has the other side any more
            break
        if not data:
            break
        sys.stdout.buffer.write(data)
    sys.stdout.flush()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


sys.exit(main())
