"""A package's sources as they stand, or with the bytes of some files exchanged."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gatepatch.edits import sha256

MARK = "@data"
"""Stands for the folder of a tree, so that results do not depend on where it lies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """A folder of sources.

    Args:
        data: The folder as it is installed.
        exchanged: Path relative to the folder, to the bytes that count in place of those there.
    """

    data: Path
    exchanged: Mapping[str, bytes] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """What tells two trees of one folder apart."""
        rows = [f"{path}\0{sha256(data)}" for path, data in sorted(self.exchanged.items())]
        return sha256("\n".join(rows).encode())

    def digest_of(self, name: str) -> str:
        """The SHA-256 of a file, which is read once; empty if there is none.

        Args:
            name: As ``name_of`` gives it.
        """
        if name not in self._digests:
            self._digests[name] = self.read_digest(name)
        return self._digests[name]

    def read_digest(self, name: str, unchanged_since: int | None = None) -> str:
        """The SHA-256 of a file as it is now; empty if there is none.

        Args:
            name: As ``name_of`` gives it.
            unchanged_since: Nanoseconds: empty, too, if the file has changed since.
        """
        inside = name.removeprefix(f"{MARK}/")
        if inside != name and inside in self.exchanged:
            return sha256(self.exchanged[inside])
        path = self.data / inside if inside != name else Path(name)
        try:
            digest = sha256(path.read_bytes())
            changed = path.stat().st_ctime_ns
        except OSError:
            return ""
        return "" if unchanged_since is not None and changed > unchanged_since else digest

    def name_of(self, path: str, place: Path) -> str:
        """A file's name that does not depend on where the tree lies.

        Args:
            path: As a compiler has it.
            place: Where the tree lay.
        """
        whole = os.path.normpath(path)
        inside = os.path.relpath(whole, place)
        return whole if inside.startswith("..") else f"{MARK}/{inside}"

    def lay_out(self, place: Path, folders: Sequence[str]) -> None:
        """Make the tree elsewhere: its folders anew, and a link for each file not exchanged.

        A folder that is a link would lead ``#include "../x.h"`` back to the installed files.

        Args:
            place: The folder to make.
            folders: Those that are needed, relative to the tree.
        """
        for folder in folders:
            seen: set[str] = set()
            for parent, inner, names in os.walk(self.data / folder, followlinks=True):
                if os.path.realpath(parent) in seen:  # a link that leads back up
                    inner.clear()
                    continue
                seen.add(os.path.realpath(parent))
                inside = os.path.relpath(parent, self.data)
                (place / inside).mkdir(parents=True, exist_ok=True)
                for name in names:
                    link = place / inside / name
                    if os.path.normpath(f"{inside}/{name}") not in self.exchanged:
                        link.symlink_to(os.path.realpath(Path(parent, name)))
        for path, data in self.exchanged.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
