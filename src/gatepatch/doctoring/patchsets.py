"""Folders of patch sets, sets that cannot be read or are not finished, and their pins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gatepatch import catalog, pins
from gatepatch.doctoring.check import Check, problems, some
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import RefusedError, SpecError
from gatepatch.planner import pins_of
from gatepatch.reasons import refuse_unfilled
from gatepatch.report import counted
from gatepatch.spec import PatchSet


def patch_sets(subject: Subject) -> Iterator[Check]:
    """What is wrong with the folders and with the sets in them."""
    for folder in subject.folders:
        if not os.path.isdir(folder):  # noqa: PTH112, Path.is_dir may raise
            yield _no_folder(folder)
        elif not os.access(folder, os.R_OK | os.X_OK):
            found = f"{folder}: cannot be read, so no command that reads sets works"
            yield Check(name="patch-set", outcome="problem", found=found)
    for name, (first, *others) in subject.listed.items():
        if others:
            found = f"{name} is there more than once: {first} counts, {some(list(map(str, others)))} not"
            yield Check(name="patch-set", outcome="note", found=found)
    sets, failed = subject.read
    for name, error in failed.items():
        for check in problems("patch-set", error.problems):
            yield check if check.next else replace(check, next=f"gatepatch lint {name}")
    for patch_set in sets.values():
        try:
            refuse_unfilled(patch_set)
        except RefusedError as error:
            for each in error.problems:
                found = f"{each.where}: {each.message}"
                yield Check(name="patch-set", outcome="note", found=found, next=each.hint)
    if sets:
        words = f"{counted(len(sets), 'set')} can be read: {some(list(sets), 9)}"
        yield Check(name="patch-set", outcome="ok", found=words)


def _no_folder(folder: Path) -> Check:
    named = folder in catalog.from_variable()
    return Check(
        name="patch-set",
        outcome="problem",
        found=f"{folder}: no such folder of patch sets"
        + (f", and {catalog.VARIABLE} names it" if named else ": gatepatch's own are missing"),
        next=f"correct it, or: unset {catalog.VARIABLE}" if named else "install gatepatch again",
    )


def pinned(subject: Subject) -> Iterator[Check]:
    """Whether the installed versions have pins, and whether these can be read."""
    for patch_set in subject.sets.values():
        try:
            yield from _pins(subject, patch_set)
        except SpecError as error:
            redo = f"gatepatch pin {patch_set.name}, or install gatepatch again"
            for check in problems("pins", error.problems):
                yield Check(name="pins", outcome="problem", found=check.found, next=redo)


def _pins(subject: Subject, patch_set: PatchSet) -> Iterator[Check]:
    folder = pins_of(patch_set).folder
    there, not_there = [], []
    for target, block in subject.blocks(patch_set):
        file = folder and folder / pins.file_name(target.distribution, target.version)
        if file is not None and file.is_file():
            pins.load(file)
            there.append(f"{target.distribution} {target.version}")
        elif block.expect != "native":
            not_there.append(target)
    if there:
        found = f"{patch_set.name}: {', '.join(there)}"
        yield Check(name="pins", outcome="ok", found=found)
    for target in not_there:
        release = f"{target.distribution}=={target.version}"
        yield Check(
            name="pins",
            outcome="note",
            found=f"{patch_set.name}: no pin is named for {target.distribution} {target.version}; "
            "bytes that no pin knows are planned when it is applied",
            next=f"gatepatch pin {patch_set.name} --release {release}",
        )
