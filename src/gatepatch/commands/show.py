"""Say what a patch set is for, and what is known of it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import add_patches
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET")
    add_patches(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    value = gatepatch.show(options.set, patches=options.patches)
    if options.json:
        out.line(document("show", set=value))
    else:
        out.patch_set(value)
    return 0
