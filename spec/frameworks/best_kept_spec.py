"""Real trainings under a policy that keeps the best: what stays in the target has the best numbers that the framework
itself wrote down, whether it is told by ckptlua or not."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CKPT = os.path.abspath(os.environ.get("CKPT_LUA", ROOT + "/ckpt-lua"))
STEPS = 5
# The numbers fall with each save: the highest are those of the first two, which only the rule keeps.
POLICY = 'return { api = 1, keep = any { keep.last(1), keep.best("%s", 2, "max") } }\n'


def by_state(out):
    """Hugging Face: the evaluations in the newest checkpoint's own state."""
    newest = max(os.listdir(out), key=lambda name: int(name.split("-")[1]))
    with open(f"{out}/{newest}/trainer_state.json", encoding="utf-8") as f:
        return {f"checkpoint-{e['step']}": e["eval_loss"] for e in json.load(f)["log_history"] if "eval_loss" in e}


def by_name(out):
    """Lightning: the number in each name."""
    return {name: float(re.search(r"val_loss=([0-9.]+)\.ckpt", name)[1]) for name in os.listdir(out + "/checkpoints")}


def kept(top, script, metric, numbers):
    """Trains to the end; returns whether the two best by the framework's own numbers are live, and what is."""
    os.makedirs(top)
    with open(top + "/best.lua", "w", encoding="utf-8") as f:
        f.write(POLICY % metric)
    job = [CKPT, "run", "--dir", "out", "--to", "store", "--policy", "./best.lua", "--max-delete", "100%", "--",
           sys.executable, os.path.join(HERE, "train", script[0]), "--dir", "out", "--steps", str(STEPS), *script[1:]]
    done = subprocess.run(job, cwd=top, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
                          env={**os.environ, "FW_LOG": top + "/told", "FW_SLEEP": "4", "OMP_NUM_THREADS": "1",
                               "PYTHONPATH": ROOT + "/python"})
    assert done.returncode == 0, done.stderr
    rows = subprocess.run([CKPT, "ls", "store", "--json"], cwd=top, capture_output=True, text=True, check=True)
    live = {os.path.basename(r["name"]) for r in map(json.loads, rows.stdout.splitlines()) if r["life"] == "live"}
    told = numbers(top + "/out")
    best = set(sorted(told, key=told.get)[-2:])
    return best <= live and len(live) == 3, f"the best are {sorted(best)} of {told}; kept are {sorted(live)}"


def main():
    top = tempfile.mkdtemp(prefix="fw-best.")
    try:
        plays = [("Hugging Face's", ("hf.py", "--evaluate"), "eval_loss", by_state),
                 ("Hugging Face's, told by ckptlua,", ("hf.py", "--evaluate", "--callback"), "eval_loss", by_state),
                 ("Lightning's", ("lit.py", "--how", "metric"), "val_loss", by_name),
                 ("Lightning's, told by ckptlua,", ("lit.py", "--how", "metric", "--callback"), "val_loss", by_name)]
        print(f"1..{len(plays)}")
        with ThreadPoolExecutor(2) as pool:  # most of the time they rest between two saves
            judged = list(pool.map(lambda i: kept(f"{top}/{i}", *plays[i][1:]), range(len(plays))))
        for i, (good, text) in enumerate(judged):
            print(f"{'ok' if good else 'not ok'} {i + 1} - {plays[i][0]} true best stays under a policy that keeps the best")
            print("# " + text)
        return 0 if all(good for good, _ in judged) else 1
    finally:
        shutil.rmtree(top)


sys.exit(main())
