"""Look at files that state knows, without their sets' YAML."""

from __future__ import annotations

import contextlib

from gatepatch.classify import Classified, classify
from gatepatch.errors import Problem, RefusedError, TargetError
from gatepatch.planner import foreign_problem
from gatepatch.state import SetFile, State
from gatepatch.target import Root, Target
from gatepatch.witness import Witness
from gatepatch.workspace import Workspace


def look_at(workspace: Workspace, root: Root, path: str) -> Classified:
    """Classify a file by what state and its witness know."""
    target, file = _owner(workspace, workspace.state(root), path)
    witness: Witness | None = None
    if target is not None and file is not None and target.root == root:
        with contextlib.suppress(TargetError):  # git will not read it: state knows enough
            witness = target.witness(file.name)
    return classify(
        root.path / path,
        record=workspace.state(root).files.get(path),
        witness=witness,
        blob=lambda digest: workspace.blob(root, digest),
    )


def refuse_foreign(
    workspace: Workspace, root: Root, state: State, path: str, found: Classified, name: str
) -> RefusedError:
    """The refusal of a file that is not gatepatch's to write, with the ways out."""
    target, file = _owner(workspace, state, path)
    where = str(root.path / path)
    if target is not None and file is not None and found.kind == "foreign":
        return RefusedError(foreign_problem(where, found, target, file.name, name))
    return RefusedError(
        Problem(
            message=f"{found.kind}, and its pristine bytes are not to be had",
            where=where,
            hint=f"put it back: {target.reinstall_command(file.name)}" if target and file else None,
        )
    )


def _owner(workspace: Workspace, state: State, path: str) -> tuple[Target | None, SetFile | None]:
    for value in state.sets.values():
        if path in value.files:
            file = value.files[path]
            try:
                return workspace.target(file.distribution), file
            except TargetError:
                return None, file  # its metadata is damaged: a revert goes by state alone
    return None, None
