"""Open architecture gates in installed packages: proved, reversible, per release."""

__version__ = "0.1.0"
