"""Make a patch set of the gates that a scan shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gatepatch.arch import TABLE, Arch
from gatepatch.authoring import writer
from gatepatch.authoring.made import Made, MadeEdit, MadeFile
from gatepatch.authoring.shipped import known_jit
from gatepatch.errors import Problem, RefusedError, UsageError
from gatepatch.loader import is_name
from gatepatch.pins import Pins
from gatepatch.planned import PlannedFile, SetPlan
from gatepatch.planner import plan_set
from gatepatch.reasons import unfilled
from gatepatch.scanning.openable import Draft, LeftOut, drafts_of
from gatepatch.scanning.opening import planned
from gatepatch.scanning.records import Finding, ScanResult
from gatepatch.scanning.scan import Progress, Query
from gatepatch.spec import Goal, PatchSet, TargetSpec
from gatepatch.workspace import Workspace

_PREFERRED = (Arch(10, 0), Arch(9, 0), Arch(10, 3))
"""Of the architectures that gates are written for, which to be like where they serve as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The set that was written.

    Args:
        made: The set; once its reasons are given, it plans for the installed releases.
        left_out: What it does not open.
    """

    made: Made
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the set is to bring about, and where it goes.

    Args:
        name: The set's name.
        admit: The architectures to admit beside the one that was asked for.
        output: The folder of sets that it goes into.
    """

    name: str
    admit: tuple[Arch, ...] = ()
    output: Path = Path("patches")

    def check(self) -> None:
        """Refuse what cannot be written.

        Raises:
            UsageError: The name is none or is taken, or an architecture is not known.
        """
        if not is_name(self.name):
            raise UsageError(
                f"{self.name!r} is no name: use lower-case letters, digits and hyphens"
            )
        if odd := [str(arch) for arch in self.admit if arch not in TABLE]:
            known = ", ".join(map(str, TABLE))
            raise UsageError(f"nothing can be proved for {', '.join(odd)}: known are {known}")
        writer.check_free(self.output, self.name)


def write_set(
    workspace: Workspace,
    result: ScanResult,
    query: Query,
    options: Options,
    progress: Progress = lambda done, total: None,
) -> Chosen:
    """Write a set that opens what a scan shows, as far as an engine can open it.

    Args:
        workspace: The environment that was scanned.
        result: What was found there.
        query: What was asked for.
        options: The set's name, and what else it is to say.
        progress: Is told how many files with gates are planned, and of how many.

    Raises:
        UsageError: Something stands there already.
        RefusedError: No gate is left; nothing was written.
    """
    options.check()
    archs = frozenset({query.sm, *options.admit})
    like = _like(result, query, archs)
    goal = Goal(action="open", archs=archs, like=like)
    shut = [f for f in result.findings if f.leaves_out or f.unknown]
    drafts: list[Draft] = []
    for distribution in _names(shut):
        target = workspace.target(distribution)
        assert target is not None  # it was scanned
        own = drafts_of(target, [f for f in shut if f.distribution == distribution])
        planned(target, own, goal, progress)
        drafts += own
    plan, data = _settled(workspace, options.name, goal, drafts, result)
    path = writer.check_free(options.output, options.name)
    writer.publish(path, data)
    return Chosen(
        made=Made(
            name=options.name,
            source=str(path),
            action="open",
            archs=tuple(sorted(archs)),
            like=like,
            files=tuple(map(_made_file, plan.files)),
            missing=unfilled(plan.patch_set),
        ),
        left_out=tuple(_left_out(drafts)),
    )


def _names(gates: Iterable[Finding | Draft]) -> list[str]:
    return list(dict.fromkeys(gate.distribution for gate in gates))


def _like(result: ScanResult, query: Query, archs: frozenset[Arch]) -> Arch:
    """The architecture that most of the gates admit otherwise than the one asked for."""
    if query.like is not None:
        if query.like in archs:
            raise UsageError(f"--like: {query.like} is among the architectures to admit")
        return query.like
    return max(
        (arch for arch in _PREFERRED if arch not in archs),
        key=lambda arch: sum(
            finding.leaves_out and finding.verdict[str(arch)] in ("admits", "depends")
            for finding in result.findings
        ),
    )


