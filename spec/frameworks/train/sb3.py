"""Stable-Baselines3: CheckpointCallback, and PPO.load to go on."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from told import arguments, rest, tell, torch_digest

a = arguments()
EVERY = 64  # environment steps between two checkpoints: one rollout
torch.set_num_threads(1)


def of(model):
    return torch_digest(model.policy.state_dict())


if a.check:
    for path in a.check:
        m = PPO.load(path)
        tell("loaded", path=path, step=m.num_timesteps // EVERY, hash=of(m))
    raise SystemExit

if a.resume:
    model = PPO.load(a.resume, env=gymnasium.make("CartPole-v1"))
else:
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=EVERY, batch_size=EVERY, seed=0,
                policy_kwargs={"net_arch": [400, 400]})
start = model.num_timesteps // EVERY
tell("begin", step=start, hash=of(model) if start else "")


class Teller(CheckpointCallback):
    def _on_step(self):
        due = self.n_calls % self.save_freq == 0
        if due:
            rest()
            tell("saving", step=self.num_timesteps // EVERY)
        go_on = super()._on_step()
        if due:
            tell("saved", step=self.num_timesteps // EVERY, name=f"rl_model_{self.num_timesteps}_steps.zip",
                 hash=of(self.model))
        return go_on


model.learn(a.steps * EVERY - model.num_timesteps, callback=Teller(EVERY, a.dir), reset_num_timesteps=not start)
tell("final", step=model.num_timesteps // EVERY, hash=of(model))
