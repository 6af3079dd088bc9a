#!/usr/bin/env python3
"""Ranks that are killed at random: spec/ranks/ranks.py, or make test-ranks.

RANKS processes of `ckpt-lua run`, each with a directory of its own, save CHECKPOINTS checkpoints
together. Their trainer is this file: in each step every rank writes its own files and one that all
of them have, and waits for the others, as training does. Again and again a rank is killed with
SIGKILL (the runner alone, or its trainer too); the launcher ends the rest, as srun does, after a
moment in which they wait for the dead one, and starts all anew: under a new launch id, with the
ranks dealt out anew to the directories, and now and then with a directory lost.

At each start every rank must be given the same checkpoint to resume from, whole. In the end every
checkpoint that is listed must verify, and be byte for byte what the ranks have written; and what was
given up must be collected.

Speaks TAP. Environment: RANKS (8), CHECKPOINTS (20), KILLS (12), SEED (the time; printed), TARGET (a
URI; a fresh directory), CKPT_LUA (./ckpt-lua), LIMIT (220 seconds for all).
"""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RUNNER = os.path.abspath(os.environ.get("CKPT_LUA", "ckpt-lua"))
POLICY = 'return { api = 1, queue = "all", complete = done.renamed() }\n'


def content(step, rank):
    """What rank `rank` (-1: all of them) writes in a step."""
    seed = hashlib.sha256(b"%d %d" % (step, rank)).digest()
    return seed * (300 + 97 * (rank + 1))


def files_of(step, rank):
    yield "shard-%d.bin" % rank, content(step, rank)
    yield "sub/optim-%d.bin" % rank, content(-step, rank)
    yield "config.json", content(step, -1)


# ---- the trainer: one rank ----


def check_resume(path, world):
    step = int(path.rsplit("-", 1)[1])
    for rank in range(world):
        for name, data in files_of(step, rank):
            with open(os.path.join(path, name), "rb") as file:
                if file.read() != data:
                    sys.exit("trainer: %s of %s is not what was saved" % (name, path))
    return step


def meet(where, step, rank, world):
    """Waits until all ranks have come so far."""
    open(os.path.join(where, "%d.%d" % (step, rank)), "w").close()
    for other in range(world):
        while not os.path.exists(os.path.join(where, "%d.%d" % (step, other))):
            time.sleep(0.01)


def train(rank, world, last, where):
    """Saves step after step. A launch whose directory has the file `held` does not come to its end:
    before the last step its ranks wait to be killed, however fast the machine is."""
    out = os.environ["CKPT_DIR"]
    resume = os.environ.get("CKPT_RESUME")
    step = check_resume(resume, world) if resume else 0
    with open(os.path.join(where, "resumed.%d" % rank), "w") as file:
        file.write(str(step))
    meet(where, 0, rank, world)
    while step < last:
        step += 1
        while step == last and os.path.exists(os.path.join(where, "held")):
            time.sleep(0.01)
        tmp = os.path.join(out, "making.tmp")
        shutil.rmtree(tmp, ignore_errors=True)
        os.makedirs(os.path.join(tmp, "sub"))
        for name, data in files_of(step, rank):
            with open(os.path.join(tmp, name), "wb") as file:
                file.write(data)
        done = os.path.join(out, "checkpoint-%d" % step)
        shutil.rmtree(done, ignore_errors=True)
        os.rename(tmp, done)
        time.sleep(random.random() * 0.4)
        meet(where, step, rank, world)


# ---- the launcher ----


