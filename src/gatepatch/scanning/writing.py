"""Write a scan's findings to files beside the table: SARIF, and a page to read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gatepatch import webpage
from gatepatch.errors import GatepatchError, Problem, UsageError
from gatepatch.files import write_new
from gatepatch.scanning import page, sarif
from gatepatch.scanning.records import ScanResult, Written


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where to write; None writes nothing."""

    sarif: Path | None = None
    html: Path | None = None

    def check(self) -> None:
        """Refuse, before minutes of scanning, what cannot be written afterwards.

        Raises:
            UsageError: A folder is not there, or a file is none; or both are the same file.
        """
        for option, path in (("--sarif", self.sarif), ("--html", self.html)):
            if path is None:
                continue
            if path.exists() and not path.is_file():  # a pipe is not to be put aside by a file
                what = "a folder" if path.is_dir() else "a device or a pipe"
                raise UsageError(Problem(where=option, message=f"{path} is {what}, not a file"))
            if not path.parent.is_dir():
                raise UsageError(
                    Problem(
                        where=option,
                        message=f"{path}: there is no folder {path.parent}",
                        hint=f"mkdir -p {path.parent}",
                    )
                )
        named = [path for path in (self.sarif, self.html) if path is not None]
        if len({*map(_behind, named)}) < len(named):
            raise UsageError(f"--sarif and --html name one file, {self.html}")


def _behind(path: Path) -> Path:
    """What a link leads to, so that the link stays."""
    return Path(os.path.realpath(path))  # Path.resolve raises where links lead in a circle


def write(result: ScanResult, files: Files) -> ScanResult:
    """Write the files, each whole or not at all.

    Raises:
        GatepatchError: One cannot be written.
    """
    return replace(result, written=tuple(_write(result, files)))


def _write(result: ScanResult, files: Files) -> Iterator[Written]:
    every = len(result.findings)
    if files.sarif is not None:
        _put(files.sarif, sarif.render(result).encode())
        gates = len(sarif.chosen(result.findings))
        yield Written(file=str(files.sarif), format="sarif", gates=gates, left_out=every - gates)
    if files.html is not None:
        _put(files.html, webpage.encode(page.render(result)))
        yield Written(file=str(files.html), format="html", gates=every)


def _put(path: Path, data: bytes) -> None:
    try:
        write_new(_behind(path), data)
    except OSError as error:
        why = error.strerror or str(error)
        raise GatepatchError(
            Problem(where=str(path), message=f"cannot be written: {why}")
        ) from error
