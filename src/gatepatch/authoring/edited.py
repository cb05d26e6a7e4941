"""Find what was edited in an installed distribution, and its pristine bytes."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from gatepatch import release
from gatepatch.edits import sha256
from gatepatch.errors import Problem, RefusedError, TargetError
from gatepatch.files import read
from gatepatch.release import Release
from gatepatch.target import Target
from gatepatch.witness import Witness, git_changed
from gatepatch.workspace import Workspace

_DIFF = "make a diff against the original, and give it: --from-diff FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A file whose bytes are not the release's.

    Args:
        path: Relative to where the distribution is imported from.
        before: The pristine bytes.
        after: The bytes that are to be had from them.
    """

    target: Target
    path: str
    before: bytes
    after: bytes


class Originals:
    """Where pristine bytes come from: git, the store, the wheels that were named, the index.

    Args:
        workspace: The environment.
        wheels: Wheels to take them from.
    """

    def __init__(self, workspace: Workspace, wheels: Sequence[Path] = ()):
        self.workspace = workspace
        self.wheels = tuple(wheels)
        self._releases: dict[str, Release] = {}

    def read(self, target: Target, path: str) -> bytes | None:
        """The pristine bytes of a file; None if the release has no such file.

        Raises:
            RefusedError: Nothing vouches for what is to be had.
            TargetError: The release cannot be had.
        """
        witness = target.witness(path)
        current = read(target.locate(path))
        if witness is not None and current is not None and sha256(current) == witness.sha256:
            return current
        if witness is not None and witness.read is not None:
            return witness.read()
        if witness is not None:
            blob = self.workspace.blob(target.root, witness.sha256)
            if blob is not None:
                return blob
        elif target.editable:
            raise RefusedError(
                Problem(
                    message="nothing vouches for the files of a checkout without git",
                    where=f"{target.root.path / path}",
                    hint=_DIFF,
                )
            )
        data = self.release(target).read(path)
        if data is not None and witness is not None and not _vouched(data, witness, current):
            raise RefusedError(
                Problem(
                    message=f"{self.release(target).archive.name} has other bytes than the "
                    "release that was installed, going by RECORD",
                    where=f"{target.distribution}: {path}",
                    hint="name the wheel that was installed: --wheel FILE",
                )
            )
        return data

    def release(self, target: Target) -> Release:
        """The release that is installed, from a wheel that was named or from the index."""
        name = target.distribution
        if name not in self._releases:
            self._releases[name] = self._named(target) or _fetched(target)
        return self._releases[name]

    def _named(self, target: Target) -> Release | None:
        named = [release.open_release(wheel) for wheel in self.wheels]
        own = [found for found in named if found.distribution == target.distribution]
        for found in own:
            if str(found.version) == target.version:
                return found
        if own:
            raise TargetError(
                Problem(
                    message=f"is {own[0].distribution} {own[0].version}, and {target.version} "
                    "is installed",
                    where=str(own[0].archive),
                    hint=f"name the wheel of {target.version}",
                )
            )
        return None


def _fetched(target: Target) -> Release:
    try:
        return release.fetch(target.distribution, Version(target.version))
    except TargetError as error:
        raise TargetError(
            Problem(
                message=f"the wheel of {target.distribution} {target.version} is not to be had: "
                + "; ".join(problem.message for problem in error.problems),
                hint="download it where there is a network, and name it: --wheel FILE",
            )
        ) from None


def _vouched(data: bytes, witness: Witness, current: bytes | None) -> bool:
    """Whether RECORD has these bytes; it is wrong in the wild where the file is as in the wheel."""
    return sha256(data) == witness.sha256 or data == current or ":" in witness.sha256


