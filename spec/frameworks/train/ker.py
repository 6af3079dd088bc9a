"""Keras. --how name: ModelCheckpoint with the metric in the name; backup: BackupAndRestore, which goes on by itself."""
import os

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow")
import json
import keras
import numpy
from told import arguments, digest, rest, tell

a = arguments(how="name")
keras.utils.set_random_seed(0)
x = numpy.random.default_rng(0).standard_normal((64, 8))


def fresh():
    m = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(100000), keras.layers.Dense(1)])
    m.compile(keras.optimizers.Adam(1e-5), "mse")
    return m


def epoch_of(path):
    return int(os.path.basename(path).split(".")[1].split("-")[0])


class Teller(keras.callbacks.Callback):
    """Stands first: what comes after it saves."""

    def on_train_begin(self, logs=None):
        self.told = False

    def on_epoch_begin(self, epoch, logs=None):
        if not self.told:
            self.told = True
            tell("begin", step=epoch, hash=digest(self.model.get_weights()) if epoch else "")
        rest()

    def on_epoch_end(self, epoch, logs=None):
        tell("saving", step=epoch + 1)


class Ender(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        name = {"name": f"weights.{epoch + 1:02d}-{logs['val_loss']:.2f}.keras", "backup": "latest.weights.h5"}[a.how]
        tell("saved", step=epoch + 1, name=name, hash=digest(self.model.get_weights()))


if a.check:
    for path in a.check:
        if a.how == "name":
            m, step = keras.models.load_model(path), epoch_of(path)
        else:
            m, step = fresh(), None
            m.load_weights(path)
            beside = os.path.join(os.path.dirname(path), "training_metadata.json")
            if os.path.exists(beside):
                step = json.load(open(beside))["epoch"]
        tell("loaded", path=path, step=step, hash=digest(m.get_weights()))
    raise SystemExit

model, start = fresh(), 0
if a.how == "name" and a.resume:
    model, start = keras.models.load_model(a.resume), epoch_of(a.resume)
saver = {"name": lambda: keras.callbacks.ModelCheckpoint(a.dir + "/weights.{epoch:02d}-{val_loss:.2f}.keras"),
         "backup": lambda: keras.callbacks.BackupAndRestore(a.dir + "/backup", delete_checkpoint=False)}[a.how]()
model.fit(x, x.sum(1), epochs=a.steps, initial_epoch=start, verbose=0, shuffle=False, validation_data=(x, x.sum(1)),
          callbacks=[Teller(), saver, Ender()])
tell("final", step=a.steps, hash=digest(model.get_weights()))
