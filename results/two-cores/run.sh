#!/usr/bin/env bash
# Demo-size models on two CPU cores, a converged warm-up: every strategy's surrogate fitted to
# searches of validation theorems (calibrate), then best-first search of held-out theorems with N =
# 2048, sampled in three ways. Usage: run.sh FOLDER
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
catamount calibrate "$here/converged.toml" --out converged > converged.calibrate.txt
catamount train "$here/converged.toml" --out converged
cell() { # seed, row, settings
  catamount eval --theorems "converged/seed-$1/data/test.jsonl" --steps 2-5 --limit 400 \
    --budget 2048 --strategy bfs --policy "model:converged/seed-$1/models/ce" --max-tokens 32 \
    --concurrency 400 --batch 64 --seed "$1" --objective "$2" \
    --out "bfs-2048/converged/seed-$1/cells/$2-bfs-n2048.jsonl" "${@:3}"
}
for seed in 42 43; do
  cell $seed ce --temperature 0.8
  cell $seed ce+t1.2 --temperature 1.2
  cell $seed ce+distinct --temperature 0.8 --distinct
done
logs() { (IFS=, && found=(bfs-2048/converged/seed-*/cells/"$1"-bfs-n2048.jsonl) && echo "${found[*]}"); }
for control in ce ce+t1.2; do
  catamount compare "$(logs $control)" "$(logs ce+distinct)" --budget 64,256,1024,2048
  catamount compare "$(logs $control)" "$(logs ce+distinct)" --budget 16,32,64,128 --unit distinct
done > converged.bfs-2048.txt
