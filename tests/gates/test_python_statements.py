"""Imports, inserted code and text edits, and bytes that stay as they are."""

from __future__ import annotations

import pytest
from python_sets import HEAD, apply, body, gate, importing, insert, refusal, run, text

from gatepatch.spec import Edit

_IMPORTS = [
    ("one line", "from pkg.utils import a, z\n", "m", "from pkg.utils import a, m, z\n"),
    ("at the end", "from pkg.utils import a, b\n", "m", "from pkg.utils import a, b, m\n"),
    ("one name", "from pkg.utils import a\n", "m", "from pkg.utils import a, m\n"),
    ("not sorted", "from pkg.utils import z, a\n", "m", "from pkg.utils import z, a, m\n"),
    ("by number", "from pkg.utils import is_sm90, is_sm100\n", "is_sm120", "from pkg.utils import is_sm90, is_sm100, is_sm120\n"),
    ("in parentheses", "from pkg.utils import (\n    a,\n    z,\n)\n", "m", "from pkg.utils import (\n    a,\n    m,\n    z,\n)\n"),
    ("last in parentheses", "from pkg.utils import (\n    a,\n    b,\n)\n", "m", "from pkg.utils import (\n    a,\n    b,\n    m,\n)\n"),
    ("first in parentheses", "from pkg.utils import (\n    n,\n    z,\n)\n", "m", "from pkg.utils import (\n    m,\n    n,\n    z,\n)\n"),
    ("none from there yet", "import os\nx = 1\n", "m", "import os\nfrom pkg.utils import m\nx = 1\n"),
    ("after the future", "from __future__ import annotations\nx = 1\n", "m", "from __future__ import annotations\nfrom pkg.utils import m\nx = 1\n"),
    ("there already", "from pkg.utils import m\n", "m", "from pkg.utils import m\n"),
    ("CRLF", "from pkg.utils import a\r\nx = 1\r\n", "m", "from pkg.utils import a, m\r\nx = 1\r\n"),
    ("CRLF, none from there yet", "import os\r\nx = 1\r\n", "m", "import os\r\nfrom pkg.utils import m\r\nx = 1\r\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "name", "after"), [case[1:] for case in _IMPORTS], ids=[c[0] for c in _IMPORTS]
)
def test_import(before: str, name: str, after: str) -> None:
    assert apply(before, importing(name)).decode() == after


@pytest.mark.parametrize(
    "source",
    ["import os\nm = 1\n", "from elsewhere import m\n", "import os\ndef m(): pass\n"],
    ids=["assigned", "from elsewhere", "defined"],
)
def test_a_name_that_is_bound_otherwise_is_not_imported(source: str) -> None:
    assert "'m'" in refusal(source, importing("m"))


def test_a_gate_is_proved_with_the_name_that_is_imported() -> None:
    source = "from pkg.utils import is_sm100_supported\nx = is_sm100_supported()\n"
    result = apply(source, gate("is_sm100_supported()"), importing("is_sm120_supported"))
    assert result.decode() == (
        "from pkg.utils import is_sm100_supported, is_sm120_supported\n"
        "x = is_sm100_supported() or is_sm120_supported()\n"
    )
    assert "cannot be proved" in refusal(source, gate("is_sm100_supported()"))


_INSERTS = [
    ("after a name", "a = 1\nb = 2\n", insert("a", "c = 3"), "a = 1\nc = 3\nb = 2\n"),
    ("before a name", "a = 1\nb = 2\n", insert("b", "c = 3", side="before"), "a = 1\nc = 3\nb = 2\n"),
    ("after a function", "def f():\n    pass\nb = 2\n", insert("f", "c = 3"), "def f():\n    pass\nc = 3\nb = 2\n"),
    ("before its decorators", "import d\n@d.x\ndef f():\n    pass\n", insert("f", "c = 3", side="before"), "import d\nc = 3\n@d.x\ndef f():\n    pass\n"),
    ("beside a statement", "a()\nb()\n", insert("a( )", "c = 3"), "a()\nc = 3\nb()\n"),
    ("after an import", "import os\nx = 1\n", insert("os", "c = 3"), "import os\nc = 3\nx = 1\n"),
    ("several lines", "a = 1\n", insert("a", "def c():\n    return 3\n"), "a = 1\ndef c():\n    return 3\n"),
    ("CRLF", "a = 1\r\nb = 2\r\n", insert("a", "def c():\n    return 3\n"), "a = 1\r\ndef c():\r\n    return 3\r\nb = 2\r\n"),
    ("indented", "def f():\n    a = 1\n    return a\n", insert("a", "b()", within="f", unproved="why"), "def f():\n    a = 1\n    b()\n    return a\n"),
    ("tabs", "def f():\n\ta = 1\n\treturn a\n", insert("a", "b()", unproved="why"), "def f():\n\ta = 1\n\tb()\n\treturn a\n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "edit", "after"), [case[1:] for case in _INSERTS], ids=[c[0] for c in _INSERTS]
)
def test_insert(before: str, edit: Edit, after: str) -> None:
    assert apply(before, edit).decode() == after


def test_inserted_code_under_a_guard_is_proved() -> None:
    source = HEAD + "def f():\n    a = 1\n    return a\n"
    edit = insert("a", "if is_sm120_supported():\n    return 2")
    (change,) = run(source, edit).changes
    assert change.unproved == ""
    assert b"    a = 1\n    if is_sm120_supported():\n        return 2\n" in apply(source, edit)


def test_a_guard_may_stand_under_conditions_of_which_nothing_is_known() -> None:
    source = HEAD + "def f(model_arch):\n    if model_arch in names:\n        a = 1\n"
    edit = insert("a", "if is_sm120_supported() and arch_ok():\n    b()")
    (change,) = run(source, edit).changes
    assert change.unproved == ""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("b()", "runs on every architecture"),
        ("if is_blackwell_supported():\n    b()", "10.0"),
        ("if ok:\n    b()", "does not shut it"),
        ("if is_sm120_supported():\n    b()\nelse:\n    c()", "runs on every architecture"),
        ("if is_sm120_anything():\n    b()", "does not shut it"),
    ],
    ids=["no guard", "too wide", "no gate", "else", "not known"],
)
def test_inserted_code_under_no_such_guard_is_refused(code: str, reason: str) -> None:
    source = HEAD + "def f():\n    a = 1\n    return a\n"
    assert reason in refusal(source, insert("a", code))
    (change,) = run(source, insert("a", code, unproved="measured")).changes
    assert change.unproved == "measured"


