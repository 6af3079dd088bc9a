#!/usr/bin/env python3
"""What ranks ask of a bucket: spec/ranks/cost.py, by way of spec/ranks/cost.sh (make bench-ranks).

RANKS processes of `ckpt-lua run`, each with a directory of its own and a way of its own to the bucket,
spec/servers/count.py, which notes each request. They start, save a checkpoint together, have nothing to
do for MINUTE seconds, save another one of which the last rank has no part for as long, and end. Prints a
row for each of these phases: what all asked, what rank 0 did, the median of the others and the most, but of who
commits, each without the objects of the checkpoint itself, and what was asked in the busiest second.

Environment: RANKS (16), MINUTE (60), STAGGER (0.15 seconds from one start to the next), TARGET (a URI of
the bucket), AWS_ENDPOINT_URL, CKPT_LUA (./ckpt-lua), KINDS (a file for the kinds of requests of each
phase), ROWS (a file to which the rows are added as JSON, with how many
ranks raced, and the most listings of parts by one of the others).
"""

import collections
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

RUNNER = os.path.abspath(os.environ.get("CKPT_LUA", "ckpt-lua"))
COUNT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "servers", "count.py")
POLICY = 'return { api = 1, queue = "all", complete = done.renamed() }\n'
ROW = "%(ranks)5d %(phase)-22s %(requests)9d %(files)6d %(rank_0)7d %(median)7g %(most)6d %(busiest)8d"
# Waits at its pipe without a request or a turn of the processor.
TRAINER = """
cd "$CKPT_DIR" && exec < "$2" || exit
echo > ready
while read step; do
  [ $step != end ] || exit 0
  mkdir making
  echo "$step of $1" > making/shard-$1.bin
  mv making checkpoint-$step
done
"""


def kind_of(method, target):
    """What a request is for: "GET log", "LIST parts", "PUT file" and so on."""
    path, _, query = target.partition("?")
    if "list-type=2" in query:
        prefix = re.search(r"(?:^|&)prefix=([^&]*)", query).group(1).replace("%2F", "/")
        method, path = "LIST", "/bucket/" + prefix
    key = path.split("/", 3)[3] if path.count("/") >= 3 else ""
    if key.startswith(".ckpt/"):
        return method + " " + re.sub(r"\..*", "", key.split("/")[1])
    if ".ckpt-manifest" in key:
        return method + " manifest"
    return method + (" file" if key.startswith("checkpoint-") else " " + (key or "bucket"))


