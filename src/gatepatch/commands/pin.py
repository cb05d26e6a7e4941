"""Work a set out for released versions, for review."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter

import gatepatch
from gatepatch.commands.options import add_patches
from gatepatch.pinning import Pinned
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("set", metavar="SET")
    add_patches(parser)
    parser.add_argument(
        "--from",
        dest="sources",
        metavar="PATH",
        action="append",
        default=[],
        help="wheel, or folder of wheels; the package index is asked unless one is named",
    )
    parser.add_argument(
        "--release",
        metavar="NAME==VERSION",
        action="append",
        default=[],
        help="only this release; every version in the set's ranges unless one is named",
    )
    parser.add_argument(
        "--pre", action="store_true", help="pre-releases that the package index has too"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 where a pin is not what would be written",
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""

    def progress(pinned: Pinned) -> None:
        detail = f": {pinned.detail}" if pinned.detail else ""
        err.line(f"{pinned.distribution} {pinned.version}  {pinned.outcome}{detail}")

    done = gatepatch.pin(
        options.set,
        patches=options.patches,
        sources=options.sources,
        releases=options.release,
        pre=options.pre,
        check=options.check,
        progress=progress,
    )
    if options.json:
        out.line(document("pin", pins=done))
    else:
        counts = Counter(pinned.outcome for pinned in done)
        out.line(", ".join(f"{number} {word}" for word, number in sorted(counts.items())) or "none")
    return 1 if any(pinned.outcome in ("refused", "differs") for pinned in done) else 0
