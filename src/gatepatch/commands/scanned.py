"""What ``scan`` does with the gates beside listing them: write a set, or compare."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from gatepatch import api
from gatepatch.commands.new import print_next
from gatepatch.errors import UsageError
from gatepatch.report import Printer, document
from gatepatch.scanning.scan import Narrowed
from gatepatch.scanning.table import one_line

if TYPE_CHECKING:
    from gatepatch.scanning.chosen import Chosen


class Asked(Narrowed):
    """What a scan is asked for, as the functions of the library take it."""

    sm: str
    python: str | None
    prefix: str | None


def asked(options: Namespace, sm: str) -> Asked:
    """Read it from the command line.

    Args:
        options: The parsed arguments.
        sm: The architecture that may be left out.
    """
    return Asked(
        sm=sm,
        like=options.like,
        python=options.python,
        prefix=options.prefix,
        everything=options.all,
        kinds=options.kind,
        paths=options.path,
        within=options.within,
        cached=not options.no_cache,
    )


_WIDE = 240
"""Characters of a reason; ``--json`` has all of it."""


def run(
    options: Namespace,
    sm: str,
    out: Printer,
    err: Printer,
    progress: Callable[[int, int], None],
) -> int:
    """Write a set with ``--write-set``, compare with ``--against``; return the exit code."""
    if options.write_set is not None and options.against is not None:
        raise UsageError("give --write-set or --against, not both")
    if options.sarif is not None or options.html is not None:
        raise UsageError("--sarif and --html are for the list of gates: scan once more for them")
    if options.against is not None:
        return _compare(options, sm, out, err, progress)
    chosen = api.scan_to_set(
        options.write_set,
        options.distributions,
        admit=options.admit,
        output=options.output,
        progress=progress,
        **asked(options, sm),
    )
    if options.json:
        out.line(document("scan", chosen=chosen))
    else:
        _print(chosen, out)
    _print_rest(chosen, options.output, err)
    return 0


def _compare(
    options: Namespace,
    sm: str,
    out: Printer,
    err: Printer,
    progress: Callable[[int, int], None],
) -> int:
    from gatepatch.scanning.against_table import against_table

    found = api.scan_against(
        options.against,
        options.distributions,
        progress=progress,
        **asked(options, sm),
    )
    if options.json:
        out.line(document("scan", comparison=found))
    else:
        for line in against_table(found, out):
            out.line(line)
    for problem in found.problems:
        err.warnings([str(problem)])
    return 0


def _print(chosen: Chosen, out: Printer) -> None:
    made = chosen.made
    archs = ", ".join(arch.name for arch in made.archs)
    like = f" like {made.like.name}" if made.like else ""
    out.line(f"{made.source}: admits {archs}{like}")
    for file in made.files:
        out.line(f"  {file.path}  ({file.distribution} {file.version})")
        for edit in file.edits:
            out.line(f"    open, line {', '.join(map(str, edit.lines))}")


def _print_rest(chosen: Chosen, output: str, err: Printer) -> None:
    for left in chosen.left_out:
        err.line(f"left out: {left.gate.path}:{left.gate.line}: {one_line(left.reason, _WIDE)}")
    print_next(chosen.made, output, err)
