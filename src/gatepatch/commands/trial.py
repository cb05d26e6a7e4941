"""Run a benchmark without and with a set, and keep the set only if it pays."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace

import gatepatch
from gatepatch import api
from gatepatch.commands.options import (
    add_device_choices,
    add_edit_choices,
    add_environment,
    add_jit_roots,
    add_patches,
    seconds,
)
from gatepatch.errors import UsageError
from gatepatch.report import Printer, document
from gatepatch.trials import record, summary
from gatepatch.trials.trial import Teller

PUT_BACK = 3


def arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.usage = "gatepatch trial SET [options] -- COMMAND...\n       gatepatch trial --history"
    parser.add_argument("set", metavar="SET", nargs="?")
    add_environment(parser)
    add_patches(parser)
    add_device_choices(parser)
    add_edit_choices(parser)
    add_jit_roots(parser)
    _add_measuring(parser)
    _add_deciding(parser)
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="folder for the record and the report; beside the state unless one is named",
    )
    parser.add_argument(
        "--no-sccache",
        action="store_true",
        help="do not compile through sccache, even where it is installed",
    )
    parser.add_argument(
        "--history", action="store_true", help="list the records of the environment's trials"
    )


def _add_measuring(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("what a run is judged by (its run time, unless)")
    group.add_argument(
        "--metric",
        metavar="REGEX",
        help="a number in the output: the one group of the last match",
    )
    group.add_argument(
        "--metric-json",
        metavar="FILE:PATH",
        help="a number in a JSON file that the benchmark writes: result.json:summary.throughput",
    )
    better = group.add_mutually_exclusive_group()
    better.add_argument(
        "--higher-is-better",
        action="store_true",
        default=None,
        help="so it is with a metric, unless its name reads like a time",
    )
    better.add_argument(
        "--lower-is-better",
        dest="higher_is_better",
        action="store_false",
        help="so it is with the run time",
    )


def _add_deciding(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("how the set is judged")
    group.add_argument(
        "--repeat",
        metavar="N",
        type=_count,
        default=5,
        help="counted runs of each side, in the order A BB AA BB A ... (5)",
    )
    group.add_argument(
        "--warmup",
        metavar="N",
        type=_count,
        default=1,
        help="runs after each switch that do not count: they compile kernels (1)",
    )
    group.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        help="end a run after so long, with all that it started; it counts as failed (no limit)",
    )
    group.add_argument(
        "--min-gain",
        metavar="PERCENT",
        type=_percent,
        help="least gain that pays, as in 2%% (any that is not noise)",
    )
    group.add_argument(
        "--max-loss",
        metavar="PERCENT",
        type=_percent,
        help="keep the set without a gain too, if it surely loses no more than this",
    )


def run(options: Namespace, out: Printer, err: Printer) -> int:
    """Run the command; return its exit code."""
    if options.history:
        return _history(options, out)
    if options.set is None:
        raise UsageError("which set? gatepatch list has them", hint=options.prog + " --help")
    trial = gatepatch.trial(
        options.set,
        options.benchmark,
        python=options.python,
        prefix=options.prefix,
        patches=options.patches,
        assume=options.assume,
        all_devices=options.all_devices,
        accept_current=options.accept_current,
        require_pin=options.require_pin,
        hide_aot=options.hide_aot,
        jit_roots=options.jit_root,
        metric=options.metric,
        metric_json=options.metric_json,
        higher_is_better=options.higher_is_better,
        min_gain=options.min_gain,
        max_loss=options.max_loss,
        repeat=options.repeat,
        warmup=options.warmup,
        timeout=options.timeout,
        output=options.output,
        sccache=not options.no_sccache,
        repeat_line=shlex.join(["gatepatch", *sys.argv[1:]]),
        teller=_Told(err),
    )
    # Whoever read the output may have gone: what became of the set is told by the exit code too.
    with contextlib.suppress(BrokenPipeError):
        _print(trial, options, out, err)
    return 0 if trial.outcome == "applied" else PUT_BACK


def _print(trial: record.Trial, options: Namespace, out: Printer, err: Printer) -> None:
    err.warnings(trial.warnings)
    if options.json:
        out.line(record.to_json(trial))
        return
    kept = "the set stays" if trial.outcome == "applied" else "the set is out again"
    out.line(f"{trial.set}: {out.word(trial.outcome)} ({kept})")
    for line in summary.lines(trial):
        out.line(line)


def _history(options: Namespace, out: Printer) -> int:
    found = api.trial_history(options.set, python=options.python, prefix=options.prefix)
    if options.json:
        out.line(document("trial", trials=found))
        return 0
    if not found:
        out.line("no trial is recorded in this environment")
    for entry in found:
        decision = entry["decision"] or {}
        verdict = decision.get("verdict", entry["outcome"])
        gain = decision.get("gain")
        told = f"{gain:+.2%}" if isinstance(gain, float) else ""
        out.line(
            f"{entry['began']}  {entry['set']}  {out.word(entry['outcome'], 11)}  "
            f"{verdict:15}  {told:8}  {entry['page'] or entry['record']}"
        )
    return 0


class _Told(Teller):
    """Progress and the benchmark's output, for a person."""

    def __init__(self, err: Printer):
        self.err = err
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def line(self, text: str) -> None:
        """One line on what it does."""
        with contextlib.suppress(BrokenPipeError):
            self.err.line(f"gatepatch: {text}")

    def output(self, data: bytes) -> None:
        """Some of what the benchmark prints."""
        with contextlib.suppress(BrokenPipeError):
            self.err.stream.write(self.decode(data))
            self.err.stream.flush()


def _count(text: str) -> int:
    if re.fullmatch(r"\d{1,6}", text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of runs")


def _percent(text: str) -> float:
    if found := re.fullmatch(r"(\d+(?:\.\d+)?) ?%", text):
        return float(found[1]) / 100
    raise argparse.ArgumentTypeError(f"{text!r} is no percentage, such as 2%")
