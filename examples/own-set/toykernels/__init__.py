"""A small package with two architecture gates, one in Python and one in a header."""

__version__ = "1.2.0"
