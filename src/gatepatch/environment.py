"""Python environments: the running one, or another by its interpreter or prefix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gatepatch.errors import Problem, TargetError, UsageError

_QUERY = (
    "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.version_info[:2],"
    " [p for p in sys.path if p]]))"
)

_LAYOUTS = (
    "lib/python3.*/site-packages",
    "lib64/python3.*/site-packages",
    "local/lib/python3.*/dist-packages",  # Debian: what pip installs
    "lib/python3.*/dist-packages",
    "lib/python3/dist-packages",  # Debian: what apt installs
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A Python environment.

    Args:
        python: Its interpreter; None where there is only a prefix.
        prefix: ``sys.prefix``.
        version: Major and minor version of the interpreter.
        paths: The folders of ``sys.path`` that exist, in the order of import.
        running: Whether it is the one that gatepatch itself runs in.
    """

    python: Path | None
    prefix: Path
    version: tuple[int, int]
    paths: tuple[Path, ...]
    running: bool


def find_environment(
    *, python: str | Path | None = None, prefix: str | Path | None = None
) -> Environment:
    """Find an environment without importing anything from it.

    Args:
        python: Its interpreter. It is asked for its ``sys.path``, so user site, ``.pth`` files
            and ``PYTHONPATH`` count as they would for a server started from here.
        prefix: Its folder. Where the interpreter in it cannot run, its layout is read.

    Raises:
        UsageError: Both are given, or there is no such thing.
        TargetError: The interpreter cannot be asked.
    """
    if python is not None and prefix is not None:
        raise UsageError("give --python or --prefix, not both")
    if python is not None:
        return _ask(Path(python))
    if prefix is not None:
        return _of_prefix(Path(prefix))
    return Environment(
        python=Path(sys.executable) if sys.executable else None,
        prefix=Path(sys.prefix),
        version=sys.version_info[:2],
        paths=_existing(sys.path),
        running=True,
    )


def _ask(python: Path) -> Environment:
    if os.sep not in str(python):
        import shutil

        python = Path(shutil.which(python) or python)
    if not python.is_file():
        raise UsageError(Problem(message="no such interpreter", where=str(python)))
    try:
        done = subprocess.run(
            [python, "-c", _QUERY], capture_output=True, timeout=60, check=True, text=True
        )
        executable, prefix, version, paths = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        raise TargetError(
            Problem(message=f"does not answer as a Python interpreter: {detail}", where=str(python))
        ) from None
    return Environment(
        python=Path(executable or python),
        prefix=Path(prefix),
        version=(version[0], version[1]),
        paths=_existing(paths),
        running=os.path.realpath(prefix) == os.path.realpath(sys.prefix),
    )


def _of_prefix(prefix: Path) -> Environment:
    if not prefix.is_dir():
        raise UsageError(Problem(message="no such folder", where=str(prefix)))
    for python in (*sorted(prefix.glob("bin/python3")), *sorted(prefix.glob("bin/python"))):
        try:
            found = _ask(python)
        except (TargetError, UsageError):
            continue
        if os.path.realpath(found.prefix) == os.path.realpath(prefix):
            return found
    folders = [folder for layout in _LAYOUTS for folder in sorted(prefix.glob(layout))]
    if not folders:
        raise TargetError(
            Problem(
                message="is no Python environment: no site-packages or dist-packages in it",
                where=str(prefix),
                hint="name its interpreter instead: --python EXE",
            )
        )
    digits = folders[0].parent.name.removeprefix("python").split(".")
    version = (int(digits[0]), int(digits[1])) if len(digits) == 2 else sys.version_info[:2]
    lines = (line for folder in folders for line in _pth_folders(folder))
    return Environment(
        python=None,
        prefix=prefix,
        version=version,
        paths=_existing([*map(str, folders), *lines]),
        running=False,
    )


def _pth_folders(folder: Path) -> Iterable[str]:
    """The folders that a site folder's ``.pth`` files add, as ``site`` reads them."""
    for pth in sorted(folder.glob("*.pth")):
        for line in pth.read_text("utf-8", "replace").splitlines():
            if line.strip() and not line.startswith(("#", "import ", "import\t")):
                yield str(folder / line.strip())


def _existing(paths: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(path) for path in dict.fromkeys(paths) if path and Path(path).is_dir())
