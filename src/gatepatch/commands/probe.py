"""Ask which devices there are."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import seconds
from gatepatch.device_probe import ProbeFailure
from gatepatch.errors import ProbeError, Problem
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="time limit (30)"
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""

    answer = gatepatch.probe(timeout=options.timeout)
    if isinstance(answer, ProbeFailure):
        raise ProbeError(Problem(message=answer.message))
    if options.json:
        out.line(document("probe", probe=answer))
        return 0
    out.line(f"driver: CUDA {answer.driver}; runtime: CUDA {answer.runtime}; CuPy {answer.cupy}")
    for device in answer.devices:
        peers = f"; reaches {', '.join(map(str, device.peers))}" if device.peers else ""
        out.line(
            f"device {device.index}: {device.name}, SM {device.arch}, {device.pci}, "
            f"{device.uuid}{peers}"
        )
    return 0
