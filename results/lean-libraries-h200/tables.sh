#!/usr/bin/env bash
# The tables of docs/results.md, "Lean: Batteries and Cedar", from the logs that are kept here.
# They need the file of validation theorems (run.sh makes it): tables.sh VALID.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
valid=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar xzf "$here/cells.tar.gz" -C "$work"
cd "$work/libraries"
for pair in "ua ce+distinct pass" "matched ce+distinct pass" "ua matched pass"; do
  read -r one other strategy <<< "$pair"
  echo "### $strategy: $other against $one"
  catamount compare "cells/$one-$strategy-n64.jsonl" "cells/$other-$strategy-n64.jsonl" \
    --budget 16,32,64
done
python3 - "$valid" <<'P'
import glob, json, sys

traces = {t["name"]: [s["tactic"] for s in t["steps"]] for t in map(json.loads, open(sys.argv[1]))}
read = lambda path: [json.loads(line) for line in open(path)]
print("### proofs of validation theorems: the demonstrated one, and others")
for path in sorted(glob.glob("calibration/*-distinct.jsonl")):
    proved = [r for r in read(path) if r["outcome"] == "proved"]
    along = sum(r["tactics"] == traces[r["theorem"]] for r in proved)
    print(f"{path}: {along} and {len(proved) - along} in {len(read(path))} searches")
print("### cells: searches, proved, expansions that the prover refused")
asked = tried = searches = 0
for path in sorted(glob.glob("c*/*-n64*.jsonl")):
    if path.endswith(".times.jsonl"):
        continue
    records = read(path)
    spent, refused = (sum(r[what] for r in records) for what in ("expansions", "rejected"))
    print(f"{path}: {len(records)}, {sum(r['outcome'] == 'proved' for r in records)}, "
          f"{100 * refused / spent:.0f} %")
    recalled = {t["theorem"]: t.get("recalled", 0)
                for t in read(path.replace(".jsonl", ".times.jsonl"))}
    searches += len(records)
    tried += sum(r["distinct"] for r in records)
    asked += sum(r["distinct"] - recalled[r["theorem"]] for r in records)
print(f"{searches} searches tried {tried} tactics at their states, {asked} were put to Lean")
P
tar xzf "$here/../six-searches-h200/cells.tar.gz" -C "$work"
cd "$work/converged"
python3 - <<'P'
import glob, json

for strategy in ["pass", "bfs", "dfs"]:
    fits = [fit for path in glob.glob("seed-*/calibration.json") for fit in json.load(open(path))
            if fit["strategies"] == [strategy]]
    along, other = (sum(fit[what] for fit in fits) for what in ("along", "bypassed"))
    records = [r for path in glob.glob(f"seed-*/cells/ce-{strategy}-n1024.jsonl")
               for r in map(json.loads, open(path))]
    spent, refused = (sum(r[what] for r in records) for what in ("expansions", "rejected"))
    print(f"Metamath, {strategy}: {along} proofs as demonstrated and {other} others; "
          f"{100 * refused / spent:.0f} % of expansions refused")
P
