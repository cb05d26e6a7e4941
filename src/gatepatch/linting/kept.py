"""Pins beside a set that do not belong to it any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from gatepatch import pins
from gatepatch.errors import Problem, SpecError
from gatepatch.linting.finding import Finding, several_functions
from gatepatch.linting.ranges import is_in
from gatepatch.loader import PYTHON_SUFFIXES
from gatepatch.pins import Pin, PinnedFile
from gatepatch.planner import pins_of
from gatepatch.spec import FileSpec, GateEdit, PatchSet, Replace, TargetSpec


def pin_findings(patch_set: PatchSet) -> Iterator[Problem]:
    """Pins of another set, of versions that no block is for, or of other edits."""
    folder = pins_of(patch_set).folder
    if folder is None or not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.suffix != ".json" or not path.is_file():
            yield Problem(message="is no pin", where=str(path), hint="remove it")
            continue
        try:
            pin = pins.load(path)
        except SpecError as error:
            yield from error.problems
            continue
        yield from _of_pin(patch_set, path, pin)


def pinned_findings(patch_set: PatchSet) -> Iterator[Finding]:
    """Edits without a function that a pin has in several."""
    told: set[str] = set()
    for pin in _whole_pins(patch_set):
        files = {file.path: file for file in pin.files}
        for block in _blocks(patch_set, pin):
            for file in block.files:
                if file.path in files and file.path.endswith(PYTHON_SUFFIXES):
                    yield from _spread(file, files[file.path], pin, told)


def _whole_pins(patch_set: PatchSet) -> Iterator[Pin]:
    folder = pins_of(patch_set).folder
    for path in sorted(folder.glob("*.json")) if folder is not None else ():
        with contextlib.suppress(SpecError):
            yield pins.load(path)


def _spread(file: FileSpec, pinned: PinnedFile, pin: Pin, told: set[str]) -> Iterator[Finding]:
    places = pinned.places_in(file)
    for edit in file.edits:
        if not isinstance(edit, GateEdit | Replace) or edit.within or edit.where in told:
            continue
        functions = sorted({place.within for place in places if place.where == edit.where})
        if len(functions) > 1:
            told.add(edit.where)
            yield several_functions(edit.where, f"{pin.distribution} {pin.version}", functions)


def _blocks(patch_set: PatchSet, pin: Pin) -> list[TargetSpec]:
    return [
        spec
        for spec in patch_set.targets
        if spec.distribution == pin.distribution and is_in(spec.versions, Version(pin.version))
    ]


def _of_pin(patch_set: PatchSet, path: Path, pin: Pin) -> Iterator[Problem]:
    where = str(path)
    blocks = _blocks(patch_set, pin)
    if not blocks or pin.set != patch_set.name:
        yield Problem(
            message=f"is a pin of {pin.set} for {pin.distribution} {pin.version}, "
            "which no block of this set is for",
            where=where,
            hint="remove it",
        )
        return
    if path.name != (name := pins.file_name(pin.distribution, pin.version)):
        yield Problem(
            message=f"is the pin of {pin.distribution} {pin.version}, and its name says otherwise",
            where=where,
            hint=f"rename it to {name}, or remove it",
        )
    if not any(_agrees(patch_set, block, pin) for block in blocks):
        yield Problem(
            message="was made from other edits than the set has now, so it is not used",
            where=where,
            hint=f"work it out again and review it: gatepatch pin {patch_set.name} "
            f"--release {pin.distribution}=={pin.version}",
        )


def _agrees(patch_set: PatchSet, block: TargetSpec, pin: Pin) -> bool:
    recipes = {file.path: patch_set.recipe(file) for file in block.files}
    return recipes == {file.path: file.recipe for file in pin.files}
