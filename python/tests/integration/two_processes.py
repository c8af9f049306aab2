"""Training on as many processes as torch.distributed.run starts, for test_hf.py to compare."""

import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))
from test_hf import COURSE, losses, parameters, train  # noqa: E402

from catamount.hf import data_parallel  # noqa: E402

out = Path(sys.argv[1])
step = train(out.parent, per_device_train_batch_size=2, gradient_accumulation_steps=2)
course = train(out.parent, **COURSE, **data_parallel(batch=4, at_once=2))
if step.is_world_process_zero():
    taken = parameters(step.accelerator.unwrap_model(step.model))
    found = {
        "processes": step.accelerator.num_processes,
        "parameters": taken,
        "step": losses(step),
        "course": losses(course),
    }
    torch.save(found, out)
# Left to Python's end, threads of the group, or of the step, may outlive what they use, and the
# process aborts.
torch.distributed.barrier()
torch.distributed.destroy_process_group()
os._exit(0)
