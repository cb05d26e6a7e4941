"""The engine for a file's language. The parsers are loaded for what has no pin, and only then."""

from __future__ import annotations

from collections.abc import Sequence

from gatepatch.gates.result import Context, Engine, FileEdits
from gatepatch.spec import Edit


def run_engine(source: bytes, edits: Sequence[Edit], context: Context) -> FileEdits:
    """Plan a file's edits with the engine for its language.

    Raises:
        RefusedError: Something does not match, or cannot be proved.
    """
    return _engine(context.path)(source, edits, context)


def _engine(path: str) -> Engine:
    from gatepatch.loader import CUDA_SUFFIXES, PYTHON_SUFFIXES

    if path.endswith(PYTHON_SUFFIXES):
        from gatepatch.gates import python

        return python.plan
    if path.endswith(CUDA_SUFFIXES):
        from gatepatch.gates import cuda

        return cuda.plan
    from gatepatch.gates import text

    return text.plan
