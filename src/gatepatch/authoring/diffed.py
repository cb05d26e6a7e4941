"""What a diff makes of installed files."""

from __future__ import annotations

from pathlib import Path

from gatepatch.authoring.diff import apply_diff, read_diff
from gatepatch.authoring.edited import Edited, Originals
from gatepatch.authoring.owners import Owners
from gatepatch.errors import Problem, RefusedError
from gatepatch.files import read
from gatepatch.workspace import Workspace


def diffed_files(
    workspace: Workspace, originals: Originals, diff: Path
) -> tuple[list[Edited], list[str]]:
    """Apply a diff to the pristine bytes of what is installed; nothing is written.

    Returns:
        The files, and notes on them.

    Raises:
        RefusedError: A file is not installed, or a hunk does not apply; with all that is wrong.
        TargetError: A release cannot be had.
    """
    owners = Owners(workspace)
    found: dict[tuple[str, str], Edited] = {}
    notes: list[str] = []
    problems: list[Problem] = []
    for part in read_diff(diff):
        try:
            target, path = owners.find(part.path, part.where)
            key = (target.distribution, path)
            # A series of patches may change one file again and again.
            known = found.get(key)
            before = known.before if known else originals.read(target, path)
            if before is None:
                message = f"{target.distribution} {target.version} has no file {path}"
                raise RefusedError(Problem(message=message, where=part.where))
            after = apply_diff(known.after if known else before, part)
        except RefusedError as error:
            problems += error.problems
            continue
        if read(target.locate(path)) != before and known is None:
            notes.append(f"{path} is edited already; the diff was applied to the release's bytes")
        found[key] = Edited(target=target, path=path, before=before, after=after)
    if problems:
        raise RefusedError(problems)
    return [item for item in found.values() if item.before != item.after], notes
