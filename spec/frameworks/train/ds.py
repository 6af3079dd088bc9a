"""DeepSpeed, ZeRO-1 on two ranks: it finds by itself where to go on, by the file `latest`."""
import os
import sys

os.environ.update(DS_ACCELERATOR="cpu", CUDA_VISIBLE_DEVICES="", DS_BUILD_OPS="0")
import torch
import deepspeed
import deepspeed.comm.torch
from told import arguments, rest, tell, torch_digest

a = arguments()
torch.set_num_threads(1)
torch.manual_seed(0)
# It would be compiled at the first use; gloo does the same.
sys.modules["deepspeed.comm.torch"].build_shm_op = lambda: None

if a.check:
    from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint
    for path in a.check:
        up, tag = os.path.split(path)
        weights = get_fp32_state_dict_from_zero_checkpoint(up, tag=tag)
        for name in os.listdir(path):
            torch.load(f"{path}/{name}", weights_only=False)
        state = torch.load(f"{path}/mp_rank_00_model_states.pt", weights_only=False)
        tell("loaded", path=path, step=state["i"], hash=torch_digest(weights))
    raise SystemExit

rank = int(os.environ["RANK"])
deepspeed.init_distributed(dist_backend="gloo")
model = torch.nn.Sequential(torch.nn.Linear(8, 800), torch.nn.Linear(800, 800))
engine, *_ = deepspeed.initialize(
    model=model, optimizer=torch.optim.Adam(model.parameters(), 1e-4),
    config={"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 1},
            "zero_allow_untested_optimizer": True, "zero_force_ds_cpu_optimizer": False})
if rank == 1 and os.environ.get("FW_SKEW"):
    # A slow second rank: `latest` names the step before this one's part is there.
    import time
    quick = torch.save

    def slow(*args, **kw):
        time.sleep(float(os.environ["FW_SKEW"]))
        return quick(*args, **kw)
    torch.save = slow
start = 0
path, state = engine.load_checkpoint(a.dir) if os.path.exists(a.dir + "/latest") else (None, None)
if path:
    start = state["i"]
if rank == 0:
    tell("begin", step=start, hash=torch_digest(model.state_dict()) if start else "")
for i in range(start + 1, a.steps + 1):
    data = torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * i + rank))
    engine.backward((engine(data) ** 2).mean())
    engine.step()
    rest()
    if rank == 0:
        tell("saving", step=i)
    engine.save_checkpoint(a.dir, client_state={"i": i})
    if rank == 0:
        tell("saved", step=i, name=f"global_step{i}", hash=torch_digest(model.state_dict()))
if rank == 0:
    tell("final", step=a.steps, hash=torch_digest(model.state_dict()))
