#!/usr/bin/python3 -IS
"""The job of a history: trainer.py RECORDS ACTOR SALT STEPS PAUSE HOW

Goes on from CKPT_RESUME, whose bytes it records, or from step 0, and makes so many checkpoints, of which it records
the sha256 of each file before anybody can see them as complete. HOW: rename (made elsewhere and renamed), place (the
marker comes last), wait (renamed, and the run is asked to say when it is durable).
"""
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time


def note(path, **what):
    what["t"] = time.time()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, (json.dumps(what) + "\n").encode())
    os.close(fd)


def read_tree(top):
    """{name: sha256} of all files but the store's own table of contents."""
    out = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            rel = os.path.relpath(path, top)
            if rel == ".ckpt-manifest.json":
                continue
            with open(path, "rb") as f:
                out[rel] = hashlib.sha256(f.read()).hexdigest()
    return out


def content(salt, name, size):
    return hashlib.shake_128(f"{salt} {name}".encode()).digest(size)


def make_files(salt):
    """{name: bytes}. Each checkpoint has bytes that no other one has."""
    size = 1 + int(hashlib.sha256(salt.encode()).hexdigest()[:8], 16) % 20000
    return {"model.bin": content(salt, "model", size), "sub/opt.bin": content(salt, "opt", size // 7), "DONE": b""}


def write(top, files, last="DONE"):
    os.makedirs(os.path.join(top, "sub"))
    for name, data in sorted(files.items(), key=lambda item: item[0] == last):
        with open(os.path.join(top, name), "wb") as f:
            f.write(data)


def save(records, actor, where, step, salt, how):
    """One checkpoint, recorded before it is complete."""
    name = f"checkpoint-{step}"
    path = os.path.join(where, name)
    files = make_files(salt)
    shutil.rmtree(path, ignore_errors=True)
    sums = {each: hashlib.sha256(data).hexdigest() for each, data in files.items()}
    note(records, wrote=name, step=step, actor=actor, files=sums)
    if how == "place":
        write(path, files)
    else:
        shutil.rmtree(path + ".making", ignore_errors=True)
        write(path + ".making", files)
        os.rename(path + ".making", path)
    note(records, complete=name, actor=actor, files=sums)
    return sums


def main(records, actor, salt, steps, pause, how):
    step, resume, where = 0, os.environ.get("CKPT_RESUME"), os.environ["CKPT_DIR"]
    if resume:
        step = int(re.search(r"checkpoint-(\d+)", os.path.basename(resume))[1])
        note(records, resumed=os.path.basename(resume), actor=actor, files=read_tree(resume))
    for i in range(int(steps)):
        step += 1
        time.sleep(float(pause))
        sums = save(records, actor, where, step, f"{salt} {i}", how)
        if how == "wait":
            asked = [os.environ["CKPT_LUA"], "notify", f"checkpoint=checkpoint-{step}", "--wait", "-q"]
            # What spoils the store is not for this one: it speaks to its run alone.
            clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "JUDGE_DISK")}
            rc = subprocess.call(asked, env=clean, stderr=subprocess.DEVNULL)
            note(records, waited=f"checkpoint-{step}", actor=actor, rc=rc, files=sums)


if __name__ == "__main__":
    main(*sys.argv[1:])
