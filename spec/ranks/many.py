#!/usr/bin/env python3
"""Sixteen ranks, one killed in the middle of a save, then another number of them: spec/ranks/many.py, or make
test-ranks.

MANY processes of `ckpt-lua run` save together, once each with a directory of its own, and once all in one.
In the middle of a save one of them is killed with SIGKILL, its trainer too; the launcher ends the rest after a
moment in which they wait for it, and starts LESS ranks, in the directories that are there; these are ended in the
same way, and MANY come again, with `--restore-parts own` where each has its own directory.

At each start every rank goes on from the same checkpoint, whole, or of its own part. In the end each commit of
the store is read by this program alone: the log's entries, the names, and a digest of its own of each file.

Speaks TAP. Environment: MANY (16), LESS (12), CKPT_LUA (./ckpt-lua), LIMIT (240 seconds
for each half), KEEP.
"""

import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RUNNER = os.path.abspath(os.environ.get("CKPT_LUA", "ckpt-lua"))
MANIFEST = ".ckpt-manifest.json"


def content(step, world, name):
    seed = hashlib.sha256(("%d of %d: %s" % (step, world, name)).encode()).digest()
    return seed * (50 + len(name) + step)


def names_of(world):
    return ["config.json"] + ["shard-%d.bin" % rank for rank in range(world)]


def digest(data):
    return hashlib.blake2b(data).hexdigest()


# ---- the trainer: one rank ----


def check_resume(path, rank, world, own):
    """What it goes on from: the parts of all, or its own one, where it was saved by as many."""
    step = int(path.rsplit("-", 1)[1])
    there = sorted(n for n in os.listdir(path) if n not in ("DONE", MANIFEST))
    shards = [n for n in there if n.startswith("shard-")]
    mine = ["config.json", "shard-%d.bin" % rank]
    parted = own and there == mine
    saved_by = world if parted else len(shards)
    if there != (mine if parted else sorted(names_of(saved_by))):
        sys.exit("trainer %d: %s has %s" % (rank, path, there))
    for name in there:
        with open(os.path.join(path, name), "rb") as file:
            if file.read() != content(step, saved_by, name):
                sys.exit("trainer %d: %s of %s is not what was saved" % (rank, name, path))
    return step


def meet(where, word, rank, world):
    open(os.path.join(where, "%s.%d" % (word, rank)), "w").close()
    while len(glob.glob(os.path.join(where, "%s.*" % word))) < world:
        time.sleep(0.02)


def write(path, data):
    with open(path + ".tmp", "wb") as file:
        file.write(data)
    os.rename(path + ".tmp", path)


def make_part(out, step, rank, world, shared):
    done = os.path.join(out, "checkpoint-%d" % step)
    place = done if shared else os.path.join(out, "making.tmp")
    if not shared:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(done, ignore_errors=True)
    os.makedirs(place, exist_ok=True)
    for name in ["shard-%d.bin" % rank] + (["config.json"] if rank == 0 or not shared else []):
        write(os.path.join(place, name), content(step, world, name))
    if not shared:
        os.rename(place, done)


def train(rank, world, last, where, shared, own):
    out, resume = os.environ["CKPT_DIR"], os.environ.get("CKPT_RESUME")
    step = check_resume(resume, rank, world, own) if resume else 0
    write(os.path.join(where, "resumed-%d" % rank), b"%d" % step)
    meet(where, "begun", rank, world)
    if shared and rank == 0 and resume is None:
        for left in glob.glob(os.path.join(out, "checkpoint-*")):
            shutil.rmtree(left)
    meet(where, "cleared", rank, world)
    first = step + 1
    while step < last:
        step += 1
        while step > first and not os.path.exists(os.path.join(where, "go")):
            time.sleep(0.02)  # till the first one is committed
        if rank == world - 1:
            time.sleep(1)  # its part comes last: till then a save is in its middle
        make_part(out, step, rank, world, shared)
        meet(where, "made-%d" % step, rank, world)
        if shared and rank == 0:
            write(os.path.join(out, "checkpoint-%d" % step, "DONE"), b"")
        time.sleep(0.3)


# ---- the launcher ----


