#!/usr/bin/env bash
# The tables of docs/results.md, "With a pretrained model", from the logs that are kept here. With
# set.mm in the folder it is called from, every proof is replayed by `metamath`, too.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
from=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar xzf "$here/cells.tar.gz" -C "$work"
cd "$work"
echo "### searches done, and theorems proved by them"
for log in */cells/*-n1024.jsonl; do
  echo "$log: $(wc -l < "$log") searches, $(grep -c '"outcome":"proved"' "$log" || true) proved"
done
budgets=16,32,64,128,256,512,1024
for strategy in pass bfs; do
  echo "### all weights, $strategy: distinct samples against repeated ones, both cross-entropy at 0.8"
  catamount compare "distinct/cells/ce-$strategy-n1024.jsonl" \
    "distinct/cells/ce+distinct-$strategy-n1024.jsonl" --budget $budgets
  catamount compare "distinct/cells/ce-$strategy-n1024.jsonl" \
    "distinct/cells/ce+distinct-$strategy-n1024.jsonl" --budget 2000,4000,8000 --unit tokens
done
echo "### steps of 512 and of 256 samples: searches in both runs, and how many differ"
python3 - <<'P'
import json

for strategy in ["pass", "bfs"]:
    path = f"cells/ce-{strategy}-n1024.jsonl"
    a, b = ({r["theorem"]: (r["outcome"], r["expansions"], r.get("tactics"))
             for r in map(json.loads, open(f"{run}/{path}"))}
            for run in ["distinct", "steps-of-256"])
    both = a.keys() & b.keys()
    print(f"{strategy}: {len(both)}, {sum(a[t] != b[t] for t in both)}")
P
for at in "full-paper pass" "full-paper bfs" "lora-paper pass"; do
  read -r study strategy <<< "$at"
  echo "### $study, $strategy: the universal approximation against cross-entropy"
  catamount compare "$study/cells/ce-$strategy-n1024.jsonl" \
    "$study/cells/ua-$strategy-n1024.jsonl" --budget $budgets
done
echo "### all weights against LoRA, cross-entropy, Pass@N"
catamount compare lora-paper/cells/ce-pass-n1024.jsonl full-paper/cells/ce-pass-n1024.jsonl \
  --budget $budgets
echo "### every row: searches that both completed, of 300 theorems"
for strategy in pass bfs dfs rdfs vdfs mcts; do
  row() { echo "all-rows/cells/$1-$strategy-n1024.jsonl"; }
  for pair in "ce ce+t1.2" "ce ce+distinct" "ce+t1.2 ce+distinct" "ce+t1.2 matched+fitted+distinct" \
    "ce+distinct matched+fitted+distinct"; do
    read -r one other <<< "$pair"
    # What of BFS was done when time ended is what had been proved by then.
    [ "$strategy $other" = "bfs matched+fitted+distinct" ] && continue
    echo "### $strategy: $other against $one"
    catamount compare "$(row "$one")" "$(row "$other")" --budget $budgets
  done
done
python3 - <<'P'
import json

print("### surrogates on 200 validation theorems: log-loss (Brier)")
for strategy in ["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"]:
    fit = json.load(open(f"all-rows/calibration/fit-{strategy}-n1024-t0.8-distinct.json"))
    scores = {model["name"]: model["scores"] for model in fit["models"]}
    print(f"{strategy}: {fit['along']} proved as demonstrated, {fit['bypassed']} otherwise; " + ", ".join(
        f"{name} {s['log_loss']:.3f} ({s['brier']:.3f})" for name, s in scores.items()))
P
if [ -e "$from/set.mm" ]; then
  echo "### logs whose proofs metamath verifies"
  cp "$from/set.mm" .
  for log in */cells/*-n1024.jsonl; do
    catamount export --format mm --database set.mm "$log" > found.mm
    metamath 'read found.mm' 'verify proof *' exit | grep "All proofs in the database were verified" > /dev/null
    echo "$log: all"
  done
fi
