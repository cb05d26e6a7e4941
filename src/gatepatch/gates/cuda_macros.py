"""What a macro means in each pass of the CUDA compiler, and the verdict of a condition.

Measured with ``nvcc --dryrun -c`` of CUDA 13.0.88, the ``-D`` of each pass (sm_75 to sm_121f):

======== =================== ============================ ========================= ================================
pass     ``__CUDA_ARCH__``   ``__CUDA_ARCH_FEAT_SM…_ALL`` ``__CUDA_ARCH_SPECIFIC__`` ``__CUDA_ARCH_FAMILY_SPECIFIC__``
======== =================== ============================ ========================= ================================
host     no                  no                           no                        no
sm_90    900                 no                           no                        no
sm_90a   900                 SM90, empty ``-D``: 1        900                       900
sm_100   1000                no                           no                        no
sm_100a  1000                SM100                        1000                      1000
sm_100f  1000                no                           no                        1000
sm_103a  1030                SM103                        1030                      1030
sm_103f  1030                no                           no                        1030
sm_120a  1200                SM120                        1200                      1200
sm_120f  1200                no                           no                        1200
======== =================== ============================ ========================= ================================

110 and 121 are like 120. ``__CUDA_ARCH_LIST__`` is there in every pass, the host's too, with all
the targets of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gatepatch.arch import CUDA_PASSES, CudaPass, Suffix
from gatepatch.boolean import Bool, and_, atom, not_
from gatepatch.gates.directives import Branch, Directive, Scan
from gatepatch.gates.preprocessor import ConditionError
from gatepatch.gates.preprocessor_eval import Free, Known, Macro, Unknown, evaluate
from gatepatch.gates.preprocessor_tree import Expr, macros, to_source
from gatepatch.verdict import Verdict

ARCH = "__CUDA_ARCH__"
SPECIFIC = "__CUDA_ARCH_SPECIFIC__"
FAMILY = "__CUDA_ARCH_FAMILY_SPECIFIC__"
COMPILER = "__CUDACC__"
"""Defined wherever a device is compiled for; a header may be the host compiler's, too."""
FEATURE = re.compile(r"__CUDA_ARCH_FEAT_SM(\d+)_ALL")

# A macro with such a name may be defined where an architecture is compiled for, and nowhere
# else. `SEARCH`, `ARCHIVE` and the host's `__aarch64__` are no such names.
_SMELL = re.compile(
    r"(?<!se)arch(?!iv|64|32)|sm_?\d{2,3}|compute_?\d{2}|capability|gencode"
    r"|volta|turing|ampere|hopper|blackwell|rubin|(?:^|_)(?:pascal|ada|lovelace)(?:_|$)",
    re.IGNORECASE,
)


def is_target_macro(name: str) -> bool:
    """Whether the CUDA compiler defines the macro from the pass that it is in."""
    return name in (ARCH, SPECIFIC, FAMILY) or FEATURE.fullmatch(name) is not None


def speaks_of_architecture(name: str) -> bool:
    """Whether a macro's name says that an architecture may stand behind it."""
    return not name.startswith("__has_") and _SMELL.search(name) is not None


def target_macro(name: str, compilation: CudaPass) -> int | None:
    """The value of a target macro in a pass; None where it is not defined."""
    if compilation.arch is None:
        return None
    specific = compilation.suffix is Suffix.ARCHITECTURE
    if feature := FEATURE.fullmatch(name):
        return 1 if specific and feature[1] == str(compilation.arch.sm) else None
    present = {
        ARCH: True,
        SPECIFIC: specific,
        FAMILY: specific or compilation.suffix is Suffix.FAMILY,
    }
    return compilation.arch.cuda_arch if present[name] else None


_REMEMBERED = 4096
"""How many verdicts are kept: files repeat their conditions, and each other's."""


class Macros:
    """What the macros of one file mean.

    Args:
        hidden: Macros that the file itself makes depend on the architecture, and how.
    """

    def __init__(self, hidden: Mapping[str, str] | None = None):
        self.hidden = hidden or {}
        self._verdicts: dict[str, Verdict] = {}

    def meaning(self, name: str, compilation: CudaPass) -> Macro:
        """Return what a macro means in a pass."""
        if reason := self.hidden.get(name):
            return Unknown(reason)
        if is_target_macro(name):
            return Known(target_macro(name, compilation))
        if name == COMPILER and compilation.arch is not None:
            return Known(1)
        if speaks_of_architecture(name):
            return Unknown("its name speaks of an architecture")
        return Free()

    def verdict(self, condition: Expr | ConditionError | None) -> Verdict:
        """Return the verdict of a condition; always true for the None of an ``#else``."""
        if condition is None or isinstance(condition, ConditionError):
            return Verdict({p: self._value(condition, p) for p in CUDA_PASSES})
        text = to_source(condition)
        if text not in self._verdicts:
            if len(self._verdicts) >= _REMEMBERED:
                self._verdicts.clear()
            self._verdicts[text] = Verdict({p: self._value(condition, p) for p in CUDA_PASSES})
        return self._verdicts[text]

    def _value(self, condition: Expr | ConditionError | None, compilation: CudaPass) -> Bool:
        if condition is None:
            return True
        if isinstance(condition, ConditionError):
            return atom("the condition", unknown=f"it does not parse: {condition}")
        return evaluate(condition, lambda name: self.meaning(name, compilation))

    def depends(self, name: str) -> bool:
        """Whether a macro does, or may, depend on the architecture."""
        return name in self.hidden or is_target_macro(name) or speaks_of_architecture(name)


NOTHING_HIDDEN = Macros()
"""What macros mean in a file that makes none depend on the architecture: one for all of them."""


def reach(branch: Branch, verdict: Callable[[Branch], Verdict]) -> Verdict:
    """Return where a branch is compiled: its own condition, no earlier one, and all around it."""
    own = dict(verdict(branch).table)
    for other in branch.earlier:
        table = verdict(other).table
        own = {point: and_(value, not_(table[point])) for point, value in own.items()}
    if branch.parent is not None:
        outer = reach(branch.parent, verdict).table
        own = {point: and_(value, outer[point]) for point, value in own.items()}
    return Verdict(own)


def read_macros(scan: Scan) -> Macros:
    """Find the macros that a file defines under a test of the architecture, or from one."""
    known = Macros()
    hidden: dict[str, str] = {}
    for directive in scan.directives:
        if directive.keyword not in ("define", "undef") or not directive.body:
            continue
        name = directive.body[0].text
        known = Macros(hidden)
        line = f"line {directive.line}"
        if is_target_macro(name):
            hidden[name] = f"{line} redefines it"
        elif _conditioned(directive, scan, known):
            hidden[name] = f"{line} defines it under a test of the architecture"
        elif any(t.kind == "name" and known.depends(t.text) for t in directive.body[1:]):
            hidden[name] = f"{line} defines it from the architecture"
    return Macros(hidden) if hidden else NOTHING_HIDDEN


def _conditioned(directive: Directive, scan: Scan, known: Macros) -> bool:
    branch = directive.branch
    while branch is not None:
        for part in (branch, *branch.earlier):
            if not scan.is_include_guard(part) and mentions(part, known.depends):
                return True
        branch = branch.parent
    return False


def mentions(branch: Branch, test: Callable[[str], bool]) -> bool:
    """Whether a branch's condition has a macro that passes a test."""
    if isinstance(branch.condition, ConditionError):
        return any(t.kind == "name" and test(t.text) for t in branch.directive.body)
    return branch.condition is not None and any(map(test, macros(branch.condition)))
