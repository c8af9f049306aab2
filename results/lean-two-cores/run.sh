#!/usr/bin/env bash
# A small model from scratch on Lean, on two cores. Usage: run.sh FOLDER, with `checkouts/batteries`
# and `checkouts/extra4` in it (`catamount lean trace` says how to fetch them).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
for corpus in batteries extra4; do
  catamount lean trace "$corpus" --checkouts checkouts --out "$corpus.jsonl"
done
cat batteries.jsonl extra4.jsonl > traces.jsonl
cp "$here/small.toml" .
catamount run small.toml --out small
catamount verify small
