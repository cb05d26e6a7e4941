"""A trial: run a benchmark without and with a set, and keep the set only if it pays."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from packaging.version import Version

from gatepatch import __version__, applier, devices, signals, trialmark, webpage
from gatepatch.errors import (
    GatepatchError,
    Problem,
    RefusedError,
    SignalError,
    TrialError,
    UsageError,
)
from gatepatch.files import write_new
from gatepatch.results import Outcome
from gatepatch.trialmark import Mark
from gatepatch.trials import compiler_cache, page, record, summary
from gatepatch.trials.bench import Bench
from gatepatch.trials.decide import Decision, Rule, decide
from gatepatch.trials.metric import Metric, RunTime
from gatepatch.trials.record import Run, Switches, Trial
from gatepatch.trials.sample import visible
from gatepatch.trials.schedule import Step, steps
from gatepatch.trials.sides import Sides
from gatepatch.unfinished import settled
from gatepatch.workspace import Workspace


class Teller:
    """What a trial says while it goes on; this one says nothing."""

    def line(self, text: str) -> None:
        """One line on what it does."""

    def output(self, data: bytes) -> None:
        """Some of what the benchmark prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to try.

    Args:
        apply: How to apply the set.
        metric: What runs are judged by.
        rule: When the set pays.
        repeat: Counted runs of each side.
        warmup: Runs after each switch that do not count.
        timeout: Seconds until a run is ended and counts as failed; None for no limit.
        output: A folder for the record and the report; beside the state if None.
        sccache: Whether to use a compiler cache where there is one.
        repeat_line: The command line that repeats the trial.
    """

    apply: applier.Options
    metric: Metric = field(default_factory=RunTime)
    rule: Rule = field(default_factory=lambda: Rule(higher=False))
    repeat: int = 5
    warmup: int = 1
    timeout: float | None = None
    output: Path | None = None
    sccache: bool = True
    repeat_line: str = ""


def run_trial(
    workspace: Workspace,
    name: str,
    command: Sequence[str],
    options: Options,
    teller: Teller,
) -> Trial:
    """Try a set; see ``gatepatch.trial``."""
    _check(command, options)
    rehearsed = settled(
        workspace, lambda w: applier.rehearse(w, name, options.apply), options.apply.timeout
    )
    _demand_two_sides(workspace.fresh(), name, rehearsed)
    checked = devices.check(
        name,
        rehearsed.archs,
        options.apply.assume,
        all_devices=options.apply.all_devices,
        requires=rehearsed.requires,
        command="trial",
    )
    checked = replace(checked, devices=checked.devices or devices.seen())
    return _Trial(workspace, name, command, options, teller, rehearsed, checked).run()


def _demand_two_sides(workspace: Workspace, name: str, rehearsed: applier.Rehearsed) -> None:
    """Refuse a trial that would compare a configuration with itself.

    Raises:
        RefusedError: The set changes nothing here, or no state knows that it has.
    """
    states = {str(root.path): workspace.state(root) for root in rehearsed.roots}
    known = any(name in state.sets for state in states.values())
    files = [file for value in rehearsed.result.sets for file in value.files]
    changes = rehearsed.result.outcome == "would-apply"
    lost = [
        file
        for file in files
        if file.outcome == "already-applied" and file.path not in states[file.root].files
    ]
    if lost:
        raise RefusedError(
            Problem(
                message=f"carries {name} already, and the state that could take it out is lost",
                where=str(Path(file.root) / file.path),
                hint=f"gatepatch revert {name}, or gatepatch apply {name}, which restores the state",
            )
            for file in lost
        )
    if rehearsed.result.outcome == "native" or not (known or changes):
        raise RefusedError(
            Problem(
                message=f"there is nothing to try: what {name} is for is there without it",
                hint=f"gatepatch plan {name}",
            )
        )


def _check(command: Sequence[str], options: Options) -> None:
    """Refuse what cannot work before anything is done.

    Raises:
        UsageError: It cannot.
    """
    if not command:
        hint = "gatepatch trial SET -- COMMAND…"
        raise UsageError(Problem(message="there is no benchmark to run", hint=hint))
    if options.repeat < 1 or options.warmup < 0:
        raise UsageError("--repeat is at least 1, and --warmup at least 0")
    if options.rule.min_gain is not None and options.rule.max_loss is not None:
        raise UsageError(
            "give --min-gain or --max-loss: the second keeps a set that gains nothing as well"
        )
    if options.output is not None:
        try:
            options.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = f"--output {options.output}"
            raise UsageError(Problem(message=str(error.strerror), where=where)) from None


class _Failed(Exception):
    """A run with the set that decides the trial."""

    def __init__(self, decision: Decision):
        super().__init__(decision.reason)
        self.decision = decision


class _Trial:
    """One trial while it goes on."""

    def __init__(
        self,
        workspace: Workspace,
        name: str,
        command: Sequence[str],
        options: Options,
        teller: Teller,
        rehearsed: applier.Rehearsed,
        checked: devices.Checked,
    ):
        now = datetime.now(timezone.utc)
        self.began = now.isoformat(timespec="milliseconds")
        self.id = f"{now:%Y%m%dT%H%M%SZ}-{name}-{os.urandom(2).hex()}"
        self.name = name
        self.options = options
        self.teller = teller
        self.rehearsed = rehearsed
        self.checked = checked
        self.noted = signals.Noted()
        self.runs: list[Run] = []
        self.sides = Sides(
            Workspace(workspace.environment, trial=self.id),
            name,
            rehearsed.roots,
            options.apply,
            checked,
        )
        self.through = compiler_cache.Through()
        flashinfer = self.sides.workspace.target("flashinfer-python")
        if options.sccache and flashinfer is not None and rehearsed.compiles:
            self.through = compiler_cache.choose(Version(flashinfer.version), os.environ)
        self.bench = Bench(
            command=tuple(command),
            folder=Path.cwd(),
            environment=workspace.environment,
            variables={
                **self.through.variables,
                "GATEPATCH_TRIAL_ID": self.id,
                "GATEPATCH_TRIAL_SET": name,
            },
            metric=options.metric,
            timeout=options.timeout,
            uuids=visible(checked.devices, os.environ),
            tee=teller.output,
        )

    def run(self) -> Trial:
        """Run it, and settle it whatever happens."""
        patience = self.options.apply.timeout
        with signals.noted() as self.noted, trialmark.held(self._marks(), patience):
            self.sides.check()
            try:
                decision = self._decide()
                self.noted.check()
                self.sides.go("with" if decision.keep else "without")
            except BaseException as error:
                self.teller.line("putting everything back as it was")
                self.sides.put_back()
                interrupted = isinstance(error, SignalError)
                self._write(self._result("interrupted" if interrupted else "refused", None, error))
                raise
            return self._write(self._result("applied" if decision.keep else "reverted", decision))

    def _marks(self) -> list[Mark]:
        documents = {root: state.to_bytes() for root, state in self.sides.before.items()}
        return [
            Mark(
                id=self.id,
                name=self.name,
                root=root,
                roots=tuple(documents),
                state=None if document is None else document.decode(),
                jit_roots=tuple(map(str, self.options.apply.jit_roots)),
                process=os.getpid(),
                began=self.began,
            )
            for root, document in documents.items()
        ]

    def _decide(self) -> Decision:
        """Make the runs, and decide.

        Raises:
            TrialError: The benchmark fails without the set.
        """
        plan = list(steps(self.options.repeat, self.options.warmup))
        if self.options.timeout is None:
            self.teller.line("no --timeout is given: a run that hangs is waited for")
        try:
            for step in plan:
                if step.switch:
                    self.sides.go(step.side)
                self._one(step, len(plan))
        except _Failed as failed:
            return failed.decision
        metrics = record.metrics(self.runs, "without"), record.metrics(self.runs, "with")
        return decide(*metrics, self.options.rule)

    def _one(self, step: Step, total: int) -> None:
        """Make one run, and hold it against what may end the trial.

        Raises:
            TrialError: It fails without the set.
            _Failed: It fails with the set.
        """
        kind = "" if step.counted else ", warm-up"
        self.teller.line(f"run {step.number} of {total}, {step.side} {self.name}{kind}")
        counted = [run for run in self.runs if run.side == "without" and run.counted]
        baseline = [use for run in counted for use in run.uses] if step.side == "with" else []
        run = self.bench.run(step, self.noted, baseline)
        self.runs.append(run)
        for text in summary.of_run(run):
            self.teller.line(f"  {text}")
        if run.problem and step.side == "with":
            reason = f"the benchmark fails with the set, in run {step.number}: {run.problem}"
            hung = run.how == "timeout"
            raise _Failed(Decision(verdict="hung" if hung else "failed", keep=False, reason=reason))
        if run.problem:
            raise TrialError(
                Problem(
                    message=f"the benchmark fails without {self.name}, in run {step.number}: "
                    f"{run.problem}; nothing was changed",
                    where=shlex.join(self.bench.command),
                    hint="\n".join(run.last_lines) or "it printed nothing",
                )
            )

    def _warnings(self) -> tuple[str, ...]:
        found = [*self.checked.warnings, *self.sides.warnings]
        if self.through.note:
            found.append(self.through.note)
        if not self.bench.uuids and os.environ.get("CUDA_VISIBLE_DEVICES"):
            found.append(
                "all devices were sampled: without CuPy it is not known which ones "
                "CUDA_VISIBLE_DEVICES names"
            )
        if self.bench.unsampled:
            found.append(f"power and utilisation were not sampled: {self.bench.unsampled}")
        return tuple(dict.fromkeys(found))

    def _result(
        self, outcome: Outcome, decision: Decision | None, error: BaseException | None = None
    ) -> Trial:
        files = [file for value in self.rehearsed.result.sets for file in value.files]
        others = {n for state in self.sides.before.values() for n in state.sets} - {self.name}
        return Trial(
            id=self.id,
            set=self.name,
            outcome=outcome,
            applied_before=self.sides.applied_before,
            began=self.began,
            ended=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            command_line=self.bench.command,
            folder=str(self.bench.folder),
            metric=self.options.metric.words,
            higher=self.options.rule.higher,
            decision=decision,
            runs=tuple(self.runs),
            switches=Switches(
                seconds=tuple(round(value, 3) for value in self.sides.seconds),
                warm_up=summary.costs(self.runs),
                through=self.through.words,
            ),
            environment=str(self.bench.environment.prefix),
            versions={**{f.distribution: f.version for f in files}, "gatepatch": __version__},
            others=tuple(sorted(others)),
            devices=tuple(f"{d.name}, {d.uuid}" for d in self.checked.devices),
            variables=self.through.variables,
            warnings=self._warnings(),
            problem=str(error) if isinstance(error, GatepatchError) else "",
            repeat=self.options.repeat_line,
        )

    def _write(self, trial: Trial) -> Trial:
        """Write the record and the report; what cannot be written is a warning."""
        beside = next(iter(self.sides.before)).state_dir / record.FOLDER
        folder = self.options.output or beside
        trial = replace(
            trial,
            record=str(folder / f"{self.id}.json"),
            page=str(folder / f"{self.id}.html"),
        )
        try:
            record.write(trial, dict.fromkeys([beside / f"{self.id}.json", Path(trial.record)]))
            write_new(Path(trial.page), webpage.encode(page.render(trial)))
        except OSError as error:
            told = f"the record could not be written: {error}"
            return replace(trial, record="", page="", warnings=(*trial.warnings, told))
        return trial
