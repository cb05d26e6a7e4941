"""What Python conditions mean on each architecture: predicates, aliases, and what is not known."""

from __future__ import annotations

import pytest
from python_sets import HEAD, OPEN_12, apply, gate, refusal, run

from gatepatch.gates.python_values import Const, text_of
from gatepatch.verdict import Verdict

_BLACKWELL = "10.0 10.3 12.0 12.1"


def _verdict(
    source: str,
    condition: str,
    *,
    files: dict[str, bytes] | None = None,
    predicates: dict[str, str] | None = None,
) -> Verdict:
    """The verdict of a condition that is to be opened for what it admits already."""
    edit = gate(condition, unproved="only to be read")
    (change,) = run(source, edit, files=files, predicates=predicates).changes
    assert change.verdict_before is not None
    return change.verdict_before


_DEFINITIONS = [
    ("def", "def p():\n    return cap()[0] in (10, 12)"),
    ("locals", "def p():\n    major, minor = cap()\n    wide = major == 12\n    return major == 10 or wide"),
    ("branches", "def p():\n    major = cap()[0]\n    if major == 10:\n        return True\n    return major == 12"),
    ("else", "def p():\n    if cap()[0] == 10:\n        return True\n    elif cap()[0] == 12:\n        return True\n    else:\n        return False"),
    ("try", "def p():\n    try:\n        return cap()[0] in (10, 12)\n    except RuntimeError:\n        return False"),
    ("docstring", 'def p():\n    """Is it one?"""\n    return cap()[0] in (10, 12)'),
    ("decorated", "@lru_cache\ndef p():\n    return cap()[0] in (10, 12)"),
    ("decorated with arguments", "@functools.lru_cache(maxsize=1)\ndef p():\n    return cap()[0] in (10, 12)"),
    ("default", "def p(majors=(10, 12)):\n    return cap()[0] in majors"),
    ("partial", "def q(majors):\n    return cap()[0] in majors\np = partial(q, [10, 12])"),
    ("cached partial", "def q(majors):\n    return cap()[0] in majors\np = lru_cache(maxsize=1)(partial(q, majors=[10, 12]))"),
    ("chained assignment", "def q(majors):\n    return cap()[0] in majors\np = r = lru_cache(partial(q, majors=[10, 12]))"),
    ("alias", "def q():\n    return cap()[0] in (10, 12)\np = q"),
    ("numbers", "def p():\n    major, minor = cap()\n    return major * 10 + minor in [100, 103, 120, 121]"),
    ("properties", "def p():\n    return torch.cuda.get_device_properties(0).major in (10, 12)"),
    ("any", "def p():\n    return cap() >= (10, 0) and cap()[0] != 11 and cap() < (13, 0)"),
]  # fmt: skip
_HEAD = "import functools\nimport torch\nfrom functools import lru_cache, partial\n"


def _spelt(code: str) -> str:
    return code.replace("cap()", "torch.cuda.get_device_capability()")


@pytest.mark.parametrize(
    "code",
    [code for _, code in _DEFINITIONS],
    ids=[name for name, _ in _DEFINITIONS],
)
def test_a_predicate_is_read(code: str) -> None:
    found = _verdict(f"{_HEAD}{_spelt(code)}\nif p(): pass\n", "p()")
    assert found.unknown == ()
    assert found.words()["yes"] == _BLACKWELL


_UTIL = _spelt("import torch\ndef p():\n    return cap()[0] in (10, 12)\n").encode()
_IMPORTS = [
    ("from", "from pkg.dev import p", "p()"),
    ("from as", "from pkg.dev import p as q", "q()"),
    ("re-export", "from pkg.api import p", "p()"),
    ("star", "from pkg.dev import *", "p()"),
    ("star of a star", "from pkg.stars import *", "p()"),
    ("relative", "from .dev import p", "p()"),
    ("relative module", "from . import dev", "dev.p()"),
    ("module", "import pkg.dev", "pkg.dev.p()"),
    ("module as", "import pkg.dev as d", "d.p()"),
    ("module from", "from pkg import dev", "dev.p()"),
    ("assigned", "from pkg.dev import p\nis_it = p()", "is_it"),
    ("aliased", "from pkg.dev import p\nq = p", "q()"),
    ("negated twice", "from pkg.dev import p\nno = not p()", "not no"),
]


@pytest.mark.parametrize(
    ("statement", "condition"), [case[1:] for case in _IMPORTS], ids=[case[0] for case in _IMPORTS]
)
def test_an_imported_predicate_is_followed(statement: str, condition: str) -> None:
    files = {
        "pkg/dev.py": _UTIL,
        "pkg/api.py": b"from pkg.dev import p\n",
        "pkg/stars.py": b"from .dev import *\n",
    }
    found = _verdict(f"{statement}\nif {condition}: pass\n", condition, files=files)
    assert found.unknown == ()
    assert found.words()["yes"] == _BLACKWELL


