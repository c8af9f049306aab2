#!/usr/bin/env bash
# The comparisons of docs/results.md and the log-losses of the fits, from the logs kept here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar xzf "$here/cells.tar.gz" -C "$work"
cd "$work"
logs() { (IFS=, && echo "$*"); }
for regime in converged under-fitted; do
  for strategy in pass bfs mcts; do
    a=("$regime"/seed-*/cells/ce+distinct-"$strategy"-n1024.jsonl)
    b=("$regime"/seed-*/cells/matched+fitted+distinct-"$strategy"-n1024.jsonl)
    if [ -e "${a[0]}" ] && [ -e "${b[0]}" ]; then
      echo "### $regime, $strategy: calibrated against CE, both with distinct samples at 0.8"
      catamount compare "$(logs "${a[@]}")" "$(logs "${b[@]}")" --budget 16,32,64,128,256,512,1024
    fi
  done
done
python3 - <<'P'
import glob, json, statistics

print("### log-loss of the surrogates on 300 validation theorems a seed, mean over seeds")
for regime in ["converged", "under-fitted"]:
    for strategy in ["pass", "bfs", "mcts"]:
        losses = {}
        for path in sorted(glob.glob(f"{regime}/seed-*/calibration.json")):
            for fit in json.load(open(path)):
                if fit["strategies"] == [strategy]:
                    for model in fit["models"]:
                        losses.setdefault(model["name"], []).append(model["scores"]["log_loss"])
        means = [f"{name} {statistics.mean(all):.3f} ({len(all)})" for name, all in losses.items()]
        print(f"{regime}, {strategy}: " + ", ".join(means))
P
