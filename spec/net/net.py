#!/usr/bin/python3 -IS
"""Saves to a bucket, restores from it and removals, over a network that spoils things.

  net.py COUNT FROM SEED DIR

DIR has the S3 server that runs (server/, its endpoint is in AWS_ENDPOINT_URL); the toxiproxy before it is
started there. Each of COUNT scenarios, the first of number FROM, has a place of its own in the bucket,
one command that goes over a spoiled way, and commands that do not: whatever became of the first, they
must finish the work. Every scenario is drawn from SEED and its number alone. check.py reads the bucket.

A server that dies in the middle (toxiproxy does) is started again, and named with its last words. The
scenarios that were under way are void, whatever they found, and are played again.

The exit code of a spoiled command is 0, and then the work is done, or one that says honestly that it is not.
Prints TAP.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SERVERS = os.path.join(HERE, "..", "servers")
CHECK = os.path.join(HERE, "..", "crash", "check.py")
CKPT = os.environ["CKPT_LUA"]
TRIES = 8  # of one scenario, while a server dies under it
SIDES = 6  # scenarios side by side: they wait most of the time
HANGS = 120  # seconds, far above the grace that it has then
PATIENCE = int(os.environ.get("PATIENCE", 30))  # seconds until a command is told to end
# Some could not be saved; an error that may pass; not durable when it was told to end; ended so.
HONEST = (3, 6, 13, 143)

lock = threading.Lock()
tally = {"ok": 0, "error": 0, "torn": 0, "dishonest": 0, "unfinished": 0}
kinds = {}
complaints = []


class Rig:
    """The two servers; `age` counts how often one of them was started again."""

    def __init__(self, base):
        self.base, self.age, self.lock = base, 0, threading.Lock()
        self.server = os.environ["AWS_ENDPOINT_URL"].rsplit(":", 1)[1]
        self.lost = []
        self.api = self.start("toxiproxy")

    def start(self, what, **env):
        words = [os.path.join(SERVERS, self.script(what) + ".sh"), "start", os.path.join(self.base, what)]
        p = subprocess.run(words, env=dict(os.environ, **env), stdout=subprocess.PIPE, check=True)
        return p.stdout.decode().strip()

    @staticmethod
    def script(what):
        return {"server": "versitygw"}.get(what, what)

    def is_dead(self, what):
        try:
            with open(os.path.join(self.base, what, "pid")) as file:
                pid = file.read().strip()
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except OSError:
            return True

    def last_words(self, what):
        with open(os.path.join(self.base, what, "log"), errors="replace") as file:
            lines = [line.rstrip() for line in file if line.strip()]
        # A program in Go that gives up says why before the stacks of its threads.
        at = [i for i, line in enumerate(lines) if line.startswith(("panic:", "fatal error:"))]
        said = lines[at[0]:at[0] + 12] if at else lines[-3:]
        return "; ".join(said) or "(it said nothing)"

    def look(self):
        """Starts again what has died. Returns the age."""
        with self.lock:
            for what, env in (("toxiproxy", {}), ("server", {"PORT": self.server})):
                if not self.is_dead(what):
                    continue
                self.lost.append(f"{self.script(what)} died, and was started again: {self.last_words(what)}")
                answer = self.start(what, **env)
                if what == "toxiproxy":
                    self.api = answer
                self.age += 1
            return self.age


class Way:
    """A proxy of the toxiproxy, and what spoils it."""

    def __init__(self, rig, name):
        self.api, self.name, self.age = f"http://127.0.0.1:{rig.api}", name, rig.age
        server = rig.server
        made = self.call("POST", "/proxies", name=name, listen="127.0.0.1:0", upstream=f"127.0.0.1:{server}")
        self.endpoint = "http://" + made["listen"]

    def call(self, method, path, **what):
        data = json.dumps(what).encode() if what else None
        request = urllib.request.Request(self.api + path, data, {"User-Agent": "spec"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def spoil(self, toxic):
        self.call("POST", f"/proxies/{self.name}/toxics", **toxic)

    def clean(self):
        for toxic in self.call("GET", f"/proxies/{self.name}/toxics"):
            self.call("DELETE", f"/proxies/{self.name}/toxics/{toxic['name']}")


def draw_toxic(lot):
    kind = lot.choice(["latency", "limit_data", "reset_peer", "slow_close", "bandwidth", "timeout", "slicer"])
    attributes = {
        "latency": lambda: {"latency": lot.randint(20, 400), "jitter": lot.randint(0, 200)},
        "limit_data": lambda: {"bytes": int(10 ** lot.uniform(0, 5.5))},
        "reset_peer": lambda: {"timeout": lot.choice([0, 0, 5, 50, 300])},
        "slow_close": lambda: {"delay": lot.randint(50, 800)},
        "bandwidth": lambda: {"rate": lot.randint(100, 4000)},
        "timeout": lambda: {"timeout": lot.choice([1, 20, 100, 500])},
        "slicer": lambda: {"average_size": lot.choice([64, 1000]), "size_variation": 30, "delay": 10},
    }[kind]()
    return {
        "type": kind,
        "stream": lot.choice(["upstream", "downstream"]),
        "toxicity": lot.choice([0.3, 0.7, 1.0, 1.0]),
        "attributes": attributes,
    }


class Scenario:
    def __init__(self, number, seed, way, rig, attempt):
        self.lot = random.Random(f"{seed}/{number}")
        self.number, self.way, self.direct = number, way, f"http://127.0.0.1:{rig.server}"
        self.place = f"net/{number}.{attempt}"
        self.data = os.path.join(rig.base, "server", "data", "ckpt-test", self.place)
        self.work = os.path.join(rig.base, "work", f"{number}.{attempt}")
        self.found = []  # what it has found: counted when it is known that the servers lived
        self.tree = os.path.join(self.work, "out")
        self.kind = ("upload", "restore", "delete")[number % 3]
        # Of one kind a newer one makes an older one needless, and the last of a kind is not removed.
        self.units = ("left-1", "right-2") if self.kind == "upload" else ("right-1", "right-2")
        # One at a time or two together; for good, or for a while.
        self.toxics = [draw_toxic(self.lot) for _ in range(self.lot.choice([1, 1, 2]))]
        self.ends_after = self.lot.choice([None, None, 0.5, 1.0, 3.0])
        self.story = []

    def make(self):
        os.makedirs(self.tree)
        count = self.lot.randint(1, 4)
        for i, unit in enumerate(self.units):
            at = os.path.join(self.tree, unit)
            os.mkdir(at)
            sizes = [self.lot.randint(0, 300000) for _ in range(count)]
            if i == 1 and self.lot.random() < 0.3:
                sizes.append(self.lot.randint(9 << 20, 20 << 20))  # more than a part
            for k, size in enumerate(sizes):
                with open(os.path.join(at, f"part {k}.bin"), "wb") as f:
                    f.write(self.lot.randbytes(size))
            with open(os.path.join(at, "DONE"), "w"):
                pass

    def ckpt(self, endpoint, *words):
        env = dict(os.environ, AWS_ENDPOINT_URL=endpoint)
        p = subprocess.Popen([CKPT, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        impatient = threading.Timer(PATIENCE, p.terminate)
        hopeless = threading.Timer(HANGS, p.kill)
        impatient.start(), hopeless.start()
        text = p.communicate()[0].decode(errors="replace")
        impatient.cancel(), hopeless.cancel()
        rc = p.returncode if p.returncode >= 0 else 128 - p.returncode
        self.story.append(f"{' '.join(words[:1])}: {rc}\n{text[-1500:]}")
        return rc

    def spoiled(self, *words):
        for i, toxic in enumerate(self.toxics):
            self.way.spoil(dict(toxic, name=f"{i}-{toxic['type']}"))
        timer = threading.Timer(self.ends_after, self.clean_early) if self.ends_after else None
        if timer:
            timer.start()
        try:
            return self.ckpt(self.way.endpoint, *words)
        finally:
            if timer:
                timer.cancel()
                timer.join()
            self.way.clean()

    def clean_early(self):
        try:
            self.way.clean()
        except OSError:
            pass  # it is done once more at the end, where a failure is seen

    def sync(self, run):
        return run("sync", self.tree, "--to", "s3://ckpt-test/" + self.place, "--unit", "left-{step}/", "--unit", "right-{step}/",
                   "--marker", "DONE", "--settle", "0s", "--run", "net", "--grace", "5s")

    def clear(self, *words):
        return self.ckpt(self.direct, *words)

    def must(self, what, good):
        if not good:
            self.blame("unfinished", f"{what} without a fault failed")
        return good

    def blame(self, what, text):
        self.found.append((what, f"scenario {self.number} ({self.kind}, {json.dumps(self.toxics)}, "
                                 f"for {self.ends_after} s): {text}\n" + "\n".join(self.story)))

    def judge(self, rc):
        """True if the command says that its work is done."""
        if rc != 0 and rc not in HONEST:
            self.blame("dishonest", f"exit code {rc}")
        self.found.append(("ok" if rc == 0 else "error", None))
        return rc == 0

    def count(self):
        with lock:
            for what, text in self.found:
                tally[what] += 1
                if text:
                    complaints.append(text)
            for toxic in self.toxics:
                kinds[toxic["type"]] = kinds.get(toxic["type"], 0) + 1

    def read(self, *more):
        """What check.py finds in the bucket."""
        if not os.path.isdir(self.data):
            return
        sources = [w for u in self.units for w in ("--source", f"{u}={self.tree}/{u}")]
        p = subprocess.run([CHECK, "store", *sources, *more, self.data], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        if p.returncode:
            self.blame("torn", p.stdout.decode(errors="replace")[-1500:])

    def listed(self):
        env = dict(os.environ, AWS_ENDPOINT_URL=self.direct)
        p = subprocess.run([CKPT, "ls", "--json", "s3://ckpt-test/" + self.place], env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
        return sorted(json.loads(line)["name"] for line in p.stdout.decode().splitlines())

    def restored(self, name, must):
        """A restored tree is whole, or not there."""
        for unit in self.units:
            at = os.path.join(self.work, name, unit)
            there = os.path.exists(at)
            p = subprocess.run([CHECK, "tree", at, os.path.join(self.tree, unit)], stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
            if p.returncode or (unit == must and not there):
                self.blame("torn", f"restored {unit}: {p.stdout.decode(errors='replace')[-800:]}")

    def upload(self):
        done = self.judge(self.sync(self.spoiled))
        self.read()
        if done and self.listed() != list(self.units):
            self.blame("dishonest", "0, and not all is there")
        # What a try has left that was given up stays: sync removes nothing.
        if self.must("sync", self.sync(self.clear) == 0) and self.collect():
            self.read("--final")
        self.restore_again()

    def collect(self):
        return self.must("gc", self.clear("gc", "s3://ckpt-test/" + self.place, "--grace-delete", "0") == 0)

    def bring(self, run, to):
        return run("restore", "s3://ckpt-test/" + self.place, self.units[1], "--dir", os.path.join(self.work, to))

    def restore_again(self):
        if self.must("restore", self.bring(self.clear, "again") == 0):
            self.restored("again", self.units[1])

    def restore(self):
        if not self.must("sync", self.sync(self.clear) == 0):
            return
        done = self.judge(self.bring(self.spoiled, "restored"))
        self.restored("restored", self.units[1] if done else None)
        self.restore_again()

    def delete(self):
        if not self.must("sync", self.sync(self.clear) == 0):
            return
        words = ("rm", "s3://ckpt-test/" + self.place, self.units[0], "--grace-delete", "0")
        done = self.judge(self.spoiled(*words))
        self.read()
        if done and self.units[0] in self.listed():
            self.blame("dishonest", "0, and it is still there")
        self.must("rm", self.clear(*words) in (0, 4))  # 4: it is gone already
        self.collect()
        self.read()
        if self.listed() != [self.units[1]] or os.path.exists(os.path.join(self.data, self.units[0])):
            self.blame("unfinished", f"{self.units[0]} is still there")
        self.restore_again()

    def run(self):
        self.make()
        try:
            getattr(self, self.kind)()
        finally:
            shutil.rmtree(self.work, ignore_errors=True)


def play(rig, side, way, number, seed):
    """Plays a scenario until the servers outlive it. Returns the way, and what went wrong with the spec."""
    for attempt in range(TRIES):
        age, wrong, scenario = rig.look(), None, None
        try:
            if not way or way.age != age:
                way = Way(rig, f"side-{side}")
            scenario = Scenario(number, seed, way, rig, attempt)
            scenario.run()
        except Exception as e:  # the spec itself failed: never taken for a pass
            wrong = f"scenario {number}: {e!r}"
        if rig.look() == age:
            if scenario:
                scenario.count()
            return way, wrong
        way = None
    return way, f"scenario {number}: a server died under it {TRIES} times"


def main(count, first, seed, base):
    numbers = iter(range(int(first), int(first) + int(count)))
    broken = []
    rig = Rig(base)

    def work_on(side):
        way = None
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            way, wrong = play(rig, side, way, number, seed)
            if wrong:
                with lock:
                    broken.append(wrong)

    begin = time.monotonic()
    sides = [threading.Thread(target=work_on, args=(i,)) for i in range(SIDES)]
    for side in sides:
        side.start()
    for side in sides:
        side.join()
    took = time.monotonic() - begin
    for text in (rig.lost + complaints + broken)[:20]:
        print("# " + text.replace("\n", "\n# "))
    print(f"# net: {count} scenarios, seed {seed}, {took:.0f} s: " + ", ".join(f"{v} {k}" for k, v in sorted(kinds.items())))
    say = [
        (not broken and int(count) > 0 and tally["ok"] + tally["error"] == int(count), f"{count} scenarios were played"),
        (tally["dishonest"] == 0, f"{tally['ok']} succeeded, {tally['error']} failed honestly"),
        (tally["unfinished"] == 0, "all were finished by a later run"),
        (tally["torn"] == 0, f"{tally['torn']} torn"),
    ]
    for i, (good, text) in enumerate(say):
        print(f"{'' if good else 'not '}ok {i + 1} - {text}")
    print(f"1..{len(say)}")
    return not all(good for good, _ in say)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else it plays on until all threads have ended
    sys.exit(main(*sys.argv[1:]))
