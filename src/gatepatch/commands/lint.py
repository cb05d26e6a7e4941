"""Check patch sets."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import add_patches
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET", nargs="?", help="all sets unless one is named")
    add_patches(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    problems = gatepatch.lint(options.set, patches=options.patches)
    if options.json:
        out.line(document("lint", problems=problems))
    else:
        for problem in problems:
            out.line(str(problem))
        if not problems:
            out.line("nothing found")
    return 1 if problems else 0
