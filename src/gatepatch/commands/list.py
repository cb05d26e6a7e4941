"""List the patch sets."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import add_patches
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_patches(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    sets = gatepatch.list_sets(patches=options.patches)
    if options.json:
        rows = [{"name": s.name, "summary": s.summary, "source": s.source} for s in sets]
        out.line(document("list", sets=rows))
        return 0
    width = max((len(value.name) for value in sets), default=0)
    for value in sets:
        out.line(f"{value.name:{width}}  {value.summary}")
    return 0
