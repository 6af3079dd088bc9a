"""Accelerate's save_state with automatic names."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration
from safetensors.torch import load_file
from told import arguments, rest, tell, torch_digest

a = arguments()
torch.set_num_threads(1)
torch.manual_seed(0)


def number(path):
    return int(path.rstrip("/").split("_")[-1])


if a.check:
    for path in a.check:
        weights = load_file(path + "/model.safetensors")
        torch.load(path + "/optimizer.bin", weights_only=True)
        tell("loaded", path=path, step=number(path) + 1, hash=torch_digest(weights))
    raise SystemExit

project = ProjectConfiguration(project_dir=a.dir, automatic_checkpoint_naming=True, total_limit=3)
accelerator = Accelerator(cpu=True, project_config=project)
model = torch.nn.Sequential(torch.nn.Linear(8, 800), torch.nn.Linear(800, 800), torch.nn.Linear(800, 1))
model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters(), 1e-4))
start = 0
if a.resume:
    accelerator.load_state(a.resume)
    start = project.iteration = number(a.resume) + 1


def now():
    return torch_digest(accelerator.unwrap_model(model).state_dict())


tell("begin", step=start, hash=now() if start else "")
for i in range(start + 1, a.steps + 1):
    for _ in range(3):
        accelerator.backward((model(torch.randn(4, 8)) ** 2).mean())
        optimizer.step()
        optimizer.zero_grad()
    rest()
    tell("saving", step=i)
    path = accelerator.save_state()
    tell("saved", step=i, name=os.path.basename(path), hash=now())
tell("final", step=a.steps, hash=now())
