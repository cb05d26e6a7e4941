"""Check patch sets for what loads well and would go wrong later."""

from __future__ import annotations

from pathlib import Path

from gatepatch.document import lines_of_keys
from gatepatch.errors import Problem
from gatepatch.linting.edits import edit_findings
from gatepatch.linting.finding import Finding
from gatepatch.linting.installed import installed_findings
from gatepatch.linting.kept import pin_findings, pinned_findings
from gatepatch.linting.ranges import range_findings
from gatepatch.reasons import unfilled
from gatepatch.spec import PatchSet
from gatepatch.workspace import Workspace


def lint(patch_set: PatchSet, workspace: Workspace | None = None) -> tuple[Problem, ...]:
    """What is wrong with a set that can be read.

    Args:
        patch_set: The set.
        workspace: An environment whose packages the set is compared with, where they are
            installed; None to look at the set alone.
    """
    found = [*range_findings(patch_set), *edit_findings(patch_set)]
    found += [
        Finding(key=key, message="is to be filled in", hint="say why, and where that is known from")
        for key in unfilled(patch_set)
    ]
    found += pinned_findings(patch_set)
    if workspace is not None:
        known = set(found)
        found += [f for f in installed_findings(patch_set, workspace) if f not in known]
    return (*_placed(patch_set, found), *pin_findings(patch_set))


def _placed(patch_set: PatchSet, found: list[Finding]) -> list[Problem]:
    """The findings with their lines, in the order of the lines."""
    if not found:
        return []
    lines = lines_of_keys(Path(patch_set.source))
    placed = [(lines.get(finding.key, 1), finding) for finding in found]
    return [
        Problem(
            message=finding.message,
            where=f"{patch_set.source}:{line}" + (f" ({finding.key})" if finding.key else ""),
            hint=finding.hint or None,
        )
        for line, finding in sorted(placed, key=lambda pair: pair[0])
    ]
