#!/usr/bin/env bash
# Best-first search with distinct samples by the exponent of the depth in its scores: searches, then
# tables. Usage: bfs-alpha.sh UNDER-FITTED CONVERGED, the folders of under-fitted.sh and run.sh,
# whose data and models are used; or bfs-alpha.sh alone, for the tables of the logs that are kept.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
seed=42
search() { # study, part, expansions, theorems at most, log, settings
  local row=ce+r # with replacement
  [[ " $* " != *" --distinct "* ]] || row=ce+d
  catamount eval --theorems "$1/seed-$seed/data/$2.jsonl" --steps 2-5 --limit "$4" --budget "$3" \
    --strategy bfs --policy "model:$1/seed-$seed/models/ce" --max-tokens 32 --concurrency 250 \
    --batch 64 --seed $seed --temperature 0.8 --objective "$row" --out "$5.jsonl" "${@:6}"
}
if [ $# = 2 ]; then
  under=$(realpath "$1") converged=$(realpath "$2")
  mkdir -p bfs-alpha && cd bfs-alpha
  for samples in 2 4 8 16 32 64; do
    search "$under" valid 4096 250 "valid/distinct-$samples" --distinct --set bfs_samples=$samples
  done
  for samples in 2 4 16; do
    search "$under" valid 4096 250 "valid/repeated-$samples" --set bfs_samples=$samples
  done
  for alpha in 0 0.25; do
    search "$under" valid 4096 250 "valid/distinct-alpha$alpha" --distinct --set bfs_alpha=$alpha
  done
  for alpha in 0 0.5; do
    search "$under" test 4096 1000 "under-fitted/distinct-alpha$alpha" --distinct \
      --set bfs_alpha=$alpha
    search "$under" test 4096 1000 "under-fitted/repeated-alpha$alpha" --set bfs_alpha=$alpha
    search "$converged" test 2048 400 "converged/distinct-alpha$alpha" --distinct \
      --set bfs_alpha=$alpha
    search "$converged" test 2048 400 "converged/repeated-alpha$alpha" --set bfs_alpha=$alpha
  done
  search "$under" test 4096 1000 under-fitted/distinct-8 --distinct --set bfs_samples=8
  for seed in 43 44; do
    search "$under" test 1024 400 "seed-$seed/repeated-alpha0.5" --set bfs_alpha=0.5
    for alpha in 0 0.5; do
      search "$under" test 1024 400 "seed-$seed/distinct-alpha$alpha" --distinct \
        --set bfs_alpha=$alpha
    done
  done
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  tar xzf "$here/bfs-alpha/cells.tar.gz" -C "$work"
  cd "$work"
fi
echo "### validation theorems, under-fitted, N = 4096: proved of 250"
for log in valid/*.jsonl; do
  case $log in *.times.jsonl) continue ;; esac
  echo "$log $(grep -c '"outcome":"proved"' "$log")"
done
for regime in under-fitted converged; do
  budgets=16,64,256,1024,2048
  [ $regime = converged ] || budgets=$budgets,4096
  for pair in "repeated-alpha0.5 distinct-alpha0.5" "distinct-alpha0.5 distinct-alpha0" \
    "repeated-alpha0.5 distinct-alpha0" "repeated-alpha0.5 repeated-alpha0" \
    "repeated-alpha0 distinct-alpha0"; do
    read -r one other <<< "$pair"
    echo "### $regime: $other against $one"
    catamount compare "$regime/$one.jsonl" "$regime/$other.jsonl" --budget $budgets
    catamount compare "$regime/$one.jsonl" "$regime/$other.jsonl" --budget 64,256,1024 \
      --unit distinct
    catamount compare "$regime/$one.jsonl" "$regime/$other.jsonl" --budget 1000,4000 --unit tokens
  done
done
echo "### under-fitted, seeds 43 and 44"
for pair in "repeated-alpha0.5 distinct-alpha0" "distinct-alpha0.5 distinct-alpha0"; do
  read -r one other <<< "$pair"
  catamount compare "seed-43/$one.jsonl,seed-44/$one.jsonl" \
    "seed-43/$other.jsonl,seed-44/$other.jsonl" --budget 64,256,1024
done
echo "### under-fitted: eight samples at a node against four, distinct"
catamount compare under-fitted/distinct-alpha0.5.jsonl under-fitted/distinct-8.jsonl \
  --budget 64,256,1024,4096
others=$(mktemp -d)
tar xzf "$here/n4096/cells.tar.gz" -C "$others"
python3 - "$others/cells" <<'P'
import glob, json, sys

records = lambda path: {r["theorem"]: r for r in map(json.loads, open(path))}
best = records("under-fitted/distinct-alpha0.jsonl")
print("### under-fitted, distinct: best-first search with alpha = 0 beside other searches")
for strategy in ["pass", "bfs", "rdfs", "vdfs", "mcts"]:
    other = records(f"{sys.argv[1]}/ce+distinct-{strategy}-n4096.jsonl")
    for budget in [256, 1024, 4096]:
        proved = lambda r: r["outcome"] == "proved" and r["expansions"] <= budget
        pairs = [(proved(other[name]), proved(best[name])) for name in other]
        b, c = pairs.count((False, True)), pairs.count((True, False))
        print(f"{strategy}, N = {budget}: {sum(a for a, _ in pairs)} and "
              f"{sum(b for _, b in pairs)} of {len(pairs)}, b/c {b}/{c}")

print("### expansions at each depth, the root first: mean over searches without a proof")
for path in sorted(glob.glob("under-fitted/*.jsonl") + glob.glob("converged/*.jsonl")):
    if path.endswith(".times.jsonl"):
        continue
    unproved = [r for r in map(json.loads, open(path)) if r["outcome"] == "budget"]
    depths = [sum(r["depths"][d] for r in unproved if d < len(r["depths"])) / len(unproved)
              for d in range(5)]
    print(path, " ".join(f"{depth:.0f}" for depth in depths))
P
rm -r "$others"
