"""Loads what `cargo run --example parity` saved (a checkpoint and an adapter) in transformers and
PEFT and compares logits.

    python check.py OUT
"""

import sys
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

worst = 0.0
for folder in sorted(p.parent for p in Path(sys.argv[1]).glob("*/saved")):
    expected = load_file(folder / "reference.safetensors")
    tokens = expected["tokens"].long()
    model = AutoModelForCausalLM.from_pretrained(folder / "saved", dtype=torch.float32).eval()
    with torch.no_grad():
        plain = model(tokens[None]).logits[0, :-1]
        adapted = PeftModel.from_pretrained(model, folder / "saved-adapter")(tokens[None]).logits[
            0, :-1
        ]
    for what, got, want in [
        ("base", plain, expected["logits"]),
        ("adapter", adapted, expected["lora.logits"]),
    ]:
        error = ((got - want).norm() / want.norm()).item()
        worst = max(worst, error)
        print(f"{folder.name:12} {what:8} saved here, loaded there: relative error {error:.1e}")
sys.exit(worst > 1e-4)
