#!/usr/bin/python3 -IS
"""A trainer whose checkpoints anybody can compute again, for spec/crash/crash.sh.

  trainer.py train DIR SIZE PAUSE STEPS [CHECKPOINT]
      Goes on from CHECKPOINT (after it has compared it to what it must be) or from step 0, and
      writes DIR/checkpoint-STEP, PAUSE seconds apart, up to STEPS: those of even steps under
      another name that is then renamed, those of odd steps in place, the marker DONE last. As
      frameworks do, it flushes nothing, and deletes all but the newest before it writes the next.
      Then it waits to be ended.
  trainer.py compare PATH STEP SIZE
      Compares each byte of a checkpoint; prints their number. Exit status 1: it differs.

A checkpoint has 40 files of SIZE bytes together; one has half of them. The content follows from step
and file alone.
"""
import hashlib
import os
import re
import sys
import time

FILES = 40
CHUNK = 1 << 20
MANIFEST = ".ckpt-manifest.json"


def sizes(total):
    """{name: size}: one of half the size, an empty one, the marker, and others of odd sizes."""
    out = {"big.bin": total // 2, "empty.bin": 0, "DONE": 0}
    weights = [i % 7 * 8 + 1 for i in range(FILES - len(out))]
    rest = total - total // 2
    for i, weight in enumerate(weights):
        out[f"part-{i:02}.bin"] = rest * weight // sum(weights)
    out["part-00.bin"] += total - sum(out.values())
    return out


def content(step, name, size):
    """The bytes of a file, chunk by chunk: each chunk says where it belongs, and has no other's
    bytes, so that a stale or misplaced one is seen."""
    seed = hashlib.shake_128(f"{step} {name}".encode()).digest(CHUNK)
    seed = memoryview(seed + seed)
    for at in range(0, size, CHUNK):
        turn = at // CHUNK * 4099 % CHUNK
        head = f"step {step} of {name} at {at}\n".encode().ljust(64, b".")
        chunk = head + bytes(seed[turn : turn + CHUNK - len(head)])
        yield chunk[: size - at]


# --- compare --------------------------------------------------------------------------------


def compare(path, step, total):
    """The number of bytes that were compared; ends the program where one differs."""
    expected, there = sizes(total), set(os.listdir(path)) - {MANIFEST}
    if there != set(expected):
        sys.exit(f"DIFFERS {path}: not the same files: {sorted(there ^ set(expected))}")
    for name, size in expected.items():
        with open(f"{path}/{name}", "rb", buffering=0) as f:
            for at, chunk in enumerate(content(step, name, size)):
                if f.read(len(chunk)) != chunk:
                    sys.exit(f"DIFFERS {path}/{name}: in MiB {at} of {size} bytes")
            if f.read(1):
                sys.exit(f"DIFFERS {path}/{name}: longer than {size} bytes")
    return total


# --- train ----------------------------------------------------------------------------------


def remove(path):
    # One by one: shutil.rmtree makes calls that the crash test injects its kills into.
    for name in os.listdir(path):
        os.unlink(f"{path}/{name}")
    os.rmdir(path)


def write(path, step, total):
    os.mkdir(path)
    for name, size in sizes(total).items():
        if name != "DONE":
            with open(f"{path}/{name}", "wb", buffering=0) as f:
                for chunk in content(step, name, size):
                    f.write(chunk)
    with open(f"{path}/DONE", "wb"):
        pass


def train(where, total, pause, steps, resume):
    step = 0
    if resume:
        step = int(re.search(r"\d+$", resume)[0])
        compare(resume, step, total)
        print(f"resumed {step}, whole", flush=True)
    while step < steps:
        time.sleep(pause)
        step += 1
        last = f"checkpoint-{step - 1}"
        for name in os.listdir(where):
            if name != last:
                remove(f"{where}/{name}")
        path = f"{where}/checkpoint-{step}"
        if step % 2:
            write(path, step, total)
        else:
            write(path + ".tmp", step, total)
            os.rename(path + ".tmp", path)
        print(f"wrote {step}", flush=True)
    while True:
        time.sleep(3600)


def main(args):
    if args[:1] == ["train"] and len(args) in (5, 6):
        train(args[1], int(args[2]), float(args[3]), int(args[4]), args[5] if args[5:] else None)
    elif args[:1] == ["compare"] and len(args) == 4:
        print(compare(args[1], int(args[2]), int(args[3])))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
