"""Say what a file is, going by its bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from gatepatch.edits import sha256
from gatepatch.records import dataclass
from gatepatch.results import WitnessKind
from gatepatch.state import FileRecord
from gatepatch.transaction import Image, image
from gatepatch.witness import Witness

FileKind = Literal["applied", "pristine", "upgraded", "foreign", "missing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """What a file is.

    Args:
        kind: ``upgraded`` is pristine, and not what state knew as pristine.
        image: What stands there; None if nothing does.
        pristine: The pristine bytes; None where they are not to be had.
        witness: What vouches for them.
        detail: For ``foreign``: what was compared with what.
        rebuilt: The file is applied and state had lost it.
    """

    kind: FileKind
    image: Image | None
    pristine: bytes | None
    witness: WitnessKind
    detail: str = ""
    rebuilt: bool = False


def classify(
    path: Path,
    *,
    record: FileRecord | None,
    witness: Witness | None,
    blob: Callable[[str], bytes | None],
    pinned: Callable[[str], bool] = lambda before: False,
    rebuild: Callable[[bytes], bytes | None] = lambda current: None,
) -> Classified:
    """Classify a file.

    Args:
        path: The file.
        record: What state knows of it.
        witness: What is known of its pristine bytes from elsewhere.
        blob: Reads the store by hash; None if it is not there.
        pinned: Whether a pin has this hash before.
        rebuild: Given the present bytes, the pristine ones if a set makes the present from them.
    """
    now = image(path)
    if now is None:
        return Classified(kind="missing", image=None, pristine=None, witness="none")
    if record is not None and now.sha256 == record.result:
        return Classified(
            kind="applied",
            image=now,
            pristine=blob(record.pristine),
            witness="accepted" if record.accepted else witness.kind if witness else "state",
        )
    current = path.read_bytes()
    kind = _pristine_kind(now.sha256, record)
    if witness is not None and now.sha256 == witness.sha256:
        return Classified(kind=kind, image=now, pristine=current, witness=witness.kind)
    if pinned(now.sha256):
        return Classified(kind=kind, image=now, pristine=current, witness="pin")
    original = rebuild(current)
    if original is not None and (witness is None or sha256(original) == witness.sha256):
        return Classified(
            kind="applied",
            image=now,
            pristine=original,
            witness=witness.kind if witness else "pin",
            rebuilt=True,
        )
    if record is not None and now.sha256 == record.pristine:
        return Classified(kind="pristine", image=now, pristine=current, witness="state")
    if record is None and witness is None:
        return Classified(kind="pristine", image=now, pristine=current, witness="none")
    return Classified(
        kind="foreign",
        image=now,
        pristine=_recover(record, witness, blob),
        witness=witness.kind if witness else "state",
        detail=_comparison(now.sha256, record, witness),
    )


def _pristine_kind(found: str, record: FileRecord | None) -> FileKind:
    return "upgraded" if record is not None and record.pristine != found else "pristine"


def _recover(
    record: FileRecord | None, witness: Witness | None, blob: Callable[[str], bytes | None]
) -> bytes | None:
    if witness is not None and witness.read is not None:
        return witness.read()
    known = witness.sha256 if witness else record.pristine if record else None
    return blob(known) if known else None


_WITNESS_NAMES = {"record": "RECORD", "git": "git's HEAD"}


def _comparison(found: str, record: FileRecord | None, witness: Witness | None) -> str:
    parts = [f"sha256 {found[:12]}…"]
    if witness:
        parts.append(f"{_WITNESS_NAMES[witness.kind]} has {witness.sha256[:12]}…")
    if record:
        parts.append(f"gatepatch wrote {record.result[:12]}… over {record.pristine[:12]}…")
    return ", ".join(parts)
