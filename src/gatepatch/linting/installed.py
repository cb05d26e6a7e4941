"""Compare a set with the packages of an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gatepatch.errors import Problem, RefusedError, TargetError
from gatepatch.gates.engines import run_engine
from gatepatch.gates.python_source import Source
from gatepatch.gates.result import Context
from gatepatch.linting.finding import Finding, several_functions
from gatepatch.loader import PYTHON_SUFFIXES
from gatepatch.planned import Inspected
from gatepatch.planner import inspect_set
from gatepatch.spec import Edit, FileSpec, GateEdit, PatchSet, Replace
from gatepatch.workspace import Workspace

_KEY = re.compile(r"\((targets\[.*)\)$")


def installed_findings(patch_set: PatchSet, workspace: Workspace) -> Iterator[Finding]:
    """What does not hold for the versions that are installed; what is not installed is left out."""
    try:
        looked_at = inspect_set(workspace, patch_set)
    except TargetError as error:
        yield from (
            Finding(key="targets", message=str(p), hint=p.hint or "") for p in error.problems
        )
        return
    pristine = {
        (item.target.distribution, item.name): item.classified.pristine for item in looked_at
    }
    for item in looked_at:
        file = next(file for file in item.spec.files if file.path == item.name)
        release = f"{item.target.distribution} {item.target.version}"
        data = item.classified.pristine
        if data is None:
            yield Finding(
                key=f"{file.where}.path",
                message=f"cannot be compared with {release}: the file is {item.classified.kind} "
                "there, and its pristine bytes are not to be had",
                hint="put the original back: " + item.target.reinstall_command(item.name),
            )
            continue
        yield from _planned(patch_set, item, file, data, pristine, release)
        if file.path.endswith(PYTHON_SUFFIXES):
            yield from _elsewhere(file, data, release)


def _planned(
    patch_set: PatchSet,
    item: Inspected,
    file: FileSpec,
    data: bytes,
    pristine: dict[tuple[str, str], bytes | None],
    release: str,
) -> Iterator[Finding]:
    """What an engine refuses."""

    def read(path: str) -> bytes | None:
        known = pristine.get((item.target.distribution, path))
        if known is not None:
            return known
        try:
            return item.target.locate(path).read_bytes()
        except (OSError, TargetError):
            return None

    context = Context(
        path=file.path,
        goal=patch_set.goal,
        read=read,
        read_after=read,
        predicates=patch_set.predicates,
    )
    try:
        run_engine(data, file.edits, context)
    except RefusedError as error:
        yield from (_refused(problem, file, release) for problem in error.problems)


def _refused(problem: Problem, file: FileSpec, release: str) -> Finding:
    match = _KEY.search(problem.where or "")
    return Finding(
        key=match[1] if match else file.where,
        message=f"does not hold for {release}: {problem.message}",
        hint=problem.hint or "",
    )


def _elsewhere(file: FileSpec, data: bytes, release: str) -> Iterator[Finding]:
    """Edits without a function whose text stands in several."""
    try:
        source = Source(file.path, data)
    except RefusedError:
        return  # the engine has said so
    for edit in file.edits:
        functions = sorted(set(_functions(source, edit)))
        if len(functions) > 1:
            yield several_functions(edit.where, release, functions)


def _functions(source: Source, edit: Edit) -> Iterator[str]:
    match edit:
        case GateEdit(within=None, keyword=str(keyword)):
            yield from (place for _, place in source.keywords(keyword, None))
        case (
            GateEdit(within=None, condition=str(pattern)) | Replace(within=None, expression=pattern)
        ):
            yield from (match.top.within for match in source.matches(pattern, None))
        case _:
            return
