"""For Hugging Face: Trainer(..., callbacks=[CkptCallback()])."""
import os

import torch
from accelerate import PartialState
from accelerate.utils import reduce
from transformers import TrainerCallback

from ckptlua import Asked, saved


class CkptCallback(TrainerCallback):
    def __init__(self):
        self._asked, self._step, self._metrics = Asked(), 0, {}

    def on_log(self, args, state, control, logs=None, **_):
        self._take(state, logs)

    def on_evaluate(self, args, state, control, metrics=None, **_):
        self._take(state, metrics)

    def on_step_end(self, args, state, control, **_):
        if self._all_asked():
            control.should_save = control.should_training_stop = True

    def on_save(self, args, state, control, **_):
        if state.is_world_process_zero:
            path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
            self._take(state, {"step": state.global_step})
            saved(path, **self._metrics)

    def _take(self, state, metrics):
        """What was measured at an earlier step is of other weights than those that are saved."""
        if self._step != state.global_step:
            self._step, self._metrics = state.global_step, {}
        self._metrics.update(metrics or {})

    def _all_asked(self):
        """The signal may come between two steps of two ranks: all of them stop after the same one."""
        ranks = PartialState()
        if ranks.num_processes == 1:
            return bool(self._asked)
        return bool(reduce(torch.tensor(int(bool(self._asked)), device=ranks.device), "sum"))
