"""Files on their way through Ray's object store: by content, and refused if they are not what was
sent.
"""

import os
import sys
import types

import pytest

from catamount.node import below, sound
from catamount.objects import Objects


@pytest.fixture
def store(monkeypatch):
    """Ray's object store, of which nothing but `put` is used."""
    kept = []
    ray = types.ModuleType("ray")
    ray.put = lambda content: kept.append(content) or len(kept) - 1
    monkeypatch.setitem(sys.modules, "ray", ray)
    return kept


def test_a_file_that_changes_within_its_size_and_time_is_another(tmp_path, store):
    path = tmp_path / "model"
    path.write_bytes(b"one")
    objects, before = Objects(), path.stat()
    [(_, first, place)] = objects.of(str(tmp_path), ["model"])
    assert objects.of(str(tmp_path), ["model"]) == [("model", first, place)] and store == [b"one"]
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    [(_, second, place)] = objects.of(str(tmp_path), ["model"])
    assert second != first and store[place] == b"two"


def test_the_same_content_is_there_once(tmp_path, store):
    for name in ("one", "other"):
        (tmp_path / name).write_bytes(b"same")
    parcels = Objects().of(str(tmp_path), ["one", "other"])
    assert [path for path, _, _ in parcels] == ["one", "other"] and store == [b"same"]


def test_what_is_not_what_was_sent_is_refused(tmp_path):
    (tmp_path / "log").write_bytes(b"record")
    [(path, (known, content))] = below(str(tmp_path), ["log"]).items()
    assert sound(path, content, known) == b"record"
    with pytest.raises(OSError, match="log came damaged"):
        sound(path, b"rec0rd", known)
