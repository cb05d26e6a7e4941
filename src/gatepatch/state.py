"""State: which sets a root carries, as byte edits of the pristine files.

It is enough to revert with: no YAML, no parser and no GPU are needed to read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from gatepatch.arch import Arch
from gatepatch.edits import ByteEdit
from gatepatch.errors import PendingError, Problem
from gatepatch.records import asdict, dataclass, field
from gatepatch.spec import Edit, GateEdit, Goal, Import, Insert, Replace, Text

SCHEMA = 1

_EDIT_KINDS: Mapping[str, type[Edit]] = {
    "gate": GateEdit,
    "replace": Replace,
    "import": Import,
    "insert": Insert,
    "text": Text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFile:
    """What one set does to one file.

    Args:
        distribution: Whose file it is.
        version: Version of the distribution when it was applied.
        name: The file's path as the set has it, from where the distribution is imported.
        pristine: SHA-256 of the bytes that the offsets refer to.
        edits: The set's own byte edits.
        spec: The set's edits, from which two openings of one gate can be made one.
        pinned: Whether the edits came from a pin.
        unproved: The reasons of edits without a proof.
    """

    distribution: str
    version: str
    name: str
    pristine: str
    edits: tuple[ByteEdit, ...]
    spec: tuple[Edit, ...] = ()
    pinned: bool = False
    unproved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedSet:
    """A set that the root carries.

    Args:
        name: The set's name.
        digest: SHA-256 of its YAML.
        applied: When, in UTC, as ISO 8601.
        tool: Version of gatepatch.
        goal: What its gate edits bring about.
        distributions: All that the set touches, in whatever root, with their versions.
        jit: Cache kind to the modules that derive from its files.
        hidden: Prebuilt modules moved aside: path now, path before, relative to the root.
        files: Path relative to the root, to what the set does there.
    """

    name: str
    digest: str
    applied: str
    tool: str
    goal: Goal
    distributions: Mapping[str, str]
    jit: Mapping[str, tuple[str, ...]]
    hidden: tuple[tuple[str, str], ...] = ()
    files: Mapping[str, SetFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """What a file was, and what it is while the sets are applied.

    Args:
        pristine: SHA-256 of the pristine bytes, which are in the store.
        result: SHA-256 of what was written.
        link: The text of the symlink that stood there; None for a regular file.
        accepted: Whether the user took the bytes as the base, whatever a witness says.
    """

    pristine: str
    result: str
    link: str | None = None
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Edits of several sets that open the same gates, worked out together and proved."""

    path: str
    sets: tuple[str, ...]
    edits: tuple[ByteEdit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that gatepatch has applied under a root.

    Args:
        document: The bytes that it was read from; None where there was no document.
    """

    sets: Mapping[str, AppliedSet] = field(default_factory=dict)
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    merges: tuple[Merge, ...] = ()
    document: bytes | None = field(default=None, compare=False, repr=False)

    def to_bytes(self) -> bytes | None:
        """Serialise as JSON; None where nothing is applied."""
        if not self.sets:
            return None
        document = {
            "schema": SCHEMA,
            "sets": {name: _set_json(value) for name, value in self.sets.items()},
            "files": {path: asdict(record) for path, record in self.files.items()},
            "merges": [
                {"path": m.path, "sets": m.sets, "edits": edits_json(m.edits)} for m in self.merges
            ],
        }
        return json.dumps(document, sort_keys=True).encode() + b"\n"

    @classmethod
    def from_bytes(cls, data: bytes | None, where: str) -> State:
        """Read what ``to_bytes`` wrote; None is the empty state.

        Raises:
            PendingError: The document is damaged, or a newer gatepatch wrote it.
        """
        if data is None:
            return cls()
        try:
            document = json.loads(data)
            if document["schema"] != SCHEMA:
                raise ValueError(f"schema {document['schema']} is not {SCHEMA}")
            return cls(
                sets={name: _set(name, value) for name, value in document["sets"].items()},
                files={path: FileRecord(**value) for path, value in document["files"].items()},
                merges=tuple(
                    Merge(path=m["path"], sets=tuple(m["sets"]), edits=edits_from_json(m["edits"]))
                    for m in document["merges"]
                ),
                document=data,
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PendingError(
                Problem(
                    message=f"the state cannot be read: {error}",
                    where=where,
                    hint="a newer gatepatch wrote it, or it is damaged: upgrade gatepatch, or move "
                    "the file away and run gatepatch status, which then goes by the files themselves",
                )
            ) from None


def edits_json(edits: tuple[ByteEdit, ...]) -> list[list[Any]]:
    """Byte edits as ``[offset, old, new]``; latin-1 keeps every byte and reads well."""
    return [[e.offset, e.old.decode("latin-1"), e.new.decode("latin-1")] for e in edits]


def edits_from_json(rows: list[list[Any]]) -> tuple[ByteEdit, ...]:
    """The inverse of ``edits_json``."""
    return tuple(
        ByteEdit(offset, old.encode("latin-1"), new.encode("latin-1")) for offset, old, new in rows
    )


def _set_json(value: AppliedSet) -> dict[str, Any]:
    goal = value.goal
    return {
        "digest": value.digest,
        "applied": value.applied,
        "tool": value.tool,
        "action": goal.action,
        "archs": sorted(map(str, goal.archs)),
        "like": str(goal.like) if goal.like else None,
        "distributions": dict(value.distributions),
        "jit": {kind: list(names) for kind, names in value.jit.items()},
        "hidden": [list(pair) for pair in value.hidden],
        "files": {path: _file_json(file) for path, file in value.files.items()},
    }


def _file_json(file: SetFile) -> dict[str, Any]:
    return {
        "distribution": file.distribution,
        "version": file.version,
        "name": file.name,
        "pristine": file.pristine,
        "edits": edits_json(file.edits),
        "spec": [_edit_json(edit) for edit in file.spec],
        "pinned": file.pinned,
        "unproved": list(file.unproved),
    }


def _edit_json(edit: Edit) -> dict[str, Any]:
    kind = next(name for name, record in _EDIT_KINDS.items() if isinstance(edit, record))
    return {"kind": kind, **asdict(edit)}


def _edit(value: dict[str, Any]) -> Edit:
    return _EDIT_KINDS[value["kind"]](**{k: v for k, v in value.items() if k != "kind"})


def _set(name: str, value: dict[str, Any]) -> AppliedSet:
    action: Literal["open", "close"] = value["action"]
    return AppliedSet(
        name=name,
        digest=value["digest"],
        applied=value["applied"],
        tool=value["tool"],
        goal=Goal(
            action=action,
            archs=frozenset(map(Arch.parse, value["archs"])),
            like=Arch.parse(value["like"]) if value["like"] else None,
        ),
        distributions=value["distributions"],
        jit={kind: tuple(names) for kind, names in value["jit"].items()},
        hidden=tuple((now, before) for now, before in value["hidden"]),
        files={path: _file(file) for path, file in value["files"].items()},
    )


def _file(value: dict[str, Any]) -> SetFile:
    changed = {
        "edits": edits_from_json(value["edits"]),
        "spec": tuple(map(_edit, value["spec"])),
        "unproved": tuple(value["unproved"]),
    }
    return SetFile(**{**value, **changed})
