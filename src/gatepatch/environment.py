"""Python environments: the running one, or another by its interpreter or prefix."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gatepatch.errors import Problem, TargetError, UsageError
from gatepatch.records import dataclass

# What the interpreter's own start-up files print goes to stdout as well, hence the mark.
_MARK = "gatepatch:"
_QUERY = (
    f"import json, sys; print('{_MARK}' + json.dumps([sys.executable, sys.prefix,"
    " sys.version_info[:2], [p for p in sys.path if p]]))"
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
            and ``PYTHONPATH`` count as they would for a server started from here. The folder of
            a script and the current folder do not.
        prefix: Its folder. Where no interpreter in it can run, its layout is read, and the user
            site and an enclosing system's packages are not seen.

    Raises:
        UsageError: Both are given, or there is no such thing.
        TargetError: The interpreter cannot be asked.
    """
    if python is not None and prefix is not None:
        raise UsageError("give --python or --prefix, not both")
    if python is not None:
        return _ask(_interpreter(python))
    if prefix is not None:
        return _of_prefix(Path(prefix).absolute())
    return Environment(
        python=Path(sys.executable) if sys.executable else None,
        prefix=Path(sys.prefix),
        version=sys.version_info[:2],
        paths=_existing(_running_paths()),
        running=True,
    )


def _running_paths() -> list[str]:
    """This process's import path, without what only its own script or current folder adds."""
    paths = list(sys.path)
    if not paths or sys.flags.isolated or getattr(sys.flags, "safe_path", False):
        return paths
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    own = [str(Path(main).absolute().parent)] if main else []
    with contextlib.suppress(OSError):  # the current folder may be gone
        own.append(str(Path.cwd()))
    return paths[1:] if paths[0] in own else paths


def _interpreter(python: str | Path) -> Path:
    """The interpreter that a person named: a path, or a command's name."""
    found = Path(python)
    if isinstance(python, str) and os.sep not in python:
        import shutil

        found = Path(shutil.which(python) or python)
    if not found.is_file():
        hint = f"its folder is named by --prefix {found}" if found.is_dir() else None
        raise UsageError(Problem(message="no such interpreter", where=str(python), hint=hint))
    return found.absolute()  # not resolved: a virtual environment is where its link lies


def _ask(python: Path) -> Environment:
    import json
    import subprocess

    try:
        done = subprocess.run(
            [python, "-B", "-c", _QUERY],  # -B: start-up files may import, and nothing is written
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=True,
            text=True,
            errors="surrogateescape",
        )
        answer = next(x for x in done.stdout.splitlines() if _MARK in x).partition(_MARK)[2]
        executable, prefix, version, paths = json.loads(answer)
    except (OSError, subprocess.SubprocessError, ValueError, StopIteration) as error:
        said = getattr(error, "stderr", None)
        lines = said.strip().splitlines() if isinstance(said, str) else []
        raise TargetError(
            Problem(
                message="does not answer as a Python interpreter: "
                + (lines[-1] if lines else str(error) or "no answer"),
                where=str(python),
            )
        ) from None
    return Environment(
        python=Path(executable or python),
        prefix=Path(prefix),
        version=(version[0], version[1]),
        paths=_existing(paths),
        running=(os.path.realpath(prefix), tuple(version))
        == (os.path.realpath(sys.prefix), sys.version_info[:2]),
    )


def _of_prefix(prefix: Path) -> Environment:
    if not prefix.is_dir():
        raise UsageError(Problem(message="no such folder", where=str(prefix)))
    for name in ("python3", "python", "python3.[0-9]", "python3.[0-9][0-9]"):
        for python in sorted(prefix.glob(f"bin/{name}")):
            try:
                found = _ask(python)
            except TargetError:
                continue
            if os.path.realpath(found.prefix) == os.path.realpath(prefix):
                return found
    return _by_layout(prefix)


def _by_layout(prefix: Path) -> Environment:
    """An environment whose interpreter cannot run: a mounted image, another machine's."""
    folders = [folder for layout in _LAYOUTS for folder in sorted(prefix.glob(layout))]
    if not folders:
        raise TargetError(
            Problem(
                message="is no Python environment: no site-packages or dist-packages in it",
                where=str(prefix),
                hint="name its interpreter instead: --python EXE",
            )
        )
    versions = {v for v in map(_version_of, folders) if v is not None}
    told = _told_version(prefix)
    if told is None and len(versions) > 1:
        raise TargetError(
            Problem(
                message="holds several Pythons: "
                + ", ".join(f"{major}.{minor}" for major, minor in sorted(versions)),
                where=str(prefix),
                hint="name the interpreter: --python EXE",
            )
        )
    version = told or next(iter(versions), sys.version_info[:2])
    own = [folder for folder in folders if _version_of(folder) in (None, version)]
    return Environment(
        python=None,
        prefix=prefix,
        version=version,
        paths=_existing(path for folder in own for path in (str(folder), *_pth_folders(folder))),
        running=False,
    )


def _version_of(folder: Path) -> tuple[int, int] | None:
    found = re.fullmatch(r"python3\.(\d+)", folder.parent.name)
    return (3, int(found[1])) if found else None


def _told_version(prefix: Path) -> tuple[int, int] | None:
    """The version that a virtual environment's own note has."""
    try:
        text = (prefix / "pyvenv.cfg").read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"^version(?:_info)?\s*=\s*3\.(\d+)", text, re.MULTILINE)
    return (3, int(found[1])) if found else None


def pth_lines(pth: Path) -> Iterator[str]:
    """The folders that a ``.pth`` file adds, as it writes them; source: ``site.addpackage``."""
    try:
        text = pth.read_text("utf-8-sig", "surrogateescape")
    except OSError:
        return
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "import ", "import\t")):
            yield line.rstrip()


def _pth_folders(folder: Path) -> Iterator[str]:
    for pth in sorted(folder.glob("*.pth")):
        if not pth.name.startswith("."):
            yield from (str(folder / line) for line in pth_lines(pth))


def _existing(paths: Iterable[str]) -> tuple[Path, ...]:
    """The folders that can be imported from, each once: lib64 is often a link to lib."""
    found: dict[str, Path] = {}
    for path in paths:
        # Path.is_dir raises where a folder above may not be searched, os.path.isdir does not.
        if path and os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK):  # noqa: PTH112
            found.setdefault(os.path.realpath(path), Path(os.path.normpath(Path(path).absolute())))
    return tuple(found.values())
