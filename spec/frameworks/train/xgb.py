"""xgboost's TrainingCheckPoint."""
import hashlib
import os
import numpy
import xgboost
from told import arguments, rest, tell

a = arguments()
x = numpy.random.default_rng(0).standard_normal((500, 8))
data = xgboost.DMatrix(x, x.sum(1))


def of(booster):
    return hashlib.sha256("".join(booster.get_dump()).encode()).hexdigest()[:16]


if a.check:
    for path in a.check:
        b = xgboost.Booster(model_file=path)
        tell("loaded", path=path, step=b.num_boosted_rounds(), hash=of(b))
    raise SystemExit

booster, start = None, 0
if a.resume:
    booster = xgboost.Booster(model_file=a.resume)
    start = booster.num_boosted_rounds()
tell("begin", step=start, hash=of(booster) if start else "")


class Saver(xgboost.callback.TrainingCheckPoint):
    """It saves from the second round of a start on."""

    def after_iteration(self, model, epoch, evals_log):
        rest()
        due = self._epoch == self._iterations
        n = model.num_boosted_rounds()
        if due:
            tell("saving", step=n)
        done = super().after_iteration(model, epoch, evals_log)
        if due:
            tell("saved", step=n, name=f"model_{epoch + self._start}.ubj", hash=of(model))
        return done


saver = Saver(directory=a.dir, name="model", interval=1)
booster = xgboost.train({"nthread": 1, "max_depth": 6}, data, a.steps - start, xgb_model=booster, callbacks=[saver])
tell("final", step=booster.num_boosted_rounds(), hash=of(booster))
