"""The guide for servers, typed as it stands, with a fake in the place of vLLM, SGLang and
llama.cpp.
"""

import re
import shutil
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer

import pytest
from fake_server import Fake
from snippets import TOY, blocks, check, environment, shell
from test_command import run, write_study

import catamount

PAGE = "docs/guides/server.md"


@pytest.fixture
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path):
    """A model, an adapter and theorems, under the guide's names for them; programs that say that a
    server was started.
    """
    shutil.copy(TOY, tmp_path / "set.mm")
    traces = catamount.metamath_traces(TOY)
    (tmp_path / "data").mkdir()
    for name in ("test.jsonl", "data/test.jsonl"):
        catamount.write_traces(tmp_path / name, traces[:2])
    write_study(tmp_path, TOY)
    trained = run("train", "study.toml", "--out", "study", "--device", "cpu", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    shutil.copytree(tmp_path / "study/models/ce", tmp_path / "MODEL")
    adapter = tmp_path / "runs/mine/models/bfs"
    adapter.mkdir(parents=True)
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    return tmp_path


def test_the_guides_commands_run(folder, url):
    theorem = catamount.read_traces(folder / "test.jsonl")[0].name
    seen = 0
    for block in blocks(PAGE):
        if "server" not in block.marks:
            continue
        seen += 1
        text = (
            re.sub(r"127\.0\.0\.1:\d+", url, block.text)
            .replace("syl5", theorem)
            .replace("budget 256", "budget 8")
        )
        text = text.replace("budget=256", "budget=8").replace("cells/", f"cells-{seen}/")
        if block.language == "python":
            done = subprocess.run(
                [sys.executable, "-c", text],
                cwd=folder,
                env=environment(),
                capture_output=True,
                text=True,
            )
            check(block, done)
            continue
        # The first command starts the server, which here is running already.
        server, ours = text.split("catamount ", 1)
        assert re.search(
            r"^(VLLM_\S+ vllm serve|python -m sglang\.launch_server|llama-server) ", server
        ), server
        check(block, shell("catamount " + ours, folder))
    assert seen == 4
