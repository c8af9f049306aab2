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
# On a machine without a GPU torch needs none of the CUDA packages it lists, and they are gigabytes.
if command -v nvidia-smi >/dev/null 2>&1 || [ "$(uname -s)" != Linux ]; then
  pip torch
else
  pip filelock typing_extensions sympy networkx jinja2 fsspec mpmath setuptools
  pip --no-deps torch
fi
pip --no-deps transformers accelerate peft
pip tokenizers safetensors huggingface_hub regex requests tqdm packaging pyyaml psutil typer
pip ray pandas nbclient nbformat ipykernel
"$venv/bin/python" -c "import torch, transformers, accelerate, peft, ray; torch.ones(2, 2) @ torch.ones(2, 2)"
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
(cd "$here" && "$venv/bin/maturin" build --release --locked --quiet --interpreter "$venv/bin/python" --out "$wheels")
"$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheels"/catamount-*.whl
cd "$here/tests/integration"
"$venv/bin/python" -m pytest -q -c "$here/pyproject.toml" --rootdir "$here/tests" . "$@"
