"""Pins beside a set that do not belong to it any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from packaging.version import Version

from gatepatch import pins
from gatepatch.errors import Problem, SpecError
from gatepatch.linting.ranges import is_in
from gatepatch.pins import Pin
from gatepatch.planner import pins_of
from gatepatch.spec import PatchSet, TargetSpec


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


def _of_pin(patch_set: PatchSet, path: Path, pin: Pin) -> Iterator[Problem]:
    where = str(path)
    blocks = [
        spec
        for spec in patch_set.targets
        if spec.distribution == pin.distribution and is_in(spec.versions, Version(pin.version))
    ]
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
