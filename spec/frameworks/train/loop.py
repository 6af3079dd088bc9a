"""A loop of one's own: torch.save, in place each time, or with the loss in the name."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
from told import arguments, rest, tell, torch_digest

a = arguments(how="last")
torch.set_num_threads(1)
torch.manual_seed(0)

if a.check:
    for path in a.check:
        s = torch.load(path)
        tell("loaded", path=path, step=s["epoch"], hash=torch_digest(s["model"]))
    raise SystemExit

model = torch.nn.Sequential(torch.nn.Linear(8, 1000), torch.nn.Linear(1000, 1000))
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
start = 0
if a.resume:
    s = torch.load(a.resume)
    model.load_state_dict(s["model"])
    optimizer.load_state_dict(s["optimizer"])
    start = s["epoch"]
tell("begin", step=start, hash=torch_digest(model.state_dict()) if start else "")
for i in range(start + 1, a.steps + 1):
    data = torch.randn(4, 8, generator=torch.Generator().manual_seed(i))
    (model(data) ** 2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    rest()
    name = "last.pt" if a.how == "last" else f"model_epoch_{i}_loss_{2.0 / i:.4f}.pth"
    tell("saving", step=i)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": i}, f"{a.dir}/{name}")
    tell("saved", step=i, name=name, hash=torch_digest(model.state_dict()))
tell("final", step=a.steps, hash=torch_digest(model.state_dict()))
