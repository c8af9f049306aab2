"""Makes the links of the assembled book lead somewhere: `book_links.py SOURCE ROOT`.

A link to another page of the book stays. One to a file of the repository that is no page keeps its
text and loses its target, because the book is read without the repository. One that leads nowhere
at all is an error.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
# Where a page of the book lies in the repository, if it is not under docs/.
HOMES = {"python.md": "python", "from-leandojo.md": "python/docs"}
ROOT_PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
# Pages of the repository that the book has under other names.
NAMES = {
    "README.md": "introduction.md",
    "python/README.md": "python.md",
    "python/docs/from-leandojo.md": "from-leandojo.md",
}
NAMES["crates/report/assets/glossary.md"] = "glossary.md"


def main(source: Path, root: Path) -> int:
    lost, dropped = [], 0
    for page in sorted(source.rglob("*.md")):
        inside = page.relative_to(source)
        home = root / HOMES.get(
            str(inside), "" if str(inside) in ROOT_PAGES else Path("docs") / inside.parent
        )

        def mended(link: re.Match) -> str:
            nonlocal dropped
            text, target = link[1], link[2]
            path, _, anchor = target.partition("#")
            if not path or "://" in path or path.startswith("mailto:"):
                return link[0]
            if (page.parent / path).exists():
                return link[0]
            there = (home / path).resolve()
            known = next((p for p in (there, (root / path).resolve()) if p.exists()), None)
            if known is None:
                lost.append(f"{inside}: [{text}]({target})")
                return link[0]
            name = str(known.relative_to(root)) if known.is_relative_to(root) else ""
            name = NAMES.get(name, name.removeprefix("docs/"))
            if (source / name).is_file():
                up = "../" * (len(inside.parts) - 1)
                return f"[{text}]({up}{name}{'#' + anchor if anchor else ''})"
            dropped += 1
            return text

        # Code is not linked.
        parts = re.split(
            r"(^```.*?^```)", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        page.write_text(
            "".join(part if part.startswith("```") else LINK.sub(mended, part) for part in parts),
            encoding="utf-8",
        )
    for line in lost:
        print(f"leads nowhere: {line}", file=sys.stderr)
    print(f"links to files that are no pages, kept as text: {dropped}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))
