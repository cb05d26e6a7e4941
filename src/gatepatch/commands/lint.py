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
    group = parser.add_argument_group("an environment to compare the sets with, where there is one")
    group.add_argument("--python", metavar="EXE", help="its interpreter")
    group.add_argument("--prefix", metavar="DIR", help="its folder")


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    problems = gatepatch.lint(
        options.set, patches=options.patches, python=options.python, prefix=options.prefix
    )
    if options.json:
        out.line(document("lint", problems=problems))
    else:
        for problem in problems:
            out.line(str(problem))
        if not problems:
            out.line("nothing found")
    return 1 if problems else 0
