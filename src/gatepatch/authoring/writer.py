"""Write patch sets as YAML that reads like those that ship."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from packaging.specifiers import SpecifierSet

from gatepatch.arch import Arch
from gatepatch.catalog import SET_FILE
from gatepatch.errors import GatepatchError, Problem, RefusedError, UsageError
from gatepatch.files import write_new
from gatepatch.loader import load
from gatepatch.spec import (
    Advisory,
    Edit,
    FileSpec,
    GateEdit,
    Import,
    Insert,
    PatchSet,
    Replace,
    TargetSpec,
    Text,
)
from gatepatch.verdict import Goal

SUMMARY = "TODO: say in one line what the set does"
WHY = "TODO: say why these gates may be changed, and where that is known from"
UNPROVED = "TODO: say why this is right although it is not proved"
"""What stands where the author is to give a reason; a set that has one is not applied."""

_LINE = 100
_FOLD = 78  # a line of prose has one more word
_UNSAFE = "\r\x85\u2028\u2029\ufeff"  # line breaks to YAML, or lost in a literal block


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenGate:
    """A gate that a set is to open or close.

    Args:
        path: Relative to where the distribution is imported from.
        kind: ``condition``, or ``keyword`` for a list that is handed to a call.
        what: The condition's source, or the keyword's name.
        within: Qualified name of the enclosing Python function; empty for none.
        count: How many places have it.
    """

    path: str
    kind: Literal["condition", "keyword"]
    what: str
    within: str = ""
    count: int = 1


def gates_target(
    distribution: str, versions: str, gates: Iterable[ChosenGate], action: Literal["open", "close"]
) -> TargetSpec:
    """The block of a distribution with edits for some gates; equal ones are counted together.

    Args:
        distribution: Canonical name.
        versions: Version range.
        gates: In any order.
        action: What to do to all of them.
    """
    counts: dict[ChosenGate, int] = {}
    for gate in gates:
        key = replace(gate, count=1)
        counts[key] = counts.get(key, 0) + gate.count
    files: dict[str, list[Edit]] = {}
    for gate, count in counts.items():
        files.setdefault(gate.path, []).append(
            GateEdit(
                where="",
                action=action,
                within=gate.within or None,
                condition=gate.what if gate.kind == "condition" else None,
                keyword=gate.what if gate.kind == "keyword" else None,
                count=count,
            )
        )
    return TargetSpec(
        distribution=distribution,
        versions=SpecifierSet(versions),
        files=tuple(
            FileSpec(where="", path=path, edits=tuple(files[path])) for path in sorted(files)
        ),
        jit={},
    )


def new_set(name: str, goal: Goal, targets: Sequence[TargetSpec]) -> PatchSet:
    """A set whose reasons are still to be given."""
    return PatchSet(
        name=name,
        summary=SUMMARY,
        why=WHY,
        action=goal.action,
        archs=goal.archs,
        like=goal.like,
        advisories=(),
        predicates={},
        targets=tuple(targets),
        source="",
        digest="",
    )


def write_set(
    name: str,
    goal: Goal,
    targets: Sequence[TargetSpec],
    folder: Path,
    header: Sequence[str] = (),
) -> Path:
    """Write a new set, its reasons left for the author; return its file.

    Args:
        name: The set's name.
        goal: What its gate edits are to bring about.
        targets: Its blocks, such as ``gates_target`` makes.
        folder: The folder of sets that it goes into.
        header: Lines of a comment that comes first.

    Raises:
        UsageError: Something stands there already.
        SpecError: The set cannot be read: the name is no name, or the like.
        GatepatchError: It cannot be written.
    """
    path = check_free(folder, name)
    _, data = read_back(new_set(name, goal, targets), header)
    publish(path, data)
    return path


def check_free(folder: Path, name: str) -> Path:
    """Where a set is going to stand.

    Raises:
        UsageError: Something stands there.
    """
    for path in (folder / name, folder / f"{name}.yaml"):
        if path.exists() or path.is_symlink():
            raise UsageError(
                Problem(
                    message="is there already, and is not overwritten",
                    where=str(path),
                    hint="choose another name, or another folder: --output DIR",
                )
            )
    return folder / name / SET_FILE


def read_back(patch_set: PatchSet, header: Sequence[str] = ()) -> tuple[PatchSet, bytes]:
    """Put a set into YAML and read it again.

    Returns:
        The set as it was read, with the places of its edits; and the YAML.

    Raises:
        SpecError: It cannot be read: the name is no name, or the like.
        RefusedError: It reads otherwise than it was meant.
    """
    data = to_yaml(patch_set, header).encode()
    with tempfile.TemporaryDirectory(prefix="gatepatch-") as folder:
        path = Path(folder, SET_FILE)
        path.write_bytes(data)
        found = load(path)
    if _content(found) != _content(patch_set):
        raise RefusedError(
            Problem(
                message="cannot be put into YAML so that it reads the same",
                where=patch_set.name,
                hint="report it, with the edits",
            )
        )
    return found, data


def publish(path: Path, data: bytes) -> None:
    """Write a set's file, with its folder; nothing of it is left where that fails.

    Raises:
        UsageError: The folder is there already.
        GatepatchError: It cannot be written.
    """
    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        check_free(path.parent.parent, path.parent.name)
        path.parent.mkdir()
    except OSError as error:
        raise GatepatchError(_unwritable(path, error)) from None
    try:
        write_new(path, data)
    except OSError as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise GatepatchError(_unwritable(path, error)) from None


def _unwritable(path: Path, error: OSError) -> Problem:
    return Problem(
        message=f"cannot be written: {error.strerror}",
        where=str(path),
        hint="name another folder: --output DIR",
    )


def _content(patch_set: PatchSet) -> PatchSet:
    """A set without its places and its source."""

    def bare(target: TargetSpec) -> TargetSpec:
        files = tuple(
            replace(file, where="", edits=tuple(replace(edit, where="") for edit in file.edits))
            for file in target.files
        )
        return replace(target, files=files)

    return replace(patch_set, targets=tuple(map(bare, patch_set.targets)), source="", digest="")


def to_yaml(patch_set: PatchSet, header: Sequence[str] = ()) -> str:
    """Put a set into YAML.

    Args:
        patch_set: The set.
        header: Lines of a comment that comes first.
    """
    text = yaml.dump(
        _document(patch_set),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_FOLD,
    )
    lines = [f"# {line}" for line in header]
    first = True
    for line in text.rstrip("\n").split("\n"):
        if line.startswith(("advisories:", "predicates:", "targets:")):
            lines.append("")
        elif line.startswith("  - distribution:"):
            lines += [] if first else [""]
            first = False
        lines.append(line)
    return "\n".join(lines) + "\n"


class _Flow(dict[str, object]):
    """A mapping on one line."""


class _Row(list[str]):
    """A list on one line."""


class _Quoted(str):
    """A text that is quoted in any case."""


class _Folded(str):
    """Prose."""


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)  # lists stand deeper than their key

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        super().write_double_quoted(text, False)

    def write_plain(self, text: str, split: bool = True) -> None:
        super().write_plain(text, False)


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style: str | None = None
    if "\n" in text and not any(character in text for character in _UNSAFE):
        style = "|"
    elif isinstance(text, _Folded) and len(text) > 70:
        style = ">"
    elif isinstance(text, _Quoted) or not _is_plain(text):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


def _is_plain(text: str) -> bool:
    """Whether a text may stand without quotes, on one line of a mapping too."""
    if text[:1] in "#&*!|>'\"%@`-?:=" or any(mark in text for mark in (*",[]{}", ": ", " #")):
        return False
    try:
        return bool(yaml.safe_load(text) == text)
    except yaml.YAMLError:
        return False


for _kind in (str, _Quoted, _Folded):
    _Dumper.add_representer(_kind, _text)
_Dumper.add_representer(
    _Flow, lambda d, v: d.represent_mapping("tag:yaml.org,2002:map", v.items(), flow_style=True)
)
_Dumper.add_representer(
    _Row, lambda d, v: d.represent_sequence("tag:yaml.org,2002:seq", v, flow_style=True)
)


def _document(value: PatchSet) -> dict[str, object]:
    found: dict[str, object] = {
        "schema": 1,
        "name": value.name,
        "summary": value.summary,
        "why": _Folded(value.why),
        "admit" if value.action == "open" else "exclude": _names(value.archs),
    }
    if value.like is not None:
        found["like"] = value.like.name
    if value.predicates:
        found["predicates"] = {name: _names(archs) for name, archs in value.predicates.items()}
    if value.advisories:
        found["advisories"] = [_advisory(advisory) for advisory in value.advisories]
    found["targets"] = [_target(target) for target in value.targets]
    return found


def _names(archs: Iterable[Arch]) -> _Row:
    return _Row(arch.name for arch in sorted(archs))


def _advisory(value: Advisory) -> dict[str, object]:
    found: dict[str, object] = {"severity": value.severity}
    if value.when:
        found["when"] = _Flow({name: _Quoted(_range(spec)) for name, spec in value.when.items()})
    return {**found, "text": _Folded(value.text), "source": _Folded(value.source)}


def _range(versions: SpecifierSet) -> str:
    """A range with its lower bounds first."""
    return ",".join(sorted(map(str, versions), key=lambda text: (text[0] != ">", text)))


def _target(value: TargetSpec) -> dict[str, object]:
    found: dict[str, object] = {
        "distribution": value.distribution,
        "versions": _Quoted(_range(value.versions)),
    }
    if value.expect == "native":
        found["expect"] = "native"
    if value.optional:
        found["optional"] = True
    if value.jit:
        found["jit"] = _Flow({kind: _Row(names) for kind, names in value.jit.items()})
    if value.note:
        found["note"] = _Folded(value.note)
    native = value.expect == "native"
    found["files"] = [
        {"path": file.path, "edits": [_edit(edit, native) for edit in file.edits]}
        for file in value.files
    ]
    return found


def _edit(edit: Edit, native: bool) -> dict[str, object]:
    kind, body = _body(edit, native)
    texts = [value for value in body.values() if isinstance(value, str)]
    length = len(kind) + sum(len(key) + len(str(value)) + 6 for key, value in body.items()) + 16
    short = length <= _LINE and not any("\n" in text for text in texts)
    return {kind: _Flow(body) if short else body}


def _body(edit: Edit, native: bool) -> tuple[str, Mapping[str, object]]:
    match edit:
        case GateEdit():
            usual = None if native else 1
            return edit.action, _given(
                within=edit.within,
                condition=edit.condition,
                keyword=edit.keyword,
                operand=edit.operand,
                shut=edit.shut,
                count=None if edit.count == usual else edit.count,
                unproved=_Folded(edit.unproved) or None,
            )
        case Replace():
            return "replace", _given(
                within=edit.within,
                expression=edit.expression,
                by=edit.by,
                count=None if edit.count == 1 else edit.count,
                unproved=_Folded(edit.unproved) or None,
            )
        case Import():
            return "import", {"from": edit.module, "name": edit.name}
        case Insert():
            return "insert", {
                **_given(within=edit.within),
                edit.side: edit.anchor,
                **_given(code=edit.code, unproved=_Folded(edit.unproved) or None),
            }
        case Text():
            return "text", {
                "find": _Quoted(edit.find),
                "replace": _Quoted(edit.replace),
                **_given(
                    count=None if edit.count == 1 else edit.count, unproved=_Folded(edit.unproved)
                ),
            }


def _given(**values: object) -> dict[str, object]:
    spelt = {"operand": "with"}
    return {spelt.get(key, key): value for key, value in values.items() if value is not None}