@pytest.mark.parametrize("anchor", ["a", "missing", "a = 1"])
def test_there_must_be_one_anchor(anchor: str) -> None:
    source = "a = 1\ndef f():\n    a = 1\n"
    assert "expected 1 statement" in refusal(source, insert(anchor, "c = 3"))


def test_a_name_of_the_module_is_not_bound_anew() -> None:
    assert "every architecture" in refusal("a = 1\nb = 2\n", insert("a", "b = 3"))


def test_text_is_replaced_as_often_as_is_said() -> None:
    source = "a = 'x y'\nb = 'x y'\n"
    assert apply(source, text("x y", "z", count=2)) == b"a = 'z'\nb = 'z'\n"
    assert "expected the text 1 times, found it 2 times (line 1, line 2)" in refusal(
        source, text("x y", "z")
    )
    assert "nearest: line 1: a = 'x y'" in refusal(source, text("a = 'x z'", "z"))


_KEPT = [
    ("CRLF", b"\r\n", b"", ""),
    ("BOM", b"\n", b"\xef\xbb\xbf", ""),
    ("both", b"\r\n", b"\xef\xbb\xbf", ""),
    ("letters before the edit on its line", b"\n", b"", "h = 'é漢😀'; "),
    ("form feed", b"\n", b"# \x0c\n", ""),
]


@pytest.mark.parametrize(
    ("newline", "start", "before"), [case[1:] for case in _KEPT], ids=[c[0] for c in _KEPT]
)
@pytest.mark.parametrize("ends", [True, False], ids=["newline", "no newline at the end"])
def test_every_other_byte_stays(newline: bytes, start: bytes, before: str, ends: bool) -> None:
    lines = f"{HEAD}if True:\n\t{before}x = major in [9, 10]  # 9, 10 \n"
    data = start + lines.encode().replace(b"\n", newline)
    data = data if ends else data.rstrip()
    result = apply(data, gate("major in [9, 10]"))
    assert result == data.replace(b"[9, 10]", b"[9, 10, 12]")


def test_edits_of_one_file_are_in_the_order_of_the_set() -> None:
    source = body("if is_sm100_supported():")
    edits: list[Edit] = [gate("is_sm100_supported()"), importing("something", "elsewhere")]
    assert [c.where for c in run(source, *edits).changes] == ["edits[0]", "edits[1]"]
