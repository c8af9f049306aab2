"""Files of studies in Ray's object store, where nodes do not see the folders."""

from __future__ import annotations

import os
from typing import Any

from .node import names


class Objects:
    """Files of studies in Ray's object store, each there once as long as it does not change."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[tuple[int, int], Any]] = {}

    def forget(self) -> None:
        """Files are put there again when they are next asked for."""
        self.known.clear()

    def of(self, folder: str, paths: list[str]) -> list[Any]:
        """References to the files at some paths of a folder, or below them."""
        return [self.reference(folder, path) for path in sorted(set(names(folder, paths)))]

    def reference(self, folder: str, path: str) -> Any:
        """A reference to one file as it is now."""
        import ray

        whole = os.path.join(folder, path)
        status = os.stat(whole)
        mark = (status.st_mtime_ns, status.st_size)
        if whole not in self.known or self.known[whole][0] != mark:
            with open(whole, "rb") as file:
                self.known[whole] = (mark, ray.put((path, file.read())))
        return self.known[whole][1]
