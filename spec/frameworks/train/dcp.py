"""torch.distributed.checkpoint of a sharded model under torchrun; --later saves asynchronously."""
import os
import shutil

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from told import arguments, rest, tell, torch_digest

a = arguments(later=False)
torch.set_num_threads(1)
torch.manual_seed(0)

if a.check:
    for path in a.check:
        dcp_to_torch_save(path, path + ".pt")
        s = torch.load(path + ".pt", weights_only=False)
        tell("loaded", path=path, step=s["step"], hash=torch_digest(s["model"]))
    raise SystemExit

dist.init_process_group("gloo")
rank = dist.get_rank()
beside = dist.new_group(backend="gloo") if a.later else None
model = torch.nn.Sequential(torch.nn.Linear(8, 800), torch.nn.Linear(800, 800))
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.Adam(model.parameters(), 1e-4)


def whole():
    return torch_digest({k: v.full_tensor() for k, v in model.state_dict().items()})


def said(what, **members):
    h = whole()
    if rank == 0:
        tell(what, hash=h, **members)


start = 0
if a.resume:
    m, o = get_state_dict(model, optimizer)
    state = {"model": m, "optim": o, "step": 0}
    dcp.load(state, checkpoint_id=a.resume)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    start = state["step"]
said("begin", step=start)
last = None
for i in range(start + 1, a.steps + 1):
    data = torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * i + rank))
    (model(data) ** 2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    rest()
    m, o = get_state_dict(model, optimizer)
    place, h = f"{a.dir}/step-{i}", whole()
    if last:
        last.result()
    if rank == 0:
        tell("saving", step=i)
    if a.later:
        last = dcp.async_save({"model": m, "optim": o, "step": i}, checkpoint_id=place, process_group=beside)
        if rank == 0:
            last.add_done_callback(lambda _, i=i, h=h: tell("saved", step=i, name=f"step-{i}", hash=h))
    else:
        dcp.save({"model": m, "optim": o, "step": i}, checkpoint_id=place)
        if rank == 0:
            tell("saved", step=i, name=f"step-{i}", hash=h)
    if rank == 0 and i > 4:
        shutil.rmtree(f"{a.dir}/step-{i - 4}", ignore_errors=True)
if last:
    last.result()
said("final", step=a.steps)
dist.destroy_process_group()
