"""Fine-tunes SmolLM2 with LoRA for a few steps with Catamount, loads the adapter in PEFT, and
compares log p of every tactic.

    python finetune.py CATAMOUNT SMOLLM2.gguf OUT

Two branches (`ce`, and `bfs` at N = 64) from one warm-up, as in a study; the traces are sums of
small numbers. Exits with 1 if a tactic's log p differs by more than 1e-3 of itself, or if training
changed nothing.
"""

import json
import subprocess
import sys
from pathlib import Path

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

RECIPE = """
max_tokens = 128
optimizer = { lr = 5e-4 }
batch = { examples = 8, tokens = 1024 }
lora = { rank = 16, alpha = 32.0, dropout = 0.05 }
"""


def study(traces, gguf):
    """The experiment's file; what it does not say is the default."""
    return f"""
name = "SmolLM2, a few steps"
seed = 1
data = {{ environment = "lean", traces = "{traces}", split = "0.9,0.0,0.1" }}
model = {{ base = "{gguf}" }}
objectives = [{{ objective = "ce" }}, {{ objective = "bfs" }}]
evaluation = {{ strategies = ["bfs"], budgets = [64] }}
[warm_up]{RECIPE}
[branch]{RECIPE}
"""


def trace(a, b):
    """`a + b = c` proved in two steps that nobody needs to check here."""
    goal = f"⊢ {a} + {b} = {a + b}"
    steps = [
        {"state": goal, "tactic": f"rw [Nat.add_comm {a} {b}]"},
        {"state": f"⊢ {b} + {a} = {a + b}", "tactic": "rfl"},
    ]
    return {
        "name": f"sum_{a}_{b}",
        "statement": f"theorem sum_{a}_{b} : {goal[2:]}",
        "steps": steps,
    }


def score(catamount, gguf, traces, adapter=None):
    """log p of every tactic by `catamount score`, in the order of the file."""
    command = [catamount, "score", "--model", gguf, "--device", "cpu", str(traces)]
    out = subprocess.run(
        command + (["--adapter", str(adapter)] if adapter else []),
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [p for line in out.splitlines() for p in json.loads(line)["logp"]]


def peft_score(model, tokenizer, state, tactic):
    """log p of a tactic by transformers: state, separator, tactic, end."""
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False)
    prompt = encode(state) + encode(":::")
    answer = encode(tactic) + [tokenizer.eos_token_id]
    with torch.no_grad():
        logits = model(torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return torch.log_softmax(logits.double(), -1)[range(len(answer)), answer].sum().item()


def main():
    catamount, gguf, out = (
        sys.argv[1],
        str(Path(sys.argv[2]).resolve()),
        Path(sys.argv[3]).resolve(),
    )
    out.mkdir(parents=True, exist_ok=True)
    traces = out / "traces.jsonl"
    data = [trace(a, b) for a in range(2, 10) for b in range(11, 17)]
    traces.write_text("".join(json.dumps(t) + "\n" for t in data))
    (out / "study.toml").write_text(study(traces, gguf))
    subprocess.run(
        [
            catamount,
            "train",
            str(out / "study.toml"),
            "--out",
            str(out / "study"),
            "--device",
            "cpu",
        ],
        check=True,
    )

    few = data[:6]
    (out / "few.jsonl").write_text("".join(json.dumps(t) + "\n" for t in few))
    base = score(catamount, gguf, out / "few.jsonl")
    failed = False
    file = {"pretrained_model_name_or_path": str(Path(gguf).parent), "gguf_file": Path(gguf).name}
    tokenizer = AutoTokenizer.from_pretrained(**file)
    for name in ["ce", "bfs"]:
        folder = out / "study" / "models" / name
        ours = score(catamount, gguf, out / "few.jsonl", folder)
        model = AutoModelForCausalLM.from_pretrained(**file, dtype=torch.float32)
        model = PeftModel.from_pretrained(model, folder).eval()
        theirs = [
            peft_score(model, tokenizer, s["state"], s["tactic"]) for t in few for s in t["steps"]
        ]
        worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
        before, after = (sum(x) / len(x) for x in (base, ours))
        print(
            f"{name:4} mean log p of a tactic {before:8.3f} before, {after:8.3f} after; "
            f"Catamount and PEFT differ by {worst:.1e} at most"
        )
        failed |= worst > 1e-3 or after <= before
    sys.exit(failed)


main()
