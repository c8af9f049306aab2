"""The guide for provers behind HTTP, typed as it stands: Lean answers its Python and its table, two
provers of Metamath its search.
"""

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest
from snippets import ROOT, TOY, blocks, check, environment, shell

import catamount

PAGE = "docs/guides/lean-service.md"
HERE = re.compile(r"127\.0\.0\.1:\d+")


needs_node = pytest.mark.skipif(not shutil.which("node"), reason="Lean without a toolchain")


@contextmanager
def service(line):
    """The service of a line, at an address that is free: which it is."""
    words = HERE.sub("127.0.0.1:0", line).split()
    process = subprocess.Popen(words, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        said = process.stdout.readline()
        assert HERE.search(said), said
        yield HERE.search(said)[0]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def lean():
    """The guide's own."""
    line = blocks(PAGE)[0].text.strip()
    assert line.startswith("catamount serve --env lean ")
    with service(line) as address:
        yield address


@needs_node
def test_the_guides_program_proves_and_is_judged(lean):
    (program,) = [block for block in blocks(PAGE) if block.language == "python"]
    text = HERE.sub(lean, program.text)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    check(program, done)
    assert done.stdout == "p : Prop\nh : p\n⊢ p\nproved\n"


@needs_node
def test_the_guides_table_is_what_is_answered(lean):
    """Every request of the table is sent, but for a theorem of a library that is not here. The
    answer has every name that the table has, and its words and truth values.
    """

    def ask(what, body):
        method, path = what.split()
        data = json.dumps(body).encode() if method == "POST" else None
        return json.load(urlopen(Request(f"http://{lean}{path}", data)))

    def read(text):
        return json.loads(re.sub(r"(, )?\.\.\.", "", text))

    asked, theorem, session = [], {}, None
    for row in (ROOT / PAGE).read_text(encoding="utf-8").splitlines():
        if not re.match(r"\| `(POST|GET) ", row):
            continue
        (what, *_), sent, answers = (re.findall(r"`([^`]+)`", cell) for cell in row.split("|")[1:4])
        asked.append(what)
        if what == "GET /status":
            assert set(answers) <= set(ask(what, {}))
            continue
        # A theorem as in the first row may stand before a body, which then is the rest of it.
        *above, text = [text for text in sent if '"file"' not in text]
        body = {**theorem, **read(f"{{{text}}}")} if above else read(text)
        if "session" in body:
            body["session"] = session
        said = ask(what, body)
        if what == "POST /open":
            theorem, session = body, said["session"]
        for name, value in (read(answers[0]) if answers else {}).items():
            assert name in said, (what, said)
            assert not isinstance(value, (str, bool)) or said[name] == value, (what, said)
    paths = ["/open", "/run", "/judge", "/check", "/file", "/close"]
    assert asked == [*(f"POST {path}" for path in paths), "GET /status"]


def test_the_guides_search_asks_two_provers(tmp_path):
    (search,) = [block for block in blocks(PAGE) if "catamount eval" in block.text]
    (tmp_path / "data").mkdir()
    for name in ("train", "test"):
        traces = catamount.metamath_traces(TOY)
        catamount.write_traces(tmp_path / f"data/{name}.jsonl", traces)
    line = f"catamount serve --database {TOY} --listen 127.0.0.1:0"
    with service(line) as one, service(line) as other:
        addresses = iter((one, other))
        check(search, shell(HERE.sub(lambda _: next(addresses), search.text), tmp_path))
    log = (tmp_path / "cell.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes = [json.loads(line)["outcome"] for line in log]
    assert len(outcomes) == len(traces) and "error" not in outcomes and "proved" in outcomes
