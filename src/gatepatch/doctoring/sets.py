"""What each set is in the environment, by the files themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gatepatch.doctoring.check import Check, CheckOutcome, problems, some
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import TargetError
from gatepatch.records import replace
from gatepatch.report import counted
from gatepatch.results import FileResult, SetResult, together
from gatepatch.verifying.findings import way_out

_AS_WANTED = ("applied", "native", "skipped")


def sets(subject: Subject) -> Iterator[Check]:
    """What each set is, by the files themselves."""
    if subject.unsettled:
        yield Check(name="set", outcome="note", found=f"not looked at: {subject.unsettled}")
        return
    results, failed = subject.status
    for name in sorted({*subject.sets, *results}):
        if isinstance(error := failed.get(name), TargetError):
            why = "; ".join(subject.gaps(subject.sets[name])) or str(error)
            yield Check(name="set", outcome="note", found=f"{name}: not looked at: {why}")
        elif error is not None:
            yield from problems("set", error.problems, about=name)
        elif name in results:
            yield _Set(subject, _own(subject, results, name)).check()
        else:
            gaps = "; ".join(subject.gaps(subject.sets[name])) or "nothing of it is installed"
            yield Check(name="set", outcome="ok", found=f"{name}: not for this environment: {gaps}")


def _own(subject: Subject, results: Mapping[str, SetResult], name: str) -> SetResult:
    """A set's result; of one that is not applied without the files that another set has changed."""
    result = results[name]
    if any(value.name == name for value in subject.applied):
        return result
    theirs = {
        (str(root.path), path): other
        for root, state in subject.states.items()
        for other, value in state.sets.items()
        for path in value.files
    }
    theirs |= {
        (file.root, file.path): other
        for other, found in results.items()
        for file in found.files
        if other != name and file.outcome == "applied"
    }
    files = [
        replace(file, outcome="skipped", detail=theirs[file.root, file.path])
        if (file.root, file.path) in theirs
        else file
        for file in result.files
    ]
    return replace(result, files=tuple(files), outcome=together([file.outcome for file in files]))


class _Set:
    """One set, and what is to be said of it."""

    def __init__(self, subject: Subject, result: SetResult):
        self.subject = subject
        self.result = result
        self.name = result.name
        self.apply = f"gatepatch apply {self.name}"
        patch_set = subject.sets.get(self.name)
        self.gaps = subject.gaps(patch_set) if patch_set else ()
        self.recorded = [value for value in subject.applied if value.name == self.name]
        self.changed = patch_set is not None and any(
            value.digest != patch_set.digest for value in self.recorded
        )

    def check(self) -> Check:
        """The one line."""
        match self.result.outcome:
            case "foreign":
                return self._foreign()
            case "missing" if self.recorded:
                first = self._files("missing")[0]
                words = f"applied, and gone since: {self._listed('missing')}"
                return self._told("problem", words, self._reinstall(first))
            case "missing":
                words = f"not applied, and cannot be: no such file: {self._listed('missing')}"
                return self._told("note", words, f"gatepatch plan {self.name}")
            case "upgraded":
                words = f"upgraded since it was applied: {self._listed('upgraded')}"
                drop = f"gatepatch revert {self.name}"
                return self._told("problem", words, drop if self.gaps else self.apply)
            case "applied":
                return self._applied()
            case "pristine" if self.recorded:
                words = "recorded as applied, and its files are the release's own again"
                return self._told("problem", words, self.apply)
            case "pristine" if self.gaps:
                words = f"not applied, and cannot be: {'; '.join(self.gaps)}"
                return self._told("note", words)
            case "pristine":
                return self._told("ok", "not applied")
            case "native":
                return self._told("ok", "native: these releases need nothing of it")
            case _:  # skipped
                others = sorted({file.detail for file in self._files("skipped")})
                return self._told("ok", f"not applied; its files carry {some(others)}")

    def _foreign(self) -> Check:
        first = self._files("foreign")[0]
        words = f"edited by something else: {self._listed('foreign')} ({first.detail})"
        keep = f"or keep those edits: {self.apply} --accept-current"
        return self._told("problem", words, f"{way_out(self.name)}\n{keep}")

    def _applied(self) -> Check:
        files = self.result.files
        if left := [file for file in files if file.outcome not in _AS_WANTED]:
            words = f"partly applied: {len(left)} of {counted(len(files), 'file')} are not"
            return self._told("problem", f"{words}: {_paths(left)}", self.apply)
        if not self.recorded:
            words = "applied, and the state that knew of it is lost; this records it again"
            return self._told("problem", words, self.apply)
        if self.changed:
            words = "applied from another version of the set"
            return self._told("note", words, self.apply)
        return self._told("ok", f"applied, {counted(len(files), 'file')}")

    def _told(self, outcome: CheckOutcome, words: str, command: str | None = None) -> Check:
        return Check(name="set", outcome=outcome, found=f"{self.name}: {words}", next=command)

    def _files(self, outcome: str) -> list[FileResult]:
        return [file for file in self.result.files if file.outcome == outcome]

    def _listed(self, outcome: str) -> str:
        return _paths(self._files(outcome))

    def _reinstall(self, file: FileResult) -> str | None:
        known = [v.files[file.path].name for v in self.recorded if file.path in v.files]
        return self.subject.reinstall(file.distribution, (known or [file.path])[0])


def _paths(files: Sequence[FileResult]) -> str:
    return some([file.path for file in files])
