#!/usr/bin/env bash
# Tests that need a program or a device of their own, and are ignored by name elsewhere. `make test`
# installs the browser; the others are run where their tool is, and said not to be where it is not.
set -euo pipefail
cd "$(dirname "$0")/.."

ignored() { "${CARGO:-cargo}" test --release --workspace --test "$1" "${@:2}" -- --ignored; }

ignored browser
if command -v nanoda_bin > /dev/null; then
  ignored suite nanoda_
else
  echo 'not run: what nanoda says of proofs (no nanoda_bin on the PATH)'
fi
if nvidia-smi -L > /dev/null 2>&1; then
  ignored gpu
else
  echo 'not run: operations on a GPU (there is none)'
fi
