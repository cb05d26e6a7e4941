"""The report of a trial: one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape

from gatepatch.trials.record import Trial


def render(trial: Trial) -> str:
    """The page."""
    reason = trial.decision.reason if trial.decision else trial.problem
    return f"<!doctype html><title>{escape(trial.set)}</title><p>{escape(reason)}</p>"
