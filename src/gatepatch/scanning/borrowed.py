"""Predicates that one file defines and another one asks, under names that say nothing.

``supported()`` is a predicate of the architecture where its module makes it one, and not elsewhere: a file's
result says which of its names are such, and the files that import one of those are looked at again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeAlias

from gatepatch.gates.python_scope import (
    Assigned,
    Defined,
    Imported,
    Module,
    Package,
    bind,
    statements_in,
)
from gatepatch.scanning.found import Found
from gatepatch.scanning.prefilter import is_answer
from gatepatch.scanning.speaking import is_count, says
from gatepatch.scanning.walk import PYTHON, SourceFile
from gatepatch.scanning.words import Words, line_at

Given: TypeAlias = "dict[str, list[str]]"
"""The names that a file may import, by the file that defines them."""

ROUNDS = 2
"""How many files a predicate may be handed on through."""

_SHORTEST = 4
"""Characters of a name that is looked for."""

_IMPORTED = re.compile(rb"[ \t]*(?:from[ \t]|import[ \t]|[\w, \t]+(?:#|$)|\w+[ \t]*\\$)")
"""A line that may import a name."""

_FROM = re.compile(rb"from[ \t]+(\.*)([\w.]*)")


def lent(found: Sequence[Found], aliases: Set[str], module: Module) -> list[str]:
    """The names of a module that are predicates, and do not say so themselves.

    Args:
        found: The gates of the file.
        aliases: What it binds to a test.
        module: The file.
    """
    gates = [(gate.line, gate.end_line) for gate in found if not gate.unknown]
    return sorted(
        name
        for name in aliases
        if len(name) >= _SHORTEST
        and not (says(name, name) or is_count(name))
        and any(
            first <= line and end <= last
            for first, last in _spans(name, aliases, module)
            for line, end in gates
        )
    )


def _spans(name: str, aliases: Set[str], module: Module) -> Iterator[tuple[int, int]]:
    """The lines that say what a name of a module is, if it is yes or no."""
    for binding in module.bindings.get(name, ()):
        match binding:
            case Defined(node=node) if f"={name}" in aliases and not any(
                says(one.arg, one.arg) for one in ast.walk(node.args) if isinstance(one, ast.arg)
            ):
                # One that is handed an architecture says what its caller may know already.
                yield node.lineno, node.end_lineno or node.lineno
            case Assigned(value=value) if is_answer(value, aliases):
                yield value.lineno, value.end_lineno or value.lineno


def imported(package: Package, module: Module, source: bytes, given: Given) -> set[str]:
    """The names under which a file knows predicates of other files: ``supported``, ``gemm.supported``.

    Each is there twice: alone, and with a ``=`` before it, for a function that says yes or no.

    Args:
        package: The distribution.
        module: The file.
        source: Its text.
        given: The predicates.
    """
    bindings: dict[str, list[Any]] = {}
    for node in statements_in(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bind(module, node, bindings)
    every = {name for names in given.values() for name in names}
    found: set[str] = set()
    for local, known in bindings.items():
        for one in known:
            if not isinstance(one, Imported):
                continue
            if one.name in every and _is_given(package, one.module, one.name, given):
                found |= {local, f"={local}"}
            members = {name for name in every if f"{local}.{name}".encode() in source}
            origin = f"{one.module}.{one.name}" if one.name else one.module
            for member in members:
                if _is_given(package, origin, member, given):
                    found |= {f"{local}.{member}", f"={local}.{member}"}
    for node in statements_in(module.tree) if found else ():
        if isinstance(node, ast.FunctionDef) and _imports(node, found):
            for part in node.body:
                package.tests(part)
    return found


def _imports(function: ast.FunctionDef, names: Set[str]) -> bool:
    """Whether a function imports one of some names for itself."""
    return any(
        isinstance(part, ast.ImportFrom)
        and any((alias.asname or alias.name) in names for alias in part.names)
        for part in function.body
    )


def _is_given(package: Package, origin: str, name: str, given: Given) -> bool:
    found = package.follow(Imported(origin, name))
    if found is None or found.name not in given.get(found.module.path, ()):
        return False
    package.tests(found)  # though it may be further away than is looked
    return True


def users(
    files: Sequence[SourceFile], results: Mapping[str, Mapping[str, Any]], fresh: Set[str]
) -> dict[str, Given]:
    """The files that may ask a predicate of another one, and which.

    Args:
        files: The files of a distribution.
        results: What was found in them.
        fresh: The files of which predicates are looked for.
    """
    owners: dict[bytes, list[str]] = {}
    for path in sorted(fresh):
        for name in results[path].get("lends", ()):
            owners.setdefault(name.encode(), []).append(path)
    if not owners:
        return {}
    names = sorted(owners)
    words = Words(names)
    found: dict[str, Given] = {}
    for file in files:
        if not file.path.endswith(PYTHON) or results[file.path].get("tree") != "own":
            continue
        try:
            source = Path(file.file).read_bytes()
        except OSError:
            continue
        given: Given = {}
        for name, origin in _brought(source, file.path, words, names):
            for owner in owners[name]:
                if owner != file.path and _leads_to(origin, owner):
                    given.setdefault(owner, []).append(name.decode())
        if given:
            found[file.path] = {owner: sorted({*names}) for owner, names in given.items()}
    return found


def _leads_to(origin: str, owner: str) -> bool:
    """Whether what a module gives may be a file's: its own, or one's in its folder.

    Args:
        origin: The module, as a path; the last name alone after ``import``.
        owner: The file.
    """
    if "/" not in origin:
        return origin in owner.removesuffix(".py").split("/")
    return owner.startswith((f"{origin}.py", f"{origin}/"))


def _brought(
    source: bytes, path: str, words: Words, names: Sequence[bytes]
) -> Iterator[tuple[bytes, str]]:
    """The names among some that a file seems to import, and where from."""
    for which, start, end in words.places(source):
        before, after = source[start - 1 : start], source[end : end + 1]
        if before not in (b" ", b".") or after.isalnum() or after == b"_":
            continue
        name = names[which]
        if before == b".":
            if owner := re.search(rb"(\w+)\.$", source[max(0, start - 80) : start]):
                yield name, owner[1].decode()
            continue
        first, last = line_at(source, start)
        if _IMPORTED.match(source[first:last]):
            head = _FROM.match(source, max(0, source.rfind(b"from ", 0, start)))
            if head is not None:
                yield name, _origin(path, len(head[1]), head[2].decode())


def _origin(path: str, dots: int, module: str) -> str:
    """The path of a module that a file imports from."""
    folders = path.split("/")[: -dots or None] if dots else []
    return "/".join([*folders, *filter(None, module.split("."))])


def join(known: dict[str, Any], answer: Mapping[str, Any]) -> bool:
    """Put what was found in a file again to what was found in it before.

    Returns:
        Whether it has predicates of its own that were not known before.
    """
    again = {(gate[0], gate[1], gate[5]) for gate in answer["gates"]}
    kept = [gate for gate in known["gates"] if (gate[0], gate[1], gate[5]) not in again]
    known["gates"] = sorted([*kept, *answer["gates"]], key=lambda gate: (gate[0], gate[1]))
    lends = set(known.get("lends", ()))
    known["lends"] = sorted(lends.union(answer.get("lends", ())))
    return len(known["lends"]) > len(lends)
