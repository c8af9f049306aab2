#!/bin/sh
# Compares this crate with PyTorch, transformers and PEFT: gradients of one batch, and a training run's losses.
# Usage: run.sh PYTHON [STEPS]. On the processor where there is no GPU: then give few steps.
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
out="$root/target/gpu-parity"
rm -rf "$out"
"$1" "$here/reference.py" "$out" ${2:+"$2"}
cargo run --release -q -p catamount-cuda --example gpu_parity --manifest-path "$root/Cargo.toml" -- "$out"
