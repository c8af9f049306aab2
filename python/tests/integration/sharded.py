"""One optimizer step on two processes that share the parameters, gradients and optimizer states
(accelerate's FSDP); test_hf.py starts it through torch.distributed.run and compares.
"""

import os
import sys
from pathlib import Path

import torch
from accelerate import PartialState
from accelerate.utils import DistributedType

sys.path.insert(0, str(Path(__file__).parent))
import test_hf  # noqa: E402

from catamount.hf import CatTrainer  # noqa: E402


class Sharding(CatTrainer):
    def create_accelerator_and_postprocess(self):
        # accelerate shards on accelerators only, and copies on processors whatever it is told.
        # Everything below it works on both.
        PartialState().distributed_type = DistributedType.MULTI_GPU
        super().create_accelerator_and_postprocess()


out = Path(sys.argv[1])
test_hf.CatTrainer = Sharding
layers = {type(layer).__name__ for layer in test_hf.model().model.layers}
fsdp = {"fsdp": True, "fsdp_config": {"transformer_layer_cls_to_wrap": sorted(layers)}}
trainer = test_hf.train(
    out.parent, per_device_train_batch_size=2, gradient_accumulation_steps=2, **fsdp
)
held = sum(p.to_local().numel() for p in trainer.model.parameters())
# Every process takes part in putting them together.
whole = trainer.accelerator.get_state_dict(trainer.model)
if trainer.is_world_process_zero():
    taken = {name: whole[name] for name, _ in test_hf.model().named_parameters()}
    found = {
        "processes": trainer.accelerator.num_processes,
        "parameters": taken,
        "step": test_hf.losses(trainer),
        "held": held,
    }
    torch.save(found, out)
# Left to Python's end, threads of the group, or of the step, may outlive what they use, and the
# process aborts.
torch.distributed.barrier()
torch.distributed.destroy_process_group()
os._exit(0)
