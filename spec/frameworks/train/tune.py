"""Ray Tune: two trials of one experiment. It goes on as Ray says: Tuner.can_restore, Tuner.restore."""
import os

os.environ.update(RAY_USAGE_STATS_ENABLED="0", CUDA_VISIBLE_DEVICES="", RAY_DISABLE_MEMORY_MONITOR="1")
import json
import tempfile
import ray
from ray import tune
from told import arguments, rest, tell

a = arguments()
BYTES = 3000000


def content(seed, i):
    """What a trial saves: different at every step, and known."""
    return (b"%d.%d " % (seed, i)) * (BYTES // 8)


if a.check:
    for path in a.check:
        s = json.load(open(path + "/s.json"))
        whole = open(path + "/model.bin", "rb").read() == content(s["seed"], s["i"])
        tell("loaded", path=path, step=s["i"], hash=f"trial {s['seed']}" if whole else "other bytes")
    raise SystemExit


def train(config):
    seed, start = config["seed"], 0
    had = tune.get_checkpoint()
    if had:
        with had.as_directory() as d:
            start = json.load(open(d + "/s.json"))["i"]
            assert open(d + "/model.bin", "rb").read() == content(seed, start)
    tell("begin", step=start, who=seed, hash=f"trial {seed}" if start else "")
    for i in range(start + 1, a.steps + 1):
        rest()
        with tempfile.TemporaryDirectory() as d:
            with open(d + "/model.bin", "wb") as f:
                f.write(content(seed, i))
            with open(d + "/s.json", "w") as f:
                json.dump({"i": i, "seed": seed}, f)
            tell("saving", step=i, who=seed)
            tune.report({"i": i, "seed": seed}, checkpoint=tune.Checkpoint.from_directory(d))
            place = tune.get_context().get_trial_dir()
            tell("saved", step=i, who=seed, name=None, hash=f"trial {seed}", trial=os.path.basename(place))


ray.init(num_cpus=2, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=True)
place = os.path.abspath(a.dir) + "/exp"
again = os.path.isdir(place) and tune.Tuner.can_restore(place)
if again:
    tuner = tune.Tuner.restore(place, trainable=train, resume_unfinished=True, resume_errored=True)
else:
    tuner = tune.Tuner(train, param_space={"seed": tune.grid_search([1, 2])}, run_config=tune.RunConfig(
        name="exp", storage_path=os.path.abspath(a.dir), checkpoint_config=tune.CheckpointConfig(num_to_keep=3)))
tell("tuner", restored=bool(again))
results = tuner.fit()
trials = sorted(r.metrics.get("i", 0) for r in results)
tell("final", step=min(trials), hash=f"{len(trials)} trials, {results.num_errors} failed")
ray.shutdown()
