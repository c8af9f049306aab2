#!/usr/bin/env bash
# One wheel with the package and the `catamount` command, for Python 3.9 and later; in dist/.
#
# It runs wherever glibc is as new as on this machine: its tag (manylinux_2_..) says which. Wheels
# for older systems, macOS and Windows are built by .github/workflows/wheels.yml.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
venv=${CATAMOUNT_VENV:-$PWD/.venv-python}
[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet maturin
cd python
"$venv/bin/maturin" build --release --locked --quiet --interpreter "$venv/bin/python" --out ../dist
cd ..
wheel=$(ls -t dist/catamount-*.whl | head -1)
echo "$wheel ($(du -h "$wheel" | cut -f1)); install it with: pip install $wheel"
