"""Plays real frameworks under `ckpt-lua run`: kills them, loses their directory, and holds what they go on from
against what they had said was saved.

  drive.py GROUP...        prints TAP; a group has six tests

Environment: CKPT_LUA, KILLS (10), LOSSES (2), SEED, GROUP_SECONDS (600: what a group may take before it goes to its
end), START_SECONDS (180: what a start may take until it trains), KEEP (yes: what was trained stays), TABLE (a file for
the rows), LOGS (a directory for what was printed).
"""
import importlib.metadata
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import judge
import told_log
from groups import GROUPS
from world import Aim, Running

HERE = os.path.dirname(os.path.abspath(__file__))
CKPT = os.path.abspath(os.environ.get("CKPT_LUA", "./ckpt-lua"))
PATIENCE = int(os.environ.get("START_SECONDS") or 180)  # for a start, on a machine that others load too
READ_PATIENCE = 60 + PATIENCE  # for the framework to read some commits back
END_PATIENCE = 240 + PATIENCE  # for a training from here to its end
GROUP_SECONDS = int(os.environ.get("GROUP_SECONDS") or 600)


class Play:
    """One group: its places, its starts, and what the judge shall know of them."""

    def __init__(self, name, kills, losses, seed):
        # A start saves once or twice before it is killed; one that ends too early is followed by a fresh training.
        self.name, self.g = name, {**GROUPS[name], "steps": 4 + 3 * (kills + losses) // 2}
        self.random = random.Random(f"{name} {seed}")
        self.dir = tempfile.mkdtemp(prefix=f"fw-{name}.")
        self.out, self.store = self.dir + "/out", self.dir + "/store"
        self.logs = os.path.join(os.environ.get("LOGS", self.dir), name)
        shutil.rmtree(self.logs, ignore_errors=True)
        os.makedirs(self.logs)
        self.kills, self.losses = kills, losses
        self.starts = []
        self.round = 0
        self.lost_state, self.lost = False, 0
        self.loaded = {}
        self.began = time.time()
        if "elsewhere" in self.g:  # another file system, or the group shows nothing
            assert os.stat(self.g["elsewhere"]).st_dev != os.stat(self.dir).st_dev

    def job(self, out):
        g = self.g
        script = [os.path.join(HERE, "train", g["script"])]
        return [sys.executable] + g["launch"] + script + ["--dir", out, "--steps", str(g["steps"])] + g["args"]

    def environment(self, log, sleep):
        return {"FW_LOG": log, "FW_SLEEP": str(sleep), "TUNE_GLOBAL_CHECKPOINT_S": "1",
                "PYTHONPATH": os.path.join(HERE, "../../python"), **self.g["env"]}

    def ckpt(self, *words):
        done = subprocess.run([CKPT, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def reference(self):
        """The same training, never killed and without us: which weights belong to which step."""
        if not self.g["exact"]:
            return None
        log = self.logs + "/reference.told"
        os.makedirs(self.dir + "/reference")
        run = Running(self.job(self.dir + "/reference"), self.logs + "/reference", self.environment(log, 0))
        code = self.wait(run, lambda: False, END_PATIENCE)
        if code != 0:
            raise RuntimeError(f"the reference ended with {code}: see {self.logs}/reference")
        shutil.rmtree(self.dir + "/reference")
        return told_log.read(log)

    def wait(self, run, done, seconds):
        end = time.time() + seconds
        while time.time() < end and not done():
            if run.process.poll() is not None:
                return run.end()
            time.sleep(0.05)
        if not done():
            run.kill()
            run.end()
            return "no end"
        return None

    def start(self, sleep):
        n = len(self.starts) + 1
        os.makedirs(self.out, exist_ok=True)
        log = f"{self.logs}/told.{n}"
        options = self.g["run"] + (["--take-over"] if self.lost_state else [])
        known = self.help()
        if "--in-place-every" in options and "--in-place-every" not in known:
            at = options.index("--in-place-every")
            options = options[:at] + options[at + 2:]
        command = [CKPT, "run", "--run", self.name, "--dir", self.out, "--to", f"file://{self.store}", *options, "--"]
        self.lost_state = False
        run = Running(command + self.job(self.out), f"{self.logs}/start.{n}", self.environment(log, sleep))
        start = judge.Start(n, log, run)
        start.expected, start.round = self.expected, self.round
        return run, start

    def help(self):
        if not hasattr(self, "helped"):
            self.helped = self.ckpt("help", "run")[1]
        return self.helped

    def shoot(self, kind, loss):
        """One start that is killed. True if it was, False if it ended by itself."""
        run, start = self.start(self.g["every"])
        start.kind = kind + (" and the directory lost" if loss else "")
        code = self.wait(run, lambda: start.count("begin") >= self.g["trials"], PATIENCE)
        if code is None:
            code = self.take(run, start, kind, loss)
        start.code = code
        if code is not None:
            start.killed_at = time.time()
        start.close()
        self.starts.append(start)
        return code is None

    def take(self, run, start, kind, loss):
        """Waits for the moment, and kills. None: it was killed."""
        g, rng = self.g, self.random
        shots = sum(1 for s in self.starts if s.kind.startswith("aimed"))
        aim = g["aims"][shots % len(g["aims"])] if kind == "aimed" else None
        watch = Aim(self.out, *aim, rng.choice([0, 0, 0.002, 0.02])) if aim else None
        need = 1 + shots % 2  # whole ones before it: committed, or not yet
        at = time.time() + rng.uniform(0.3, 3 * g["every"])
        limit = time.time() + 12 * g["every"] + PATIENCE / 6
        why = None
        while why is None:
            if run.process.poll() is not None:
                return run.end()
            run.refresh()
            if watch:
                select.select([watch.watch.fd], [], [], 0.02)
                why = watch.hit(start.count("saved") >= need)
            else:
                time.sleep(0.02)
                committed = not loss or any(s.commits() for s in self.starts + [start] if s.round == self.round)
                why = "at random" if time.time() >= at and committed else None
            if time.time() > limit:
                why = why or "at random: what was aimed at did not come"
        if watch:
            watch.watch.close()
        start.why = why
        start.killed_at = time.time()  # before the job is waited for: a runner that is gone commits nothing
        if kind == "runner":
            start.orphans = run.kill_runner()
        else:
            run.kill()
        run.end()
        return None

    def lose(self, node):
        """The directory goes; with the node its state, too."""
        shutil.rmtree(self.out)
        if node:
            shutil.rmtree(self.out + ".ckpt", ignore_errors=True)
            self.lost_state = True

    def plan(self):
        shots = ["aimed", "random", "aimed", "runner", "aimed"]
        kinds = [(shots[i % 5], False) for i in range(self.kills)]
        for i in range(self.losses):
            kinds.insert((i + 1) * len(kinds) // (self.losses + 1) + i, ("random", True))
        return kinds

    def fresh(self):
        """It ended before all kills were done: another one begins in the same place."""
        for path in (self.out, self.out + ".ckpt", self.store):
            shutil.rmtree(path, ignore_errors=True)
        self.round += 1

    def play(self):
        failed = 0
        for kind, loss in self.plan():
            if time.time() - self.began > GROUP_SECONDS - 120 or failed == 3:
                break
            self.expect()
            while not self.shoot(kind, loss):
                start = self.starts[-1]
                failed = failed + 1 if start.code != 0 else 0
                start.failed = start.code != 0
                self.settle_up(start)
                if failed == 3:
                    break
                if start.code == 0:
                    self.fresh()
                self.expect()
            else:
                failed = 0
                start = self.starts[-1]
                self.settle_up(start)
                if loss:
                    self.lost += 1
                    start.lost = True
                    self.lose(self.lost % 2 == 0)
        return self.finish() if failed < 3 else None

    def settle_up(self, start):
        start.stored = {r["name"] for r in self.commits()}
        print(f"# {self.name} {start.said()}", flush=True)

    def expect(self):
        """What the next start must go on from, found before it begins."""
        before = [s for s in self.starts if s.round == self.round]
        self.expected = judge.expected(self.g, before, self.newest)

    def commits(self):
        """Those of checkpoints: what a tuner saves of itself is none."""
        rows = judge.listed(self.ckpt("ls", self.store, "--json")[1])
        return [r for r in rows if judge.is_checkpoint(self.g, r["name"])]

    def newest(self):
        """The steps of the newest commit, by who trains. The framework reads it where its name does not tell: that it
        loads is asked of each commit at the end."""
        told = {} if self.g["in_place"] else judge.names(self.starts)
        last = {r["group"]: r for r in self.commits() if r.get("life", "live") == "live"}
        known = {None: told[r["name"]] for r in last.values() if r["name"] in told}
        return known or {who: step for who, step, _ in self.load(last.values())}

    def load(self, rows):
        """What the framework reads in each of these commits. It starts for those alone that it has not read yet."""
        rows = list(rows)
        keys = [(self.round, r["group"], r["dir"], r["number"]) for r in rows]
        new = [i for i, key in enumerate(keys) if key not in self.loaded]
        self.loaded.update(zip([keys[i] for i in new], self.read([rows[i] for i in new])))
        return [self.loaded[key] for key in keys]

    def read(self, rows):
        """Restores each of these commits, and has the framework read it."""
        paths = []
        for r in rows:
            place = tempfile.mkdtemp(dir=self.dir, prefix="load.")
            name = (r["group"] + "/" if r["group"] else "") + r["dir"]
            code, out, text = self.ckpt("restore", self.store, name, "--dir", place, "--json")
            paths.append(judge.restored(out) if code == 0 else None)
            if code != 0:
                print(f"# {self.name}: restore of {name}: {text.strip()}", flush=True)
        there = [p for p in paths if p]
        log = tempfile.mktemp(dir=self.dir)
        if there:
            script = os.path.join(HERE, "train", self.g["script"])
            with open(self.logs + "/check", "a", encoding="utf-8") as f:
                for path in there:
                    f.write(path + "\n")
                f.flush()
                self.read_back([sys.executable, "-X", "faulthandler", script, *self.g["args"], "--check", *there], log, f)
        found = {t["path"]: t for t in told_log.read(log) if t["what"] == "loaded"}
        result = []
        for r, path in zip(rows, paths):
            t = found.get(path) or {}
            result.append((judge.who(r, t), t.get("step"), t.get("hash")))
            if path:
                shutil.rmtree(os.path.join(self.dir, os.path.relpath(path, self.dir).split("/")[0]))
        return result

    def read_back(self, command, log, printed):
        """One that hangs says where, and is tried once more: what was played before is worth more than that."""
        for _ in range(2):
            run = subprocess.Popen(command, env={**os.environ, **self.environment(log, 0)}, stdout=printed, stderr=printed)
            try:
                run.wait(READ_PATIENCE)
                return
            except subprocess.TimeoutExpired:
                print(f"# {self.name}: reading commits back took over {READ_PATIENCE} s: where it was is in "
                      f"{self.logs}/check", flush=True)
                run.send_signal(signal.SIGABRT)
                try:
                    run.wait(10)
                except subprocess.TimeoutExpired:
                    run.kill()
                    run.wait()

    def finish(self):
        """The last start goes to the end, quickly. Returns it."""
        self.expect()
        run, start = self.start(0.3)
        start.kind = "to the end"
        start.code = self.wait(run, lambda: False, END_PATIENCE)
        start.failed = start.code != 0
        start.close()
        self.starts.append(start)
        self.settle_up(start)
        return start


def version(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return package


def number(name, default):
    return int(os.environ.get(name) or default)


def main():
    names = sys.argv[1:] or list(GROUPS)
    unknown = [n for n in names if n not in GROUPS]
    if unknown:
        sys.exit(f"no such group: {', '.join(unknown)}; there are: {', '.join(GROUPS)}")
    kills, losses = number("KILLS", 10), number("LOSSES", 2)
    if kills + losses < 1:
        sys.exit("nothing was played: KILLS and LOSSES are 0")
    print(f"1..{len(names) * len(judge.TESTS)}", flush=True)
    at = 0
    for name in names:
        p = Play(name, kills, losses, number("SEED", 1))
        try:
            reference = p.reference()
            final = p.play()
            verdicts, row = judge.verdicts(p, reference, final)
        except (RuntimeError, OSError, subprocess.SubprocessError) as e:
            verdicts, row = [(False, f"it was not played: {e}")] * len(judge.TESTS), None
        finally:
            if os.environ.get("KEEP") != "yes":
                shutil.rmtree(p.dir, ignore_errors=True)
        for promise, (held, text) in zip(judge.TESTS, verdicts):
            at += 1
            print(f"{'ok' if held else 'not ok'} {at} - {name}: {promise}", flush=True)
            for line in text.splitlines():
                print(f"# {name}: {line}", flush=True)
        line = judge.table_line(name, version(p.g["package"]), row, time.time() - p.began)
        print("# " + line, flush=True)
        if os.environ.get("TABLE"):
            with open(os.environ["TABLE"], "a", encoding="utf-8") as f:
                f.write(line + "\n")


main()
