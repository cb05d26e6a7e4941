"""Trials: a benchmark without and with a set, which decides whether the set stays."""
