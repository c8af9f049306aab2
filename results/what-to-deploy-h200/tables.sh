#!/usr/bin/env bash
# The tables of docs/results.md and the pages beside this file, from the logs that are kept here.
# Usage: tables.sh [FOLDER]: where the logs are unpacked and the pages made (a new one if not given)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
tar xzf "$here/cells.tar.gz" -C "$work"
cd "$work"
budgets=16,32,64,128,256,512,1024
all="pass bfs dfs rdfs vdfs mcts"
logs() { # regime, row, strategy: one log a seed, with commas; fails where there is none
  local found=("$1"/seed-*/cells/"$2-$3"-n1024.jsonl)
  [ -e "${found[0]}" ] && (IFS=, && echo "${found[*]}")
}
compare() { # regime, control, row, options: under every strategy that has both
  for strategy in $all; do
    if a=$(logs "$1" "$2" "$strategy") && b=$(logs "$1" "$3" "$strategy"); then
      echo "### $1, $strategy: $3 against $2 ${*:4}"
      catamount compare "$a" "$b" "${@:4}"
    fi
  done
}
for regime in converged under-fitted; do
  tuned=ce && [ $regime = converged ] && tuned=ce+t1.2
  compare $regime ce ce+distinct --budget $budgets
  compare $regime ce+t1.2 ce+distinct --budget $budgets
  # At equal work for the prover.
  compare $regime ce ce+distinct --budget 16,32,64,128 --unit distinct
  compare $regime $tuned ce+distinct --budget 16,32,64,128 --unit distinct
  # At equal tokens; and as many distinct rollouts as cost the tokens of 1,024 others.
  compare $regime ce ce+distinct --budget 1600,3200 --unit tokens
  compare $regime ce ce+distinct --budget 617,1024
  # What training for the search adds: to CE sampled alike, and against CE at its best temperature.
  compare $regime ce+distinct matched+fitted+distinct --budget $budgets
  compare $regime $tuned matched+fitted+distinct --budget $budgets
  compare $regime ce ua
  catamount report $regime > /dev/null
done > tables.txt
echo "$work/tables.txt"
