#!/usr/bin/env bash
# The tables of docs/results.md, "Lean on two cores", from the logs that are kept here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar xzf "$here/cells.tar.gz" -C "$work"
cd "$work"
logs() { (IFS=, && found=(small/seed-*/cells/"$1-$2"-n256.jsonl) && echo "${found[*]}"); }
for strategy in pass bfs dfs rdfs vdfs mcts; do
  for pair in "ce ce+distinct" "ce ce+t1.2" "ce+t1.2 ce+distinct"; do
    read -r one other <<< "$pair"
    echo "### $strategy: $other against $one"
    catamount compare "$(logs "$one" "$strategy")" "$(logs "$other" "$strategy")" \
      --budget 16,32,64,128,256
    catamount compare "$(logs "$one" "$strategy")" "$(logs "$other" "$strategy")" \
      --budget 16,32,64 --unit distinct
  done
done
python3 - <<'P'
import glob, json

kinds = ["tactics", "opening", "again", "starting", "handing_over"]
print("### searches, proved, expansions refused at once, different tactics a search, claims refused")
for row in ["ce", "ce+t1.2", "ce+distinct"]:
    records = [json.loads(line) for path in glob.glob(f"small/seed-*/cells/{row}-*-n256.jsonl")
               for line in open(path)]
    of = lambda what: sum(record.get(what, 0) for record in records)
    proved = sum(record["outcome"] == "proved" for record in records)
    print(f"{row}: {len(records)}, {proved}, {100 * of('rejected') / of('expansions'):.0f} %, "
          f"{of('distinct') / len(records):.1f}, {of('refused')}")
print("### provers' time, in %, and tactics put to Lean")
accounts = [json.load(open(path)) for path in glob.glob("small/seed-*/cells/*-n256.timing.json")]
spent = {kind: sum(a["spent"][kind] for a in accounts) for kind in kinds + ["checking", "tried"]}
all = sum(spent[kind] for kind in kinds)
print(f"{all:.0f} s, {spent['tried']} tactics, " + ", ".join(
    f"{kind} {100 * spent[kind] / all:.1f}" for kind in kinds + ["checking"]))
P
