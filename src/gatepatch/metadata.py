"""The metadata that installers leave beside what they install, read as files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from gatepatch.errors import Problem, TargetError

# Most releases' versions; to load packaging's own reader of all others takes 5 ms.
_NUMBER = "(?:0|[1-9][0-9]*)"
_CANONICAL = re.compile(rf"{_NUMBER}(?:\.{_NUMBER})*(?:\.post{_NUMBER})?")

# What is looked at first comes first.
_KINDS = ("dist-info", "egg-info", "egg-link", "egg")


def canonical_name(name: str) -> str:
    """The canonical form of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()  # packaging.utils costs 15 ms to import


def metadata_in(folder: Path, name: str | None = None) -> Iterator[Path]:
    """The metadata, and the eggs, of one distribution in a folder, or of all for None."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                stem, _, kind = entry.name.rpartition(".")
                if kind in _KINDS:
                    # A name may itself hold hyphens in an egg-link.
                    own = stem if kind == "egg-link" else stem.split("-")[0]
                    if name is None or canonical_name(own) == name:
                        found.append((_KINDS.index(kind), entry.name))
    except OSError:
        return
    yield from (folder / name for _, name in sorted(found))


def is_whole(metadata: Path) -> bool:
    """Whether metadata is more than the folder that a failed uninstall leaves behind."""
    match metadata.suffix:
        case ".dist-info":
            return (metadata / "METADATA").is_file()
        case ".egg-info":
            return metadata.is_file() or (metadata / "PKG-INFO").is_file()
        case _:
            return True


def version_of(metadata: Path, name: str) -> str:
    """The version that a distribution's metadata has, in its canonical form (PEP 440).

    Raises:
        TargetError: It has none, or one that is no version.
    """
    if metadata.suffix == ".egg-link":
        found = sorted(egg_link_folder(metadata).glob("*.egg-info"))
        own = (p for p in found if canonical_name(p.stem.split("-")[0]) == name)
        metadata = next(own, metadata)
    for file in (metadata / "METADATA", metadata / "PKG-INFO", metadata):
        if not file.is_file():
            continue
        for line in file.read_text("utf-8", "replace").split("\n"):
            if line.lower().startswith("version:"):
                return _canonical_version(line.partition(":")[2].strip(), file)
            if not line.strip():
                break
    raise TargetError(
        Problem(
            message="no version is to be found",
            where=str(metadata),
            hint=f"the installation is damaged: reinstall {name}",
        )
    )


def _canonical_version(text: str, file: Path) -> str:
    if _CANONICAL.fullmatch(text):
        return text
    from packaging.version import InvalidVersion, Version

    try:
        return str(Version(text))
    except InvalidVersion as error:
        raise TargetError(Problem(message=str(error), where=str(file))) from None


def egg_link_folder(link: Path) -> Path:
    """The folder that an ``.egg-link`` names.

    Raises:
        TargetError: It names none.
    """
    first = link.read_text("utf-8", "surrogateescape").partition("\n")[0].strip()
    if not first:
        raise TargetError(
            Problem(
                message="names no folder on its first line",
                where=str(link),
                hint="install it again: pip install -e FOLDER",
            )
        )
    return Path(os.path.normpath(link.parent / first))


def record_names(metadata: Path) -> list[str]:
    """The files that RECORD lists; none where there is no RECORD."""
    try:
        lines = (metadata / "RECORD").read_text("utf-8", "surrogateescape").split("\n")
    except OSError:
        return []
    return [line.partition(",")[0].strip('"') for line in lines if line]


def direct_url(metadata: Path) -> Mapping[str, object]:
    """What an installer noted of where a distribution came from; empty if nothing (PEP 610)."""
    try:
        data = (metadata / "direct_url.json").read_bytes()
    except OSError:
        return {}
    import json

    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def requirement(metadata: Path, name: str) -> str:
    """What to give an installer to have a distribution again: a release, or its URL."""
    match direct_url(metadata):
        case {"url": str(url), "vcs_info": {"vcs": str(vcs), "commit_id": str(commit)}}:
            return f"{name} @ {vcs}+{url}@{commit}"
        case {"url": str(url)}:
            return f"{name} @ {url}"
    return f"{name}=={version_of(metadata, name)}"
