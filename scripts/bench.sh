#!/usr/bin/env bash
# Every benchmark, each as ratios within one run. See docs/performance.md for what they show.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv-bench/bin/python
[[ -x $python ]] || { python3 -m venv .venv-bench && .venv-bench/bin/pip install -q numpy; }
echo '== objectives'; cargo bench -p catamount-objective
echo '== objectives against NumPy'; $python benches/numpy_weights.py --catamount target/release/catamount
echo '== search engine'; cargo bench -p catamount-evaluate
echo '== Metamath kernel'; cargo bench -p catamount-metamath
echo '== generator'; cargo run --release -p catamount-model --example bench
echo '== Lean workers'; cargo bench -p catamount-lean
# What compares with PyTorch wants the environment of `make test-integrations`.
if [[ -x .venv-integrations/bin/python ]]; then
  echo '== weights from Python, and PyTorch autograd'; .venv-integrations/bin/python python/benchmarks/weights.py
  echo '== generator: PyTorch on the same machine'; .venv-integrations/bin/python crates/model/benches/torch_reference.py
fi
