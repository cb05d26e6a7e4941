"""Plan the edits that may open gates, on the installed bytes; keep those that an engine proves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gatepatch.authoring.writer import ChosenGate
from gatepatch.edits import splice
from gatepatch.errors import RefusedError, TargetError
from gatepatch.gates.engines import run_engine
from gatepatch.gates.result import Change, Context, FileEdits
from gatepatch.scanning.openable import Draft
from gatepatch.scanning.scan import Progress
from gatepatch.spec import Edit, Goal
from gatepatch.target import Target


def planned(target: Target, drafts: Sequence[Draft], goal: Goal, progress: Progress) -> None:
    """Plan the edits on the installed bytes, a file at a time; give up those that are refused."""
    after: dict[str, bytes] = {}
    paths = sorted({draft.path for draft in drafts if draft.live})
    for done, path in enumerate(paths):
        progress(done, len(paths))
        source = target.locate(path).read_bytes()
        own = [draft for draft in drafts if draft.path == path]
        lines = [(f.line, f.end_line) for draft in own for f in draft.findings]
        found = _plan_file(source, own, lines, _context(target, path, goal, after))
        if found is not None:
            after[path] = splice(source, found.edits)


def _context(target: Target, path: str, goal: Goal, after: Mapping[str, bytes]) -> Context:
    def read(name: str) -> bytes | None:
        try:
            return target.locate(name).read_bytes()
        except (OSError, TargetError):
            return None

    def read_after(name: str) -> bytes | None:
        return after[name] if name in after else read(name)

    return Context(path=path, goal=goal, read=read, read_after=read_after)


def _plan_file(
    source: bytes, drafts: Sequence[Draft], lines: Sequence[tuple[int, int]], context: Context
) -> FileEdits | None:
    """Plan what is left of a file's edits, until all that is left can be planned together."""
    while live := list(_merged(drafts)):
        try:
            found = run_engine(source, [draft.edit() for draft in live], context)
        except RefusedError as error:
            if not _blame(live, error):
                _blame_by_turns(source, live, context)
            continue
        held = [_holds(draft, live, found, lines) for draft in live]
        if all(held):
            return found
    return None


def _merged(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """The edits that may still do, equal ones once."""
    known: dict[ChosenGate, Draft] = {}
    for draft in drafts:
        if not draft.live:
            continue
        if (same := known.setdefault(draft.options[0], draft)) is draft:
            yield draft
        else:
            draft.join(same)


def _blame(live: Sequence[Draft], error: RefusedError) -> bool:
    """Refuse the edits that a refusal names."""
    blamed = False
    for problem in error.problems:
        for draft in live:
            if (problem.where or "").endswith(f"({draft.where})"):
                draft.refuse(problem.message)
                blamed = True
                break
    return blamed


def _blame_by_turns(source: bytes, live: Sequence[Draft], context: Context) -> None:
    """Refuse the edits that cannot be planned with those before them."""
    kept: list[Edit] = []
    for draft in live:
        try:
            run_engine(source, [*kept, draft.edit()], context)
        except RefusedError as error:
            draft.refuse(error.problems[0].message)
        else:
            kept.append(draft.edit())


def _holds(
    draft: Draft, live: Sequence[Draft], found: FileEdits, lines: Sequence[tuple[int, int]]
) -> bool:
    """Count an edit's places; refuse it where it does nothing, or more than was chosen."""
    changes = [change for change in found.changes if change.where == draft.where]
    draft.count = len(changes)
    changing = [change for change in changes if change.edits]
    if more := [change.line for change in changing if not _stands_on(change, lines)]:
        listed = ", ".join(map(str, more[:5]))
        draft.refuse(f"its edit would open line {listed} too, which was not chosen")
    elif not changing:
        own = [(finding.line, finding.end_line) for finding in draft.findings]
        others = {c.where for c in found.changes if c.edits and _stands_on(c, own)}
        if other := next((one for one in live if one.where in others), None):
            draft.join(other)
        else:
            draft.refuse("it admits these architectures as much as the one to be like already")
    return not more and bool(changing)


def _stands_on(change: Change, lines: Sequence[tuple[int, int]]) -> bool:
    return any(start <= change.end_line and change.line <= end for start, end in lines)
