#!/usr/bin/env bash
# The tables of docs/results.md, "Lean: Batteries and Cedar", from the logs that are kept here.
# They need the file of validation theorems (run.sh makes it): tables.sh VALID TEST.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
valid=$(realpath "$1") test=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar xzf "$here/cells.tar.gz" -C "$work"
cd "$work"
for strategy in pass bfs dfs rdfs vdfs mcts; do
  for pair in "ce ce+distinct" "ce matched" "ce+distinct matched+fitted+distinct"; do
    read -r one other <<< "$pair"
    echo "### all weights, $strategy: $other against $one"
    catamount compare "all-weights/cells/$one-$strategy-n64.jsonl" \
      "all-weights/cells/$other-$strategy-n64.jsonl" --budget 16,32,64
  done
done
for strategy in pass bfs; do
  one=all-weights-256/cells/ce-$strategy-n256.jsonl
  other=all-weights-256/cells/ce+distinct-$strategy-n256.jsonl
  echo "### all weights, $strategy, N = 256: ce+distinct against ce"
  catamount compare "$one" "$other" --budget 16,32,64,128,256
  catamount compare "$one" "$other" --budget 16,32,64 --unit distinct
done
for pair in "ua ce+distinct pass" "matched ce+distinct pass" "ua matched pass"; do
  read -r one other strategy <<< "$pair"
  echo "### LoRA, $strategy: $other against $one"
  catamount compare "libraries/cells/$one-$strategy-n64.jsonl" \
    "libraries/cells/$other-$strategy-n64.jsonl" --budget 16,32,64
done
python3 - "$valid" "$test" <<'P'
import glob, json, sys

traces = {t["name"]: [s["tactic"] for s in t["steps"]]
          for path in sys.argv[1:] for t in map(json.loads, open(path))}
read = lambda path: [json.loads(line) for line in open(path)]
logs = lambda pattern: [path for path in sorted(glob.glob(pattern)) if ".times." not in path]
along = lambda records: sum(r["tactics"] == traces[r["theorem"]] for r in records)
print("### proofs of validation theorems: the demonstrated one, and others")
for path in logs("*/calibration/*-distinct.jsonl"):
    proved = [r for r in read(path) if r["outcome"] == "proved"]
    print(f"{path}: {along(proved)} and {len(proved) - along(proved)} in {len(read(path))} searches")
for study in ["libraries", "all-weights", "all-weights-256"]:
    asked = tried = searches = 0
    print(f"### {study}: searches, proved, as demonstrated, expansions refused, "
          "different tactics a search")
    for path in logs(f"{study}/c*/*-n*.jsonl"):
        records = read(path)
        proved = [r for r in records if r["outcome"] == "proved"]
        spent, refused = (sum(r[what] for r in records) for what in ("expansions", "rejected"))
        distinct = sum(r["distinct"] for r in records)
        print(f"{path}: {len(records)}, {len(proved)}, {along(proved)}, "
              f"{100 * refused / spent:.0f} %, {distinct / len(records):.1f}")
        recalled = {t["theorem"]: t.get("recalled", 0)
                    for t in read(path.replace(".jsonl", ".times.jsonl"))}
        searches += len(records)
        tried += distinct
        asked += sum(r["distinct"] - recalled[r["theorem"]] for r in records)
    print(f"{study}: {searches} searches tried {tried} tactics at their states, "
          f"{asked} were put to Lean")
print("### provers' time while the cells of one model were searched, in % (checks beside)")
kinds = ["tactics", "opening", "again", "starting", "handing_over"]
for study, row in [("all-weights", "ce"), ("all-weights", "ce+distinct"),
                   ("all-weights", "matched+fitted+distinct"), ("all-weights-256", "ce")]:
    # Cells of one model share an account; models have one of their own each, for the same workers.
    paths = glob.glob(f"{study}/cells/{row}-*.timing.json")
    accounts = [json.load(open(path)) for path in paths]
    if row == "matched+fitted+distinct":
        accounts = sorted(accounts, key=lambda a: a["spent"]["tactics"])[-1:]
    spent = {kind: sum(a["spent"][kind] for a in accounts) for kind in kinds + ["checking", "tried"]}
    all, clock = sum(spent[kind] for kind in kinds), max(a["total"] for a in accounts)
    print(f"{study}, {row}: {clock:.0f} s by the clock, 16 provers at work for {all:.0f} s "
          f"({100 * all / 16 / clock:.0f} %), {spent['tried']} tactics, " + ", ".join(
        f"{kind} {100 * spent[kind] / all:.1f}" for kind in kinds + ["checking"]))
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