class Half:
    def __init__(self, root, shared):
        self.root, self.shared = root, shared
        self.store = os.path.join(root, "store")
        self.last = 6
        self.until = time.time() + float(os.environ.get("LIMIT", 240))
        self.procs = []

    def fail(self, text):
        for log in sorted(glob.glob(os.path.join(self.root, "log-*"))):
            with open(log, errors="replace") as file:
                for line in file.read().splitlines()[-4:]:
                    print("# %s: %s" % (os.path.basename(log), line))
        raise AssertionError(text)

    def await_(self, what, holds):
        while not holds():
            if time.time() > self.until:
                self.fail("%s does not come" % what)
            time.sleep(0.02)

    def start(self, number, world, own):
        self.where = os.path.join(self.root, "meet-%d" % number)
        os.makedirs(self.where)
        self.procs = [self.start_rank(number, rank, world, own) for rank in range(world)]

    def start_rank(self, number, rank, world, own):
        launch = "many-%s-%d" % (os.path.basename(self.root), number)
        env = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
        env["SLURM_JOB_ID"] = "42"  # the same job of a scheduler: it takes over from its own launch at once
        out = "out" if self.shared else "out-%d" % rank
        words = [RUNNER, "run", "--run", "many", "--dir", os.path.join(self.root, out), "--to"]
        words += ["file://" + self.store, "--rank-wait", "60s", "--grace", "30"]
        if self.shared:
            here = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world}
            env.update({key: str(value) for key, value in here.items()}, TORCHELASTIC_RUN_ID=launch)
            words += ["--marker", "DONE", "--settle", "1"]
        else:
            words += ["--launch-id", launch, "--rank", str(rank), "--world", str(world), "--settle", "0.1"]
        if own:
            words += ["--restore-parts", "own"]
        words += ["--", sys.executable, os.path.abspath(__file__), "train", str(rank), str(world)]
        words += [str(self.last), self.where, "shared" if self.shared else "", "own" if own else ""]
        log = open(os.path.join(self.root, "log-%d" % rank), "ab")
        return subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, env=env)

    def check_alive(self):
        for rank, proc in enumerate(self.procs):
            if proc.poll():
                self.fail("rank %d ended with %d" % (rank, proc.returncode))

    def check_resumed(self, world):
        files = [os.path.join(self.where, "resumed-%d" % rank) for rank in range(world)]
        self.await_("the start of all", lambda: self.check_alive() or all(map(os.path.exists, files)))
        steps = set()
        for path in files:
            with open(path) as file:
                steps.add(int(file.read()))
        if len(steps) > 1:
            self.fail("the ranks go on from steps %s" % sorted(steps))
        return steps.pop()

    def is_in_the_middle(self, step):
        """Some have made their part of that step, and the last one has not."""
        made = glob.glob(os.path.join(self.where, "made-%d.*" % step))
        return 0 < len(made) < len(self.procs)

    def kill(self, proc):
        try:
            os.killpg(proc.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        for proc in self.procs:
            self.kill(proc)
            proc.wait()

    def play(self, number, world, own, victim):
        """One launch; `victim`: the rank that is killed in the middle of a save, None: it comes to its end."""
        known = self.names()
        self.start(number, world, own)
        begun = self.check_resumed(world)
        first = "checkpoint-%d" % (begun + 1)
        self.await_("a commit of " + first, lambda: self.check_alive() or first in self.names() - known)
        open(os.path.join(self.where, "go"), "w").close()
        if victim is None:
            self.await_("the end", lambda: self.check_alive() or all(p.poll() == 0 for p in self.procs))
            return begun
        step = begun + 2
        self.await_("the middle of a save", lambda: self.check_alive() or self.is_in_the_middle(step))
        self.kill(self.procs[victim])
        self.procs[victim].wait()
        time.sleep(2)  # the others wait for it
        self.end()
        return begun

    # ---- what is committed, read without the engine ----

    def entries(self):
        for path in sorted(glob.glob(os.path.join(self.store, ".ckpt", "log", "*.json"))):
            with open(path) as file:
                yield json.load(file)

    def check_commit(self, attempt):
        world = attempt.get("world", 1)
        where = os.path.join(self.store, attempt["dir"])
        step = int(attempt["unit"].rsplit("-", 1)[1])
        there = {n for n in os.listdir(where) if n != MANIFEST}
        found = len([n for n in there if n.startswith("shard-")])
        if not self.shared and found != world:
            self.fail("%s of %d ranks has %d shards" % (where, world, found))
        wanted = set(names_of(found)) | ({"DONE"} if self.shared else set())
        if there != wanted or found not in self.worlds:
            self.fail("%s has %s" % (where, sorted(there)))
        for name in there - {"DONE"}:
            with open(os.path.join(where, name), "rb") as file:
                if digest(file.read()) != digest(content(step, found, name)):
                    self.fail("%s of %s has other bytes" % (name, where))
        return step, found

    def commits(self):
        """The attempts that were committed."""
        attempts, found = {}, []
        for entry in self.entries():
            if entry["type"] == "attempt":
                attempts[entry["n"]] = entry
            elif entry["type"] == "commit":
                found.append(attempts[entry["attempt"]])
        return found

    def names(self):
        return {attempt["unit"] for attempt in self.commits()}

    def check_store(self):
        found = [self.check_commit(attempt) for attempt in self.commits()]
        if self.last not in {step for step, _ in found}:
            self.fail("the last step is not committed: %s" % found)
        if {world for _, world in found} != set(self.worlds):
            self.fail("what is committed: %s" % found)
        return len(found)

    def run(self, many, less):
        self.worlds = (many, less)
        try:
            # In one directory a rank that has made its files is not missed.
            victim = many - 1 if self.shared else many // 2
            begun = [self.play(0, many, False, victim), self.play(1, less, False, less - 1)]
            begun.append(self.play(2, many, not self.shared, None))
        finally:
            self.end()
        if not begun[0] == 0 < begun[1] <= begun[2]:
            self.fail("they went on from %s" % begun)
        return begun, self.check_store()


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "train":
        rank, world, last = map(int, sys.argv[2:5])
        train(rank, world, last, sys.argv[5], sys.argv[6] == "shared", sys.argv[7] == "own")
        return
    many, less = int(os.environ.get("MANY", 16)), int(os.environ.get("LESS", 12))
    failed = 0
    print("1..2")
    for number, shared in ((1, False), (2, True)):
        root = tempfile.mkdtemp(prefix="ckpt-many.")
        what = "one directory" if shared else "directories of their own"
        promise = "%d ranks with %s, one killed, then %d, then %d" % (many, what, less, many)
        try:
            begun, count = Half(root, shared).run(many, less)
            print("# they went on from %s; %d commits, each whole by its own digest" % (begun, count))
            print("ok %d - %s" % (number, promise))
        except AssertionError as error:
            failed = 1
            print("# WRONG: %s\nnot ok %d - %s" % (error, number, promise))
        finally:
            if "KEEP" not in os.environ:
                shutil.rmtree(root, ignore_errors=True)
    sys.exit(failed)


main()
