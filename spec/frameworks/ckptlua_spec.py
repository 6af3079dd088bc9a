"""The package `ckptlua`: as a wheel, under a real run, and, where they are installed, with the real frameworks.

Prints TAP. Environment: CKPT_LUA.
"""
import glob
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CKPT = os.path.abspath(os.environ.get("CKPT_LUA", ROOT + "/ckpt-lua"))
done = 0


class Skip(Exception):
    pass


def test(title):
    def judge(check):
        global done
        done += 1
        with tempfile.TemporaryDirectory(prefix="ckptlua.") as place:
            try:
                check(place)
                print(f"ok {done} - {title}", flush=True)
            except Skip as why:
                print(f"ok {done} - {title} # SKIP {why}", flush=True)
            except Exception as e:
                print(f"not ok {done} - {title}\n# {type(e).__name__}: " + str(e).replace("\n", "\n# "), flush=True)
    return judge


def need(*modules):
    for m in modules:
        if importlib.util.find_spec(m) is None:
            raise Skip(f"there is no {m}")


def run(place, script, *options, wait=True, path=None, **environment):
    """Runs a Python script as the job of a run in `place`."""
    with open(place + "/job.py", "w", encoding="utf-8") as f:
        f.write(script)
    env = {**os.environ, "PYTHONPATH": path or ROOT + "/python", "PYTHONUNBUFFERED": "1", **environment}
    p = subprocess.Popen([CKPT, "run", "--dir", "out", "--to", "store", *options, "--", sys.executable, "job.py"],
                         cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    if not wait:
        return p
    text, _ = p.communicate(timeout=240)
    assert p.returncode == 0, text
    return text


def listed(place):
    out = subprocess.run([CKPT, "ls", "store", "--json"], cwd=place, capture_output=True, text=True)
    return [json.loads(line) for line in out.stdout.splitlines()]


SAVES = """
import os, ckptlua
os.makedirs("out/.new")
open("out/.new/model.bin", "w").write("weights")
os.rename("out/.new", "out/checkpoint-1")
"""


@test("is a pure wheel of its own three files")
def _(place):
    need("setuptools", "wheel", "pip")
    shutil.copytree(ROOT + "/python", place + "/python")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation",
                    "-w", place, place + "/python"], check=True, stdout=sys.stderr)
    wheel, = glob.glob(place + "/*.whl")
    assert wheel.endswith("-py3-none-any.whl"), wheel
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert names == {f"ckptlua/{n}.py" for n in ("__init__", "transformers", "lightning")}, names
    subprocess.run([sys.executable, "-c", "import ckptlua; assert ckptlua.notify(a=1) is False"], check=True,
                   env={**os.environ, "PYTHONPATH": wheel, "CKPT_SOCKET": ""}, cwd=place)


@test("is a page of code")
def _(_place):
    lines = [line for f in glob.glob(ROOT + "/python/ckptlua/*.py") for line in open(f, encoding="utf-8")]
    assert len(lines) < 160, len(lines)


@test("tells a run the numbers of a checkpoint, those of tensors too")
def _(place):
    run(place, SAVES + """
class One:
    def item(self): return 0.25
class Many:
    def item(self): raise ValueError("a tensor of 3 elements")
    shape = (3,)
assert ckptlua.saved("out/checkpoint-1", loss=One(), many=Many(), acc=2, none=None) is True
""")
    row, = listed(place)
    assert row["metrics"]["loss"] == 0.25 and row["metrics"]["acc"] == 2, row
    assert "many" not in row["metrics"] and "none" not in row["metrics"], row


@test("says what a run does not take, and that it is gone")
def _(place):
    run(place, SAVES + """
try:
    ckptlua.notify(**{"$ckpt": "no such question"})
    raise SystemExit("it was taken")
except ValueError as e:
    print(e)
os.environ["CKPT_SOCKET"] += ".gone"
try:
    ckptlua.notify(a=1)
    raise SystemExit("it was told")
except OSError:
    pass
assert ckptlua.saved("out/checkpoint-1") is False
""")


