"""The frameworks, one row each: what trains, how it goes on, where a kill is aimed, what is promised of it.

  script, args   in train/; `launch` before it ("torchrun")
  run            options of `ckpt-lua run`
  aims           (event, path below the directory as a regular expression): a kill is aimed at one of them
  limit          seconds from the framework's "saved" to the start of a transfer
  every          seconds between two saves
  slack          how many steps behind its newest checkpoint the framework's own state may be: it is written later
  trials         how many train at once
  in_place       the name is written again each time
  only           which commits are of checkpoints, where others are, too
  exact          a training that was never killed ends with the same weights
"""
RENAMED, MARKER, PROVEN = 0.5, 2.0, 2.0
# What nothing proves rests for --settle, which is 30 s: a kill comes sooner than that, so they run with 2.
SETTLE, SETTLED = ["--settle", "2"], 3.0
RESUME = ["--resume-arg", "--resume {}"]
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--rdzv-backend", "c10d",
            "--rdzv-endpoint", "localhost:0"]


def row(script, limit, aims, **more):
    return {"script": script, "limit": limit, "aims": aims, "args": [], "run": [], "every": 3.0, "launch": [],
            "in_place": False, "exact": True, "package": None, "trials": 1, "env": {}, **more}


def hf(package="transformers", **more):
    return row("hf.py", MARKER, [("CREATE", r"checkpoint-\d+/optimizer\.pt"),
                                 ("CLOSE_WRITE", r"checkpoint-\d+/config\.json"),
                                 ("CREATE", r"checkpoint-\d+/trainer_state\.json"),
                                 ("CLOSE_WRITE", r"checkpoint-\d+/trainer_state\.json")],
               run=RESUME, package=package, **more)


def lightning(how, run=RESUME, limit=RENAMED, **more):
    return row("lit.py", limit, [("MOVED_TO", r"checkpoints/epoch=.*\.ckpt"), ("CREATE", r"checkpoints/last\.ckpt"),
                                 ("MOVED_TO", r"checkpoints/last\.ckpt")] if how != "metric" else
               [("MOVED_TO", r"checkpoints/epoch=.*\.ckpt")],
               args=["--how", how], run=run, package="lightning", **more)


def dcp(*args):
    return row("dcp.py", MARKER, [("CREATE", r"step-\d+/__0_0\.distcp"), ("CREATE", r"step-\d+/__1_0\.distcp"),
                                  ("CREATE", r"step-\d+/\.metadata\.tmp"), ("MOVED_TO", r"step-\d+/\.metadata")],
               args=list(args), run=RESUME, launch=TORCHRUN, package="torch", every=4.0)


def orbax(*args):
    return row("orb.py", RENAMED, [("CREATE", r"\d+\.orbax-checkpoint-tmp[^/]*"), ("MOVED_TO", r"\d+"),
                                   ("CREATE", r"\d+\.orbax-checkpoint-tmp[^/]*/state/.*")],
               args=list(args), package="orbax-checkpoint")


