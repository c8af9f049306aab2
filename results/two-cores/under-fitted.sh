#!/usr/bin/env bash
# The calibrated objective where the warm-up is under-fitted: the study, then its tables.
# Usage: under-fitted.sh FOLDER; with the logs that are kept here, unpacked in FOLDER, only the
# tables are left to do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
# Cells without models are the logs that are kept; whatever else there is is gone on with.
if [ -e seed-42/models ] || [ ! -e seed-42/cells ]; then
  catamount run "$here/under-fitted.toml" --out .
fi
logs() { (IFS=, && found=(seed-*/cells/"$1-$2"-n256.jsonl) && echo "${found[*]}"); }
compare() { # strategy, control, row
  catamount compare "$(logs "$2" "$1")" "$(logs "$3" "$1")" --budget 16,32,64,128,256
}
for strategy in pass bfs dfs rdfs vdfs mcts; do
  echo "### $strategy"
  compare $strategy ce ce+distinct
  compare $strategy ce+distinct matched+fitted+distinct
  compare $strategy ce matched+fitted+distinct
  compare $strategy ce matched
done
P='import glob, json, statistics
for strategy in ["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"]:
    losses = {}
    for path in sorted(glob.glob("seed-*/calibration.json")):
        for fit in json.load(open(path)):
            if fit["strategies"] == [strategy]:
                for model in fit["models"]:
                    losses.setdefault(model["name"], []).append(model["scores"]["log_loss"])
    rows = [f"{name} {statistics.mean(all):.3f} ({len(all)} seeds)" for name, all in losses.items()]
    print(f"{strategy}: " + ", ".join(rows))'
echo "### log-loss of the surrogates on up to 300 validation theorems a seed, mean over seeds"
python3 -c "$P"
