"""Settle an interrupted change."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import add_environment, add_timeout
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_environment(parser)
    add_timeout(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    settled = gatepatch.recover(
        python=options.python, prefix=options.prefix, timeout=options.timeout
    )
    if options.json:
        out.line(document("recover", recovered=settled))
        return 0
    if not settled:
        out.line("nothing is pending")
    for item in settled:
        out.line(f"{item.outcome}: {item.root}")
        for path in item.files:
            out.line(f"  {path}")
    return 0
