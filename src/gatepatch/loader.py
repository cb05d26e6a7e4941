"""Read a patch set from YAML into the records of ``spec``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar, cast

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gatepatch.arch import Arch
from gatepatch.document import Cursor, read
from gatepatch.edits import sha256
from gatepatch.errors import SpecError
from gatepatch.loader_units import read_path, read_units
from gatepatch.metadata import canonical_name
from gatepatch.spec import (
    Advisory,
    Edit,
    FileSpec,
    GateEdit,
    Import,
    Insert,
    PatchSet,
    Replace,
    Requirements,
    TargetSpec,
    Text,
)

T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MAX_CLUSTER = 16
"""Blocks in the largest thread block cluster that any architecture has."""
_DOTTED = re.compile(r"\.*[^\W\d]\w*(\.[^\W\d]\w*)*")
PYTHON_SUFFIXES = (".py", ".pyi")
CUDA_SUFFIXES = (".cu", ".cuh", ".h", ".hpp", ".hh", ".c", ".cc", ".cpp", ".cxx", ".inl", ".inc")


def load(path: Path) -> PatchSet:
    """Read a patch set.

    Raises:
        SpecError: With every problem found, each with file, line, key path and a hint.
    """
    root, problems, data = read(path)
    result = _patch_set(root, str(path), sha256(data))
    if problems or result is None:
        raise SpecError(problems)
    return result


def _patch_set(root: Cursor, source: str, digest: str) -> PatchSet | None:
    keys = root.mapping(
        required=("schema", "name", "summary", "why", "targets"),
        keys=("admit", "exclude", "like", "requires", "advisories", "predicates"),
    )
    if "schema" in keys and keys["schema"].node.value != "1":
        keys["schema"].error("expected 1: a newer gatepatch wrote this", "upgrade gatepatch")
    name = _get(keys, "name", _set_name, "")
    action, archs = _goal(root, keys)
    like = _get(keys, "like", _arch, None)
    if action == "open" and like is None:
        root.error("missing: like, the architecture whose verdicts the admitted ones share")
    if like is not None and like in archs:
        keys["like"].error(f"{like.name} is among the architectures to admit")
    targets = tuple(_target(cursor, action, like) for cursor in _items(keys, "targets"))
    return PatchSet(
        name=name,
        summary=_get(keys, "summary", Cursor.text, ""),
        why=_get(keys, "why", Cursor.text, ""),
        action=action,
        archs=frozenset(archs),
        like=like,
        advisories=tuple(map(_advisory, _items(keys, "advisories"))),
        predicates=_get(keys, "predicates", _predicates, {}),
        targets=targets,
        requires=_get(keys, "requires", _requires, Requirements()),
        source=source,
        digest=digest,
    )


def _get(keys: Mapping[str, Cursor], key: str, reader: Callable[[Cursor], T], default: T) -> T:
    return reader(keys[key]) if key in keys else default


def _items(keys: Mapping[str, Cursor], key: str) -> list[Cursor]:
    return keys[key].sequence() if key in keys else []


def _entries(keys: Mapping[str, Cursor], key: str) -> dict[str, Cursor]:
    return keys[key].mapping() if key in keys else {}


def is_name(text: str) -> bool:
    """Whether a set may have this name."""
    return _NAME.fullmatch(text) is not None


def _set_name(cursor: Cursor) -> str:
    name = cursor.text()
    if name and not is_name(name):
        cursor.error(f"{name!r} is no name: use lower-case letters, digits and hyphens")
    return name


def _goal(root: Cursor, keys: Mapping[str, Cursor]) -> tuple[Literal["open", "close"], list[Arch]]:
    if ("admit" in keys) == ("exclude" in keys):
        root.error("expected one of admit and exclude, a list of architectures")
    if "exclude" in keys:
        return "close", _archs(keys["exclude"])
    return "open", _archs(keys["admit"]) if "admit" in keys else []


def _archs(cursor: Cursor) -> list[Arch]:
    return [arch for arch in map(_arch, cursor.sequence()) if arch is not None]


def _arch(cursor: Cursor) -> Arch | None:
    text = cursor.text()
    try:
        return Arch.parse(text) if text else None
    except ValueError as error:
        cursor.error(str(error))
        return None


def _predicates(cursor: Cursor) -> dict[str, frozenset[Arch]]:
    return {name: frozenset(_archs(value)) for name, value in cursor.mapping().items()}


def _requires(cursor: Cursor) -> Requirements:
    keys = cursor.mapping(keys=("pdl", "cluster", "shared-memory", "multicast", "peer-access"))
    if not keys and cursor.kind == "map" and not cursor.node.value:
        cursor.error(
            "the mapping is empty", "leave it out, or name what a device must be able to do"
        )
    if "multicast" in keys and not keys["multicast"].flag():
        keys["multicast"].error("expected true", "leave it out where it does not matter")
    cluster = _get(keys, "cluster", Cursor.number, None)
    if cluster is not None and not 2 <= cluster <= MAX_CLUSTER:
        keys["cluster"].error(f"expected 2 to {MAX_CLUSTER} blocks, found {cluster}")
    return Requirements(
        pdl="ordered" if _get(keys, "pdl", lambda c: c.choice("ordered"), "") else None,
        cluster=cluster,
        shared_memory=_get(keys, "shared-memory", Cursor.number, None),
        multicast=True if "multicast" in keys else None,
        peer_access="all" if _get(keys, "peer-access", lambda c: c.choice("all"), "") else None,
    )


def _specifier(cursor: Cursor) -> SpecifierSet:
    text = cursor.text()
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        cursor.error(f"{text!r} is no version range", 'write one such as ">=0.6,<0.6.17"')
        return SpecifierSet()


def _distribution(cursor: Cursor) -> str:
    return canonical_name(cursor.text())


def _advisory(cursor: Cursor) -> Advisory:
    keys = cursor.mapping(required=("severity", "text", "source"), keys=("when",))
    severity = _get(keys, "severity", lambda c: c.choice("info", "warning", "danger"), "info")
    when = _entries(keys, "when")
    return Advisory(
        severity=cast(Literal["info", "warning", "danger"], severity),
        text=_get(keys, "text", Cursor.text, ""),
        source=_get(keys, "source", Cursor.text, ""),
        when={canonical_name(name): _specifier(value) for name, value in when.items()},
    )


def _target(cursor: Cursor, action: Literal["open", "close"], like: Arch | None) -> TargetSpec:
    keys = cursor.mapping(
        required=("distribution", "versions", "files"),
        keys=("expect", "optional", "jit", "note", "compile"),
    )
    distribution = _get(keys, "distribution", _distribution, "")
    native = _get(keys, "expect", lambda c: c.choice("native"), "edits") == "native"
    jit = _entries(keys, "jit")
    for kind, modules in jit.items():
        if kind != "flashinfer":
            modules.error(f"unknown kind of JIT cache {kind!r}", "known: flashinfer")
    return TargetSpec(
        distribution=distribution,
        versions=_get(keys, "versions", _specifier, SpecifierSet()),
        files=tuple(_file(file, action, native) for file in _items(keys, "files")),
        expect="native" if native else "edits",
        optional=_get(keys, "optional", Cursor.flag, False),
        jit={kind: tuple(c.text() for c in names.sequence()) for kind, names in jit.items()},
        note=_get(keys, "note", Cursor.text, ""),
        units=_get(keys, "compile", lambda c: read_units(c, distribution, like), ()),
    )


def _file(cursor: Cursor, action: Literal["open", "close"], native: bool) -> FileSpec:
    keys = cursor.mapping(required=("path", "edits"))
    path = _get(keys, "path", read_path, "")
    edits = (_edit(edit, path, action, native) for edit in _items(keys, "edits"))
    found = tuple(edit for edit in edits if edit is not None)
    return FileSpec(where=cursor.path, path=path, edits=found)


def _edit(cursor: Cursor, path: str, action: Literal["open", "close"], native: bool) -> Edit | None:
    kinds = cursor.mapping(keys=("open", "close", "replace", "import", "insert", "text"))
    if len(kinds) != 1:
        if kinds or not cursor.node.value:
            cursor.error("expected exactly one of open, close, replace, import, insert, text")
        return None
    ((kind, body),) = kinds.items()
    if kind in ("open", "close"):
        if kind != action:
            listed = "admit" if action == "open" else "exclude"
            body.error(f"a set that lists {listed} has {action} edits, not {kind}")
        return _gate_edit(body, path, action, native)
    if native:
        body.error("expect: native checks gates; it takes open and close only")
    if kind == "text":
        return _text_edit(body)
    if kind in ("import", "insert") and not path.endswith(PYTHON_SUFFIXES):
        body.error(f"{kind} is for Python files, and {path} is none", "use text")
        return None
    if kind == "replace":
        return _replace(body, path)
    return _import(body) if kind == "import" else _insert(body)


def _gate_edit(body: Cursor, path: str, action: Literal["open", "close"], native: bool) -> GateEdit:
    keys = body.mapping(
        keys=("within", "condition", "keyword", "with", "shut", "count", "unproved")
    )
    if ("condition" in keys) == ("keyword" in keys):
        body.error("expected one of condition and keyword")
    if "keyword" in keys and not path.endswith(PYTHON_SUFFIXES):
        keys["keyword"].error(f"keyword is for Python files, and {path} is none")
    if "shut" in keys and action == "open":
        keys["shut"].error("shut is for close: it says which value leaves an architecture out")
    return GateEdit(
        where=body.path,
        action=action,
        within=_get(keys, "within", Cursor.text, None),
        condition=_get(keys, "condition", lambda c: _condition(c, path), None),
        keyword=_get(keys, "keyword", Cursor.text, None),
        operand=_get(keys, "with", lambda c: _condition(c, path), None),
        shut=_get(keys, "shut", Cursor.flag, None),
        count=_get(keys, "count", Cursor.number, None if native else 1),
        unproved=_get(keys, "unproved", Cursor.text, ""),
    )


# Comparisons that are joined in one way parse; to load a parser that says so takes 10 ms.
_COMPARISON = r"\w+ *(?:[<>]=?|[=!]=) *\d+"
_SIMPLE = re.compile(rf"{_COMPARISON}(?: *&& *{_COMPARISON})*")


def _condition(cursor: Cursor, path: str) -> str:
    text = cursor.text()
    if not text:
        return text
    if path.endswith(PYTHON_SUFFIXES):
        if wrong := _not_an_expression(text):
            cursor.error(f"is no Python expression: {wrong}: {text}")
    elif path.endswith(CUDA_SUFFIXES):
        if _SIMPLE.fullmatch(text):
            return text
        from gatepatch.gates import preprocessor

        try:
            preprocessor.parse(text.encode())
        except preprocessor.ConditionError as error:
            cursor.error(f"is no preprocessor condition: {error}")
    else:
        cursor.error(f"gates are found in Python, C and CUDA files, and {path} is none", "use text")
    return text


def _not_an_expression(text: str) -> str:
    """Why a text is no Python expression; empty if it is one."""
    try:
        ast.parse(f"({text}\n)", mode="eval")
        # "a) or (b" parses between parentheses, but as arguments it is no call of a name.
        call = ast.parse(f"_(\n{text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return getattr(error, "msg", None) or str(error) or "nested too deeply"
    one = isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    return "" if one else "unbalanced parentheses"


def _replace(body: Cursor, path: str) -> Replace:
    keys = body.mapping(required=("expression", "by"), keys=("within", "count", "unproved"))
    return Replace(
        where=body.path,
        within=_get(keys, "within", Cursor.text, None),
        expression=_get(keys, "expression", lambda c: _condition(c, path), ""),
        by=_get(keys, "by", lambda c: _condition(c, path), ""),
        count=_get(keys, "count", Cursor.number, 1),
        unproved=_get(keys, "unproved", Cursor.text, ""),
    )


def _import(body: Cursor) -> Import:
    keys = body.mapping(required=("from", "name"))
    module = _get(keys, "from", Cursor.text, "")
    name = _get(keys, "name", Cursor.text, "")
    if module and name and not (_DOTTED.fullmatch(module) and name.isidentifier()):
        body.error(f"is no import: from {module} import {name}")
    return Import(where=body.path, module=module, name=name)


def _insert(body: Cursor) -> Insert:
    keys = body.mapping(required=("code",), keys=("within", "before", "after", "unproved"))
    if ("before" in keys) == ("after" in keys):
        body.error("expected one of before and after: a name, or a neighbouring statement")
    side: Literal["before", "after"] = "before" if "before" in keys else "after"
    code = _get(keys, "code", Cursor.text, "")
    try:
        ast.parse(code)
    except SyntaxError as error:
        keys["code"].error(f"does not parse: {error.msg}, line {error.lineno}")
    except (ValueError, RecursionError, MemoryError) as error:
        keys["code"].error(f"does not parse: {str(error) or 'nested too deeply'}")
    return Insert(
        where=body.path,
        within=_get(keys, "within", Cursor.text, None),
        anchor=_get(keys, side, Cursor.text, ""),
        side=side,
        code=code,
        unproved=_get(keys, "unproved", Cursor.text, ""),
    )


def _text_edit(body: Cursor) -> Text:
    keys = body.mapping(required=("find", "replace", "unproved"), keys=("count",))
    return Text(
        where=body.path,
        find=_get(keys, "find", Cursor.text, ""),
        replace=keys["replace"].node.value if "replace" in keys else "",
        count=_get(keys, "count", Cursor.number, 1),
        unproved=_get(keys, "unproved", Cursor.text, ""),
    )
