"""A trial: run a benchmark without and with a set, and keep the set only if it pays."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from gatepatch import __version__, applier, devices, signals, transaction, trialmark
from gatepatch.errors import (
    GatepatchError,
    PendingError,
    Problem,
    RefusedError,
    SignalError,
    StaleError,
    TrialError,
    UsageError,
)
from gatepatch.results import Outcome
from gatepatch.state import State
from gatepatch.target import Root
from gatepatch.trialmark import Mark
from gatepatch.trials import compiler_cache, page, record, runs
from gatepatch.trials.decide import Decision, Rule, decide
from gatepatch.trials.metric import InOutput, Metric, NoMetricError, RunTime
from gatepatch.trials.power import Spin, Use, spinning, thinned, use
from gatepatch.trials.record import Run, Switches, Trial
from gatepatch.trials.sample import Sampler, sampling
from gatepatch.trials.schedule import Side, Step, steps
from gatepatch.trials.summary import costs
from gatepatch.unfinished import put, settled
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
    workspace = workspace.fresh()
    if rehearsed.result.outcome == "native":
        raise RefusedError(
            Problem(
                message=f"there is nothing to try: the installed releases do by themselves what "
                f"{name} is for",
                hint=f"gatepatch plan {name}",
            )
        )
    checked = devices.check(
        name,
        rehearsed.archs,
        options.apply.assume,
        all_devices=options.apply.all_devices,
        command="trial",
    )
    return _Trial(workspace, name, command, options, teller, rehearsed, checked).run()


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
        self.began = now.isoformat(timespec="seconds")
        self.id = f"{now:%Y%m%dT%H%M%SZ}-{name}-{os.urandom(2).hex()}"
        self.workspace = Workspace(workspace.environment, trial=self.id)
        self.name = name
        self.command = tuple(command)
        self.options = options
        self.teller = teller
        self.checked = checked
        self.rehearsed = rehearsed
        self.roots = rehearsed.roots
        self.before = {root: workspace.state(root) for root in self.roots}
        self.applied_before = any(name in state.sets for state in self.before.values())
        self.out = {root: State() for root in self.roots}
        self.having: dict[Root, State] | None = None
        self.side: Side = "with" if self.applied_before else "without"
        self.noted = signals.Noted()
        self.folder = Path.cwd()
        self.runs: list[Run] = []
        self.switches: list[float] = []
        self.warnings = list(checked.warnings)
        self.through = self._through()
        self.variables = {
            **self.through.variables,
            "GATEPATCH_TRIAL_ID": self.id,
            "GATEPATCH_TRIAL_SET": name,
        }

    def run(self) -> Trial:
        """Run it, and settle it whatever happens."""
        with signals.noted() as self.noted, trialmark.held(self._marks(), self._patience):
            decision: Decision | None = None
            try:
                decision = self._decide()
                self.noted.check()
                self._settle(decision)
            except BaseException as error:
                self.teller.line("putting everything back as it was")
                self._put_back()
                interrupted = isinstance(error, SignalError)
                self._write(self._result("interrupted" if interrupted else "refused", None, error))
                raise
            return self._write(self._result("applied" if decision.keep else "reverted", decision))

    @property
    def _patience(self) -> float:
        return self.options.apply.timeout

    def _marks(self) -> list[Mark]:
        documents = {root: self.before[root].to_bytes() for root in self.roots}
        return [
            Mark(
                id=self.id,
                name=self.name,
                root=root,
                roots=self.roots,
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
        try:
            for step in plan:
                if step.switch:
                    self._switch(step.side)
                self._one(step, len(plan))
        except _Failed as failed:
            return failed.decision
        sides = [[r.metric for r in self.runs if r.counted and r.side == s] for s in _SIDES]
        without, having = ([value for value in side if value is not None] for side in sides)
        return decide(without, having, self.options.rule)

    def _settle(self, decision: Decision) -> None:
        """Leave the set in if it pays, and take it out if it does not."""
        if decision.keep:
            self._switch("with")
        else:
            self._put(self.out)
            self.side = "without"

    def _switch(self, side: Side) -> None:
        if side == self.side and (side == "without" or self.having is not None):
            return
        began = time.monotonic()
        if side == "without":
            self._put(self.out)
        elif self.having is not None:
            self._put(self.having, strict=True)
        else:
            self._apply()
        self.side = side
        self.switches.append(time.monotonic() - began)

    def _apply(self) -> None:
        """Put the set in for the first time, and remember how it stands then."""
        found = tuple(device.arch for device in self.checked.devices)
        options = self.options.apply
        result = applier.apply(
            self.workspace.fresh(),
            self.name,
            replace(options, assume=options.assume or found),
        )
        if result.signal is not None:
            raise SignalError(result.signal)
        fresh = self.workspace.fresh()
        self.having = {root: fresh.state(root) for root in self.roots}
        self.warnings += result.warnings

    def _put_back(self) -> None:
        """Bring everything to what it was before the trial.

        Raises:
            PendingError: It could not be done; the marks stay.
        """
        try:
            self._put(self.before)
        except PendingError:
            raise
        except (GatepatchError, OSError) as error:
            problems = error.problems if isinstance(error, GatepatchError) else ()
            told = Problem(
                message=f"what the trial of {self.name} changed could not be put back",
                where=str(self.roots[0].state_dir / trialmark.NAME),
                hint="mend the cause, then: gatepatch recover",
            )
            raise PendingError((*(problems or (Problem(message=str(error)),)), told)) from error

    def _put(self, states: Mapping[Root, State], *, strict: bool = False) -> None:
        """Bring the set to what it was in some states.

        Args:
            states: The states.
            strict: Refuse where the set would do nothing, as after an upgrade.
        """
        for last in (False, False, True):
            if self.workspace.pending():
                transaction.recover(self.workspace.roots(), timeout=self._patience)
            try:
                done, found = put(
                    self.workspace.fresh(),
                    self.name,
                    states,
                    jit_roots=self.options.apply.jit_roots,
                    timeout=self._patience,
                )
                break
            except StaleError:
                if last:
                    raise
        if strict and (told := [warning for each in found for warning in each.warnings]):
            raise RefusedError([Problem(message=text) for text in told])
        if strict and done is not None and done.signal is not None:
            raise SignalError(done.signal)

    def _one(self, step: Step, total: int) -> None:
        """Make one run, and hold it against what may end the trial.

        Raises:
            TrialError: It fails without the set.
            _Failed: It fails with the set.
        """
        kind = "" if step.counted else ", warm-up"
        self.teller.line(f"run {step.number} of {total}, {step.side} {self.name}{kind}")
        run = self._execute(step)
        self.runs.append(run)
        for note in (*run.notes, *(f"looks like spinning, {s.words}" for s in run.spins)):
            self.teller.line(f"  {note}")
        if not run.problem:
            self.teller.line(f"  {_told(self.options.metric, run)}")
            return
        if step.side == "with":
            verdict = "hung" if run.how == "timeout" else "failed"
            reason = f"the benchmark fails with the set, in run {step.number}: {run.problem}"
            raise _Failed(Decision(verdict=verdict, keep=False, reason=reason))  # type: ignore[arg-type]
        raise TrialError(
            Problem(
                message=f"the benchmark fails without {self.name}, in run {step.number}: "
                f"{run.problem}; nothing was changed",
                where=shlex.join(self.command),
                hint="\n".join(run.last_lines) or "it printed nothing",
            )
        )

    def _execute(self, step: Step) -> Run:
        metric = self.options.metric
        before = metric.before(self.folder)
        began = datetime.now(timezone.utc).isoformat(timespec="seconds")
        with self._sampling() as sampler:
            ended = runs.execute(
                self.command,
                environment={
                    **os.environ,
                    **self.variables,
                    "GATEPATCH_TRIAL_SIDE": step.side,
                    "GATEPATCH_TRIAL_RUN": str(step.number),
                    "GATEPATCH_TRIAL_COUNTED": str(int(step.counted)),
                },
                timeout=self.options.timeout,
                orphaned=self._recovery(),
                noted=self.noted,
                tee=self.teller.output,
                feeds=(sampler,) if sampler else (),
            )
        value, problem = None, _problem(ended, self.options.timeout)
        if not problem:
            try:
                value = metric.read(ended.output, ended.seconds, self.folder, before)
            except NoMetricError as error:
                problem = str(error)
        samples = sampler.samples() if sampler else ()
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
            spins=self._spinning(step, uses),
            samples=thinned(samples),
        )

    @contextlib.contextmanager
    def _sampling(self) -> Iterator[Sampler | None]:
        """Sample the devices, unless it is known that this cannot be."""
        if any(note.startswith(_NO_SAMPLES) for note in self.warnings):
            yield None
            return
        with sampling([device.uuid for device in self.checked.devices]) as sampler:
            yield sampler
        if sampler.missing:
            self.warnings.append(f"{_NO_SAMPLES}: {sampler.missing}")

    def _spinning(self, step: Step, uses: Sequence[Use]) -> tuple[Spin, ...]:
        if step.side == "without":
            return ()
        baseline = [u for r in self.runs if r.side == "without" and r.counted for u in r.uses]
        return spinning(uses, baseline)

    def _recovery(self) -> list[str]:
        """The command that puts everything back when this process dies in the middle of a run."""
        environment = self.workspace.environment
        where = ["--prefix", str(environment.prefix)]
        if environment.python is not None:
            where = ["--python", str(environment.python)]
        code = "import sys; sys.path[:0] = sys.argv.pop(1).split('\\0')"
        main = "from gatepatch.cli import main; sys.exit(main())"
        path = "\n".join(p for p in sys.path if p)
        code = code.replace("\\0", "\\n")
        return [sys.executable, "-c", f"{code}; {main}", path, "recover", *where]

    def _through(self) -> compiler_cache.Through:
        """What the runs compile through, where the set has anything compiled."""
        target = self.workspace.target("flashinfer-python")
        names = {f.distribution for s in self.rehearsed.result.sets for f in s.files}
        if target is None or "flashinfer-python" not in names or not self.options.sccache:
            return compiler_cache.Through()
        found = compiler_cache.choose(target.version, os.environ)
        if found.note:
            self.warnings.append(found.note)
        return found

    def _result(
        self, outcome: Outcome, decision: Decision | None, error: BaseException | None = None
    ) -> Trial:
        files = [file for value in self.rehearsed.result.sets for file in value.files]
        others = {n for root in self.roots for n in self.before[root].sets if n != self.name}
        return Trial(
            id=self.id,
            set=self.name,
            outcome=outcome,
            applied_before=self.applied_before,
            began=self.began,
            ended=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            command_line=self.command,
            folder=str(self.folder),
            metric=self.options.metric.words,
            higher=self.options.rule.higher,
            decision=decision,
            runs=tuple(self.runs),
            switches=Switches(
                seconds=tuple(round(value, 3) for value in self.switches),
                warm_up=costs(self.runs),
                through=self.through.words,
            ),
            environment=str(self.workspace.environment.prefix),
            versions={
                **{f.distribution: f.version for f in files},
                "gatepatch": __version__,
            },
            others=tuple(sorted(others)),
            devices=tuple(f"{d.name}, {d.uuid}" for d in self.checked.devices),
            variables=self.through.variables,
            warnings=tuple(dict.fromkeys(self.warnings)),
            problem=str(error) if isinstance(error, GatepatchError) else "",
            repeat=self.options.repeat_line,
        )

    def _write(self, trial: Trial) -> Trial:
        """Write the record and the report; what cannot be written is a warning."""
        beside = self.roots[0].state_dir / record.FOLDER
        folder = self.options.output or beside
        trial = replace(
            trial,
            record=str(folder / f"{self.id}.json"),
            page=str(folder / f"{self.id}.html"),
        )
        try:
            record.write(trial, dict.fromkeys([beside / f"{self.id}.json", Path(trial.record)]))
            Path(trial.page).write_text(page.render(trial), "utf-8")
        except OSError as error:
            told = f"the record could not be written: {error}"
            return replace(trial, record="", page="", warnings=(*trial.warnings, told))
        return trial


_SIDES: tuple[Side, Side] = ("without", "with")
_NO_SAMPLES = "power and utilisation were not sampled"


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


def _told(metric: Metric, run: Run) -> str:
    match metric:
        case RunTime():
            return f"{run.seconds:.3f} s"
        case InOutput() | _:
            return f"{run.metric:g} ({run.seconds:.1f} s)"


def _left(ended: runs.Ended) -> Iterator[str]:
    """What a run left behind."""
    if ended.left:
        yield f"left processes behind, which were ended: {', '.join(ended.left)}"
    if ended.stuck:
        yield f"left processes behind that could not be ended: {', '.join(ended.stuck)}"
