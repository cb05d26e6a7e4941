"""What was found before, in the user's cache: nothing is written where gates are looked for.

A file's result is kept with its size and its times of change. A Python file's verdicts hang on
the files that it imports from, so they are good as long as no Python file of the distribution
has changed; a C file's on the headers that it names.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gatepatch import __version__, usercache
from gatepatch.scanning.walk import PYTHON, SourceFile
from gatepatch.target import Target


def load(target: Target, files: Sequence[SourceFile]) -> dict[str, dict[str, Any]]:
    """The results that still hold, by path."""
    try:
        kept = json.loads(_file(target).read_bytes())
        if kept["reader"] != _reader():
            return {}
        results: Mapping[str, list[Any]] = kept["files"]
        same = kept["python"] == _python(files)
        found = {}
        stamps = {file.path: list(file.stamp) for file in files}
        for file in files:
            known = results.get(file.path)
            if known is None or known[0] != list(file.stamp):
                continue
            good = same if file.path.endswith(PYTHON) else _unchanged(known[1], results, stamps)
            if good:
                found[file.path] = known[1]
        return found
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}


def _unchanged(
    result: Mapping[str, Any], results: Mapping[str, list[Any]], stamps: Mapping[str, list[int]]
) -> bool:
    """Whether the headers that told something of a C file are as they were."""
    return all(
        path in results and results[path][0] == stamps.get(path) for path in result.get("read", ())
    )


def save(
    target: Target, files: Sequence[SourceFile], results: Mapping[str, Mapping[str, Any]]
) -> None:
    """Keep results; where that is not possible, they are worked out again next time."""
    kept = {
        "reader": _reader(),
        "python": _python(files),
        "files": {f.path: [f.stamp, results[f.path]] for f in files if f.path in results},
    }
    with contextlib.suppress(OSError):
        path = _file(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as stream:
                # Not json.dump: only dumps has the encoder that is written in C.
                stream.write(json.dumps(kept, separators=(",", ":")))
            os.replace(name, path)  # noqa: PTH105
        except BaseException:
            os.unlink(name)  # noqa: PTH108
            raise


def _file(target: Target) -> Path:
    key = hashlib.sha256(f"{target.root.path}\n{target.distribution}".encode()).hexdigest()
    return usercache.folder("scan") / f"{target.distribution}-{key[:16]}.json"


def _python(files: Sequence[SourceFile]) -> str:
    stamps = [(file.path, file.stamp) for file in files if file.path.endswith(PYTHON)]
    return hashlib.sha256(repr(stamps).encode("utf-8", "surrogateescape")).hexdigest()


@lru_cache(maxsize=1)
def _reader() -> str:
    """What reads the files: gatepatch's version, and its own source where that is worked on."""
    digest = hashlib.sha256(__version__.encode())
    package = Path(__file__).parents[1]
    for path in sorted(
        [*package.glob("*.py"), *package.glob("gates/*.py"), *package.glob("scanning/*.py")]
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()
