"""Which environment it is, and whether its packages can be written."""

from __future__ import annotations

import errno
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

from gatepatch.doctoring.check import Check, some
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import TargetError
from gatepatch.settle import HINTS


def environment(subject: Subject) -> Iterator[Check]:
    """Which interpreter and prefix, and whether gatepatch runs there."""
    found = subject.workspace.environment
    words = f"{found.prefix}, Python {found.version[0]}.{found.version[1]} ({found.python})"
    if found.python is None:
        yield Check(
            name="environment",
            outcome="note",
            found=f"{found.prefix}: no interpreter of it runs here, so what start-up files and the "
            "user site add is not seen",
            next="name one that runs: --python EXE",
        )
    else:
        where = "gatepatch runs in it" if found.running else f"gatepatch runs in {sys.prefix}"
        yield Check(name="environment", outcome="ok", found=f"{words}; {where}")


def writable(subject: Subject) -> Iterator[Check]:
    """Whether ``apply`` and ``revert`` could write, going by modes: nothing is written."""
    folders = sorted(set(_folders(subject)))
    if not folders:
        return
    who = _name(os.getuid())  # as os.access has it
    shut: dict[tuple[bool, str], list[str]] = {}
    for folder in folders:
        if not os.access(folder, os.W_OK | os.X_OK):
            read_only = bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
            shut.setdefault((read_only, _name(folder.stat().st_uid)), []).append(str(folder))
    for (read_only, owner), names in shut.items():
        why = (
            "the file system is read-only" if read_only else f"{who} cannot write, {owner} owns it"
        )
        yield Check(
            name="writable",
            outcome="problem",
            found=f"{some(names, 1)}: {why}",
            next=HINTS[errno.EROFS if read_only else errno.EACCES],
        )
    if not shut:
        roots = sorted({str(target.root.path) for target in subject.targets.values()})
        yield Check(name="writable", outcome="ok", found=f"{some(roots)}, by {who}")


def _folders(subject: Subject) -> Iterator[Path]:
    """The folders that are written in: each root, its state folder, and those of the files."""
    for target in subject.targets.values():
        yield target.root.path
        state = target.root.state_dir
        yield state if state.is_dir() else state.parent
    for patch_set in subject.sets.values():
        for target, block in subject.blocks(patch_set):
            for file in block.files:
                try:
                    path = target.locate(file.path)
                except TargetError:  # its own check says so
                    continue
                if path.exists():
                    yield path.parent


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # a container's user may have no name
        return f"user {user}"
