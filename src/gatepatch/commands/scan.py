"""List the architecture gates of installed distributions."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands import scanned
from gatepatch.commands.options import add_environment
from gatepatch.errors import Problem, UsageError
from gatepatch.report import Printer, document
from gatepatch.scanning.table import table


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "distributions",
        metavar="DISTRIBUTION",
        nargs="*",
        help="what to scan; every distribution that holds gates where none is named",
    )
    parser.add_argument(
        "--sm", metavar="SM", help="the architecture that may be left out, such as 120"
    )
    parser.add_argument(
        "--like",
        metavar="SM",
        help="show what admits this one instead (9.0, 10.0 or 10.3)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show every gate, those in vendored and generated trees too",
    )
    parser.add_argument(
        "--kind", metavar="KIND", action="append", default=[], help="show gates of this kind only"
    )
    parser.add_argument(
        "--path",
        metavar="PATTERN",
        action="append",
        default=[],
        help="show gates in these files or folders only",
    )
    parser.add_argument(
        "--sarif", metavar="FILE", help="write them as SARIF 2.1.0 too, for code hosts and editors"
    )
    parser.add_argument(
        "--html", metavar="FILE", help="write a page to filter and read too; it needs nothing else"
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="use no earlier results, and keep none"
    )
    parser.add_argument(
        "--within",
        metavar="FUNCTION",
        action="append",
        default=[],
        help="show gates in this function or class only",
    )
    parser.add_argument(
        "--write-set",
        metavar="NAME",
        help="write a patch set that opens the gates shown, where that can be proved",
    )
    parser.add_argument(
        "--admit",
        metavar="SM",
        action="append",
        default=[],
        help="with --write-set: admit this architecture beside --sm",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        default="patches",
        help="with --write-set: the folder of sets that it goes into (patches)",
    )
    parser.add_argument(
        "--against",
        metavar="OTHER",
        help="compare with another environment (its folder or interpreter), a wheel, or a folder "
        "of wheels",
    )
    add_environment(parser)


class _Progress:
    """Says how far a scan is, on a terminal, once it takes longer than a second."""

    def __init__(self, err: Printer):
        self._err = err
        self._shown = False
        self._next = time.monotonic() + 1

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._err.stream.isatty() and now >= self._next:
            self._next = now + 0.2
            self._shown = True
            print(f"\r{done} of {total} files", end="", file=self._err.stream, flush=True)

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=self._err.stream, flush=True)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    progress = _Progress(err)
    sm = options.sm or _visible()
    try:
        if options.write_set is not None or options.against is not None:
            return scanned.run(options, sm, out, err, progress)
        result = gatepatch.scan(
            options.distributions,
            sarif=options.sarif,
            html=options.html,
            progress=progress,
            **scanned.asked(options, sm),
        )
    finally:
        progress.end()
    if options.json:
        out.line(document("scan", scan=result))
    else:
        for line in table(result, out):
            out.line(line)
    for written in result.written:
        left = f", {written.left_out} left out" if written.left_out else ""
        err.line(f"{written.format} written: {written.file} ({written.gates} gates{left})")
    for problem in result.problems:
        err.warnings([str(problem)])
    return 0


def _visible() -> str:
    """The architecture of the device that is there.

    Raises:
        UsageError: There is none to be asked, or there are several kinds.
    """
    from gatepatch.probing.device_probe import ProbeFailure

    hint = f"{sys.argv[0].rpartition('/')[2]} scan --sm 120"
    answer = gatepatch.probe()
    if isinstance(answer, ProbeFailure):
        message = f"no device could be asked for its architecture ({answer.message})"
        raise UsageError(Problem(message=message, hint=f"name it: {hint}"))
    archs = sorted({device.arch for device in answer.devices})
    if len(archs) != 1:
        names = ", ".join(map(str, archs)) or "none"
        raise UsageError(
            Problem(message=f"expected devices of one architecture, found {names}", hint=hint)
        )
    return str(archs[0])
