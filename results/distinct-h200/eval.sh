#!/usr/bin/env bash
# Three ways to sample one model: as in the paper, hotter, and without repeating a tactic at a node.
set -euo pipefail
cd "$(dirname "$0")"
catamount train experiment.toml --out study
cell() {
  catamount eval --theorems study/data/test.jsonl --steps 2-5 --limit 500 --budget 1024 \
    --strategy pass,bfs,dfs,rdfs,vdfs,mcts --policy model:study/models/ce --max-tokens 64 \
    --concurrency 500 --batch 512 --seed 42 --objective "$1" --out "cells/$1" "${@:2}"
}
cell ce --temperature 0.8
cell ce-hot --temperature 1.2
cell ce-distinct --temperature 0.8 --distinct
