"""For Lightning: Trainer(..., callbacks=[ModelCheckpoint(...), CkptCallback()])."""
import os

from lightning.pytorch.callbacks import Callback

from ckptlua import Asked, saved


class CkptCallback(Callback):
    def setup(self, trainer, module, stage):
        if stage != "fit" or hasattr(self, "_asked"):
            return
        self._asked, save = Asked(), trainer.save_checkpoint

        def save_and_tell(filepath, *args, **more):
            save(filepath, *args, **more)
            if trainer.is_global_zero:
                saved(filepath, **{**trainer.callback_metrics, "step": trainer.global_step,
                                   "epoch": trainer.current_epoch})
        # All its checkpoints come by here, whoever makes them; its hooks come before the file is written.
        trainer.save_checkpoint = save_and_tell

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.strategy.reduce_boolean_decision(bool(self._asked), all=False) and not trainer.should_stop:
            keeper = trainer.checkpoint_callback
            place = keeper.dirpath if keeper and keeper.dirpath else trainer.default_root_dir
            name = f"epoch={trainer.current_epoch}-step={trainer.global_step}.ckpt"
            trainer.save_checkpoint(os.path.join(place, name))
            trainer.should_stop = True
