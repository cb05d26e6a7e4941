"""Ask which devices there are, and what they can do."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch.commands.options import seconds
from gatepatch.errors import ProbeError, Problem
from gatepatch.probing.device_probe import Device, Probe, ProbeFailure
from gatepatch.probing.properties import Question, title
from gatepatch.report import Printer, document


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--deep",
        action="store_true",
        help="ask the devices what they can do as well, by launching small kernels",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=30.0,
        help="time limit (30); with --deep, for each question",
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    terminal = err.stream.isatty()

    def progress(question: Question) -> None:
        if terminal:
            print(f"\r\x1b[Kasking {question} …", end="", file=err.stream, flush=True)

    answer = gatepatch.probe(deep=options.deep, timeout=options.timeout, progress=progress)
    if terminal and options.deep:
        print("\r\x1b[K", end="", file=err.stream, flush=True)
    if isinstance(answer, ProbeFailure):
        raise ProbeError(Problem(message=answer.message))
    if options.json:
        out.line(document("probe", probe=answer))
        return 0
    out.line(f"driver: CUDA {answer.driver}; runtime: CUDA {answer.runtime}; CuPy {answer.cupy}")
    for device in answer.devices:
        _device(device, answer, out)
    return 0


def _device(device: Device, probe: Probe, out: Printer) -> None:
    peers = f"; reaches {', '.join(map(str, device.peers))}" if device.peers else ""
    out.line(
        f"device {device.index}: {device.name}, SM {device.arch}, {device.pci}, "
        f"{device.uuid}{peers}"
    )
    width = max((len(title(answer)) for answer in probe.answers), default=0)
    for answer in probe.answers:
        if answer.device == device.index:
            out.line(f"  {title(answer):{width}}  {answer.words}")