def edited_files(
    workspace: Workspace, originals: Originals, distribution: str
) -> tuple[list[Edited], list[str]]:
    """What was edited in a distribution.

    Returns:
        The files, and notes on what is not taken up.

    Raises:
        TargetError: It is not installed, or its release cannot be had.
        RefusedError: Nothing tells what was edited, or a file is gone.
    """
    target = workspace.target(distribution)
    if target is None:
        raise TargetError(
            Problem(
                message=f"{distribution} is not installed in {workspace.environment.prefix}",
                hint="name the environment that has it: --python EXE or --prefix DIR",
            )
        )
    known = workspace.state(target.root).files
    found: list[Edited] = []
    notes = list(target.warnings)
    gone: list[Problem] = []
    for path in _suspects(target, notes):
        current = read(target.locate(path))
        record = known.get(target.relative(path))
        if current is None:
            gone.append(
                Problem(
                    message="is gone, and a patch set takes no file away",
                    where=str(target.locate(path)),
                    hint="put it back: " + target.reinstall_command(path),
                )
            )
            continue
        if record is not None and sha256(current) == record.result:
            notes.append(f"{path} is as gatepatch left it, and is not taken up")
            continue
        before = originals.read(target, path)
        if record is not None:
            notes.append(f"{path} was edited after gatepatch; both edits are taken up together")
        if before is not None and before != current:
            found.append(Edited(target=target, path=path, before=before, after=current))
    if gone:
        raise RefusedError(gone)
    return found, notes


def _suspects(target: Target, notes: list[str]) -> Iterator[str]:
    """The files whose bytes are not those that RECORD or git has."""
    if target.root.kind == "site":
        return _not_as_recorded(target)
    if not target.root.repository:
        raise RefusedError(
            Problem(
                message="is a checkout without git, so nothing tells what was edited",
                where=str(target.root.path),
                hint=_DIFF,
            )
        )
    return _not_as_in_git(target, notes)


def _not_as_recorded(target: Target) -> Iterator[str]:
    try:
        text = (target.metadata / "RECORD").read_text("utf-8", "surrogateescape")
    except OSError:
        raise RefusedError(
            Problem(
                message="there is no RECORD, so nothing tells what was edited",
                where=str(target.metadata),
                hint=_DIFF,
            )
        ) from None
    for row in csv.reader(text.splitlines()):
        name, entry = (*row, "", "")[:2]
        own = name.split("/")[0].endswith((".dist-info", ".data"))
        if not entry or own or name.startswith(("/", "..")) or name.endswith(".pyc"):
            continue
        try:
            data = read(target.locate(name))
        except TargetError:
            continue  # no set can name it
        if data is None or not _is_entry_of(entry, data):
            yield name


def _is_entry_of(entry: str, data: bytes) -> bool:
    """Whether a RECORD's hash field is of these bytes; one that cannot be read says nothing."""
    algorithm, _, digest = entry.partition("=")
    try:
        found = hashlib.new(algorithm, data).digest()
    except ValueError:
        return True
    return base64.urlsafe_b64encode(found).rstrip(b"=").decode() == digest.rstrip("=")


def _not_as_in_git(target: Target, notes: list[str]) -> Iterator[str]:
    places = tuple(import_places(target))
    for relative in git_changed(target.root.path):
        file = target.root.path / relative
        name = next((n for folder, n in places if file.is_relative_to(folder)), None)
        folder = next((f for f, n in places if file.is_relative_to(f)), None)
        if name is None or folder is None:
            notes.append(f"{relative} was edited too, and is no file of {target.distribution}")
        else:
            yield f"{name}/{file.relative_to(folder).as_posix()}"


def import_places(target: Target) -> Iterator[tuple[Path, str]]:
    """The folders of an editable install's packages, and their paths as they are imported.

    A package may have links to folders of the checkout in it, as FlashInfer's does.
    """
    tops = [
        entry
        for folder in target.location.folders
        if folder.is_dir()
        for entry in sorted(folder.iterdir())
        if (entry / "__init__.py").is_file()
    ]
    named = [(top, top.name) for top in tops]
    named += [(path, name.replace(".", "/")) for name, path in target.location.packages.items()]
    for folder, name in named:
        for inner, folders, _ in os.walk(folder):
            for entry in folders:
                link = Path(inner, entry)
                if link.is_symlink():
                    real = Path(os.path.realpath(link))
                    yield real, f"{name}/{link.relative_to(folder).as_posix()}"
        yield Path(os.path.realpath(folder)), name
