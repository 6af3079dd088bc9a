#!/usr/bin/python3
"""A training that is one of several tasks: trainer.py --dir DIR --steps N --log FILE [options]

Each task writes its shard of checkpoint-N, every so many steps, into DIR; what it wrote, and what came to it,
goes to the log, a line of JSON each: spec/slurm/judge.py compares a store with that.

  --every K       steps from one checkpoint to the next (5)
  --pace S        seconds for a step (0.3)
  --exit CODE     how it ends after a TERM, once it has saved (0)
  --ignore        nothing is done at a TERM
  --warned SIG    the signal at which it saves and ends (TERM)
  --shared        all tasks see one DIR: what is not a shard only the first one writes
  --late S        the shards of the last task come so much later
  --die N         the last task is killed after this step, unless it has resumed
  --apart         the tasks are not in step: each saves what it has at a TERM, and stops at no other's
"""
import argparse
import hashlib
import json
import os
import signal
import sys
import time

words = argparse.ArgumentParser()
words.add_argument("--dir", required=True)
words.add_argument("--steps", type=int, required=True)
words.add_argument("--log", required=True)
words.add_argument("--every", type=int, default=5)
words.add_argument("--pace", type=float, default=0.3)
words.add_argument("--exit", type=int, default=0)
words.add_argument("--late", type=float, default=0)
words.add_argument("--die", type=int, default=0)
words.add_argument("--warned", default="TERM")
words.add_argument("--ignore", action="store_true")
words.add_argument("--apart", action="store_true")
words.add_argument("--shared", action="store_true")
asked = words.parse_args()

env = os.environ


def task():
    """Which of how many we are, and a name that the others of this launch have, too. The innermost launcher counts."""
    if "TORCHELASTIC_RUN_ID" in env:
        return int(env["RANK"]), int(env["WORLD_SIZE"]), "torch" + env["TORCHELASTIC_RESTART_COUNT"]
    if "OMPI_COMM_WORLD_RANK" in env:
        return int(env["OMPI_COMM_WORLD_RANK"]), int(env["OMPI_COMM_WORLD_SIZE"]), "mpi" + env["PMIX_NAMESPACE"]
    # Of a batch script without srun the variables are there, too, and mean one task.
    if "SLURM_STEP_ID" in env:
        return int(env["SLURM_PROCID"]), int(env["SLURM_STEP_NUM_TASKS"]), env["SLURM_STEP_ID"]
    return 0, 1, ""


rank, world, launch = task()
log = os.open(asked.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
told = False


def note(what, **more):
    line = dict(what=what, **more, rank=rank, world=world, host=os.uname().nodename, pid=os.getpid(),
                job=env.get("SLURM_JOB_ID"), life=env.get("SLURM_RESTART_COUNT", "0"), time=round(time.time(), 3))
    os.write(log, (json.dumps(line) + "\n").encode())


def on_signal(number, _frame):
    global told
    note("signal", signal=signal.Signals(number).name[3:])
    told = told or (not asked.ignore and number == signal.Signals["SIG" + asked.warned])


def write(unit, name, data):
    with open(os.path.join(unit, name), "wb") as f:
        f.write(data)
    return hashlib.sha256(data).hexdigest()


def save(step):
    unit = os.path.join(asked.dir, f"checkpoint-{step}")
    os.makedirs(unit, exist_ok=True)
    if asked.late and rank == world - 1:
        time.sleep(asked.late)
    name = f"shard-{rank}-of-{world}"
    files = {name: write(unit, name, hashlib.shake_128(f"{step} {name}".encode()).digest(200000))}
    if rank == 0 or not asked.shared:
        files["state.json"] = write(unit, "state.json", json.dumps({"step": step}).encode())
        files["DONE"] = write(unit, "DONE", b"")
    note("saved", step=step, files=files)


def resume():
    """The step to go on from; each shard that came back is looked at."""
    unit = env.get("CKPT_RESUME")
    if not unit:
        return 0
    with open(os.path.join(unit, "state.json")) as f:
        step = json.load(f)["step"]
    for name in os.listdir(unit):
        with open(os.path.join(unit, name), "rb") as f:
            data = f.read()
        if name.startswith("shard-") and data != hashlib.shake_128(f"{step} {name}".encode()).digest(200000):
            note("torn", step=step, file=name)
    return step


def in_step(step):
    """Waits for the other tasks, as a collective operation does. True if one of them was told to end."""
    if world == 1 or asked.apart:
        return told
    place = f"{asked.log}.{env.get('SLURM_JOB_ID')}.{env.get('SLURM_RESTART_COUNT', 0)}.{launch}"
    os.makedirs(place, exist_ok=True)
    names = [os.path.join(place, f"{step}.{n}") for n in range(world)]
    with open(names[rank] + ".new", "w") as f:
        f.write("told" if told else "")
    os.rename(names[rank] + ".new", names[rank])
    since = time.time()
    while not all(map(os.path.exists, names)):
        if time.time() - since > 60:
            note("alone", step=step)
            sys.exit(1)
        time.sleep(0.01)
    return any(os.path.getsize(name) for name in names)


os.makedirs(asked.dir, exist_ok=True)
signal.signal(signal.SIGTERM, on_signal)
signal.signal(signal.SIGUSR1, on_signal)
step = resumed = resume()
note("start", step=step)
while step < asked.steps:
    time.sleep(asked.pace)
    step += 1
    ends = in_step(step)
    if ends or step % asked.every == 0:
        save(step)
    if step == asked.die and not resumed and rank == world - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if ends:
        note("told", step=step)
        sys.exit(asked.exit)
note("end", step=step)
