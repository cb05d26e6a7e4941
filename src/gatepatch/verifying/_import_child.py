"""Say which file an environment's interpreter would import, and from which bytecode.

Run by that interpreter, not by gatepatch's own: it imports nothing but the standard library, and
none of the packages that it is asked about. Reads one JSON document from stdin and writes one.
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import os
import struct
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

_UNCHECKED, _CHECKED = 1, 3


def find(module: str) -> tuple[str | None, str | None]:
    """Where a module comes from: its file, or None and why there is none.

    The finders are asked step by step, so that no ``__init__`` runs.
    """
    path: list[str] | None = None
    name = ""
    found = None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        found = _spec(name, path)
        if found is None:
            return None, f"{name} is not found"
        path = list(found.submodule_search_locations or ())
        # A namespace package looks its parent up by name when its folders are asked for.
        stand_in = ModuleType(name)
        stand_in.__path__ = path
        sys.modules[name] = stand_in
    return (found.origin if found else None), None


def _spec(name: str, path: list[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def stale(source: str) -> list[tuple[str, str]]:
    """The bytecode files of a source that would be loaded, and were not compiled from it."""
    with open(source, "rb") as file:  # noqa: PTH123, runs where gatepatch is not
        text = file.read()
    status = os.stat(source)  # noqa: PTH116
    found = []
    for level in ("", "1", "2"):
        pyc = importlib.util.cache_from_source(source, optimization=level)
        try:
            with open(pyc, "rb") as file:  # noqa: PTH123
                data = file.read()
        except OSError:
            continue
        how = _loaded_as(data, text, int(status.st_mtime), status.st_size)
        if how and not _compiled_from(data, text, source, int(level or 0)):
            found.append((pyc, how))
    return found


def _loaded_as(data: bytes, text: bytes, mtime: int, size: int) -> str:
    """On what ground the interpreter would load it; empty if it would compile the source anew."""
    if len(data) < 16 or data[:4] != importlib.util.MAGIC_NUMBER:
        return ""
    flags, first, second = struct.unpack("<III", data[4:16])
    if flags == _UNCHECKED:
        return "unchecked"
    if flags == _CHECKED:
        return "hash" if data[8:16] == importlib.util.source_hash(text) else ""
    recorded = (mtime & 0xFFFFFFFF, size & 0xFFFFFFFF)
    return "mtime" if flags == 0 and (first, second) == recorded else ""


def _compiled_from(data: bytes, text: bytes, source: str, level: int) -> bool:
    try:
        code = marshal.loads(data[16:])
        fresh = compile(text, source, "exec", dont_inherit=True, optimize=level)
    except (SyntaxError, ValueError, EOFError, TypeError):
        return False
    return isinstance(code, CodeType) and code == fresh


def answer(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Answer for each module."""
    sys.path[:] = request["paths"]
    rows = []
    for module in request["modules"]:
        try:
            origin, reason = find(module)
            stales = stale(origin) if origin and origin.endswith(".py") else []
        except Exception as error:  # another package's finder may raise anything
            origin, reason, stales = None, f"{type(error).__name__}: {error}", []
        rows.append({"module": module, "origin": origin, "reason": reason, "stale": stales})
    return rows


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    print("gatepatch:" + json.dumps(answer(json.load(sys.stdin))))
