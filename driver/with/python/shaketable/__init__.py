"""Where the files of shaketable are: a program that runs others on a simulated FoundationDB cluster, and its libraries.

The command `shaketable` is that program. The plugin for pytest is in `shaketable.pytest_plugin`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["clock", "library", "main", "program"]

_FOLDER = Path(__file__).resolve().parent


def program() -> Path:
    """The program `shaketable`."""
    return _FOLDER / "bin" / "shaketable"


def library() -> Path:
    """`libfdb_c.so`, which programs find in place of FoundationDB's client library."""
    return _FOLDER / "lib" / "libfdb_c.so"


def clock() -> Path:
    """The library that `shaketable with --time` preloads."""
    return _FOLDER / "lib" / "libshaketable_time.so"


def main() -> None:
    """Becomes the program, with the arguments of this process, under the name with which it was started."""
    try:
        os.execv(program(), sys.argv)
    except OSError as error:
        sys.exit(f"shaketable: cannot start {program()}: {error.strerror}")
