"""Where gatepatch keeps what it can make again: never in an environment."""

from __future__ import annotations

import os
from pathlib import Path


def folder(name: str) -> Path:
    """A folder of the user's cache: ``$XDG_CACHE_HOME/gatepatch/NAME``, or under ``~/.cache``.

    Args:
        name: What is kept there.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG Base Directory Specification has a relative one ignored.
    home = Path(base if base.startswith("/") else os.path.expanduser("~/.cache"))  # noqa: PTH111
    return home / "gatepatch" / name
