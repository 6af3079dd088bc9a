"""Hugging Face Trainer, as its users write it: --resume is what --resume_from_checkpoint is in its examples."""
import os

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", CUDA_VISIBLE_DEVICES="")
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed
from told import arguments, rest, tell, torch_digest

EVERY = 5  # training steps between two checkpoints
a = arguments(best=False, callback=False, evaluate=False)
torch.set_num_threads(1)
set_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=32, n_embd=192, n_layer=2, n_head=2,
                                   bos_token_id=0, eos_token_id=0))


class Tokens(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        x = torch.randint(0, 256, (16,), generator=torch.Generator().manual_seed(i))
        return {"input_ids": x, "labels": x}


class Teller(TrainerCallback):
    def on_train_begin(self, args, state, control, **_):
        tell("begin", step=state.global_step // EVERY, hash=torch_digest(model.state_dict()) if state.global_step else "")

    def on_step_end(self, args, state, control, **_):
        if state.global_step % EVERY == 0:
            rest()
            tell("saving", step=state.global_step // EVERY)

    def on_save(self, args, state, control, **_):
        tell("saved", step=state.global_step // EVERY, name=f"checkpoint-{state.global_step}",
             hash=torch_digest(model.state_dict()))


if a.check:
    for path in a.check:
        m = GPT2LMHeadModel.from_pretrained(path)
        torch.load(path + "/optimizer.pt", weights_only=True)
        torch.load(path + "/rng_state.pth", weights_only=False)
        import json
        state = json.load(open(path + "/trainer_state.json"))
        tell("loaded", path=path, step=state["global_step"] // EVERY, hash=torch_digest(m.state_dict()))
    raise SystemExit

# The loss rises with evaluation here, so that "best" is an early one: what is best must outlive the loss of a node.
more = dict(eval_strategy="steps", eval_steps=EVERY) if a.best or a.evaluate else {}
if a.best:
    more.update(load_best_model_at_end=True, metric_for_best_model="eval_loss", greater_is_better=True)
args = TrainingArguments(output_dir=a.dir, max_steps=a.steps * EVERY, save_steps=EVERY, logging_steps=EVERY,
                         save_total_limit=2, per_device_train_batch_size=2, report_to=[], use_cpu=True,
                         disable_tqdm=True, seed=0, **more)
callbacks = [Teller()]
if a.callback:
    from ckptlua.transformers import CkptCallback
    callbacks.append(CkptCallback())
trainer = Trainer(model=model, args=args, train_dataset=Tokens(), eval_dataset=Tokens(), callbacks=callbacks)
trainer.train(resume_from_checkpoint=a.resume)
tell("final", step=trainer.state.global_step // EVERY, hash=torch_digest(model.state_dict()))
