"""Orbax's CheckpointManager, asynchronous; --trash moves what it deletes to `trash`. It finds its newest by itself."""
import os

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy
import optax
import orbax.checkpoint as ocp
from told import arguments, digest, rest, tell

a = arguments(trash=False)
p = {"a": jnp.ones((8, 700)) * 0.01, "b": jnp.ones((700, 700)) * 0.01}
tx = optax.adam(1e-3)
s = tx.init(p)
item = ocp.args.Composite(state=ocp.args.StandardRestore({"p": p, "s": s}), meta=ocp.args.JsonRestore())


def of(q):
    return digest(numpy.asarray(q[k]) for k in sorted(q))


if a.check:
    for path in a.check:
        up, name = os.path.split(path)
        with ocp.CheckpointManager(up) as m:
            r = m.restore(int(name), args=item)
        tell("loaded", path=path, step=r["meta"]["step"], hash=of(r["state"]["p"]))
    raise SystemExit

more = {"todelete_subdir": "trash"} if a.trash else {}
options = ocp.CheckpointManagerOptions(max_to_keep=3, enable_async_checkpointing=True, **more)
with ocp.CheckpointManager(os.path.abspath(a.dir), options=options) as m:
    start = m.latest_step() or 0
    if start:
        r = m.restore(start, args=item)["state"]
        p, s = r["p"], r["s"]
    tell("begin", step=start, hash=of(p) if start else "")
    for i in range(start + 1, a.steps + 1):
        g = jax.grad(lambda q: jnp.mean((jnp.ones((4, 8)) @ q["a"] @ q["b"]) ** 2))(p)
        u, s = tx.update(g, s)
        p = optax.apply_updates(p, u)
        rest()
        tell("saving", step=i)
        m.save(i, metrics={"loss": 1.0 / i}, args=ocp.args.Composite(
            state=ocp.args.StandardSave({"p": p, "s": s}), meta=ocp.args.JsonSave({"step": i})))
        m.wait_until_finished()
        tell("saved", step=i, name=str(i), hash=of(p))
tell("final", step=a.steps, hash=of(p))
