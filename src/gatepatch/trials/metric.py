"""What a run is judged by: a number in its output, one in a JSON file, or how long it took."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatepatch.errors import Problem, UsageError

_COST = re.compile(r"latency|ttft|tpot|\bitl|elapsed|duration|time|seconds|\bms\b", re.IGNORECASE)
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


class NoMetricError(ValueError):
    """A run ended well, and its metric cannot be had. The text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """Wall-clock seconds of the command."""

    words: str = field(default="run time in seconds", init=False)

    def before(self, cwd: Path) -> None:
        """Nothing to note."""

    def read(self, output: str, seconds: float, cwd: Path, before: object) -> float:
        """The seconds."""
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class InOutput:
    """The last match of a regular expression in what the command printed.

    Args:
        pattern: With one group, which is the number. ``^`` and ``$`` match at lines.
    """

    pattern: re.Pattern[str]

    @property
    def words(self) -> str:
        """What it is, for a person."""
        return f"the last match of {self.pattern.pattern!r} in the output"

    def before(self, cwd: Path) -> None:
        """Nothing to note."""

    def read(self, output: str, seconds: float, cwd: Path, before: object) -> float:
        """The number.

        Raises:
            NoMetricError: Nothing matches, or what does is no positive number.
        """
        found = None
        for found in self.pattern.finditer(output):  # noqa: B007, the last one counts
            pass
        if found is None:
            raise NoMetricError(f"nothing in the output matches {self.pattern.pattern!r}")
        return _positive(found[1], f"{self.pattern.pattern!r} matches {found[0]!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile:
    """A number in a JSON file that the command writes.

    Of a file of JSON lines, to which some benchmarks append, the last line counts.

    Args:
        file: Relative to the folder that the command runs in.
        path: Keys and list positions, from the outermost on.
    """

    file: str
    path: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it is, for a person."""
        return f"{'.'.join(self.path)} in {self.file}"

    def before(self, cwd: Path) -> object:
        """What tells the file that stands there from one that the run writes."""
        try:
            found = (cwd / self.file).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self, output: str, seconds: float, cwd: Path, before: object) -> float:
        """The number.

        Raises:
            NoMetricError: The run has not written the file, or no positive number is there.
        """
        file = cwd / self.file
        if before is not None and self.before(cwd) == before:
            raise NoMetricError(f"{file} is from before the run, which has not written it")
        try:
            value = _document(file.read_text("utf-8"))
        except OSError as error:
            raise NoMetricError(f"{file}: {error.strerror}") from None
        except ValueError as error:
            raise NoMetricError(f"{file} is no JSON: {error}") from None
        for number, key in enumerate(self.path):
            where = ".".join(self.path[: number + 1])
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (KeyError, IndexError, ValueError, TypeError):
                known = (
                    f"; there are {', '.join(map(str, value))}" if isinstance(value, dict) else ""
                )
                raise NoMetricError(f"{file} has no {where}{known[:200]}") from None
        return _positive(value, f"{'.'.join(self.path)} in {file} is {value!r}")


Metric = RunTime | InOutput | InFile


def parse(regex: str | None, in_json: str | None) -> Metric:
    """Read the options that name a metric.

    Args:
        regex: As ``--metric`` has it.
        in_json: As ``--metric-json`` has it: ``FILE:path.to.it``.

    Raises:
        UsageError: Both are given, or one cannot be read.
    """
    if regex is not None and in_json is not None:
        raise UsageError("give --metric or --metric-json, not both")
    if regex is not None:
        return _in_output(regex)
    if in_json is None:
        return RunTime()
    file, colon, path = in_json.rpartition(":")
    if not (file and colon and path):
        hint = "as in --metric-json result.json:summary.output_throughput"
        raise UsageError(
            Problem(message=f"is not FILE:path: {in_json}", where="--metric-json", hint=hint)
        )
    return InFile(file=file, path=tuple(path.split(".")))


def higher_is_better(metric: Metric, told: bool | None) -> bool:
    """Which way is better: as told; else lower for the run time and higher for the others.

    Raises:
        UsageError: The metric's name looks like a time, and nobody has said.
    """
    if told is not None or isinstance(metric, RunTime):
        return bool(told)
    if found := _COST.search(metric.words):
        raise UsageError(
            Problem(
                message=f"{found[0]!r} in the metric reads like a time: say which way is better",
                hint="--lower-is-better, or --higher-is-better",
            )
        )
    return True


def _in_output(regex: str) -> InOutput:
    try:
        pattern = re.compile(regex, re.MULTILINE)
    except re.error as error:
        problem = Problem(message=f"is no regular expression: {error}", where=f"--metric {regex!r}")
        raise UsageError(problem) from None
    if pattern.groups != 1:
        raise UsageError(
            Problem(
                message=f"has {pattern.groups} groups, and needs one: the number",
                where=f"--metric {regex!r}",
                hint="as in --metric 'throughput: ([0-9.]+)'; (?:…) groups without counting",
            )
        )
    return InOutput(pattern=pattern)


def _document(text: str) -> Any:
    """A file's JSON document, or the last of its lines where each line is one."""
    try:
        return json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) < 2:
            raise
        return json.loads(lines[-1])


def _positive(value: object, what: str) -> float:
    """A number above 0: runs are compared by ratio.

    Raises:
        NoMetricError: It is none.
    """
    if isinstance(value, str) and _GROUPED.fullmatch(value.strip()):
        value = value.replace(",", "")
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        number = float(value)
    except ValueError:
        raise NoMetricError(f"{what}, which is no number") from None
    if not (math.isfinite(number) and number > 0):
        raise NoMetricError(f"{what}, and it has to be above 0")
    return number
