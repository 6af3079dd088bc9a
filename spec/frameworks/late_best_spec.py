"""What Hugging Face's Trainer makes of a best checkpoint that is not there when it resumes: it ignores it, but takes it
up with the next save that finds it. So it may be restored while the job runs."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import told_log

HERE = os.path.dirname(os.path.abspath(__file__))


def train(out, log, *args):
    """Starts a training whose best checkpoint is an early one, and which loads that at its end."""
    job = [sys.executable, os.path.join(HERE, "train/hf.py"), "--dir", out, "--best", *args]
    return subprocess.Popen(job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={**os.environ, "FW_LOG": log, "FW_SLEEP": "1"})


def told(log, what):
    return [t for t in told_log.read(log) if t["what"] == what]


def until(process, log, what):
    end = time.time() + 180
    while not told(log, what):
        assert process.poll() is None and time.time() < end, f"no {what} in {log}"
        time.sleep(0.05)


def resumed(top, name, comes):
    """Resumes from the second checkpoint, without the first one; brings that when the training has begun, or not."""
    out, log, away = f"{top}/out", f"{top}/{name}.told", f"{top}/{name}.away"
    shutil.rmtree(out)  # its state names this very directory
    shutil.copytree(f"{top}/made", out)
    os.rename(f"{out}/checkpoint-5", away)
    job = train(out, log, "--steps", "4", "--resume", f"{out}/checkpoint-10")
    until(job, log, "begin")
    if comes:
        os.rename(away, f"{out}/checkpoint-5")
    assert job.wait(180) == 0, f"{name}: code {job.returncode}"
    return told(log, "final")[0]["hash"]


def main():
    top = tempfile.mkdtemp(prefix="fw-late.")
    try:
        first = train(f"{top}/out", f"{top}/made.told", "--steps", "2")
        assert first.wait(180) == 0, f"code {first.returncode}"
        shutil.copytree(f"{top}/out", f"{top}/made")
        saved = {t["name"]: t["hash"] for t in told(f"{top}/made.told", "saved")}
        late, never = (resumed(top, name, comes) for name, comes in (("late", True), ("never", False)))
        tests = [("one that comes while it trains is what it ends with", late == saved["checkpoint-5"]),
                 ("one that does not come is not", never != saved["checkpoint-5"])]
        print(f"1..{len(tests)}")
        for i, (text, good) in enumerate(tests, 1):
            print(f"{'ok' if good else 'not ok'} {i} - {text}")
        return 0 if all(good for _, good in tests) else 1
    finally:
        shutil.rmtree(top)


sys.exit(main())
