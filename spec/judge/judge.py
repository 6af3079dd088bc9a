#!/usr/bin/python3 -IS
"""The outside judge: judge.py [--seed N] [--count N] [--stores dir,versitygw] [--jobs N] [--fault NAME] [--stop] [--show]

Plays histories of real processes (history.py) and holds what they were told and what the store has against the
promises (check.py). Each history has a number; its plan follows from that and from the store's name. Speaks TAP, one
test for each store. A broken promise is told as a story: who did what when, and how to play it again; its files stay.

  --seed N    the first number (the time; it is printed)      --jobs N   so many at once (4)
  --fault F   of a build with FAULTS=yes: this rule is left out        --stop     ends with the first broken promise
  --show      the story of each history, also of one in which nothing is wrong
  --minutes M no history begins later

Environment: CKPT_LUA, the program (./ckpt-lua); JUDGE_SERVERS, where the scripts of the servers are;
JUDGE_TMP, where the files go (memory, where there is 2 GiB of it).
"""
import argparse
import collections
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import check  # noqa: E402
import history  # noqa: E402
import places  # noqa: E402
import ruin  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
SERVERS = os.environ.get("JUDGE_SERVERS", ROOT + "/spec/servers")


class World:
    """What all histories share; the targets, each of a history's own."""

    def __init__(self, args, top):
        self.top, self.fault = top, args.fault
        self.ckpt = os.path.abspath(os.environ.get("CKPT_LUA", ROOT + "/ckpt-lua"))
        self.policies = os.environ.get("CKPT_POLICIES", ROOT + "/policies")
        self.disk, self.keep = top + "/disk.so", top + "/keep.lua"
        with open(self.keep, "w") as f:
            f.write("return { api = 1, keep = keep.last(2) }\n")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-O1", "-std=c11", "-D_GNU_SOURCE", "-o", self.disk, HERE + "/disk.c", "-ldl"], check=True
        )
        words = ["unshare", "--uts", "true"]
        self.hosts = subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0
        told = subprocess.run([self.ckpt, "help", "repair"], capture_output=True, check=False)
        self.verbs = {"repair"} if told.returncode == 0 else set()
        self.endpoints = {}

    def start(self, kind):
        """None, or why there is none."""
        if kind == "dir":
            return None
        script = f"{SERVERS}/{kind}.sh"
        if not os.path.exists(script):
            return f"there is no {script}"
        done = subprocess.run([script, "start", f"{self.top}/server-{kind}"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return (done.stderr.strip().splitlines() or ["it does not start"])[-1]
        self.endpoints[kind] = done.stdout.split()[-1]
        return None

    def stop(self):
        for kind in self.endpoints:
            subprocess.run([f"{SERVERS}/{kind}.sh", "stop", f"{self.top}/server-{kind}"], check=False)

    def place(self, top, plan):
        if plan["store"] == "dir":
            return f"file://{top}/target/store", None, places.Dir(top + "/target/store")
        end, prefix = self.endpoints[plan["store"]], f"h{plan['seed']}/store"
        return f"s3://ckpt-test/{prefix}", end, places.Bucket(end, "ckpt-test", prefix)

    def around(self, h):
        """The folder that the target lies in."""
        if h.endpoint is None:
            return places.Dir(h.top + "/target")
        return places.Bucket(h.endpoint, "ckpt-test", f"h{h.plan['seed']}")

    def put_beside(self, h, name, data):
        self.around(h).put(name, data)

    def get_beside(self, h, name):
        return self.around(h).get(name)

    def forget(self, h):
        """The bucket's files of a history that is over: so many would fill the disk."""
        shutil.rmtree(h.top, ignore_errors=True)
        if h.plan["store"] == "versitygw":
            shutil.rmtree(f"{self.top}/server-{h.plan['store']}/data/ckpt-test/h{h.plan['seed']}", ignore_errors=True)


def play_one(world, seed, kind, args):
    """(broken promises, story or None, what was counted)"""
    plan = history.draw(seed, kind, world.fault)
    began = time.time()
    h = history.History(plan, world)
    try:
        h.play()
        found = (ruin if plan["focus"] == "ruin" else check).Judgement(h).judge()
    finally:
        h.end_all()
    counts = collections.Counter(histories=1, seconds=time.time() - began)
    for e in h.ops:
        if "args" in e:
            counts["processes"] += 1
            counts[e["args"][0]] += 1
            counts["killed"] += "killed" in e
            counts["stopped"] += "stopped" in e
    log = h.known()
    counts.update(commits=len(log.commits), terms=len(log.terms), entries=log.next)
    counts.update(deleted=sum(c["life"] == "deleted" for c in log.commits.values()), foreign=len(h.foreign))
    counts.update(pins=len(h.pins), spoiled=len(getattr(h, "sky_log", ())))
    command = f"make judge SEED={seed} COUNT=1 STORES={kind}"
    if world.fault:
        command = f"make judge-faults ONLY={world.fault} SEED={seed}"
    told = check.story(h, found, command) if found or args.show else None
    if not found:
        world.forget(h)
    return found, told, counts


def work(world, jobs, out, args):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    for seed, kind in iter(jobs.get, None):
        try:
            out.put((seed, kind) + play_one(world, seed, kind, args))
        except BaseException as e:  # a judge that broke down has not judged
            import traceback

            out.put((seed, kind, [(0, repr(e), [])], f"the judge broke down in history {seed} on {kind}\n"
                     + traceback.format_exc(), collections.Counter()))


class Tally:
    def __init__(self):
        self.counts, self.broken, self.stories = collections.Counter(), [], []

    def take(self, seed, kind, found, told, counts):
        self.counts.update(counts)
        if found:
            self.broken.append((seed, kind, found))
        if told:
            print("\n".join("# " + line for line in told.splitlines()), flush=True)


def play(world, kinds, args):
    tallies = {kind: Tally() for kind in kinds}
    jobs, out = multiprocessing.Queue(), multiprocessing.Queue()
    todo = [(args.seed + i, kinds[i % len(kinds)]) for i in range(args.count)] if args.count > 1 else [(args.seed, kinds[0])]
    workers = [multiprocessing.Process(target=work, args=(world, jobs, out, args), daemon=True) for _ in range(args.jobs)]
    for each in workers:
        each.start()
    under_way, until = 0, time.time() + args.minutes * 60
    todo.reverse()
    while todo or under_way:
        while todo and under_way < args.jobs and time.time() < until:
            jobs.put(todo.pop())
            under_way += 1
        if time.time() >= until:
            todo = []
        if not under_way:
            break
        result = out.get()
        under_way -= 1
        tallies[result[1]].take(*result)
        if args.stop and result[2]:
            todo = []
        done = sum(int(t.counts["histories"]) for t in tallies.values())
        if done % 50 == 0:
            print(f"# {done} histories, {sum(len(t.broken) for t in tallies.values())} with a broken promise", flush=True)
    for _ in workers:
        jobs.put(None)
    return tallies


def report(tallies, args, skipped):
    print(f"1..{len(tallies) + len(skipped)}")
    number, bad = 0, 0
    for kind, tally in tallies.items():
        number += 1
        played = int(tally.counts["histories"])
        ok = played > 0 and not tally.broken
        bad += not ok
        c = tally.counts
        print(f"# {kind}: {played} histories, {c['processes']} processes ({c['killed']} killed, {c['stopped']} stopped), "
              f"{c['entries']} entries, {c['terms']} terms, {c['commits']} commits, {c['deleted']} deleted, {c['foreign']} "
              f"foreign objects, {c['pins']} pins, {c['spoiled']} requests spoiled, {c['seconds'] / max(played, 1):.1f} s each")
        print(f"{'ok' if ok else 'not ok'} {number} - {kind}: {played} histories, {len(tally.broken)} break a promise")
        for seed, _, found in tally.broken[:20]:
            print(f"#   {seed}: {found[0][1][:200]}")
    for kind, why in skipped.items():
        number += 1
        print(f"ok {number} - {kind} # SKIP {why}")
    return bad


def fast_place():
    """Memory, where there is enough of it: kills and faults are the same there, and flushes cost nothing."""
    try:
        room = os.statvfs("/dev/shm")
        return "/dev/shm" if os.access("/dev/shm", os.W_OK) and room.f_bavail * room.f_frsize > 2 << 30 else None
    except OSError:
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--stores", default="dir,versitygw,minio")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--fault", default="")
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    top = tempfile.mkdtemp(prefix="ckpt-judge.", dir=os.environ.get("JUDGE_TMP", fast_place()))
    print(f"# seed {args.seed}, files in {top}", flush=True)
    world, skipped, kinds, bad = None, {}, [], 1
    try:
        world = World(args, top)
        for kind in args.stores.split(","):
            why = world.start(kind)
            if why:
                skipped[kind] = why
            else:
                kinds.append(kind)
        tallies = play(world, kinds, args) if kinds else {}
        bad = report(tallies, args, skipped) if tallies or skipped else 1
        if any(t.broken for t in tallies.values()):
            print(f"# the files of those stay in {top}")
    finally:
        if world:
            world.stop()
        if not bad:
            shutil.rmtree(top, ignore_errors=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
