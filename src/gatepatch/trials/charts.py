"""The drawings of a trial's report, as inline SVG; colours are the page's style sheet's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gatepatch.trials.power import Sample
from gatepatch.trials.record import Run, Trial

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 760.0, 64.0, 12.0, 12.0, 28.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Where a drawing's values lie.

    Args:
        height: Of the whole drawing, in pixels.
        x: First and last value across.
        y: Lowest and highest value.
    """

    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, value: float) -> float:
        """Pixels from the left."""
        low, high = self.x
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / ((high - low) or 1)

    def down(self, value: float) -> float:
        """Pixels from the top."""
        low, high = self.y
        return _TOP + (self.height - _TOP - _BOTTOM) * (1 - (value - low) / ((high - low) or 1))

    def drawing(self, label: str, parts: Sequence[str]) -> str:
        """The drawing, with its horizontal lines."""
        lines = []
        for value in ticks(*self.y):
            at = self.down(value)
            lines.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" {_level(at)}/>')
            lines.append(f'<text class="end" x="{_LEFT - 6}" y="{at + 4:.1f}">{value:.6g}</text>')
        return (
            f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {_WIDTH:g} {self.height:g}">'
            f"{''.join(lines)}{''.join(parts)}</svg>"
        )


def ticks(low: float, high: float, number: int = 5) -> list[float]:
    """Round values between two, about so many."""
    rough = (high - low) / number
    if rough <= 0:
        return [low]
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def runs(trial: Trial) -> str:
    """The metric of each run, in the order of the runs; empty without any."""
    told = [run for run in trial.runs if run.metric is not None]
    values = [run.metric for run in told if run.metric is not None]
    if not values:
        return ""
    room = (max(values) - min(values)) * 0.1 or max(values) * 0.05
    frame = _Frame(
        height=240,
        x=(0.5, len(trial.runs) + 0.5),
        y=(min(values) - room, max(values) + room),
    )
    parts = []
    for run, value in zip(told, values, strict=True):
        kind = "counted" if run.counted else "warm-up"
        title = f"run {run.number}, {run.side} {trial.set}, {kind}: {value:g}"
        parts.append(
            f'<circle class="{run.side} {kind}" cx="{frame.across(run.number):.1f}" '
            f'cy="{frame.down(value):.1f}" r="5"><title>{escape(title)}</title></circle>'
        )
    parts += [
        f'<text class="middle" x="{frame.across(run.number):.1f}" y="232">{run.number}</text>'
        for run in trial.runs
    ]
    return frame.drawing("the metric of each run", parts)


def power(trial: Trial, device: str) -> str:
    """Power and utilisation of a device over the runs, one after the other."""
    rows = [(run, [s for s in run.samples if s.device == device]) for run in trial.runs]
    rows = [(run, samples) for run, samples in rows if samples]
    spans = [max(run.seconds, samples[-1].second) for run, samples in rows]
    starts = [sum(spans[:number]) for number in range(len(spans))]
    watts = [s.watts for _, samples in rows for s in samples if s.watts is not None]
    drawn = ""
    for label, highest, field in (
        ("power in W", max(watts, default=0) * 1.1, "watts"),
        ("utilisation in %", 100.0, "busy"),
    ):
        if any(getattr(s, field) is not None for _, samples in rows for s in samples):
            frame = _Frame(height=180, x=(0, sum(spans)), y=(0, highest))
            parts = [
                _stretch(frame, run, start, span, samples, field)
                for (run, samples), start, span in zip(rows, starts, spans, strict=True)
            ]
            drawn += f"<p>{escape(label)}</p>{frame.drawing(f'{label}, {device}', parts)}"
    return drawn


def _stretch(
    frame: _Frame, run: Run, start: float, span: float, samples: Sequence[Sample], field: str
) -> str:
    """One run's stretch of time: a band in its side's colour, and the line."""
    left, right = frame.across(start), frame.across(start + span)
    bottom = frame.height - _BOTTOM
    points = " ".join(
        f"{frame.across(start + sample.second):.1f},{frame.down(getattr(sample, field)):.1f}"
        for sample in samples
        if getattr(sample, field) is not None
    )
    return (
        f'<rect class="band {run.side}" x="{left:.1f}" y="{_TOP}" '
        f'width="{max(right - left - 1, 1):.1f}" height="{bottom - _TOP:g}"/>'
        f'<polyline class="{run.side}" points="{points}"/>'
        f'<text class="middle" x="{(left + right) / 2:.1f}" y="{bottom + 16:g}">{run.number}</text>'
    )


def _level(y: float) -> str:
    return f'y1="{y:.1f}" y2="{y:.1f}"'
