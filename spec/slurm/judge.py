#!/usr/bin/python3 -I
"""Says of a store, read by itself, what is wrong with it after jobs of spec/slurm/trainer.py:

  judge.py STORE LOG [LEAST]

Each commit that is kept has all shards of one world, each file as a trainer wrote it; each start resumed from
what was committed last before it, and found it whole; LEAST (1) commits at least are there. It prints a line
for each finding, then what is there. Of the engine nothing is used: the log is read by spec/crash/check.py.
"""
import hashlib
import importlib.util
import json
import os
import re
import sys

where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash", "check.py")
spec = importlib.util.spec_from_file_location("check", where)
check = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
spec.loader.exec_module(check)


def wrong_with(store, commit, wrote):
    """Why a commit is not a checkpoint that the trainers wrote, or None."""
    place, shards = os.path.join(store, commit["dir"]), []
    step = int(re.fullmatch(rb"checkpoint-(\d+)", commit["unit"])[1])
    for name in os.listdir(place):
        text = os.fsdecode(name)
        if name == check.MANIFEST:
            continue
        with open(os.path.join(place, name), "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        if digest not in wrote.get((step, text), ()):
            return f"{text} is not as it was written"
        shards += re.findall(r"^shard-(\d+)-of-(\d+)$", text)
    worlds = {int(world) for _, world in shards}
    if len(worlds) != 1 or sorted(int(n) for n, _ in shards) != list(range(worlds.pop())):
        return f"its shards are {sorted(shards)}"
    return None


def main(store, log, least="1"):
    with open(log) as f:
        lines = [json.loads(line) for line in f]
    wrote, first = {}, {}
    for line in lines:
        if line["what"] == "saved":
            for name, digest in line["files"].items():
                wrote.setdefault((line["step"], name), set()).add(digest)
            first.setdefault(line["step"], line["time"])
    commits, _ = check.read_commits(os.fsencode(store))
    kept = [c for c in commits if c["life"] != "deleted"]
    for commit in kept:
        why = wrong_with(os.fsencode(store), commit, wrote)
        if why:
            check.found("torn", f"{check.shown(commit['dir'])}: {why}")
    steps = {int(c["unit"].split(b"-")[1]) for c in commits}
    for line in lines:
        if line["what"] == "torn":
            check.found("torn", f"rank {line['rank']} resumed from a torn {line['file']}")
        if line["what"] == "start" and line["step"] and line["step"] not in steps:
            check.found("lost", f"rank {line['rank']} resumed from {line['step']}, which no commit has")
    if len(kept) < int(least):
        check.found("lost", f"{len(kept)} commits are kept, {least} were expected")
    print("kept:", *(check.shown(c["unit"]) for c in kept))
    return 1 if check.findings else 0


sys.exit(main(*sys.argv[1:]))
