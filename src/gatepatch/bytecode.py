"""Bytecode of changed modules, in all its forms.

Python trusts a ``.pyc`` whose source has the same size and the same second, and an unchecked
hash-based one whatever its source: so they go, whoever compiled them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def remove(source: Path) -> int:
    """Remove every compiled form of a module: tags, optimised levels, prefix folders, legacy.

    Args:
        source: The ``.py`` file.

    Returns:
        How many files were removed.
    """
    if source.suffix != ".py":
        return 0
    folders = [source.parent / "__pycache__"]
    for prefix in {sys.pycache_prefix, os.environ.get("PYTHONPYCACHEPREFIX")}:
        if prefix:
            folders.append(Path(prefix).joinpath(*source.parent.parts[1:]))
    found = [path for folder in folders for path in folder.glob(f"{_escaped(source.stem)}.*.pyc")]
    # A legacy .pyc is imported in place of a missing source only, and goes stale all the same.
    found.append(source.with_suffix(".pyc"))
    removed = 0
    for path in found:
        try:
            path.unlink()
            removed += 1
        except FileNotFoundError:
            pass
    return removed


def _escaped(stem: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in stem)