@pytest.mark.parametrize("call", ["is_sm100_thing()", "platform.is_sm100_thing()"])
def test_predicates_give_a_meaning(call: str) -> None:
    source = f"from elsewhere import is_sm100_thing, platform\nif {call}: pass\n"
    assert _verdict(source, call).unknown
    found = _verdict(source, call, predicates={call.removesuffix("()"): "10.0 10.3"})
    assert found.unknown == ()
    assert found.words()["yes"] == "10.0 10.3"


_UNKNOWN = [
    ("outside", "from elsewhere import is_sm100_thing", "is_sm100_thing()"),
    ("bound twice", _spelt("import torch\nmajor = cap()[0]\nmajor = 9"), "major == 10"),
    ("bound in a branch", "import torch\nif x:\n    " + _spelt("major = cap()[0]\nelse:\n    major = 9"), "major == 10"),
    ("parameter", "", "capability[0] == 10"),
    ("filled", "import torch\nSMS = {}\nSMS[120] = f", _spelt("10 * cap()[0] in SMS")),
    ("appended to", "import torch\nSMS = [10]\nif x:\n    SMS.append(12)", _spelt("cap()[0] in SMS")),
    ("cut", "import torch\nSMS = {10: a, 12: b}\ndef off():\n    del SMS[12]", _spelt("SMS.get(cap()[0])")),
    ("of lists", "import torch\nSMS = {0: [10]}\nSMS[0].append(12)", _spelt("cap()[0] in SMS[0]")),
    ("filled elsewhere", "import torch\nSMS = set()", _spelt("cap()[0] in SMS")),
    ("local", _spelt("import torch\ndef p():\n    sms = [10]\n    sms.extend(more)\n    return cap()[0] in sms"), "p()"),
    ("loop", _spelt("import torch\ndef p():\n    for m in (10,):\n        if cap()[0] == m:\n            return True\n    return False"), "p()"),
    ("decorator", _spelt("import torch\n@strange\ndef p():\n    return cap()[0] == 10"), "p()"),
    ("augmented", _spelt("import torch\nmajor = cap()[0]\nmajor += 1"), "major == 10"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "condition"), [case[1:] for case in _UNKNOWN], ids=[case[0] for case in _UNKNOWN]
)
def test_what_is_not_known_is_refused_unless_it_is_said_to_stand(head: str, condition: str) -> None:
    source = f"{head}\nif {condition}: pass\n"
    edit = gate(condition, operand="g()")
    assert "cannot be proved" in refusal(source, edit)
    stands = gate(condition, operand="g()", unproved="measured")
    (change,) = run(source, stands).changes
    assert change.edits
    assert change.unproved == "measured"


@pytest.mark.parametrize("free", ["ok", "args.flag", "f(x)", "x is None", "x > 3", "'a' in names"])
def test_what_does_not_test_the_architecture_stays_free(free: str) -> None:
    source = f"{HEAD}def f0(args, x, names):\n    if {free} and major == 10: pass\n"
    (change,) = run(source, gate("major == 10")).changes
    assert change.verdict_after is not None
    assert change.verdict_after.unknown == ()
    (word,) = [w for w in change.verdict_after.words() if w not in ("yes", "no")]
    assert change.verdict_after.words()[word] == _BLACKWELL
    assert change.unproved == ""


def test_a_call_and_its_alias_are_one_atom() -> None:
    source = HEAD + "_is_cuda = is_cuda()\nif _is_cuda and is_sm100_supported(): pass\n"
    found = _verdict(source, "is_sm100_supported()")
    assert len([w for w in found.words() if w != "no"]) == 1


def test_a_local_name_hides_the_one_of_the_module() -> None:
    source = HEAD + "def f(major):\n    return major == 10\n"
    assert "not" in refusal(source, gate("major == 10"))


def test_a_function_reads_its_own_locals() -> None:
    source = _spelt("import torch\ndef f():\n    m = cap()[0]\n    return m == 10\n")
    assert b"return m in (10, 12)" in apply(source, gate("m == 10"), goal=OPEN_12)


def test_a_predicate_that_calls_itself_is_refused() -> None:
    source = "def is_sm100():\n    return is_sm100()\nif ok and is_sm100(): pass\n"
    edit = gate("ok and is_sm100()", operand="g()")
    assert "cannot be proved" in refusal(source, edit)


def test_a_set_has_one_text_whatever_order_it_iterates_in() -> None:
    """An atom is told by its text, and a set of strings iterates differently in each process."""
    assert text_of(Const(frozenset("cab"))) == "{'a', 'b', 'c'}"
    assert text_of(Const(frozenset())) == "set()"
