"""What is to change, and what became of it: the values that a transaction takes and gives."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gatepatch.files import Image
from gatepatch.jitcache import Module
from gatepatch.records import dataclass
from gatepatch.target import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One file to replace.

    Args:
        path: Relative to the root.
        before: What must stand there now.
        after: The new content.
        link: Put this symlink back instead of writing the content. Where the content behind it
            is no longer ``after``, a file is written all the same.
        newer_than: Nanoseconds: the mtime of a known output built from what stands there.
    """

    path: str
    before: Image
    after: bytes
    link: str | None = None
    newer_than: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A folder to rename; both paths relative to the root."""

    source: str
    destination: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RootChange:
    """Everything that changes under one root.

    Args:
        blobs: All that the store must hold while the new state stands.
        foreign: Bytes of the user's that are replaced, kept for good.
        state: The state document afterwards; None where nothing is applied.
        state_before: The state document that the plan was made from. Two plans made at the same
            time may touch different files, and the second would drop the first one's sets.
    """

    root: Root
    writes: tuple[Write, ...]
    renames: tuple[Rename, ...] = ()
    blobs: tuple[bytes, ...] = ()
    foreign: tuple[bytes, ...] = ()
    state: bytes | None
    state_before: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """Changes that happen together or not at all, and the JIT modules that derive from them."""

    changes: tuple[RootChange, ...]
    jit: tuple[Module, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What a transaction did.

    Args:
        bytecode_removed: How many compiled files were removed.
        jit_removed: The module folders that were removed.
        signal: Number of a signal that came after the commit point.
    """

    bytecode_removed: int
    jit_removed: tuple[Path, ...]
    signal: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """How an interrupted change was settled under one root.

    Args:
        files: Paths relative to the root.
        left: Absolute paths of files that someone else has changed meanwhile: nothing was
            written there.
    """

    root: Path
    outcome: Literal["rolled-back", "completed"]
    files: tuple[str, ...]
    left: tuple[str, ...] = ()
