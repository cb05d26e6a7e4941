"""The report of a trial: one HTML page that needs nothing else."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from html import escape

from gatepatch import webpage
from gatepatch.trials import charts, summary
from gatepatch.trials.record import Run, Trial

_STYLE = """
:root { --without: #2f6db5; --with: #c8641b; }
@media (prefers-color-scheme: dark) { :root { --without: #6aa5e8; --with: #ef9a57; } }
p.reason { font-size: 1.15rem; }
svg { width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--faint); } svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; } svg .grid { stroke: var(--line); }
circle.without { fill: var(--without); stroke: var(--without); }
circle.with { fill: var(--with); stroke: var(--with); }
circle.warm-up { fill: none; stroke-width: 1.5; }
polyline { fill: none; stroke-width: 1.5; } polyline.without { stroke: var(--without); }
polyline.with { stroke: var(--with); } .band { opacity: .1; }
.band.without { fill: var(--without); } .band.with { fill: var(--with); }
.key { font-weight: 600; } .key.without { color: var(--without); } .key.with { color: var(--with); }
"""

_HEADLINES = {
    "applied": "the set stays",
    "reverted": "the set is out again",
    "interrupted": "interrupted; the environment is as it was before",
    "refused": "no decision; the environment is as it was before",
}


def render(trial: Trial) -> str:
    """The page."""
    title = f"Trial of {trial.set}: {_HEADLINES.get(trial.outcome, trial.outcome)}"
    reason = trial.decision.reason if trial.decision else trial.problem
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="reason">{escape(reason)}</p>',
        *(f'<p class="reason">{escape(text)}.</p>' for text in summary.spins(trial)),
        _figures(trial),
        *_runs(trial),
        *_power(trial),
        *_switches(trial),
        *_notes(trial),
        *_facts(trial),
        *_repeat(trial),
    ]
    return webpage.page(title, body, style=_STYLE)


def _figures(trial: Trial) -> str:
    better = "higher is better" if trial.higher else "lower is better"
    lines = "\n".join(summary.figures(trial))
    return f"<p>Judged by {escape(trial.metric)}; {better}.</p><pre>{escape(lines)}</pre>"


def _runs(trial: Trial) -> Iterable[str]:
    yield (
        f'<h2>The runs</h2><p><span class="key without">without {escape(trial.set)}</span>, '
        f'<span class="key with">with {escape(trial.set)}</span>; hollow: warm-ups, which do not '
        "count.</p>"
    )
    yield charts.runs(trial)
    head = "<tr><th>run<th>side<th>metric<th>seconds<th>power, W<th>busy, %<th>what happened</tr>"
    rows = "".join(map(_row, trial.runs))
    yield f'<div class="wide"><table>{head}{rows}</table></div>'
    for run in trial.runs:
        if run.last_lines:
            last = escape("\n".join(run.last_lines))
            yield f"<p>Run {run.number}, its last lines:</p><pre>{last}</pre>"


def _row(run: Run) -> str:
    told = [run.problem] if run.problem else []
    told += [*run.notes, *(f"looks like spinning: {spin.device}" for spin in run.spins)]
    watts = " ".join(f"{use.watts:.0f}" for use in run.uses if use.watts is not None)
    busy = " ".join(f"{use.busy:.0f}" for use in run.uses if use.busy is not None)
    metric = "" if run.metric is None else f"{run.metric:.5g}"
    kind = run.side if run.counted else f"{run.side}, warm-up"
    cells = [kind, metric, f"{run.seconds:.2f}", watts, busy]
    numbers = "".join(f'<td class="number">{escape(cell)}</td>' for cell in cells[1:])
    what = escape("; ".join(told)) or "as it should"
    return f"<tr><td>{run.number}<td>{escape(kind)}{numbers}<td>{what}</tr>"


def _power(trial: Trial) -> Iterable[str]:
    devices = dict.fromkeys(sample.device for run in trial.runs for sample in run.samples)
    if devices:
        yield "<h2>Power over time</h2><p>Run after run; the numbers below are the runs'.</p>"
    for device in devices:
        yield f"<h3>{escape(device)}</h3>{charts.power(trial, device)}"


def _switches(trial: Trial) -> Iterable[str]:
    if trial.switches.seconds:
        yield "<h2>What the switches cost</h2>"
        yield _table(summary.switches(trial))


def _notes(trial: Trial) -> Iterable[str]:
    if trial.warnings:
        rows = "".join(f"<li>{escape(text)}</li>" for text in trial.warnings)
        yield f"<h2>What to know</h2><ul>{rows}</ul>"


def _facts(trial: Trial) -> Iterable[str]:
    yield "<h2>What was tried</h2>"
    yield _table(
        {
            "set": trial.set,
            "applied before the trial": "yes" if trial.applied_before else "no",
            "other sets, on both sides": ", ".join(trial.others) or "none",
            "versions": ", ".join(f"{name} {v}" for name, v in trial.versions.items()),
            "environment": trial.environment,
            "devices": "; ".join(trial.devices) or "not asked",
            "variables set for the runs": ", ".join(f"{k}={v}" for k, v in trial.variables.items())
            or "none but GATEPATCH_TRIAL_…",
            "began": trial.began,
            "ended": trial.ended,
        }
    )


def _repeat(trial: Trial) -> Iterable[str]:
    yield "<h2>How to repeat it</h2>"
    if trial.repeat:
        where = f"cd {shlex.quote(trial.folder)}\n{trial.repeat}"
        yield f"<pre>{escape(where)}</pre>"
    yield f"<p>The benchmark by itself:</p><pre>{escape(shlex.join(trial.command_line))}</pre>"
    yield f"<p>Back to the originals:</p><pre>gatepatch revert {escape(trial.set)}</pre>"


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(f"<tr><th>{escape(k)}<td>{escape(v)}</tr>" for k, v in rows.items())
    return f'<div class="wide"><table>{cells}</table></div>'
