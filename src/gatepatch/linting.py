"""Check patch sets for what loads well and would go wrong later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from gatepatch.errors import Problem
from gatepatch.planner import pins_of
from gatepatch.reasons import unfilled
from gatepatch.spec import Edit, GateEdit, Import, Insert, PatchSet, Replace, TargetSpec, Text


def lint(patch_set: PatchSet) -> tuple[Problem, ...]:
    """What is wrong with a set that can be read."""
    return (
        *_overlaps(patch_set),
        *_edits(patch_set),
        *_reasons(patch_set),
        *_stale_pins(patch_set),
    )


def _overlaps(patch_set: PatchSet) -> Iterator[Problem]:
    """Version ranges of one distribution that both hold for some version."""
    for first, second in combinations(patch_set.targets, 2):
        if first.distribution != second.distribution:
            continue
        both = [v for v in _edges((first, second)) if _in(first, v) and _in(second, v)]
        if both:
            yield Problem(
                message=f"two blocks are for {first.distribution} {both[0]}: "
                f"{first.versions} and {second.versions}",
                where=patch_set.source,
                hint="make the ranges exclude each other",
            )


def _in(target: TargetSpec, version: Version) -> bool:
    return target.versions.contains(version, prereleases=True)


def _edges(targets: Sequence[TargetSpec]) -> list[Version]:
    """The versions at which ranges begin and end, and what lies just beside them."""
    found = {Version("0")}
    for target in targets:
        for text in _texts(target.versions):
            for spelling in (text, f"{text}.0.1", f"{text}.post1", f"{text}.post1.dev1"):
                try:
                    found.add(Version(spelling))
                except ValueError:
                    continue
    return sorted(found)


def _texts(specifiers: SpecifierSet) -> list[str]:
    return [specifier.version.removesuffix(".*") for specifier in specifiers]


def _edits(patch_set: PatchSet) -> Iterator[Problem]:
    """Edits that another makes unreachable, or that match their own result."""
    for target in patch_set.targets:
        paths = [file.path for file in target.files]
        for path in sorted({p for p in paths if paths.count(p) > 1}):
            yield Problem(
                message=f"{path} is there twice for {target.distribution} {target.versions}",
                where=patch_set.source,
                hint="put its edits together",
            )
        for file in target.files:
            seen: dict[object, str] = {}
            for edit in file.edits:
                where = f"{patch_set.source} ({edit.where})"
                key = _key(edit)
                if key in seen:
                    yield Problem(
                        message=f"can never match: {seen[key]} has the same place", where=where
                    )
                seen.setdefault(key, edit.where)
                match edit:
                    case Text(find=find, replace=new) if find in new and find != new:
                        yield Problem(
                            message="the text to find stands in its replacement too",
                            where=where,
                            hint="it is told apart by the whole replacement; a longer anchor is safer",
                        )
                    case Replace(expression=old, by=new) if old == new:
                        yield Problem(message="replaces an expression by itself", where=where)
                    case Insert(code=code) if not ast.parse(code).body:
                        yield Problem(message="inserts nothing", where=where)
                    case GateEdit(within=None, count=1, condition=str()) if file.path.endswith(
                        ".py"
                    ):
                        yield Problem(
                            message="says no function: the same condition in another one would match",
                            where=where,
                            hint="name the function in within:",
                        )


def _key(edit: Edit) -> object:
    match edit:
        case GateEdit():
            return ("gate", edit.within, edit.condition, edit.keyword)
        case Replace():
            return ("replace", edit.within, edit.expression)
        case Text():
            return ("text", edit.find)
        case Import() | Insert():
            return replace(edit, where="")


def _reasons(patch_set: PatchSet) -> Iterator[Problem]:
    """Texts that the author has not filled in."""
    for key in unfilled(patch_set):
        yield Problem(
            message="is to be filled in", where=f"{patch_set.source} ({key})", hint="say why"
        )


def _stale_pins(patch_set: PatchSet) -> Iterator[Problem]:
    """Pins for versions that no block of the set is for, or of another set."""
    folder = pins_of(patch_set).folder
    if folder is None or not folder.is_dir():
        return
    from gatepatch import pins

    for path in sorted(folder.glob("*.json")):
        pin = pins.load(path)
        covered = any(
            spec.distribution == pin.distribution and _in(spec, Version(pin.version))
            for spec in patch_set.targets
        )
        if not covered or pin.set != patch_set.name:
            yield Problem(
                message=f"is a pin of {pin.set} for {pin.distribution} {pin.version}, "
                "which no block of this set is for",
                where=str(path),
                hint="remove it",
            )
