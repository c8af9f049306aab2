#!/usr/bin/env bash
# Budgets up to 4,096 for the under-fitted model of seed 42, with replacement and with distinct
# samples. Usage: n4096.sh FOLDER, where under-fitted.sh has been: its data and models are used.
set -euo pipefail
cd "$1"
for strategy in pass bfs rdfs vdfs mcts; do
  for row in "ce" "ce+distinct --distinct"; do
    set -- $row
    catamount eval --theorems seed-42/data/test.jsonl --steps 2-5 --limit 250 --budget 4096 \
      --strategy $strategy --policy model:seed-42/models/ce --max-tokens 32 --concurrency 220 \
      --batch 64 --seed 42 --temperature 0.8 --objective "$@" \
      --out "n4096/cells/$1-$strategy-n4096.jsonl"
  done
  catamount compare "n4096/cells/ce-$strategy-n4096.jsonl" \
    "n4096/cells/ce+distinct-$strategy-n4096.jsonl" --budget 16,64,256,1024,4096
done
