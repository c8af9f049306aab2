"""The `catamount` command: the same code as the program that Cargo builds, in the same process as this interpreter."""

from __future__ import annotations

import signal
import sys

from . import _catamount

__all__ = ["main"]


def main() -> None:
    """Does what the process's arguments say and ends it with the command's exit code."""
    # Python notes a Ctrl-C for when it runs again, which is when the command has ended. The command minds it itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_catamount.command_line(["catamount", *sys.argv[1:]]))
