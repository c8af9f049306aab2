#!/usr/bin/env bash
# Tests against other people's software: PyTorch, transformers, PEFT, Ray (Python package and model parity) and llama.cpp (HTTP policy).
set -euo pipefail
cd "$(dirname "$0")/.."
python/run_integration_tests.sh