def _settled(
    workspace: Workspace, name: str, goal: Goal, drafts: Sequence[Draft], result: ScanResult
) -> tuple[SetPlan, bytes]:
    """The set with every gate that plans together with the others, and its YAML.

    Raises:
        RefusedError: No gate is left.
    """
    while live := [draft for draft in drafts if draft.live]:
        blocks = [_block(workspace, live, each) for each in _names(live)]
        meant = writer.new_set(name, goal, blocks)
        patch_set, data = writer.read_back(meant, _header(workspace, live, goal))
        try:
            return plan_set(workspace, patch_set, pins=Pins(None)), data
        except RefusedError as error:
            _refuse(live, patch_set, error.problems)
    raise RefusedError(_nothing(drafts, result, goal))


def _block(workspace: Workspace, drafts: Iterable[Draft], distribution: str) -> TargetSpec:
    target = workspace.target(distribution)
    assert target is not None
    own = [draft for draft in drafts if draft.distribution == distribution]
    block = writer.gates_target(
        distribution, f"=={target.version}", dict.fromkeys(d.chosen() for d in own), "open"
    )
    return replace(block, jit=known_jit(distribution, {draft.path for draft in own}))


def _header(workspace: Workspace, drafts: Sequence[Draft], goal: Goal) -> list[str]:
    releases = []
    for distribution in _names(drafts):
        target = workspace.target(distribution)
        assert target is not None
        releases.append(f"{distribution} {target.version}")
    archs = ", ".join(arch.name for arch in sorted(goal.archs))
    return [
        f"Written by gatepatch scan: gates of {', '.join(releases)} that leave {archs} out.",
        "Take out what is to stay shut, and give a reason wherever it says TODO.",
    ]


def _refuse(live: Sequence[Draft], patch_set: PatchSet, problems: Sequence[Problem]) -> None:
    """Take out the gates that problems are of; all of a file's where one is of the file."""
    keys = {
        edit.where: (target.distribution, file.path, edit)
        for target in patch_set.targets
        for file in target.files
        for edit in file.edits
    }
    refused = False
    for problem in problems:
        where = problem.where or ""
        _, _, place = where.rpartition("(")
        for draft in live:
            at = keys.get(place.rstrip(")"))
            if at is None:
                blamed = where.startswith((f"{draft.path} (", f"{draft.path}:"))
                blamed = blamed or where == draft.path
            else:
                blamed = at[:2] == (draft.distribution, draft.path) and draft.is_edit(at[2])
            if blamed and draft.live:
                draft.drop(problem.message)
                refused = True
    if not refused:
        raise RefusedError(problems)


def _left_out(drafts: Iterable[Draft]) -> Iterator[LeftOut]:
    for draft in drafts:
        if not draft.live:
            for finding in draft.findings:
                yield LeftOut(gate=finding, reason=draft.reason)


def _nothing(drafts: Sequence[Draft], result: ScanResult, goal: Goal) -> list[Problem]:
    archs = ", ".join(map(str, sorted(goal.archs)))
    message = f"no gate is left that could be opened for {archs} like {goal.like}"
    hint = None if drafts else f"the scan shows none that leaves {result.sm} out: ask for others"
    problems = [
        Problem(message=left.reason, where=f"{left.gate.path}:{left.gate.line}")
        for left in _left_out(drafts)
    ]
    return [Problem(message=message, hint=hint), *problems]


def _made_file(file: PlannedFile) -> MadeFile:
    return MadeFile(
        distribution=file.target.distribution,
        version=file.target.version,
        path=file.name,
        edits=tuple(
            MadeEdit(
                kind="open",
                where=edit.where,
                lines=tuple(place.line for place in file.places if place.where == edit.where),
                proved=True,
            )
            for edit in file.spec
        ),
    )
