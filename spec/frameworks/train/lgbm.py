"""LightGBM: save_model after each round, as text."""
import hashlib
import os
import lightgbm
import numpy
from told import arguments, rest, tell

a = arguments()
x = numpy.random.default_rng(0).standard_normal((500, 8))
y = x.sum(1)


def of(booster):
    return hashlib.sha256(booster.model_to_string().split("\nparameters:")[0].encode()).hexdigest()[:16]


def read(path):
    return lightgbm.Booster(model_file=path)


if a.check:
    for path in a.check:
        b = read(path)
        tell("loaded", path=path, step=b.current_iteration(), hash=of(b))
    raise SystemExit

start = read(a.resume).current_iteration() if a.resume else 0
tell("begin", step=start, hash=of(read(a.resume)) if start else "")


def save(env):
    i = env.model.current_iteration()
    rest()
    tell("saving", step=i)
    path = f"{a.dir}/lgb_{i}.txt"
    env.model.save_model(path)
    tell("saved", step=i, name=os.path.basename(path), hash=of(read(path)))


left = a.steps - start
if left > 0:
    options = {"verbosity": -1, "num_threads": 1, "deterministic": True, "seed": 0}
    booster = lightgbm.train(options, lightgbm.Dataset(x, y), left, init_model=a.resume, callbacks=[save])
    tell("final", step=booster.current_iteration(), hash=of(booster))
else:
    tell("final", step=start, hash=of(read(a.resume)))
