#!/usr/bin/env bash
# The calibrated objective under all six searches, from the logs of three runs on three days: this
# one, what-to-deploy-h200 and one-temperature-h200, and of seeds 47 and 48, which came later and are
# compared with nothing but themselves. The models are the same to the last bit,
# which the first table shows: only so may logs of one be compared with those of another.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for run in six-searches what-to-deploy one-temperature; do
  mkdir "$work/$run"
  tar xzf "$here/../$run-h200/cells.tar.gz" -C "$work/$run"
done
cd "$work"
python3 - <<'P'
import glob, json, os

print("### the same cells in two runs: searches, and how many of them differ")
pairs = [
    ("six-searches", "what-to-deploy", ["ce", "ce+t1.2"]),
    ("six-searches", "one-temperature", ["matched+fitted+distinct"]),
    ("one-temperature", "what-to-deploy", ["ce+distinct"]),
]
for one, other, rows in pairs:
    for row in rows:
        both = weights = differ = 0
        for path in sorted(glob.glob(f"{one}/converged/seed-*/cells/{row}-*-n1024.jsonl")):
            twin = path.replace(one, other, 1)
            if not os.path.exists(twin):
                continue
            read = lambda path: {r["theorem"]: r for r in map(json.loads, open(path))}
            model = lambda path: json.load(open(path.replace(".jsonl", ".manifest.json")))[
                "identity"]["policy"]["weights"]
            a, b = read(path), read(twin)
            weights += model(path) != model(twin)
            for theorem in a.keys() & b.keys():
                both += 1
                found = [(r["outcome"], r["expansions"], r.get("proof")) for r in
                         (a[theorem], b[theorem])]
                differ += found[0] != found[1]
        print(f"{row}: {one} and {other}: {both} searches in both, {differ} differ; "
              f"{weights} cells of other weights")
P
logs() { # row, strategy, RUN:SEED...: a list with commas
  local row=$1 strategy=$2 all=()
  for at in "${@:3}"; do
    all+=("${at%:*}/converged/seed-${at#*:}/cells/$row-$strategy-n1024.jsonl")
  done
  (IFS=, && echo "${all[*]}")
}
budgets=16,32,64,128,256,512,1024
for strategy in pass bfs dfs rdfs vdfs mcts; do
  early="" # seeds 42 to 44, 600 theorems each
  case $strategy in
    pass | bfs | mcts) early=yes ours="42 43 45 46" ;;
    rdfs) ours="42 43 45 46" ;;
    *) ours="42 43 45" ;;
  esac
  a=() b=() tuned=()
  [ -n "$early" ] && for seed in 42 43 44; do
    a+=("one-temperature:$seed") b+=("one-temperature:$seed")
  done
  for seed in $ours; do
    tuned+=("six-searches:$seed")
    [ -n "$early" ] && [ "$seed" -lt 45 ] && continue
    a+=("what-to-deploy:$seed") b+=("six-searches:$seed")
  done
  [ -n "$early" ] || for seed in 47 48; do
    a+=("six-searches:$seed") b+=("six-searches:$seed")
  done
  echo "### $strategy: calibrated against CE, both with distinct samples at 0.8"
  catamount compare "$(logs ce+distinct $strategy "${a[@]}")" \
    "$(logs matched+fitted+distinct $strategy "${b[@]}")" --budget $budgets
  echo "### $strategy: calibrated, distinct samples, against CE at 1.2"
  catamount compare "$(logs ce+t1.2 $strategy "${tuned[@]}")" \
    "$(logs matched+fitted+distinct $strategy "${tuned[@]}")" --budget $budgets
done
python3 - <<'P'
import glob, json, statistics

print("### log-loss of the surrogates on 300 validation theorems a seed, mean over the seeds")
for strategy in ["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"]:
    losses, briers = {}, {}
    for path in sorted(glob.glob("six-searches/converged/seed-*/calibration.json")):
        for fit in json.load(open(path)):
            if fit["strategies"] == [strategy]:
                for model in fit["models"]:
                    losses.setdefault(model["name"], []).append(model["scores"]["log_loss"])
                    briers.setdefault(model["name"], []).append(model["scores"]["brier"])
    print(f"{strategy}: " + ", ".join(
        f"{name} {statistics.mean(all):.3f} (Brier {statistics.mean(briers[name]):.3f}, "
        f"{len(all)} seeds)" for name, all in losses.items()))
P
