"""One optimizer step on two processes; started by test_hf.py through torch.distributed.run."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from test_hf import parameters, train  # noqa: E402

out = Path(sys.argv[1])
trainer = train(out.parent, per_device_train_batch_size=2, gradient_accumulation_steps=2)
if trainer.is_world_process_zero():
    unwrapped = trainer.accelerator.unwrap_model(trainer.model)
    log = trainer.state.log_history[0]
    torch.save({"parameters": parameters(unwrapped), "processes": trainer.accelerator.num_processes, "log": log}, out)
