"""A set as it was read from its YAML, kept beside it, so that no parser has to be loaded for it.

``gatepatch pin`` writes it. It counts for the bytes of the YAML that it was read from and for the
version of gatepatch that read them; what is of others, or is damaged, is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from gatepatch import __version__, spec
from gatepatch.arch import Arch
from gatepatch.edits import sha256
from gatepatch.records import names_of, replace
from gatepatch.spec import PatchSet

_KIND = ""
_KINDS: Mapping[str, Callable[..., object]] = {
    "frozenset": lambda items: frozenset(items),
    "SpecifierSet": lambda text: SpecifierSet(text),
    **{
        record.__name__: record
        for record in (
            Arch,
            spec.Advisory,
            spec.Expectation,
            spec.FileSpec,
            spec.GateEdit,
            spec.Import,
            spec.Insert,
            spec.PatchSet,
            spec.Replace,
            spec.Requirements,
            spec.TargetSpec,
            spec.Text,
            spec.UnitSpec,
        )
    },
}


def path_of(source: Path) -> Path:
    """Where what was read of a YAML lies."""
    return source.with_suffix(".json")


def load(source: Path) -> PatchSet | None:
    """The set that a YAML holds; None where it has to be read."""
    try:
        head, _, body = path_of(source).read_bytes().partition(b"\n")
        if json.loads(head) != _head(sha256(source.read_bytes()), body):
            return None
        found = json.loads(body, object_hook=_value)
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return replace(found, source=str(source)) if isinstance(found, PatchSet) else None


def to_bytes(patch_set: PatchSet) -> bytes:
    """What is to be kept of a set that was read: a line that says of what, and the set."""
    body = json.dumps(_plain(replace(patch_set, source="")), ensure_ascii=False).encode() + b"\n"
    return json.dumps(_head(patch_set.digest, body)).encode() + b"\n" + body


def _head(digest: str, body: bytes) -> dict[str, object]:
    return {"tool": __version__, "yaml": digest, "sha256": sha256(body)}


def _plain(value: object) -> Any:
    """A value as JSON; what is no plain value has its kind beside its parts."""
    if names := names_of(value):
        return {_KIND: type(value).__name__, **{n: _plain(getattr(value, n)) for n in names}}
    match value:
        case SpecifierSet():
            return {_KIND: "SpecifierSet", "text": str(value)}
        case frozenset():
            return {_KIND: "frozenset", "items": [_plain(item) for item in sorted(value)]}
        case tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
    return value


def _value(parts: dict[str, Any]) -> object:
    """The inverse, for a JSON object whose own parts are values already."""
    kind = parts.pop(_KIND, None)
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in parts.items()}
    return values if kind is None else _KINDS[kind](**values)