class Launch:
    def __init__(self, job, number):
        self.job = job
        self.where = os.path.join(job.root, "meet-%d" % number)
        os.makedirs(self.where)
        # Else a run of few steps now and then has none that was killed, and proves nothing.
        if number == 0 and job.kills > 0:
            open(os.path.join(self.where, "held"), "w").close()
        self.id = "launch-%d-%d" % (job.seed, number)
        nodes = list(range(job.world))
        if number % 3 == 2:
            job.lots.shuffle(nodes)
        self.procs = [self.start(rank, nodes[rank]) for rank in range(job.world)]

    def start(self, rank, node):
        job = self.job
        log = open(os.path.join(job.root, "log-%d" % rank), "ab")
        log.write(b"== %s\n" % self.id.encode())
        log.flush()
        command = [RUNNER, "run", "--dir", os.path.join(job.root, "node-%d" % node), "--to", job.target]
        command += ["-p", job.policy, "--run", "job", "--launch-id", self.id, "--rank", str(rank)]
        command += ["--world", str(job.world), "--rank-wait", "60s", "--grace", "60s", "--"]
        command += [sys.executable, os.path.abspath(__file__), "train", str(rank), str(job.world)]
        command += [str(job.last), self.where]
        # The same job of a scheduler: it takes over from its own earlier launch at once.
        env = dict(os.environ, SLURM_JOB_ID="42")
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=env)

    def alive(self):
        return [p for p in self.procs if p.poll() is None]

    def kill(self, proc, both):
        try:
            if both:
                os.killpg(proc.pid, signal.SIGKILL)
            else:
                proc.send_signal(signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        for p in self.alive():
            self.kill(p, True)
        for p in self.procs:
            p.wait()
            self.kill(p, True)


class Job:
    def __init__(self):
        env = os.environ.get
        self.seed = int(env("SEED", time.time() % 1000000))
        self.world = int(env("RANKS", 8))
        self.last = int(env("CHECKPOINTS", 20))
        self.kills = int(env("KILLS", 12))
        self.until = time.time() + float(env("LIMIT", 220))
        self.lots = random.Random(self.seed)
        self.root = tempfile.mkdtemp(prefix="ckpt-ranks.")
        self.target = env("TARGET") or "file://" + os.path.join(self.root, "store")
        self.policy = os.path.join(self.root, "all.lua")
        with open(self.policy, "w") as file:
            file.write(POLICY)

    def call(self, *words):
        return subprocess.run([RUNNER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def listed(self):
        done = self.call("ls", "--json", self.target)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def fail(self, text):
        for rank in range(self.world):
            path = os.path.join(self.root, "log-%d" % rank)
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    lines = file.read().splitlines()[-6:]
                print("\n".join("# rank %d: %s" % (rank, line) for line in lines))
        print("not ok 1 - ranks that are killed at random leave whole checkpoints only")
        print("# seed %d: WRONG: %s\n1..1" % (self.seed, text))
        sys.exit(1)

    def check_start(self, launch):
        """Once all trainers run, they have resumed from the same."""
        steps = set()
        for rank in range(self.world):
            path = os.path.join(launch.where, "resumed.%d" % rank)
            if not os.path.exists(path):
                return False
            with open(path) as file:
                text = file.read()
            if not text:
                return False
            steps.add(text)
        if len(steps) > 1:
            self.fail("the ranks of one launch resumed from steps %s" % ", ".join(sorted(steps)))
        return True

    def one_launch(self, number, kill):
        launch = Launch(self, number)
        # From the very start to some checkpoints later.
        at = time.time() + self.lots.random() * (1 + self.last / 4) if kill else None
        started = False
        try:
            while launch.alive():
                if time.time() > self.until:
                    self.fail("not done within the limit")
                started = started or self.check_start(launch)
                ended = [p.returncode for p in launch.procs if p.poll() is not None]
                if any(ended):
                    self.fail("a rank ended with exit code %s" % [c for c in ended if c])
                if at and time.time() >= at:
                    launch.kill(self.lots.choice(launch.procs), self.lots.random() < 0.5)
                    time.sleep(self.lots.random() * 1.5)  # the others wait for it
                    break
                time.sleep(0.02)
            else:
                return True
        finally:
            launch.end()
        if self.lots.random() < 0.3:
            node = os.path.join(self.root, "node-%d" % self.lots.randrange(self.world))
            shutil.rmtree(node, ignore_errors=True)
            if self.lots.random() < 0.5:
                shutil.rmtree(node + ".ckpt", ignore_errors=True)
        return False

    # ---- the end ----

    def check_all(self):
        listed = self.listed()
        out = os.path.join(self.root, "out")
        for item in listed:
            name = item["dir"]
            shutil.rmtree(out, ignore_errors=True)
            done = self.call("restore", self.target, name, "--dir", out, "-q")
            if done.returncode != 0:
                self.fail("%s cannot be restored: %s" % (name, done.stderr))
            path = os.path.join(out, os.listdir(out)[0])
            step = check_resume(path, self.world)
            found = sum(len(names) for _, _, names in os.walk(path))
            if found != 2 * self.world + 1 or step != item["step"]:
                self.fail("%s has %d files" % (name, found))
        done = self.call("verify", self.target)
        if done.returncode != 0:
            self.fail("verify: %s%s" % (done.stdout, done.stderr))
        return listed

    def check_collected(self, listed):
        """What is there beside the log, the listed ones and their records: in a directory we look
        ourselves, of a bucket gc says it."""
        done = self.call("gc", self.target, "--grace-delete", "0s")
        if done.returncode != 0:
            self.fail("gc: %s%s" % (done.stdout, done.stderr))
        if not self.target.startswith("file://"):
            return "gc finds nothing more"
        store = self.target[len("file://"):]
        names = {item["dir"] for item in listed}
        left = [n for n in os.listdir(store) if n != ".ckpt" and n not in names]
        entries = [self.entry(store, name) for name in os.listdir(os.path.join(store, ".ckpt", "log"))]
        committed = {str(entry["attempt"]) for entry in entries if entry["type"] == "commit"}
        for place in ("staging", "parts", "tmp"):
            path = os.path.join(store, ".ckpt", place)
            for name in os.listdir(path) if os.path.isdir(path) else []:
                files = sum(len(found) for _, _, found in os.walk(os.path.join(path, name)))
                if files and (place != "parts" or name not in committed):
                    left.append("%s/%s" % (place, name))
        if left:
            self.fail("not collected: %s" % " ".join(sorted(left)))
        return "%d log entries, rest collected" % len(entries)

    @staticmethod
    def entry(store, name):
        with open(os.path.join(store, ".ckpt", "log", name)) as file:
            return json.load(file)

    def run(self):
        print("# %d ranks, %d checkpoints, %d kills, seed %d" % (self.world, self.last, self.kills, self.seed))
        for number in range(self.kills):
            if self.one_launch(number, True):
                break
        else:
            number = self.kills
            if not self.one_launch(number, False):
                self.fail("the last launch did not end")
        # Killed at least once, where that was asked for: else the rest proves nothing.
        if self.last < 1 or number < min(self.kills, 1):
            self.fail("%d checkpoints, %d launches killed: nothing was played" % (self.last, number))
        listed = self.check_all()
        steps = {item["step"] for item in listed}
        if steps != set(range(1, self.last + 1)):
            self.fail("the checkpoints that are there: %s" % sorted(steps))
        collected = self.check_collected(listed)
        print("# %d launches killed, %d checkpoints listed, all whole with the files of %d ranks, "
              "%s" % (number, len(listed), self.world, collected))
        print("ok 1 - ranks that are killed at random leave whole checkpoints only\n1..1")


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "train":
        train(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return
    job = Job()
    try:
        job.run()
    finally:
        if "KEEP" not in os.environ:
            shutil.rmtree(job.root, ignore_errors=True)


main()