class Scene:
    def __init__(self, world, minute, stagger, target):
        self.world, self.minute, self.stagger, self.target = world, minute, stagger, target
        self.root = tempfile.mkdtemp(prefix="ckpt-cost.")
        self.log = os.path.join(self.root, "asked")
        self.policy = os.path.join(self.root, "all.lua")
        with open(self.policy, "w") as file:
            file.write(POLICY)
        self.since = time.time()
        self.procs, self.pipes, self.read, self.rows = [], [], 0, []
        upstream = os.environ["AWS_ENDPOINT_URL"].rsplit(":", 1)[1]
        words = ["/usr/bin/python3", "-IS", COUNT, upstream, "0", str(world), self.log]
        self.proxy = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.ports = [int(port) for port in self.proxy.stdout.readline().split()]

    def directory(self, rank):
        return os.path.join(self.root, "node-%d" % rank)

    def start(self, rank):
        out = self.directory(rank)
        os.mkdir(out)
        os.mkfifo(out + ".pipe")
        log = open(out + ".log", "wb")
        command = [RUNNER, "run", "-v", "--dir", out, "--to", self.target, "-p", self.policy]
        command += ["--run", "cost", "--launch-id", "cost-%d" % os.getpid(), "--rank", str(rank)]
        command += ["--world", str(self.world), "--", "sh", "-c"]
        command += [TRAINER, "trainer", str(rank), out + ".pipe"]
        # Not as an endpoint of its own: what is known of a server goes by its address.
        env = dict(os.environ, http_proxy="http://127.0.0.1:%d" % self.ports[rank])
        self.procs.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env))
        self.pipes.append(os.open(out + ".pipe", os.O_RDWR))

    def until(self, what, holds, limit=900):
        end = time.time() + limit
        while not holds():
            gone = [rank for rank, p in enumerate(self.procs) if p.poll() not in (None, 0)]
            if gone or time.time() > end:
                with open(self.directory(gone[0] if gone else self.world - 1) + ".log") as file:
                    sys.exit("%s: rank %s ended, or late:\n%s" % (what, gone, file.read()[-2000:]))
            time.sleep(0.1)

    def told(self, text):
        """Every rank has said this."""
        for rank in range(self.world):
            with open(self.directory(rank) + ".log", errors="replace") as file:
                if text not in file.read():
                    return False
        return True

    def say(self, word, ranks):
        for rank in ranks:
            os.write(self.pipes[rank], (word + "\n").encode())

    # ---- what was asked ----

    def take(self, phase):
        """Counts what was asked since the last phase."""
        by_rank = [collections.Counter() for _ in range(self.world)]
        rate = collections.Counter()
        with open(self.log) as file:
            file.seek(self.read)
            for line in file:
                when, port, method, target, _ = line.split()
                by_rank[self.ports.index(int(port))][kind_of(method, target)] += 1
                rate[int(float(when))] += 1
            self.read = file.tell()
        files = sum(c[k] for c in by_rank for k in c if k.endswith(" file"))
        each = [sum(n for k, n in c.items() if not k.endswith(" file")) for c in by_rank]
        row = {"ranks": self.world, "phase": phase, "requests": sum(each), "files": files, "rank_0": each[0]}
        row.update(median=statistics.median(each[1:]), busiest=max(rate.values(), default=0))
        # Who reads the parts of all, and commits: rank 0, or who came last.
        busy = [r for r in range(self.world) if by_rank[r]["PUT manifest"]]
        row["committed"] = busy
        row["most"] = max((each[r] for r in range(1, self.world) if r not in busy), default=0)
        row["seconds"] = int(time.time() - self.since)
        self.since = time.time()
        row["raced"] = sum(c["PUT tmp"] > 0 for c in by_rank)
        row["lists"] = max(c["LIST parts"] for c in by_rank[1:])
        self.rows.append(row)
        print(ROW % row, flush=True)
        if "KINDS" in os.environ:
            with open(os.environ["KINDS"], "a") as out:
                out.write("== %d ranks, %s\n" % (self.world, phase))
                for kind, n in sum(by_rank, collections.Counter()).most_common():
                    of = (kind, n, by_rank[0][kind], by_rank[1][kind], by_rank[-1][kind])
                    out.write("%-20s %8d   rank 0: %5d   rank 1: %5d   last: %5d\n" % of)

    def play(self):
        everyone = range(self.world)
        for rank in everyone:
            self.start(rank)
            time.sleep(self.stagger)
        self.until("start", lambda: all(os.path.exists(self.directory(r) + "/ready") for r in everyone))
        time.sleep(3)
        self.take("start")
        self.say("1", everyone)
        self.until("checkpoint", lambda: self.told("committed checkpoint-1 ("))
        time.sleep(3)
        self.take("a checkpoint")
        time.sleep(self.minute)
        self.take("nothing to do, %d s" % self.minute)
        self.say("2", everyone[:-1])
        time.sleep(self.minute)
        self.take("a rank is late, %d s" % self.minute)
        self.say("2", everyone[-1:])
        self.until("late checkpoint", lambda: self.told("committed checkpoint-2 ("))
        self.take("and then comes")
        self.say("end", everyone)
        for p in self.procs:
            if p.wait() != 0:
                sys.exit("a rank ended with %d" % p.returncode)
        self.take("the end")

    def end(self):
        for p in self.procs:
            if p.poll() is None:
                p.kill()
                p.wait()
        self.proxy.kill()
        self.proxy.wait()
        if "KEEP" not in os.environ:
            shutil.rmtree(self.root, ignore_errors=True)


def main():
    env = os.environ.get
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    scene = Scene(int(env("RANKS", 16)), float(env("MINUTE", 60)), float(env("STAGGER", 0.15)), env("TARGET"))
    try:
        scene.play()
    finally:
        scene.end()
    if "ROWS" in os.environ:
        with open(os.environ["ROWS"], "a") as out:
            for row in scene.rows:
                out.write(json.dumps(row) + "\n")


main()