@test("hears that the runner is told to end, and what handled the signal before still does")
def _(place):
    p = run(place, """
import os, signal, time, ckptlua
heard = []
signal.signal(signal.SIGTERM, lambda *a: heard.append(1))
asked = ckptlua.Asked()
assert not asked
open("up", "w")
while not asked: time.sleep(0.02)
assert heard == [1]
""" + SAVES, wait=False)
    while not os.path.exists(place + "/up"):
        assert p.poll() is None, p.stdout.read()
        time.sleep(0.05)
    os.kill(p.pid, signal.SIGTERM)
    text, _ = p.communicate(timeout=60)
    assert [r["name"] for r in listed(place)] == ["checkpoint-1"], text


def training(place, *words):
    """A training of spec/frameworks/train as the job, slow, until it has saved twice; then the runner gets TERM."""
    need("torch", "transformers" if words[0] == "hf.py" else "lightning")
    log = place + "/told"
    p = subprocess.Popen([CKPT, "run", "--dir", "out", "--to", "store", "--", sys.executable,
                          f"{HERE}/train/{words[0]}", "--dir", "out", "--steps", "400", *words[1:]],
                         cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, env={**os.environ, "FW_LOG": log, "FW_SLEEP": "2", "OMP_NUM_THREADS": "1",
                                         "PYTHONPATH": ROOT + "/python"})
    end = time.time() + 200
    while not os.path.exists(log) or open(log, encoding="utf-8").read().count('"saved"') < 2:
        assert p.poll() is None and time.time() < end, p.communicate()[0]
        time.sleep(0.1)
    os.kill(p.pid, signal.SIGTERM)
    text, _ = p.communicate(timeout=120)
    told = [json.loads(line) for line in open(log, encoding="utf-8")]
    return listed(place), told, text


@test("saves and stops a Hugging Face Trainer when asked, and tells its metrics")
def _(place):
    rows, told, text = training(place, "hf.py", "--best", "--callback")
    saved = [t for t in told if t["what"] == "saved"]
    assert rows and rows[-1]["name"] == saved[-1]["name"], (rows[-1:], saved[-1:], text)
    for row in rows:  # it evaluates at each fifth step
        assert ("eval_loss" in row["metrics"]) == (row["step"] % 5 == 0), row


@test("saves and stops a Lightning Trainer when asked, and tells its metrics")
def _(place):
    rows, told, text = training(place, "lit.py", "--how", "metric", "--callback")
    assert rows[-1]["name"].startswith("epoch=") and "step=" in rows[-1]["name"], (rows[-1:], text)
    assert "val_loss" in rows[-1]["metrics"], rows[-1]


# keep.best would take the later of two with one number, which is not what the evaluation was of.
@test("gives a Hugging Face checkpoint the numbers of its own step alone")
def _(place):
    need("torch", "transformers")
    run(place, """
import time, torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from ckptlua.transformers import CkptCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
    def forward(self, x, labels):
        return {"loss": (self.line(x) - labels).pow(2).mean()}

class Rest(TrainerCallback):
    def on_save(self, args, state, control, **_):
        time.sleep(4)

data = [{"x": torch.ones(1), "labels": torch.zeros(1)}] * 8
args = TrainingArguments(output_dir="out", max_steps=7, save_steps=2, eval_strategy="steps", eval_steps=4,
                         logging_steps=3, report_to=[], use_cpu=True)
Trainer(model=Model(), args=args, train_dataset=data, eval_dataset=data, callbacks=[CkptCallback(), Rest()]).train()
""", CUDA_VISIBLE_DEVICES="")
    numbers = {row["name"]: sorted({"eval_loss", "loss"} & set(row["metrics"])) for row in listed(place)}
    assert numbers == {"checkpoint-2": [], "checkpoint-4": ["eval_loss"], "checkpoint-6": ["loss"],
                       "checkpoint-7": ["eval_loss"]}, numbers


@test("takes a metric of any name")
def _(place):
    run(place, SAVES + """
assert ckptlua.saved("out/checkpoint-1", **{"path": 1, "seconds": 2, "checkpoint": 3, "loss": 4}) is True
""")
    row, = listed(place)
    assert row["metrics"]["path"] == 1 and row["metrics"]["seconds"] == 2 and row["metrics"]["loss"] == 4, row


print(f"1..{done}")
