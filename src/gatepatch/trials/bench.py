"""The benchmark: one run of it, judged by its metric, with what the devices did meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from gatepatch.environment import Environment
from gatepatch.signals import Noted
from gatepatch.trials import runs
from gatepatch.trials.metric import Metric, NoMetricError
from gatepatch.trials.power import Use, spinning, thinned, use
from gatepatch.trials.record import Run
from gatepatch.trials.sample import Sampler, sampling
from gatepatch.trials.schedule import Step


@dataclass(slots=True, kw_only=True)
class Bench:
    """A benchmark and how it is run.

    Args:
        command: A program and its arguments.
        folder: Where it runs.
        environment: The environment that is tried.
        variables: Environment variables that the runs get beside this process's own.
        metric: What a run is judged by.
        timeout: Seconds until a run is ended; None for no limit.
        uuids: The devices to sample; all if there are none.
        tee: Is given the output as it comes.

    Attributes:
        unsampled: Why there are no samples; empty while there may be some.
    """

    command: tuple[str, ...]
    folder: Path
    environment: Environment
    variables: Mapping[str, str]
    metric: Metric
    timeout: float | None
    uuids: tuple[str, ...]
    tee: Callable[[bytes], None]
    unsampled: str = field(default="", init=False)

    def run(self, step: Step, noted: Noted, baseline: Sequence[Use]) -> Run:
        """Make one run.

        Args:
            step: Which one.
            noted: Raises a signal that comes meanwhile, at once.
            baseline: What the devices did in the runs that this one is to be held against.

        Raises:
            SignalError: A signal came; the run was ended.
        """
        before = self.metric.before(self.folder)
        began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._sampling() as sampler:
            ended = runs.execute(
                self.command,
                environment={**os.environ, **self.variables, **_variables(step)},
                timeout=self.timeout,
                orphaned=recovery(self.environment),
                noted=noted,
                tee=self.tee,
                feeds=(sampler,) if sampler else (),
            )
        value, problem = None, _problem(ended, self.timeout)
        if not problem:
            try:
                value = self.metric.read(ended.output, ended.seconds, self.folder, before)
            except NoMetricError as error:
                problem = str(error)
        samples = [s for s in sampler.samples() if s.second >= 0] if sampler else []
        uses = use(samples)
        return Run(
            number=step.number,
            side=step.side,
            counted=step.counted,
            began=began,
            seconds=round(ended.seconds, 3),
            how=ended.how,
            code=ended.code,
            metric=value,
            problem=problem,
            notes=tuple(_left(ended)),
            last_lines=tuple(runs.last_lines(ended.output)) if problem else (),
            uses=uses,
            spins=spinning(uses, baseline),
            samples=thinned(samples),
        )

    @contextlib.contextmanager
    def _sampling(self) -> Iterator[Sampler | None]:
        """Sample the devices, unless it is known that this cannot be."""
        if self.unsampled:
            yield None
            return
        with sampling(self.uuids) as sampler:
            yield sampler
        self.unsampled = sampler.missing


def recovery(environment: Environment) -> list[str]:
    """The command that puts everything back when this process dies in the middle of a run."""
    where = ["--prefix", str(environment.prefix)]
    if environment.python is not None:
        where = ["--python", str(environment.python)]
    code = (
        "import json, sys; sys.path[:0] = json.loads(sys.argv.pop(1)); "
        "from gatepatch.cli import main; sys.exit(main())"
    )
    path = json.dumps([path for path in sys.path if path])
    return [sys.executable, "-c", code, path, "recover", *where]


def _variables(step: Step) -> dict[str, str]:
    return {
        "GATEPATCH_TRIAL_SIDE": step.side,
        "GATEPATCH_TRIAL_RUN": str(step.number),
        "GATEPATCH_TRIAL_COUNTED": str(int(step.counted)),
    }


def _problem(ended: runs.Ended, timeout: float | None) -> str:
    """Why a run counts as failed; empty if it does not."""
    match ended.how:
        case "not-started":
            return f"it cannot be started: {ended.error}"
        case "timeout":
            return f"it was not done within {timeout:g} s, and was ended"
        case "exit" if ended.code is not None and ended.code < 0:
            return f"it ended by signal {-ended.code}"
        case "exit" if ended.code:
            return f"it ended with exit code {ended.code}"
        case "exit":
            return ""


def _left(ended: runs.Ended) -> Iterator[str]:
    """What a run left behind."""
    if ended.left:
        yield f"left processes behind, which were ended: {', '.join(ended.left)}"
    if ended.stuck:
        yield f"left processes behind that could not be ended: {', '.join(ended.stuck)}"
