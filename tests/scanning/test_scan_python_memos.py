"""Names of a module that a function works out once, for all later calls."""

from __future__ import annotations

import pytest
from test_scan_python import admitted, gates

KEPT = """
import torch

_FAST = None

def is_for(capability):
    major, _ = capability
    return major >= 10 and major != 12

def uses_fast(size):
    global _FAST
    if not on_device():
        return False
    if _FAST is None:
        _FAST = is_for(torch.cuda.get_device_capability())
    return _FAST and size == 64

def run(x):
    if uses_fast(x.shape[0]):
        return 1
"""


def answer(text: str) -> str:
    (found,) = [one for one in gates(text) if one.text.startswith("uses_fast")]
    return admitted(found)


def test_what_a_function_works_out_once_is_that() -> None:
    assert answer(KEPT) == "100 103 110 130"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "    if not on_device", "    _FAST = x\n    if not on_device", id="bound elsewhere too"
        ),
        pytest.param(
            "def run", "def turn():\n    global _FAST\n    _FAST = 1\n\ndef run", id="by two"
        ),
        pytest.param("uses_fast(size)", "uses_fast(size, is_for=None)", id="of its own names"),
    ],
)
def test_what_may_be_another_one_is_not(old: str, new: str) -> None:
    assert old in KEPT
    found = [one for one in gates(KEPT.replace(old, new, 1)) if one.text.startswith("uses_fast")]
    assert not found or "120" in admitted(found[0]) or found[0].unknown
