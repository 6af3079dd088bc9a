"""Ray Train v2: two workers save one checkpoint together. It goes on by its own checkpoint_manager_snapshot.json."""
import os

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_TRAIN_V2_ENABLED="1", CUDA_VISIBLE_DEVICES="",
                  RAY_DISABLE_MEMORY_MONITOR="1", RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S="180",
                  # Processes of Ray's own that tell of machines and metrics: a start took a third longer with them.
                  RAY_TRAIN_ENABLE_PREEMPTION_WATCHER="0", RAY_TRAIN_METRICS_ENABLED="0",
                  RAY_TRAIN_ENABLE_STATE_ACTOR_RECONCILIATION="0")
import json
import tempfile
import ray
from ray import train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from told import arguments, rest, tell

a = arguments()
BYTES = 2000000


def content(rank, i):
    return (b"%d.%d " % (rank, i)) * (BYTES // 8)


if a.check:
    for path in a.check:
        i = json.load(open(path + "/s.json"))["i"]
        whole = all(open(f"{path}/shard-{r}.bin", "rb").read() == content(r, i) for r in (0, 1))
        tell("loaded", path=path, step=i, hash="both shards" if whole else "other bytes")
    raise SystemExit


def work(config):
    rank, start = train.get_context().get_world_rank(), 0
    had = train.get_checkpoint()
    if had:
        with had.as_directory() as d:
            start = json.load(open(d + "/s.json"))["i"]
            assert open(f"{d}/shard-{rank}.bin", "rb").read() == content(rank, start)
    if rank == 0:
        tell("begin", step=start, hash="both shards" if start else "")
    for i in range(start + 1, a.steps + 1):
        rest()
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/shard-{rank}.bin", "wb") as f:
                f.write(content(rank, i))
            if rank == 0:
                with open(d + "/s.json", "w") as f:
                    json.dump({"i": i}, f)
                tell("saving", step=i)
            train.report({"i": i}, checkpoint=train.Checkpoint.from_directory(d))
            if rank == 0:
                tell("saved", step=i, name=None, hash="both shards")


ray.init(num_cpus=3, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=True)
trainer = DataParallelTrainer(
    work, scaling_config=train.ScalingConfig(num_workers=2, use_gpu=False),
    run_config=train.RunConfig(name="exp", storage_path=os.path.abspath(a.dir),
                               checkpoint_config=train.CheckpointConfig(num_to_keep=2)))
result = trainer.fit()
tell("final", step=result.metrics["i"], hash="both shards")
ray.shutdown()
