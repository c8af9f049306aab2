"""Everything that a page tells its reader to type is typed here."""

import re
import shutil
import subprocess
import sys

import pytest
from snippets import MARKS, OTHER, PREAMBLES, ROOT, RUN, TOY, blocks, pages, run_page

import catamount


@pytest.fixture
def folder(tmp_path):
    """A small database under the name of the large one, and its traces."""
    shutil.copy(TOY, tmp_path / "set.mm")
    traces = catamount.metamath_traces(TOY)
    for name in ("train.jsonl", "valid.jsonl", "test.jsonl"):
        catamount.write_traces(tmp_path / name, traces)
    benchmark = tmp_path / "leandojo_benchmark_4/random"
    benchmark.mkdir(parents=True)
    for name in ("train.json", "val.json", "test.json"):
        catamount.write_traces(benchmark / name, traces)
    return tmp_path


@pytest.mark.parametrize(
    "page", [page for page in pages() if any(b.language in RUN for b in blocks(page))]
)
def test_what_a_page_says_works(page, folder):
    for block in run_page(page, folder, PREAMBLES.get(page, "")):
        print(f"not run here: {block}")


def test_every_block_says_what_it_is():
    for page in pages():
        for block in blocks(page):
            assert block.language in RUN + OTHER, (
                f"{block}: say what it is (sh, console, python, text, ...)"
            )
            if block.language in RUN:
                assert set(block.marks) <= set(MARKS), f"{block}: unknown mark"


def test_links_lead_somewhere():
    """Of pages that only the site has (scripts/docs.sh makes them) the name is enough."""
    site = (ROOT / "scripts/docs.sh").read_text(encoding="utf-8")
    lost = []
    for page in pages():
        text = re.sub(
            r"^```.*?^```",
            "",
            (ROOT / page).read_text(encoding="utf-8"),
            flags=re.DOTALL | re.MULTILINE,
        )
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path = link.split("#")[0]
            if not path or "://" in path or (ROOT / page).parent.joinpath(path).exists():
                continue
            name = path.rsplit("/", 1)[-1]
            if not (
                page.startswith("docs/")
                and (f"/{name}" in site or name.removesuffix(".md") in site.split())
            ):
                lost.append(f"{page}: {link}")
    assert not lost, lost


def test_the_checks_can_fail(tmp_path, monkeypatch):
    """A page whose output is not what it says is caught."""
    import snippets

    (tmp_path / "page.md").write_text("```console\n$ echo one\ntwo\n```\n")
    monkeypatch.setattr(snippets, "ROOT", tmp_path)
    with pytest.raises(AssertionError, match="prints"):
        run_page("page.md", tmp_path)
    (tmp_path / "page.md").write_text("```sh\nfalse\n```\n")
    with pytest.raises(AssertionError, match="exit code 1"):
        run_page("page.md", tmp_path)


def test_every_link_of_the_book_leads_to_a_page(tmp_path):
    made = subprocess.run(
        ["bash", str(ROOT / "scripts/docs.sh"), "--pages", str(tmp_path / "book")],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    pages = re.findall(r"\]\(([^)]+)\)", (tmp_path / "book/SUMMARY.md").read_text())
    assert "scaling.md" in pages and all((tmp_path / "book" / page).is_file() for page in pages)
    # A link that leads nowhere is an error, and said to be one.
    (tmp_path / "book/odd.md").write_text("[a](none.md), [b](glossary.md), [c](Makefile)")
    check = [sys.executable, str(ROOT / "scripts/book_links.py"), str(tmp_path / "book"), str(ROOT)]
    odd = subprocess.run(check, capture_output=True, text=True)
    assert odd.returncode == 1 and "odd.md: [a](none.md)" in odd.stderr
    assert (tmp_path / "book/odd.md").read_text() == "[a](none.md), [b](glossary.md), c"
