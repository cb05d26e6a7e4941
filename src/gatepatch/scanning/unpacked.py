"""Wheels as environments: their sources unpacked into a folder that is soon gone."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

from gatepatch.environment import Environment, find_environment
from gatepatch.errors import Problem, TargetError, UsageError
from gatepatch.metadata import canonical_name
from gatepatch.scanning.walk import CUDA, PYTHON

_NAMED = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)-.*\.whl")
_MOVED = re.compile(r"[^/]+\.data/(?:purelib|platlib)/")


@contextlib.contextmanager
def opened(other: Path, distributions: Collection[str]) -> Iterator[Environment]:
    """Open an environment, by its prefix or interpreter, or one that wheels stand for.

    Args:
        other: A prefix, an interpreter, a wheel, or a folder of wheels.
        distributions: Canonical names: which wheels of a folder are wanted; all for none.

    Raises:
        UsageError: It is none of them, or no wheel is for what is wanted.
        TargetError: A wheel is damaged, or there are several versions of one distribution.
    """
    if not other.exists():
        raise UsageError(
            Problem(
                message="is not there: expected an environment's folder or interpreter, a wheel, "
                "or a folder of wheels",
                where=str(other),
            )
        )
    wheels = [other] if other.suffix == ".whl" else sorted(other.glob("*.whl"))
    if wheels:
        with tempfile.TemporaryDirectory(prefix="gatepatch-") as folder:
            yield _environment(_wanted(other, wheels, distributions), Path(folder))
    elif other.is_dir():
        yield find_environment(prefix=other)
    else:
        yield find_environment(python=other)


def names_of(other: Path) -> tuple[str, ...]:
    """The distributions that a wheel, or a folder of wheels, is of; none for an environment."""
    wheels = [other] if other.suffix == ".whl" else sorted(other.glob("*.whl"))
    found = (_NAMED.fullmatch(wheel.name) for wheel in wheels)
    return tuple(dict.fromkeys(canonical_name(match["name"]) for match in found if match))


def _wanted(other: Path, wheels: list[Path], distributions: Collection[str]) -> list[Path]:
    """One wheel for each distribution."""
    chosen: dict[str, Path] = {}
    for wheel in wheels:
        match = _NAMED.fullmatch(wheel.name)
        name = canonical_name(match["name"]) if match else ""
        if not match or (distributions and name not in distributions):
            continue
        if name in chosen:
            raise TargetError(
                Problem(
                    message=f"holds several wheels of {name}: {chosen[name].name} and {wheel.name}",
                    where=str(other),
                    hint="name the wheel itself",
                )
            )
        chosen[name] = wheel
    if not chosen:
        found = ", ".join(names_of(other)) or "no wheel whose name can be read"
        raise UsageError(
            Problem(
                message=f"expected a wheel of {' or '.join(distributions) or 'anything'}, "
                f"found {found}",
                where=str(other),
            )
        )
    return list(chosen.values())


def _environment(wheels: list[Path], folder: Path) -> Environment:
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                _unpack(archive, folder)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise TargetError(
                Problem(message=f"cannot be read as a wheel: {error}", where=str(wheel))
            ) from None
    return Environment(
        python=None, prefix=folder, version=sys.version_info[:2], paths=(folder,), running=False
    )


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """Put what is scanned, and the metadata, where an installer would."""
    for name in archive.namelist():
        path = _MOVED.sub("", name)
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/") or name.endswith("/"):
            continue
        if path.endswith((*PYTHON, *CUDA)) or parts[0].endswith(".dist-info"):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            data = archive.read(name)
            if parts[-1] == "RECORD":
                lines = data.decode("utf-8", "surrogateescape").splitlines(keepends=True)
                text = "".join(_MOVED.sub("", line, count=1) for line in lines)
                data = text.encode("utf-8", "surrogateescape")
            file.write_bytes(data)
