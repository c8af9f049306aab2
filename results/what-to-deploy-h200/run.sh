#!/usr/bin/env bash
# Both studies: `catamount run` would do all of it in one process; here seeds are trained side by
# side, and the branches of each searched side by side, because that is what keeps one card busy.
# Usage: run.sh converged|under-fitted
set -euo pipefail
regime=$1
here=$(cd "$(dirname "$0")" && pwd)
cell() { # seed, model, row, strategies, settings
  for strategy in ${4//,/ }; do
    catamount eval --theorems "$regime/seed-$1/data/test.jsonl" --steps 2-5 --limit 300 \
      --budget 1024 --strategy "$strategy" --policy "model:$2" --max-tokens 48 \
      --concurrency 1024 --batch 512 --seed "$1" --objective "$3" \
      --out "$regime/seed-$1/cells/$3-$strategy-n1024.jsonl" "${@:5}"
  done
}
all=pass,bfs,dfs,rdfs,vdfs,mcts
for seed in 42 43 44 45 46; do
  (
    sed "s/^seeds = .*/seed = $seed/; s/^epochs = /seed = $seed\nepochs = /" \
      "$here/$regime.toml" > "$regime-$seed.toml"
    catamount train "$regime-$seed.toml" --out "$regime/seed-$seed"
    models=$regime/seed-$seed/models
    cell "$seed" "$models/ce" ce $all --temperature 0.8 &
    cell "$seed" "$models/ce" ce+t1.2 $all --temperature 1.2 &
    cell "$seed" "$models/ce" ce+distinct $all --temperature 0.8 --distinct &
    cell "$seed" "$models/ua" ua $all --temperature 0.8 &
    for strategy in ${all//,/ }; do
      for model in "$models/matched+fitted+distinct-$strategy-"*; do
        cell "$seed" "$model" matched+fitted+distinct "$strategy" --temperature 0.8 --distinct &
      done
    done
    wait
  ) &
done
wait
catamount report "$regime"
