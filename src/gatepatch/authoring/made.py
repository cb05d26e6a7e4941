"""What ``gatepatch new`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gatepatch.arch import Arch
from gatepatch.authoring.edited import Edited
from gatepatch.gates.result import Change
from gatepatch.spec import Edit, GateEdit


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeEdit:
    """One edit of the set.

    Args:
        kind: ``open``, ``close``, ``replace``, ``import``, ``insert`` or ``text``.
        where: Its place in the set.
        lines: The lines of the pristine file that it matches, from 1.
        proved: Whether it needs no reason.
    """

    kind: str
    where: str
    lines: tuple[int, ...]
    proved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFile:
    """One file of the set."""

    distribution: str
    version: str
    path: str
    edits: tuple[MadeEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The set that was written; planned on pristine bytes, it gives exactly the edited ones.

    Args:
        source: Its YAML.
        archs: The architectures that it admits (``open``) or excludes (``close``).
        missing: The key paths where the author is to give a reason.
        notes: What was not taken up, and what a person should look at.
    """

    name: str
    source: str
    action: Literal["open", "close"]
    archs: tuple[Arch, ...]
    like: Arch | None
    files: tuple[MadeFile, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()


def made_file(item: Edited, edits: Sequence[Edit], changes: Sequence[Change]) -> MadeFile:
    """Put the edits of one file, and what an engine made of them, into words."""
    return MadeFile(
        distribution=item.target.distribution,
        version=item.target.version,
        path=item.path,
        edits=tuple(
            MadeEdit(
                kind=edit.action if isinstance(edit, GateEdit) else type(edit).__name__.lower(),
                where=edit.where,
                lines=tuple(c.line for c in changes if c.where == edit.where),
                proved=not getattr(edit, "unproved", ""),
            )
            for edit in edits
        ),
    )
