"""Say what is applied, going by the files themselves."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import add_environment, add_patches, finish
from gatepatch.report import Printer


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET", nargs="?")
    add_environment(parser)
    add_patches(parser)
    parser.add_argument(
        "--require",
        action="store_true",
        help="exit 1 unless the set is applied, or the releases are native",
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    result = gatepatch.status(
        options.set, python=options.python, prefix=options.prefix, patches=options.patches
    )
    code = finish(options, result, out, err)
    if options.require and result.outcome not in ("applied", "native"):
        return code or 1
    return code
