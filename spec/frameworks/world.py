"""A run in the real world: its processes, found by a mark of ours, the events of its directory, and SIGKILL."""
import ctypes
import os
import re
import signal
import struct
import subprocess
import threading
import time
import uuid

EVENTS = {0x2: "MODIFY", 0x100: "CREATE", 0x8: "CLOSE_WRITE", 0x80: "MOVED_TO", 0x200: "DELETE"}
ISDIR, OVERFLOW, NONBLOCK, CLOEXEC = 0x40000000, 0x4000, 0o4000, 0o2000000


class Watch:
    """What happens below a directory. New directories are listed after their watch is set: what was made before it
    is told as CREATE."""

    def __init__(self, root):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(NONBLOCK | CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        self.root, self.dirs = root, {}
        self.early = []
        self.add("")

    def add(self, rel):
        path = os.path.join(self.root, rel)
        wd = self.libc.inotify_add_watch(self.fd, os.fsencode(path), sum(EVENTS))
        if wd < 0:
            return
        self.dirs[wd] = rel
        try:
            for entry in os.scandir(path):
                name = os.path.join(rel, entry.name)
                self.early.append(("CREATE", name))
                if entry.is_dir(follow_symlinks=False):
                    self.add(name)
        except OSError:
            pass

    def read(self):
        """The events since the last call, as (event, path)."""
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            data = b""
        told, at = [], 0
        while at < len(data):
            wd, mask, _, n = struct.unpack_from("iIII", data, at)
            name = data[at + 16:at + 16 + n].rstrip(b"\0").decode(errors="replace")
            at += 16 + n
            if wd not in self.dirs:
                continue
            rel = os.path.join(self.dirs[wd], name)
            told += [(word, rel) for bit, word in EVENTS.items() if mask & bit]
            if mask & ISDIR and mask & (0x100 | 0x80):
                self.add(rel)
        told += self.early
        self.early = []
        return told

    def close(self):
        os.close(self.fd)


class Running:
    """A command and all that it starts: each has our mark in its environment, whatever session it made itself."""

    def __init__(self, command, log, environment):
        self.mark = uuid.uuid4().hex
        self.log = open(log, "a", encoding="utf-8")
        self.lines = []  # (time, text) of what the runner and its job print
        self.known = set()
        self.others = set()  # pids that are not ours, and will not be
        env = {**os.environ, **environment, "FW_MARK": self.mark, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=env, start_new_session=True, text=True,
                                        errors="replace")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.time(), line.rstrip("\n")))
            self.log.write(f"{time.time():.3f} {line}")
            self.log.flush()

    def all(self):
        """Each is asked once what it is: a machine with much on it has better to do than to tell it again and again.
        One that has nothing to tell (a thread of the kernel, or one that just begins or ends) is asked once more."""
        found, pids = set(), {int(d) for d in os.listdir("/proc") if d.isdigit()} - {os.getpid()}
        self.others &= pids
        for pid in pids - self.others:
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    told = f.read()
            except OSError:
                continue
            if b"FW_MARK=" + self.mark.encode() in told:
                found.add(pid)
            elif told:
                self.others.add(pid)
        return found

    def refresh(self):
        self.known = self.all()

    def _each(self, pids, signo):
        for pid in pids:
            try:
                os.kill(pid, signo)
            except OSError:
                pass

    def kill(self):
        """All at once: those that are known stop in this instant, then none is left out."""
        self._each(self.known, signal.SIGSTOP)
        for _ in range(200):
            pids = self.all()
            if not pids:
                break
            self._each(pids, signal.SIGSTOP)
            self._each(pids, signal.SIGKILL)
            time.sleep(0.02)
        self.process.wait()

    def kill_runner(self):
        """The runner alone. Returns in how many seconds the rest was gone, or None if it was not."""
        self.process.kill()
        began = time.time()
        while time.time() - began < 20:
            if not self.all():
                return time.time() - began
            time.sleep(0.1)
        self.kill()
        return None

    def end(self):
        code = self.process.wait()
        self.reader.join(10)
        self.log.close()
        return code


class Aim:
    """Waits for the moment of a kill: an event that comes after it was armed."""

    def __init__(self, out, event, regex, delay):
        self.event, self.regex, self.delay = event, re.compile(regex), delay
        self.watch, self.armed = Watch(out), False

    def hit(self, armed):
        events = self.watch.read()
        if not self.armed:  # what is in the queue now came before
            self.armed = armed
            return None
        for event, path in events:
            if event == self.event and self.regex.fullmatch(path):
                time.sleep(self.delay)
                return f"{event} {path}"
        return None
