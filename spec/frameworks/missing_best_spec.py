"""What Lightning makes of the checkpoints in its `best_k_models` that are not there when it resumes: it does not look
for them. It goes on, still counts them, and fails where it is told to load the best one."""
import logging
import os
import shutil
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
torch.set_num_threads(1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=4)


class Net(lightning.LightningModule):
    """Its score is told beforehand, for each epoch."""

    def __init__(self, scores):
        super().__init__()
        self.net, self.scores = torch.nn.Linear(4, 1), scores

    def training_step(self, batch, _):
        return self.net(batch[0]).mean()

    def validation_step(self, batch, _):
        self.log("score", float(self.scores[min(self.current_epoch, len(self.scores) - 1)]))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def train(out, scores, resume=None):
    """Keeps the two best and the last; trains as many epochs as there are scores."""
    keeper = ModelCheckpoint(dirpath=out, filename="{epoch}", monitor="score", mode="max", save_top_k=2,
                             save_last=True)
    trainer = lightning.Trainer(default_root_dir=out, max_epochs=len(scores), callbacks=[keeper], logger=False,
                                num_sanity_val_steps=0, enable_progress_bar=False, enable_model_summary=False,
                                accelerator="cpu")
    net = Net(scores)
    trainer.fit(net, loader, loader, ckpt_path=resume)
    return trainer, net, keeper


def resumed(top, scores):
    """Goes on from the last one, after the best one was lost."""
    out = f"{top}/out"
    shutil.rmtree(out, ignore_errors=True)
    train(out, [9, 5])
    os.remove(f"{out}/epoch=0.ckpt")
    return *train(out, [9, 5] + scores, f"{out}/last.ckpt"), sorted(os.listdir(out))


def loads_best(trainer, net):
    try:
        trainer.validate(net, loader, ckpt_path="best", verbose=False)
    except FileNotFoundError:
        return False
    return True


def main():
    top = os.path.realpath(tempfile.mkdtemp(prefix="fw-missing."))
    tests = []
    try:
        trainer, net, keeper, files = resumed(top, [4, 3])
        tests.append(("it goes on without it", trainer.current_epoch == 4))
        tests.append(("it counts it: what is no better is not among the best", files == ["epoch=1.ckpt", "last.ckpt"]))
        tests.append(("it takes it for the best", os.path.basename(keeper.best_model_path) == "epoch=0.ckpt"))
        tests.append(("to load the best one fails", not loads_best(trainer, net)))
        trainer, net, keeper, files = resumed(top, [10, 11])
        tests.append(("one that is better takes its place", files == ["epoch=2.ckpt", "epoch=3.ckpt", "last.ckpt"]))
        tests.append(("and is loaded", loads_best(trainer, net)))
    finally:
        shutil.rmtree(top)
    print(f"1..{len(tests)}")
    for i, (text, good) in enumerate(tests, 1):
        print(f"{'ok' if good else 'not ok'} {i} - {text}")
    return 0 if all(good for _, good in tests) else 1


sys.exit(main())
