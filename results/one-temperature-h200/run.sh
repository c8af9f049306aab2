#!/usr/bin/env bash
# Both regimes, three seeds: models and fits side by side, then the cells that were searched, in
# pairs. `catamount run` would do each study in one process. 12 minutes on an H200, with other work
# on the machine, where it was run in pieces and written down here afterwards; under-fitted Pass@N
# and MCTS were not reached.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
for regime in converged under-fitted; do
  for seed in 42 43 44; do
    sed "s/^seeds = .*/seed = $seed/; s/^epochs = /seed = $seed\nepochs = /" \
      "$here/$regime.toml" > "$regime-$seed.toml"
    catamount train "$regime-$seed.toml" --out "$regime/seed-$seed" &
  done
done
wait
cell() { # regime, seed, strategy, row, model
  catamount eval --database set.mm --theorems "$1/seed-$2/data/test.jsonl" --steps 2-5 --limit 600 \
    --budget 1024 --strategy "$3" --policy "model:$5" --max-tokens 48 --concurrency 1024 \
    --batch 512 --seed "$2" --objective "$4" --temperature 0.8 --distinct \
    --out "$1/seed-$2/cells/$4-$3-n1024.jsonl"
}
for regime in converged under-fitted; do
  for strategy in bfs pass mcts; do
    for seed in 42 43 44; do
      models=$regime/seed-$seed/models
      cell "$regime" "$seed" "$strategy" ce+distinct "$models/ce" &
      fitted=("$models/matched+fitted+distinct-$strategy-"*)
      cell "$regime" "$seed" "$strategy" matched+fitted+distinct "${fitted[0]}" &
    done
    wait
  done
done
