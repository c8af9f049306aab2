#!/usr/bin/env python3
"""Lines of at most 100 columns, in Rust, Python and the prose of pages.

In pages, tables, code and lines that are one long word (an address) are as long as they must be.
"""

import subprocess
import sys

WIDTH = 100


def prose(lines):
    """The lines of a page that are text, with their numbers."""
    fence = None
    for number, line in lines:
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~"):
            fence = None if fence == mark else fence or mark
        elif fence is None and not line.lstrip().startswith(("|", "<", "[!", "![")):
            yield number, line


def main():
    # What the program wrote is as it wrote it.
    results = [":!results/*/report.md", ":!results/*/tables/*"]
    asked = ["git", "ls-files", "*.rs", "*.py", "*.md", *results]
    paths = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    found = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines = list(enumerate(file.read().splitlines(), 1))
        for number, line in prose(lines) if path.endswith(".md") else lines:
            # What has no place to be broken at stays whole.
            broken = " " in line.strip()[:WIDTH].lstrip("/!#*-> ")
            if len(line) > WIDTH and broken:
                print(f"{path}:{number}: {len(line)} columns, at most {WIDTH}")
                found += 1
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
