"""Provers, described so that they can be sent to another machine and opened there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path as _Path
from typing import NamedTuple, Sequence, Union

from . import _catamount
from .traces import Trace, dump

__all__ = ["Environment", "Lean", "Metamath", "Session", "Verdict"]

Path = Union[str, "os.PathLike[str]"]
DEBIAN = _Path("/usr/share/metamath/databases")


class Verdict(NamedTuple):
    """What the prover says of one tactic at one state."""

    kind: str
    """proved, open or rejected."""
    state: int | None
    """The number of the state reached, if it is open."""
    text: str
    """The state reached, or the reason for a rejection."""


class Session:
    """One theorem being proved; state 0 is the root, and any state may be branched from any number
    of times.
    """

    def __init__(self, native: _catamount.Session) -> None:
        self._native = native

    @property
    def root(self) -> str:
        """The text of the root state."""
        return self._native.root

    def apply(self, state: int, tactic: str) -> Verdict:
        """Applies a tactic to a state."""
        return Verdict(*self._native.apply(state, tactic))

    def release(self, state: int) -> None:
        """Says that a state will not be used again."""
        self._native.release(state)


class Environment:
    """A prover. Subclasses are plain settings: they pickle, and the prover itself is opened at
    first use.
    """

    def native(self) -> _catamount.Environment:
        """The opened prover of this process."""
        opened = self.__dict__.get("_opened")
        if opened is None:
            opened = self._open()
            # The settings are frozen; the opened prover is not one of them.
            object.__setattr__(self, "_opened", opened)
        return opened

    def _open(self) -> _catamount.Environment:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, object]:
        return {key: value for key, value in self.__dict__.items() if key != "_opened"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def describe(self) -> str:
        """The prover and its version, as manifests say it."""
        return self.native().describe()

    def open(self, theorem: Union[Trace, str]) -> Session:
        """Opens a theorem, given by name or as a `Trace`."""
        return Session(self.native().open(_theorem(theorem)))

    def check(
        self, theorem: Union[Trace, str], tactics: Sequence[str]
    ) -> tuple[bool, list[str], str]:
        """Re-checks a finished proof from scratch: whether it stands, the axioms it rests on, why
        it does not.
        """
        return self.native().check(_theorem(theorem), list(tactics))


@dataclass(frozen=True)
class Metamath(Environment):
    """Metamath, in this process."""

    database: Path = "set.mm"
    """A file, or the name of one in Debian's package metamath-databases."""

    def _open(self) -> _catamount.Environment:
        path = _Path(self.database)
        if not path.exists() and path.parent == _Path(".") and (DEBIAN / path).exists():
            path = DEBIAN / path
        return _catamount.Environment.metamath(os.fspath(path))


@dataclass(frozen=True)
class Lean(Environment):
    """Lean 4, behind a pool of server processes."""

    project: Path | None = None
    """The Lake project whose toolchain serves; without one, core Lean as WebAssembly under node."""
    root: Path | None = None
    """What theorems' files are relative to."""
    imports: Sequence[str] | None = None
    """Modules to import where a theorem's header names none."""
    workers: int = 2
    heartbeats: int = 200_000
    request_limit: float = 60.0
    """Seconds per tactic."""
    memory_mb: int = 2600

    def _open(self) -> _catamount.Environment:
        return _catamount.Environment.lean(
            None if self.project is None else os.fspath(self.project),
            None if self.root is None else os.fspath(self.root),
            None if self.imports is None else list(self.imports),
            self.workers,
            self.heartbeats,
            self.request_limit,
            self.memory_mb,
        )


def _theorem(theorem: Union[Trace, str]) -> str:
    trace = Trace(theorem) if isinstance(theorem, str) else theorem
    return dump([trace])[1:-1]
