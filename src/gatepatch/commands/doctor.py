"""Say what is wrong with gatepatch's footing in an environment, and what to do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace

import gatepatch
from gatepatch.commands.options import (
    add_assume,
    add_environment,
    add_jit_roots,
    add_patches,
)
from gatepatch.doctoring.check import Check, Diagnosis
from gatepatch.errors import PendingError
from gatepatch.report import Printer, counted, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_environment(parser)
    add_patches(parser)
    add_assume(parser)
    add_jit_roots(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    found = gatepatch.doctor(
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        assume=options.assume,
        jit_roots=options.jit_root,
    )
    found = replace(found, checks=tuple(_spelled(check, out) for check in found.checks))
    if options.json:
        parts = {name: getattr(found, name) for name in found.__slots__}
        out.line(document("doctor", healthy=found.healthy, pending=found.pending, **parts))
    else:
        _print(found, out)
    if found.pending:
        return PendingError.exit_code
    return 0 if found.healthy else 1


def _spelled(check: Check, out: Printer) -> Check:
    """The check, its command as it has to be typed for the environment at hand."""
    return replace(check, next=check.next and out.spelled(check.next))


def _print(found: Diagnosis, out: Printer) -> None:
    outcomes = max(len(check.outcome) for check in found.checks)
    names = max(len(check.name) for check in found.checks)
    for check in found.checks:
        out.line(f"{out.word(check.outcome, outcomes)}  {check.name:{names}}  {check.found}")
        for line in (check.next or "").splitlines():
            out.line(f"{'':{outcomes + names + 2}}  {line}")
    problems = [check for check in found.checks if check.outcome == "problem"]
    notes = sum(check.outcome == "note" for check in found.checks)
    total = f"{counted(len(problems), 'problem')}, {counted(notes, 'note')}"
    first = next((check.next for check in problems if check.next), None)
    out.line(f"{total}; first: {first.splitlines()[0]}" if first else total)
