"""``_deep_child`` with one question whose kernel never ends, or ends with an error.

``check_deep.py`` has it run in the child's place. ``BAD`` says which: ``endless`` or ``trap``.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

from gatepatch.probing import _deep_child, _deep_questions
from gatepatch.probing._deep_questions import Asker

KERNELS = """
extern "C" __global__ void endless(volatile int *flag) { while (*flag == 0) {} }
extern "C" __global__ void trap(volatile int *flag) { __trap(); }
"""


def misbehave(asker: Asker) -> dict[str, Any]:
    """Launch the kernel, and wait for it as every question does."""
    import cupy

    kernel = cupy.RawModule(code=KERNELS).get_function(os.environ["BAD"])
    flag = ctypes.c_void_p(asker._zeros(4))
    asker._driver.launch(kernel.kernel.ptr, 1, 1, [flag])
    asker._runtime.deviceSynchronize()
    return {"order": "ordered", "launches": 0, "wrong": 0, "early": 0}


_deep_questions.QUESTIONS = {**_deep_questions.QUESTIONS, "pdl": misbehave}

if __name__ == "__main__":
    sys.exit(_deep_child.main(sys.argv[1]))
