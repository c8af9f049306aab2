#!/bin/sh
# Builds the wheel, installs it into a virtual environment of its own, and runs the quick tests (NumPy only).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
venv=${CATAMOUNT_VENV:-$root/.venv-python}
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet maturin numpy pytest
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
(cd "$here" && "$venv/bin/maturin" build --release --locked --quiet --interpreter "$venv/bin/python" --out "$wheels")
"$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheels"/catamount-*.whl
CATAMOUNT_WHEEL=$(ls "$wheels"/catamount-*.whl)
export CATAMOUNT_WHEEL
# From the tests' folder, so that the installed package is tested and not the sources beside it.
cd "$here/tests"
"$venv/bin/python" -m pytest -q -c "$here/pyproject.toml" --rootdir "$here/tests" . "$@"
