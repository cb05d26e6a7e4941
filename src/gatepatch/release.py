"""Released versions, read from their wheels or sdists without installing anything."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from gatepatch import usercache
from gatepatch.errors import Problem, TargetError
from gatepatch.records import dataclass

_NAME = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+?)-(?P<version>[^-]+)(-.*\.whl|\.tar\.gz)", re.IGNORECASE
)
# FlashInfer's sdists have these at the top; its build puts them under flashinfer/data.
_BUILT = ("", "flashinfer/data/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One released version.

    Args:
        archive: The wheel or sdist.
        read: Returns a file's bytes by its path from where the distribution is imported; None
            if it has no such file.
    """

    distribution: str
    version: Version
    archive: Path
    read: Callable[[str], bytes | None]


def open_release(archive: Path) -> Release:
    """Open a wheel or an sdist.

    Raises:
        TargetError: It is neither, or is damaged.
    """
    match = _NAME.fullmatch(archive.name)
    try:
        if match is None:
            raise ValueError("its name is not that of a wheel or an sdist")
        read = _wheel(archive) if archive.suffix == ".whl" else _sdist(archive)
        version = Version(match["version"])
    except (OSError, ValueError, zipfile.BadZipFile, tarfile.TarError) as error:
        raise TargetError(
            Problem(message=f"cannot be read as a release: {error}", where=str(archive))
        ) from None
    name = str(canonicalize_name(match["name"]))
    return Release(distribution=name, version=version, archive=archive, read=read)


def _wheel(archive: Path) -> Callable[[str], bytes | None]:
    file = zipfile.ZipFile(archive)
    names = frozenset(file.namelist())
    return lambda path: file.read(path) if path in names else None


def _sdist(archive: Path) -> Callable[[str], bytes | None]:
    with tarfile.open(archive) as file:
        members = {m.name.partition("/")[2]: m for m in file.getmembers() if m.isfile()}
        # Read at once: to seek in a compressed archive is to read it again from the start.
        content = {}
        for path, member in members.items():
            stream = file.extractfile(member)
            if stream is not None:
                content[path] = stream.read()

    def read(path: str) -> bytes | None:
        spellings = (path.removeprefix(prefix) for prefix in _BUILT if path.startswith(prefix))
        return next((content[p] for p in spellings if p in content), None)

    return read


def releases_in(folder: Path) -> Iterator[Release]:
    """Every release in a folder, or the one archive that is named.

    Raises:
        TargetError: An archive is damaged.
    """
    archives = [folder] if folder.is_file() else sorted(folder.iterdir())
    for archive in archives:
        if _NAME.fullmatch(archive.name):
            yield open_release(archive)


def versions(distribution: str, *, pre: bool = False) -> tuple[Version, ...]:
    """Every version that the package index has, the oldest first.

    Args:
        distribution: Canonical name.
        pre: Whether pre-releases count too.

    Raises:
        TargetError: pip cannot ask it.
    """
    output = _pip("index", "versions", *(["--pre"] if pre else []), distribution)
    match = re.search(r"^\s*Available versions: (.*)$", output, re.MULTILINE)
    if match is None:
        raise TargetError(f"pip lists no versions of {distribution}")
    return tuple(sorted(Version(text.strip()) for text in match[1].split(",")))


def fetch(distribution: str, version: Version, folder: Path | None = None) -> Release:
    """Download a release, once.

    Args:
        distribution: Canonical name.
        version: Which one.
        folder: Where downloads are kept; ``releases`` in the user's cache by default.

    Raises:
        TargetError: It cannot be had.
    """
    folder = usercache.folder("releases") if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    known = _downloaded(folder, distribution, version)
    if known is None:
        arguments = ["--no-deps", "--dest", str(folder), f"{distribution}=={version}"]
        try:
            _pip("download", *arguments)
        except TargetError:
            # pip builds an sdist's metadata, and some old ones no longer build in isolation.
            _pip("download", "--no-build-isolation", *arguments)
        known = _downloaded(folder, distribution, version)
    if known is None:
        raise TargetError(f"pip downloaded no archive of {distribution} {version}")
    return open_release(known)


def _downloaded(folder: Path, distribution: str, version: Version) -> Path | None:
    for archive in sorted(folder.iterdir()):
        match = _NAME.fullmatch(archive.name)
        if match and (canonicalize_name(match["name"]), Version(match["version"])) == (
            distribution,
            version,
        ):
            return archive
    return None


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    if arguments[0] == "index":
        command.remove("-q")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line] or [
            "no reason given"
        ]
        raise TargetError(
            Problem(
                message=f"pip {arguments[0]} failed: {lines[-1].removeprefix('ERROR: ')}",
                where=arguments[-1],
                hint="download the wheel where there is a network, and name it: --from DIR",
            )
        )
    return done.stdout
