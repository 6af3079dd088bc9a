"""TensorFlow's CheckpointManager: it goes on by its text file `checkpoint`."""
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow
from told import arguments, digest, rest, tell

a = arguments()
v, at = tensorflow.Variable(tensorflow.zeros((1000, 1000))), tensorflow.Variable(0)
both = tensorflow.train.Checkpoint(v=v, step=at)


def now():
    return digest([v.numpy()])


if a.check:
    for path in a.check:
        both.restore(path).assert_existing_objects_matched()
        tell("loaded", path=path, step=int(at.numpy()), hash=now())
    raise SystemExit

manager = tensorflow.train.CheckpointManager(both, a.dir, max_to_keep=3)
manager.restore_or_initialize()
start = int(at.numpy())
tell("begin", step=start, hash=now() if start else "")
for i in range(start + 1, a.steps + 1):
    v.assign_add(tensorflow.ones_like(v) * i)
    at.assign(i)
    rest()
    tell("saving", step=i)
    path = manager.save(i)
    tell("saved", step=i, name=os.path.basename(path), hash=now())
tell("final", step=int(at.numpy()), hash=now())
