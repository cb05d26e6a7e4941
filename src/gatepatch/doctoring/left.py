"""What was left unfinished, who is at work, and whether the records are whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gatepatch import journal, locks, trialmark
from gatepatch.doctoring.check import Check, problems, some
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import PendingError
from gatepatch.looking import look_at
from gatepatch.report import counted
from gatepatch.target import Root

RECOVER = "gatepatch recover"


def interrupted(subject: Subject) -> Iterator[Check]:
    """Changes and trials that were killed half way; a damaged note of one counts too."""
    told: set[Check] = set()
    for root in subject.workspace.roots():
        for pending in (journal.pending, trialmark.pending):
            for check in _pending(root, pending):
                if check not in told:  # a trial leaves a mark in each of its roots
                    told.add(check)
                    yield check
    if not told:
        words = "no change and no trial was left half way"
        yield Check(name="interrupted", outcome="ok", found=words)


def _pending(root: Root, pending: Callable[[Root], str | None]) -> Iterator[Check]:
    try:
        line = pending(root)
    except PendingError as error:
        yield from problems("interrupted", error.problems)
        return
    if line is not None:
        yield _to_settle(line, root)


def _to_settle(line: str, root: Root) -> Check:
    words, _, command = line.partition(f": {RECOVER}")
    alive = words == line  # a process is at it: the line names no command
    process = locks.holder(root.state_dir / locks.NAME)
    look = f"; to see what it is: ps -fp {process}" if process else ""
    return Check(
        name="interrupted",
        outcome="problem",
        found=words,
        next=f"wait for it{look}" if alive else RECOVER + command,
    )


def at_work(subject: Subject) -> Iterator[Check]:
    """Trials that run and locks that are held right now."""
    trials: dict[str, None] = {}
    for root in subject.workspace.roots():
        try:
            mark = trialmark.running(root)
            pending = journal.pending(root)
        except PendingError:
            continue  # said before
        if mark is not None:
            trials[trialmark.told(mark)] = None
        lock = root.state_dir / locks.NAME
        if not pending and (process := locks.holder(lock)):
            yield Check(
                name="lock",
                outcome="note",
                found=f"{lock}: process {process} holds it",
                next=f"wait for it; to see what it is: ps -fp {process}",
            )
    for words in trials:
        yield Check(
            name="trial",
            outcome="note",
            found=words,
            next="wait for it, or interrupt it: it puts everything back",
        )


def state(subject: Subject) -> Iterator[Check]:
    """What is recorded as applied, and whether the pristine bytes are there to go back to."""
    whole = True
    names: dict[str, None] = {}
    for root in subject.workspace.roots():
        try:
            names.update(dict.fromkeys(subject.workspace.state(root).sets))
        except PendingError as error:
            whole = False
            yield from problems("state", error.problems)
            continue
        for check in _backups(subject, root):
            whole = False
            yield check
    if whole:
        found = f"{counted(len(names), 'set')} recorded as applied: {some(list(names), 9)}; "
        found = f"{found}every original is kept" if names else "no set is recorded as applied"
        yield Check(name="state", outcome="ok", found=found)


def _backups(subject: Subject, root: Root) -> Iterator[Check]:
    lost: dict[str, list[tuple[str, str]]] = {}
    for value in subject.workspace.state(root).sets.values():
        for path, file in value.files.items():
            found = look_at(subject.workspace, root, path)
            if found.kind == "applied" and found.pristine is None:
                lost.setdefault(file.distribution, []).append((path, file.name))
    for distribution, files in lost.items():
        paths = list(dict.fromkeys(path for path, _ in files))
        yield Check(
            name="state",
            outcome="problem",
            found=f"{root.state_dir}: the originals of {counted(len(paths), 'applied file')} of "
            f"{distribution} are missing or damaged, and a revert would be refused: "
            f"{some(paths, 1)}",
            next=subject.reinstall(distribution, files[0][1]),
        )
