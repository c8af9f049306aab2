"""Files of studies in Ray's object store, where nodes do not see the folders."""

from __future__ import annotations

import os
from typing import Any

from .node import Parcel, digest, names


class Objects:
    """Files of studies in Ray's object store, each there once under the hash of its content."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        """References, by content."""
        self.read: dict[str, tuple[tuple[int, ...], str]] = {}
        """What files held when they were last read, by their marks."""

    def forget(self) -> None:
        """Files are put there again when they are next asked for."""
        self.known.clear()
        self.read.clear()

    def of(self, folder: str, paths: list[str]) -> list[Parcel]:
        """The files at some paths of a folder, or below them."""
        return [self.parcel(folder, path) for path in sorted(set(names(folder, paths)))]

    def parcel(self, folder: str, path: str) -> Parcel:
        """One file as it is now."""
        import ray

        whole = os.path.join(folder, path)
        status = os.stat(whole)
        # Whoever replaces a file gives it another inode; whoever writes to it, another time of
        # change.
        mark = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        before, content = self.read.get(whole, (None, ""))
        if before != mark or content not in self.known:
            with open(whole, "rb") as file:
                held = file.read()
            content = digest(held)
            if content not in self.known:
                self.known[content] = ray.put(held)
            self.read[whole] = (mark, content)
        return path, content, self.known[content]
