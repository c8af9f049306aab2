#!/usr/bin/env bash
# The main job at a size that two cores manage in minutes: `catamount run demo`, and every proof verified by a program that is not ours.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo-out}
catamount=target/release/catamount
$catamount run demo --out "$out"
echo
echo "verifying every proof found with Debian's metamath:"
$catamount export --format mm --database set.mm "$out"/cells/*.jsonl > "$out/found.mm"
# From within the folder: the program takes a slash in a file's name for one of its own options.
verdict=$(cd "$out" && metamath 'read found.mm' 'verify proof *' exit)
# The program ends with a success line even after errors, so look for both.
if grep -q '?Error' <<<"$verdict" || ! grep -q 'All proofs in the database were verified' <<<"$verdict"; then
  echo "$verdict" | tail -20
  echo "metamath did not accept the exported proofs" >&2
  exit 1
fi
echo "  all proofs in the database, ours in place of the originals, were verified"
echo
echo "report: $PWD/$out/report/index.html"
echo "the program is $PWD/$catamount; \`make install\` puts it on your PATH as \`catamount\`"
