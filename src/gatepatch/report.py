"""Put results into words for a person, or into one JSON document for a machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from gatepatch.arch import Arch
from gatepatch.errors import GatepatchError, PendingError, SignalError
from gatepatch.records import names_of, replace

if TYPE_CHECKING:  # every command prints, and few of them need these
    from gatepatch.results import FileResult, Outcome, Place, Result, SetResult
    from gatepatch.spec import PatchSet, TargetSpec

SCHEMA = 1
"""Version of the JSON documents; it grows when a field changes its meaning or goes."""

_LARGE = 1_000_000
"""Characters of a document that is read by machines alone."""

_COLOURS: Mapping[str, str] = {
    "applied": "32",
    "already-applied": "32",
    "native": "32",
    "would-apply": "36",
    "reverted": "32",
    "upgraded": "33",
    "missing": "31",
    "foreign": "31",
    "refused": "31",
    "interrupted": "31",
    "danger": "31",
    "warning": "33",
    "ok": "32",
    "note": "33",
    "problem": "31",
    "error": "31",
}


def to_json(value: object) -> str:
    """One JSON document, in ASCII: no encoding of a stream can spoil it.

    It is indented where a person may read it: of a large one, indenting takes most of the time.
    """
    plain = _plain(value)
    text = json.dumps(plain)
    return text if len(text) > _LARGE else json.dumps(plain, indent=2)


def _plain(value: object) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Arch):
        return str(value)
    if names := names_of(value):
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(_plain(item) for item in value)
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    return str(value)


def document(command: str, **parts: object) -> str:
    """The JSON document of a command."""
    return to_json({"schema": SCHEMA, "command": command, **parts})


def result_json(result: Result) -> str:
    """The JSON document of a result."""
    return to_json({"schema": SCHEMA, **_plain(result)})


def error_json(error: GatepatchError, command: str, spelled: Callable[[str], str] = str) -> str:
    """The JSON document of an error."""
    interrupted = isinstance(error, PendingError | SignalError)
    outcome: Outcome = "interrupted" if interrupted else "refused"
    problems = [replace(p, hint=p.hint and spelled(p.hint)) for p in error.problems]
    return document(command, outcome=outcome, error=error.code, problems=problems)


class Printer:
    """Writes for a person; colour only on a terminal, and not where ``NO_COLOR`` is set.

    Args:
        stream: Where to write.

    ``spelled`` puts into the commands that a message names what was said of where to look.
    """

    def __init__(self, stream: TextIO):
        self.stream = stream
        self.spelled: Callable[[str], str] = str
        self.colour = stream.isatty() and not os.environ.get("NO_COLOR")

    def line(self, text: str = "") -> None:
        """Write one line."""
        print(text, file=self.stream)

    def word(self, word: str, width: int = 0) -> str:
        """A word in its colour, padded."""
        code = _COLOURS.get(word)
        padded = word.ljust(width)
        return f"\x1b[{code}m{padded}\x1b[0m" if self.colour and code else padded

    def error(self, error: GatepatchError) -> None:
        """Write an error, each problem with its place and its hint."""
        for problem in error.problems:
            where = f"{problem.where}: " if problem.where else ""
            self.line(f"{self.word('error')}: {where}{self.spelled(problem.message)}")
            if problem.hint:
                for line in self.spelled(problem.hint).splitlines():
                    self.line(f"  {line.strip()}")

    def warnings(self, warnings: Sequence[str]) -> None:
        """Write warnings."""
        for warning in warnings:
            self.line(f"{self.word('warning')}: {self.spelled(warning)}")

    def result(self, result: Result, *, diffs: bool = False) -> None:
        """Write what a command did, set by set and file by file."""
        if not result.sets:
            self.line(f"{self.word(result.outcome)}: no set is applied")
        for value in result.sets:
            self._set(value, diffs=diffs)
        for folder in result.jit_removed:
            self.line(f"JIT binaries removed: {folder}")

    def _set(self, value: SetResult, *, diffs: bool) -> None:
        self.line(f"{value.name}: {self.word(value.outcome)}")
        width = max((len(file.outcome) for file in value.files), default=0)
        for file in value.files:
            self._file(file, width)
        for note in value.notes:
            self.line(f"  note: {_folded(note)}")
        for advisory in value.advisories:
            self.line(f"  {self.word(advisory.severity)}: {_folded(advisory.text)}")
            self.line(f"    source: {advisory.source}")
        if diffs:
            for file in value.files:
                self._proofs(file)
                if file.diff:
                    self.line(file.diff.rstrip("\n"))

    def _file(self, file: FileResult, width: int) -> None:
        facts = [f"{file.distribution} {file.version}"]
        if file.outcome in ("applied", "already-applied", "would-apply", "native"):
            facts.append("pinned" if file.pinned else "not pinned")
        if file.witness == "none" and file.outcome in ("pristine", "applied", "would-apply"):
            facts.append("unwitnessed")
        self.line(f"  {self.word(file.outcome, width)}  {file.path}  ({', '.join(facts)})")
        if file.detail:
            self.line(f"    {file.detail}")
        for reason in dict.fromkeys(place.unproved for place in file.places if place.unproved):
            self.line(f"    {self.word('warning')}: not proved: {_folded(reason)}")

    def _proofs(self, file: FileResult) -> None:
        """The verdicts before and after, those of equal places once."""
        groups: dict[tuple[str, str], list[Place]] = {}
        for place in file.places:
            if place.verdict_before:
                key = (str(place.verdict_before), str(place.verdict_after))
                groups.setdefault(key, []).append(place)
        for places in groups.values():
            lines = ", ".join(str(place.line) for place in places)
            self.line(f"  {file.path}, line {lines}: verdict by architecture")
            for title, verdict in (
                ("before", places[0].verdict_before),
                ("after", places[0].verdict_after),
            ):
                for word, archs in verdict.items():
                    self.line(f"    {title:6}  {archs}: {word}")

    def patch_set(self, value: PatchSet) -> None:
        """Write what a set is for, and what it does to which releases."""
        from gatepatch.probing.requirements import wanted

        named = ", ".join(f"SM {arch}" for arch in sorted(value.archs))
        self.line(f"{value.name}: {value.summary}")
        self.line(f"  {'admits' if value.action == 'open' else 'excludes'}: {named}")
        if value.like:
            self.line(f"  like: SM {value.like}")
        if required := wanted(value.requires):
            self.line(f"  requires: {'; '.join(required.values())}")
        self.line(f"  why: {_folded(value.why)}")
        for advisory in value.advisories:
            about = ", ".join(f"{name} {spec}" for name, spec in advisory.when.items())
            about = f" ({about})" if about else ""
            self.line(f"  {self.word(advisory.severity)}{about}: {_folded(advisory.text)}")
            self.line(f"    source: {advisory.source}")
        for target in value.targets:
            self._target(target)
        self.line(f"  read from: {value.source}")

    def _target(self, target: TargetSpec) -> None:
        native = ", expected to admit them by itself" if target.expect == "native" else ""
        self.line(f"  {target.distribution} {target.versions}{native}")
        for file in target.files:
            self.line(f"    {file.path}  ({counted(len(file.edits), 'edit')})")
        for unit in target.units:
            expected = counted(len(unit.expect), "expectation")
            self.line(f"    verify --compile: {unit.path}  ({expected})")
        if target.note:
            self.line(f"    note: {_folded(target.note)}")


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _folded(text: str) -> str:
    return " ".join(text.split())
