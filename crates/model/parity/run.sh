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
cargo run --release -q -p catamount-model --example parity --manifest-path "$root/Cargo.toml" -- "$out"
"$python" "$here/check.py" "$out"
