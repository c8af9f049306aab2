"""The `catamount` command: the same code as the program that Cargo builds, in the same process as
this interpreter.
"""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
from typing import Sequence

from . import _catamount
from .node import beside

__all__ = ["main"]

KEPT = 200
"""Lines that are kept of what a program said."""


def main() -> None:
    """Does what the process's arguments say and ends it with the command's exit code."""
    # Python notes a Ctrl-C for when it runs again, which is when the command has ended. The command
    # minds it itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # A study's other processes are this command, too. Of the interpreter the program would know the
    # real path only, which is outside the environment that the package is in.
    command = beside()
    if command is not None:
        os.environ.setdefault("CATAMOUNT_PROGRAM", command)
    sys.exit(_catamount.command_line(["catamount", *sys.argv[1:]]))


def told(command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
    """Runs a program whose standard error is passed on line by line: how it ended, and what it said
    last.
    """
    last: collections.deque[str] = collections.deque(maxlen=KEPT)
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            sys.stderr.write(line)
            sys.stderr.flush()
            last.append(line)
    return process.returncode, "".join(last)
