#!/bin/sh
# Compares this crate with Hugging Face transformers and PEFT. Usage: run.sh PYTHON [SMOLLM2.gguf]
set -e
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
python=$1
shift
out="$root/target/parity"
rm -rf "$out"
"$python" "$here/reference.py" "$out" "$@"
cargo build --release -q --workspace --example parity --manifest-path "$root/Cargo.toml"
"${CARGO_TARGET_DIR:-$root/target}/release/examples/parity" "$out"
"$python" "$here/check.py" "$out"
