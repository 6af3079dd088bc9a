"""Lightning. --how says how the newest is found again:
     copy   save_last=True, and `--resume {}`
     link   save_last="link", and Lightning's own ckpt_path="last"
     metric only names like {epoch}-{val_loss:.2f}, no last.ckpt; `--resume {}`"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
import lightning
from lightning.pytorch.callbacks import ModelCheckpoint
from told import arguments, rest, tell, torch_digest

a = arguments(how="copy", callback=False)
torch.set_num_threads(1)


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 800), torch.nn.Linear(800, 800), torch.nn.Linear(800, 1))

    def training_step(self, batch, _):
        x, y = batch
        return ((self.net(x) - y) ** 2).mean()

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", ((self.net(x) - y) ** 2).mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-4)

    def on_train_start(self):
        tell("begin", step=self.current_epoch, hash=torch_digest(self.state_dict()) if self.current_epoch else "")

    def on_train_epoch_start(self):
        rest()


class Teller(ModelCheckpoint):
    def _save_checkpoint(self, trainer, path):
        tell("saving", step=trainer.current_epoch + 1)
        super()._save_checkpoint(trainer, path)
        if os.path.basename(path) != "last.ckpt":
            tell("saved", step=trainer.current_epoch + 1, name=os.path.basename(path),
                 hash=torch_digest(trainer.model.state_dict()))


class KeepsPlace(torch.utils.data.DataLoader):
    """What the runner asks for is saved in the middle of an epoch: Lightning asks a loader for its place."""

    place = 0

    def __iter__(self):
        begin = self.place
        for i, batch in enumerate(super().__iter__()):
            if i >= begin:
                self.place = (i + 1) % len(self)
                yield batch

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


if a.check:
    for path in a.check:
        c = torch.load(path, weights_only=False)
        tell("loaded", path=path, step=c["epoch"] + 1, hash=torch_digest(c["state_dict"]))
    raise SystemExit

lightning.seed_everything(0)
x = torch.randn(64, 8)
data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
loader = (KeepsPlace if a.callback else torch.utils.data.DataLoader)(data, batch_size=16)
keeper = Teller(dirpath=os.path.join(a.dir, "checkpoints"), filename="{epoch}-{val_loss:.2f}",
                save_top_k=-1, save_last={"copy": True, "link": "link", "metric": None}[a.how])
callbacks = [keeper]
if a.callback:
    from ckptlua.lightning import CkptCallback
    callbacks.append(CkptCallback())
trainer = lightning.Trainer(default_root_dir=a.dir, max_epochs=a.steps, callbacks=callbacks, logger=False,
                            enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
net = Net()
trainer.fit(net, loader, torch.utils.data.DataLoader(data, batch_size=16),
            ckpt_path="last" if a.how == "link" else a.resume)
tell("final", step=trainer.current_epoch, hash=torch_digest(net.state_dict()))
