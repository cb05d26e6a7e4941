"""Say again, from the bytes on disk, whether a set is applied and has its effect."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace

import gatepatch
from gatepatch.arch import Arch
from gatepatch.commands.options import add_environment, add_jit_roots, add_patches, seconds
from gatepatch.errors import PendingError, UsageError
from gatepatch.report import Printer, to_json
from gatepatch.verifying.compiling import Compiled, Job
from gatepatch.verifying.finding import Finding
from gatepatch.verifying.judging import JudgedPlace
from gatepatch.verifying.units import CompiledUnit
from gatepatch.verifying.verify import Verified, VerifiedFile


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET")
    add_environment(parser)
    add_patches(parser)
    add_jit_roots(parser)
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile the units that the set names with the environment's nvcc, and check what "
        "the set expects of them (minutes; results are kept)",
    )
    parser.add_argument(
        "--arch",
        metavar="SM",
        action="append",
        default=[],
        help="with --compile: only this one of the set's architectures: sm_120",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=900.0,
        help="time limit of one compilation (900)",
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""

    def progress(step: Compiled | Job) -> None:
        if err.stream.isatty():
            err.line(_step(step))

    if options.arch and not options.compile:
        raise UsageError("--arch picks what is compiled", hint="add --compile")
    found = gatepatch.verify(
        options.set,
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        jit_roots=options.jit_root,
        compile=options.compile,
        archs=options.arch,
        timeout=options.timeout,
        progress=progress,
    )
    findings = [replace(one, command=out.spelled(one.command)) for one in found.findings]
    found = replace(found, findings=tuple(findings))
    if options.json:
        out.line(to_json(_document(found)))
    elif not found.pending:
        _print(found, out)
    if found.pending:
        err.error(PendingError(found.pending))
        return PendingError.exit_code
    return 1 if found.findings else 0


def _document(found: Verified) -> dict[str, object]:
    head = {"schema": 1, "command": "verify", "verified": not (found.findings or found.pending)}
    return {**head, **{name: getattr(found, name) for name in found.__slots__}}


def _step(step: Compiled | Job) -> str:
    if isinstance(step, Job):
        return f"compiling {step.title}"
    if step.cached:
        return f"known     {step.job.title}"
    return f"{'compiled' if step.summary else 'failed  '}  {step.job.title}: {step.seconds:.0f} s"


def _print(found: Verified, out: Printer) -> None:
    out.line(f"{found.set}: {out.word(found.outcome)}")
    width = max((len(file.outcome) for file in found.files), default=0)
    for file in found.files:
        _file(file, width, found, out)
    _compiled(found.compiled, out)
    for note in found.notes:
        out.line(f"note: {note}")
    for finding in found.findings:
        _finding(finding, out)
    total = len(found.findings)
    out.line(f"{total} finding{'s' * (total != 1)}" if total else "verified: nothing found")


def _file(file: VerifiedFile, width: int, found: Verified, out: Printer) -> None:
    facts = f"{file.distribution} {file.version}, sha256 {file.sha256[:12]}"
    out.line(f"  {out.word(file.outcome, width)}  {file.path}  ({facts})")
    groups: dict[str, list[str]] = {}
    for place in file.places:
        if place.verdict:
            groups.setdefault(_verdict(place, found.like), []).append(str(place.line))
    for words, lines in groups.items():
        out.line(f"    line {', '.join(lines)}: {words}")


def _verdict(place: JudgedPlace, like: Arch | None) -> str:
    """A place's verdict on disk, in words; ``plan`` and ``--json`` have the whole table."""
    words = f"as {like}" if like else "left out"
    yes = [arch for arch, holds in place.admitted.items() if holds]
    no = [arch for arch, holds in place.admitted.items() if not holds]
    parts = [
        *([f"{' '.join(yes)} {words}"] if yes else []),
        *([f"{' '.join(no)} not {words}"] if no else []),
    ]
    others = {True: "the others as before", False: "others have changed", None: ""}[place.kept]
    return "; ".join(part for part in (*parts, others) if part)


def _compiled(units: Sequence[CompiledUnit], out: Printer) -> None:
    for unit in units:
        if unit.kernels is None:
            figures = "not compiled"
        else:
            counts = [f"{number} {name}" for name, number in unit.instructions.items()]
            figures = ", ".join(
                [*counts, f"{unit.kernels} kernels, {unit.empty} of them a bare return"]
            )
        took = "known" if unit.cached else f"{unit.seconds:.0f} s"
        name = unit.unit.rpartition("/")[2]
        out.line(f"  {name}  {unit.target}  {unit.side:6}  {figures}  ({took})")


def _finding(finding: Finding, out: Printer) -> None:
    out.line(f"{out.word('finding')}: {finding.kind}: {finding.where}")
    for title, text in (
        ("expected", finding.expected),
        ("found", finding.found),
        ("next", finding.command),
    ):
        first, *rest = text.splitlines() or [""]
        out.line(f"  {title + ':':10}{first}")
        for line in rest:
            out.line(f"  {'':10}{line}")
