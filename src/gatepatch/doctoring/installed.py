"""The distributions that sets name, and what would be imported of them."""

from __future__ import annotations

from collections.abc import Iterator

from gatepatch.doctoring.check import Check, problems
from gatepatch.doctoring.subject import Subject
from gatepatch.errors import TargetError
from gatepatch.report import counted
from gatepatch.target import Target
from gatepatch.verifying.obstacles import obstacles

_ELSEWHERE = "if the server has it, name the server's environment: --python EXE or --prefix DIR"


def distributions(subject: Subject) -> Iterator[Check]:
    """What is installed of the distributions that sets name."""
    prefix = subject.workspace.environment.prefix
    names = list(subject.distributions)
    if names and not any(subject.distributions.values()):
        found = f"none that a set names is installed in {prefix}: {', '.join(names)}"
        yield Check(name="distribution", outcome="note", found=found, next=_ELSEWHERE)
        return
    for name, target in subject.distributions.items():
        match target:
            case Target():
                how = ", an editable install" if target.editable else ""
                found = f"{name} {target.version}, in {target.root.path}{how}"
                yield Check(name="distribution", outcome="ok", found=found)
                for warning in target.warnings:
                    yield Check(name="distribution", outcome="note", found=warning)
            case TargetError():
                yield from problems("distribution", target.problems)
            case None:
                found = f"{name} is not installed in {prefix}"
                yield Check(name="distribution", outcome="note", found=found, next=_ELSEWHERE)


def imports(subject: Subject) -> Iterator[Check]:
    """Whether the interpreter would import the files of the applied sets, from right bytecode."""
    names = {(f.distribution, f.name): None for s in subject.applied for f in s.files.values()}
    found = [(subject.find(distribution), name) for distribution, name in names]
    files = [(target, name) for target, name in found if isinstance(target, Target)]
    if not files or subject.unsettled:
        return
    findings, notes = obstacles(subject.workspace, "", files, {}, ())
    wrong = ((f"{each.where}: {each.found}", each.command) for each in findings)
    for words, command in dict.fromkeys(wrong):  # one folder may hide several files
        yield Check(name="import", outcome="problem", found=words, next=command)
    for note in notes:
        yield Check(name="import", outcome="note", found=note)
    if not findings and not notes:
        words = f"{counted(len(files), 'patched file')}, none shadowed, no stale bytecode"
        yield Check(name="import", outcome="ok", found=words)
