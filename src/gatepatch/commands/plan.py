"""Show what apply would do, with diffs and proofs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import add_edit_choices, add_environment, add_patches, finish
from gatepatch.report import Printer


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET")
    add_environment(parser)
    add_patches(parser)
    add_edit_choices(parser)


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    result = gatepatch.plan(
        options.set,
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        accept_current=options.accept_current,
        require_pin=options.require_pin,
        hide_aot=options.hide_aot,
    )
    return finish(options, result, out, err, diffs=True)
