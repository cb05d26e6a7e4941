"""Say what is applied, going by the files themselves. Nothing is written, no lock is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gatepatch import catalog
from gatepatch.classify import Classified
from gatepatch.errors import GatepatchError, SpecError, TargetError
from gatepatch.looking import look_at
from gatepatch.planner import inspect_set
from gatepatch.records import replace
from gatepatch.results import FileResult, Outcome, Result, SetResult, together
from gatepatch.spec import PatchSet
from gatepatch.state import AppliedSet
from gatepatch.target import Root
from gatepatch.workspace import Workspace


def status(workspace: Workspace, name: str | None, patches: Sequence[Path] = ()) -> Result:
    """Say what is applied; see ``gatepatch.status``."""
    recorded = {n for root in workspace.roots() for n in workspace.state(root).sets}
    known = catalog.files(patches)
    if name is not None and name not in recorded:
        catalog.find(name, patches)  # an unknown name is an error, with the nearest
    loaded, unread = catalog.load_each(
        {n: known[n] for n in ([name] if name else known) if n in known}
    )
    sets, failed = look(workspace, loaded, name)
    running = workspace.running()
    warnings = [running] if running else []
    for error in (*unread.values(), *failed.values()):
        if name is not None or not isinstance(error, TargetError | SpecError):
            raise error
        warnings += [str(problem) for problem in error.problems]
    pending = workspace.pending()
    outcome = together([result.outcome for result in sets.values()]) if sets else "pristine"
    return Result(
        command="status",
        outcome="interrupted" if pending else outcome,
        sets=tuple(sets[n] for n in sorted(sets)),
        warnings=tuple(dict.fromkeys(warnings)),
        pending=pending,
    )


def look(
    workspace: Workspace, patch_sets: Mapping[str, PatchSet], name: str | None = None
) -> tuple[dict[str, SetResult], dict[str, GatepatchError]]:
    """Look at what state knows to be applied, and at the files of some sets.

    Args:
        workspace: The environment.
        patch_sets: The sets by name; what is not installed of them is left out.
        name: Look at this set alone; at all for None.

    Returns:
        What each set is, and why some could not be looked at.
    """
    sets: dict[str, SetResult] = {}
    for root in workspace.roots():
        for value in workspace.state(root).sets.values():
            if name in (None, value.name):
                files = [*(sets[value.name].files if value.name in sets else ())]
                files += _state_files(workspace, root, value)
                sets[value.name] = _set(value.name, files, len(files))
    failed: dict[str, GatepatchError] = {}
    for other, patch_set in patch_sets.items():
        try:
            result = _catalog_set(workspace, patch_set, sets.get(other))
        except GatepatchError as error:
            failed[other] = error
            continue
        if result is not None:
            sets[other] = result
    return {n: _without_others(n, value, sets, workspace) for n, value in sets.items()}, failed


def _without_others(
    name: str, value: SetResult, sets: Mapping[str, SetResult], workspace: Workspace
) -> SetResult:
    """A set's result, with the files that another set has changed set aside."""
    own = {
        (str(root.path), path)
        for root in workspace.roots()
        if name in workspace.state(root).sets
        for path in workspace.state(root).sets[name].files
    }
    theirs = {
        (file.root, file.path): other
        for other, result in sets.items()
        if other != name and result.outcome == "applied"
        for file in result.files
        if file.outcome == "applied"
    }
    files = tuple(
        replace(file, outcome="skipped", detail=f"{theirs[file.root, file.path]} is applied to it")
        if (file.root, file.path) in theirs and (file.root, file.path) not in own
        else file
        for file in value.files
    )
    if files == value.files:
        return value
    return replace(value, files=files, outcome=together([file.outcome for file in files]))


def _state_files(workspace: Workspace, root: Root, value: AppliedSet) -> list[FileResult]:
    results = []
    for path, file in value.files.items():
        found = look_at(workspace, root, path)
        try:
            target = workspace.target(file.distribution)
        except TargetError:  # its metadata is damaged: state knows what it was
            target = None
        version = target.version if target is not None else file.version
        results.append(_file(root, path, file.distribution, version, found, pinned=file.pinned))
    return results


def _catalog_set(
    workspace: Workspace, patch_set: PatchSet, known: SetResult | None
) -> SetResult | None:
    """What the set's own files say beside what state knows; None if nothing is installed."""
    seen = {(file.root, file.path) for file in known.files} if known else set()
    files = list(known.files) if known else []
    for item in inspect_set(workspace, patch_set):
        root = item.target.root
        if (str(root.path), item.path) in seen:
            continue
        found = _file(
            root,
            item.path,
            item.target.distribution,
            item.target.version,
            item.classified,
            pinned=item.classified.rebuilt,
        )
        if item.spec.expect == "native" and found.outcome == "pristine":
            found = replace(found, outcome="native")
        files.append(found)
    if not files:
        return None
    return _set(patch_set.name, files, len(seen), patch_set.summary)


def _file(
    root: Root,
    path: str,
    distribution: str,
    version: str,
    found: Classified,
    *,
    pinned: bool,
) -> FileResult:
    return FileResult(
        distribution=distribution,
        version=version,
        root=str(root.path),
        path=path,
        outcome=found.kind,
        pinned=pinned,
        witness=found.witness,
        detail=found.detail,
    )


def _set(name: str, files: Sequence[FileResult], known: int, summary: str = "") -> SetResult:
    """One word for a set: by the files that state knows, if it knows any.

    Half a set is no set, so one file that is not applied decides.
    """
    outcomes: list[Outcome] = [file.outcome for file in files[:known] or files]
    outcome = together([word for word in outcomes if known == 0 or word != "applied"])
    return SetResult(
        name=name,
        outcome="applied" if outcome == "skipped" else outcome,
        summary=summary,
        files=tuple(files),
    )