GROUPS = {
    "hf": hf(),
    "hf-best": hf(args=["--best"]),
    "hf-callback": hf(args=["--callback"], only=r"checkpoint-\d*[05]"),  # what the runner asks for is between these
    "lightning": lightning("copy"),
    "lightning-link": lightning("link", run=[]),
    "lightning-metric": lightning("metric"),
    # $TMPDIR on another file system: Lightning copies in place, where it renames else.
    "lightning-tmpdir": {**lightning("copy", limit=PROVEN, env={"TMPDIR": "/dev/shm"}, elsewhere="/dev/shm"),
                         "aims": [("CREATE", r"checkpoints/epoch=.*\.ckpt"), ("CLOSE_WRITE", r"checkpoints/epoch=.*\.ckpt"),
                                  ("MODIFY", r"checkpoints/last\.ckpt"), ("CLOSE_WRITE", r"checkpoints/last\.ckpt")]},
    "lightning-callback": row("lit.py", RENAMED, [("MOVED_TO", r"checkpoints/epoch=.*\.ckpt")],
                              args=["--how", "metric", "--callback"], run=RESUME, package="lightning",
                              only=r"epoch=\d+-val_loss=.*\.ckpt"),  # what the runner asks for is of no whole epoch
    "accelerate": row("acc.py", SETTLED, [("CREATE", r"checkpoints/checkpoint_\d+/optimizer\.bin"),
                                         ("CREATE", r"checkpoints/checkpoint_\d+/random_states_0\.pkl")],
                      run=SETTLE + RESUME, package="accelerate", every=4.0),
    "dcp": dcp(),
    "dcp-async": dcp("--later"),
    "deepspeed": row("ds.py", SETTLED, [("MODIFY", "latest"), ("CLOSE_WRITE", "latest"),
                                       ("CREATE", r"global_step\d+/zero_pp_rank_1_.*"),
                                       ("CREATE", r"global_step\d+/mp_rank_00_.*")],
                     run=SETTLE, launch=TORCHRUN, package="deepspeed", every=4.0, env={"FW_SKEW": "0.4"}),
    "orbax": orbax(),
    "orbax-trash": orbax("--trash"),
    "ray-tune": row("tune.py", SETTLED, [("CREATE", r"exp/[^/]*/checkpoint_\d+/model\.bin"),
                                        ("CREATE", r"exp/[^/]*/checkpoint_\d+")],
                    run=SETTLE, package="ray", every=4.0, trials=2, slack=2, exact=False,
                    only=r"checkpoint_\d+"),
    "ray-train": row("raytrain.py", SETTLED, [("CREATE", r"exp/checkpoint_[^/]*/shard-1\.bin"),
                                             ("MODIFY", r"exp/checkpoint_manager_snapshot\.json"),
                                             ("CLOSE_WRITE", r"exp/checkpoint_manager_snapshot\.json")],
                     run=SETTLE, package="ray", every=4.0, slack=1, exact=False),
    "keras": row("ker.py", PROVEN, [("CREATE", r"weights\.\d+.*\.keras"), ("CLOSE_WRITE", r"weights\.\d+.*\.keras")],
                 args=["--how", "name"], run=RESUME, package="keras"),
    "keras-backup": row("ker.py", PROVEN, [("CLOSE_WRITE", r"backup/training_metadata\.json"),
                                           ("CLOSE_WRITE", r"backup/latest\.weights\.h5")],
                        args=["--how", "backup"], run=["--in-place-every", "0"], package="keras", in_place=True),
    "tensorflow": row("tf.py", PROVEN, [("CREATE", r"ckpt-\d+\.index"), ("MOVED_TO", "checkpoint"),
                                        ("CREATE", r"ckpt-\d+_temp.*")],
                      package="tensorflow-cpu"),
    "xgboost": row("xgb.py", PROVEN, [("CREATE", r"model_\d+\.ubj"), ("CLOSE_WRITE", r"model_\d+\.ubj")],
                   run=RESUME, package="xgboost-cpu"),
    "lightgbm": row("lgbm.py", PROVEN, [("CREATE", r"lgb_\d+\.txt"), ("CLOSE_WRITE", r"lgb_\d+\.txt")],
                    run=RESUME, package="lightgbm"),
    "sb3": row("sb3.py", PROVEN, [("CREATE", r"rl_model_\d+_steps\.zip"), ("CLOSE_WRITE", r"rl_model_\d+_steps\.zip")],
               run=RESUME, package="stable-baselines3", exact=False),
    "loop-last": row("loop.py", PROVEN, [("CLOSE_WRITE", r"last\.pt")], args=["--how", "last"],
                     run=["--in-place-every", "0"] + RESUME, package="torch", in_place=True, every=9.0),
    "loop-loss": row("loop.py", PROVEN, [("CREATE", r"model_epoch_.*\.pth"), ("CLOSE_WRITE", r"model_epoch_.*\.pth")],
                     args=["--how", "loss"], run=RESUME, package="torch"),
}
