"""Put patch sets into YAML that reads like those that ship."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet

from gatepatch.arch import Arch
from gatepatch.spec import (
    Advisory,
    Edit,
    Expectation,
    GateEdit,
    Import,
    Insert,
    PatchSet,
    Replace,
    Requirements,
    TargetSpec,
    Text,
    UnitSpec,
)

_LINE = 100
_FOLD = 78  # a line of prose has one more word
_UNSAFE = "\r\x85\u2028\u2029\ufeff"  # line breaks to YAML, or lost in a literal block


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
        if line.startswith(("requires:", "advisories:", "predicates:", "targets:")):
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
    if requires := _requires(value.requires):
        found["requires"] = requires
    if value.predicates:
        found["predicates"] = {name: _names(archs) for name, archs in value.predicates.items()}
    if value.advisories:
        found["advisories"] = [_advisory(advisory) for advisory in value.advisories]
    found["targets"] = [_target(target) for target in value.targets]
    return found


def _requires(value: Requirements) -> _Flow:
    given = asdict(value)
    return _Flow({key.replace("_", "-"): v for key, v in given.items() if v is not None})


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
    if value.units:
        found["compile"] = [_unit(unit) for unit in value.units]
    return found


def _unit(value: UnitSpec) -> dict[str, object]:
    return {"unit": value.path, "expect": [_expectation(each) for each in value.expect]}


def _expectation(value: Expectation) -> dict[str, object]:
    subject = {"instruction": value.instruction} if value.instruction else {"kernels": "empty"}
    amounts = {"before": value.before, "after": value.after}
    return _Flow({**subject, **{k: amount for k, amount in amounts.items() if amount}})


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
