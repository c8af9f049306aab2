#!/usr/bin/env python3
"""Traces of Lean corpora in three parts, by a hash of each theorem's name.

    split.py CHECKOUTS      reads batteries.jsonl, cedar.jsonl and mathlib.jsonl where they are, and
                            writes train.jsonl, valid.jsonl and test.jsonl beside them

Theorems of one name, or whose statements differ in names and spaces only, stay together. A group
that can be searched, all of it of 2 to 5 steps, is drawn for test or valid; everything else is
trained on. Those in files of up to BYTES come first: a worker opens these within seconds.
"""
import hashlib
import json
import pathlib
import re
import sys
from collections import Counter, defaultdict

ROOTS = {"batteries": "batteries", "cedar": "cedar/cedar-lean", "mathlib": "mathlib"}
TEST, VALID = 480, 140
BYTES = 60_000


def rank(name):
    return hashlib.sha256(("held out " + name).encode()).hexdigest()


def said(theorem):
    """The statement without its name."""
    text = re.sub(r"\s+", " ", theorem["statement"]).strip()
    return re.sub(r"^((?:\S+ )*?(?:theorem|lemma)) \S+", r"\1", text)


def size(corpus, file):
    path = pathlib.Path(sys.argv[1]) / ROOTS[corpus] / file
    return path.stat().st_size if path.exists() else 0


def main():
    found = []
    for corpus in ROOTS:
        path = pathlib.Path(f"{corpus}.jsonl")
        if path.exists():
            found += [(corpus, json.loads(line)) for line in path.open() if line.strip()]
    # Groups of what must stay together: by name, and by statement.
    parent = {}

    def top(key):
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for _, theorem in found:
        parent[top(("name", theorem["name"]))] = top(("said", said(theorem)))
    groups = defaultdict(list)
    for corpus, theorem in found:
        groups[top(("name", theorem["name"]))].append((corpus, theorem))
    names = {key: min(t["name"] for _, t in group) for key, group in groups.items()}

    def large(group):
        return any(size(corpus, t["file"]) > BYTES for corpus, t in group)

    # A group of several would be the same search several times.
    fit = [key for key, group in groups.items()
           if len(group) == 1 and 2 <= len(group[0][1]["steps"]) <= 5]
    fit.sort(key=lambda key: (large(groups[key]), rank(names[key])))
    # Of too few, a quarter is for validation.
    enough = len(fit) >= TEST + VALID
    test, valid = (TEST, VALID) if enough else (len(fit) - len(fit) // 4, len(fit) // 4)
    parts = {key: "test" for key in fit[:test]} | {key: "valid" for key in fit[test:test + valid]}
    written = {"train": [], "valid": [], "test": []}
    for key, group in groups.items():
        written[parts.get(key, "train")] += group
    for part, theorems in written.items():
        theorems.sort(key=lambda it: rank(it[1]["name"]))
        with open(f"{part}.jsonl", "w") as out:
            out.writelines(json.dumps(t, ensure_ascii=False) + "\n" for _, t in theorems)
        print(part, len(theorems), dict(Counter(corpus for corpus, _ in theorems)),
              len({(c, t["file"]) for c, t in theorems}), "files")
    for one, other in [("train", "valid"), ("train", "test"), ("valid", "test")]:
        for what in (lambda t: t["name"], said):
            both = {what(t) for _, t in written[one]} & {what(t) for _, t in written[other]}
            assert not both, (one, other, sorted(both)[:3])
    if len(written["test"]) < 458 or len(written["valid"]) < 120:
        print("too few short theorems for 458 and 120; trace another corpus", file=sys.stderr)


main()
