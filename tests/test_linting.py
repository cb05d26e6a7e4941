"""What `gatepatch lint` finds in sets that load."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import gatepatch
from releases import make_wheel
from test_loader import EDIT, EDITS, GATE, GOOD
from trees import make_distribution, make_environment, site_of

EXAMPLE = Path(__file__).parents[1] / "examples/own-set/patches/toykernels-sm89.yaml"
TOY = {
    "toykernels/dispatch.py": """\
def has_fp8_kernel():
    return get_device_capability() >= (9, 0)
""",
    "toykernels/include/fp8.cuh": "#if __CUDA_ARCH__ >= 900\n#endif\n",
}


def lint(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    (tmp_path / "good.yaml").write_text(text)
    found = gatepatch.lint("good", patches=[tmp_path])
    return [((p.where or "").removeprefix(f"{tmp_path}/"), p.message) for p in found]


def test_lint_finds_nothing_in_a_good_set(tmp_path: Path) -> None:
    assert lint(tmp_path, GOOD) == []


def test_lint_gives_what_cannot_be_read(tmp_path: Path) -> None:
    assert lint(tmp_path, GOOD.replace("why:", "wy:")) == [
        ("good.yaml:4", "unknown key 'wy'"),
        ("good.yaml:1", "missing: why"),
    ]


BLOCK = GOOD[GOOD.index("  - distribution") :]


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        (">=0.6,<0.7", ">=0.6.9,<0.8", True),
        (">=0.6,<0.7", "==0.6.*", True),
        (">0.5,<0.7", ">0.6,<0.8", True),
        ("<0.5", "<0.6", True),
        ("!=0.5", "!=0.6", True),
        (">=0.6,<0.7", ">=0.7,<0.8", False),
        ("<0.6", ">=0.6", False),
        ("==0.6.*", "==0.7.*", False),
    ],
)
def test_lint_finds_overlapping_versions(
    first: str, second: str, overlap: bool, tmp_path: Path
) -> None:
    text = GOOD.replace(">=0.6,<0.7", first) + BLOCK.replace(">=0.6,<0.7", second)
    found = lint(tmp_path, text)
    assert [where for where, _ in found] == ["good.yaml:17 (targets[1].versions)"] * overlap
    assert all("two blocks are for flash-infer-python" in message for _, message in found)


def test_lint_finds_an_edit_twice(tmp_path: Path) -> None:
    edit = GOOD[GOOD.index("          - open") :]
    assert lint(tmp_path, GOOD + edit) == [
        (f"good.yaml:16 ({EDITS}[1].open)", f"can never match: {EDIT} has the same place")
    ]


@pytest.mark.parametrize(
    "edit",
    [
        "- import: {from: a, name: b}",
        "- insert: {after: x, code: y = 1}",
        "- text: {find: a, replace: b, unproved: A comment.}",
    ],
)
def test_lint_finds_edits_of_every_kind_twice(edit: str, tmp_path: Path) -> None:
    found = lint(tmp_path, GOOD + f"          {edit}\n" * 2)
    assert [message.partition(":")[0] for _, message in found] == ["can never match"]


def test_lint_finds_a_file_twice(tmp_path: Path) -> None:
    found = lint(tmp_path, GOOD + GOOD[GOOD.index("      - path") :])
    message = "flashinfer/jit/comm.py is there twice for flash-infer-python"
    assert [text.startswith(message) for _, text in found] == [True]


@pytest.mark.parametrize("reason", ["TODO", "todo.", '"TODO: say why"', "..."])
def test_lint_finds_reasons_that_are_not_filled_in(reason: str, tmp_path: Path) -> None:
    text = GOOD.replace("why: It is refused.", f"why: {reason}")
    text += f"              unproved: {reason}\n"
    assert lint(tmp_path, text) == [
        ("good.yaml:4 (why)", "is to be filled in"),
        (f"good.yaml:16 ({EDIT}.unproved)", "is to be filled in"),
    ]


def test_lint_finds_a_condition_that_says_no_function(tmp_path: Path) -> None:
    text = GOOD.replace("within: gen\n              " + GATE, "condition: is_sm100()")
    assert lint(tmp_path, text) == [
        (
            f"good.yaml:13 ({EDIT})",
            "says no function: the same condition in another one would match",
        )
    ]


def test_lint_finds_replacements_that_do_nothing(tmp_path: Path) -> None:
    text = GOOD + (
        "          - replace: {within: gen, expression: a, by: a}\n"
        '          - insert: {after: x, code: "# nothing"}\n'
        "          - text: {find: ab, replace: xaby, unproved: A comment.}\n"
    )
    assert [message for _, message in lint(tmp_path, text)] == [
        "replaces an expression by itself",
        "inserts nothing",
        "the text to find stands in its replacement too",
    ]


def found(tmp_path: Path, text: str) -> list[tuple[str, str, str | None]]:
    """Findings with their hints, the where without the file."""
    (tmp_path / "good.yaml").write_text(text)
    problems = gatepatch.lint("good", patches=[tmp_path])
    source = f"{tmp_path / 'good.yaml'}:"
    return [((p.where or "").removeprefix(source), p.message, p.hint) for p in problems]


@pytest.mark.parametrize(
    "versions", [">=0.7,<0.6", "==0.6,!=0.6", ">0.6,<=0.6", "==0.6.*,<0.5", ">=0.6.dev0,<0.6"]
)
def test_a_range_that_no_version_is_in(versions: str, tmp_path: Path) -> None:
    ((where, message, hint),) = found(tmp_path, GOOD.replace(">=0.6,<0.7", versions))
    assert where == "9 (targets[0].versions)"
    assert message.startswith("no version of flash-infer-python is in ")
    assert hint == "correct the range, or take the block out"


@pytest.mark.parametrize("versions", ["==0.6", ">0.6,<0.6.1", "==0.6.*", ">=0.6.dev0,<0.7"])
def test_a_range_that_a_version_is_in(versions: str, tmp_path: Path) -> None:
    assert found(tmp_path, GOOD.replace(">=0.6,<0.7", versions)) == []


ADVISORY = """\
advisories:
  - {severity: info, when: {WHEN}, text: Slow., source: A test.}
"""


@pytest.mark.parametrize(
    ("when", "key"),
    [
        ('flash-infer-python: ">=0.7"', "flash-infer-python"),
        ('sglang: ">=0.5"', "sglang"),
        ('flash-infer-python: "<0.7"', None),
    ],
)
def test_an_advisory_that_is_never_shown(when: str, key: str | None, tmp_path: Path) -> None:
    text = GOOD.replace("targets:", ADVISORY.replace("WHEN", when) + "targets:")
    places = [(where, message.rpartition(", ")[2]) for where, message, _ in found(tmp_path, text)]
    wanted = [(f"8 (advisories[0].when.{key})", "so the advisory is never shown")]
    assert places == (wanted if key else [])


def edits(text: str) -> str:
    """The set with these edits, a line each, and no other."""
    lines = "".join(f"          - {line}\n" for line in text.strip().split("\n"))
    return GOOD[: GOOD.index("          - open")] + lines


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        (
            "open: {within: f, condition: is_sm100()}\nopen: {within: f.g, condition: is_sm100()}",
            f"14 ({EDITS}[1].open)",
            f"matches a place of {EDITS}[0].open too: one stands within the other",
        ),
        (
            "open: {within: f, condition: a == 9}\nopen: {condition: a  ==  9, count: 2}",
            f"14 ({EDITS}[1].open)",
            f"matches a place of {EDITS}[0].open too: one stands within the other",
        ),
        (
            "open: {within: f, keyword: majors}\nopen: {within: f, keyword: majors, count: 2}",
            f"14 ({EDITS}[1].open)",
            f"can never match: {EDITS}[0].open has the same place",
        ),
        (
            (
                "open: {within: f, condition: is_sm90()}\n"
                "replace: {within: f, expression: is_sm90(), by: is_sm120()}"
            ),
            f"14 ({EDITS}[1].replace)",
            f"can never match: {EDITS}[0].open has the same place",
        ),
        (
            "open: {keyword: majors}",
            f"13 ({EDITS}[0].open)",
            "says no function: the same keyword in another one would match",
        ),
        (
            "replace: {expression: is_sm90(), by: is_sm120()}",
            f"13 ({EDITS}[0].replace)",
            "says no function: the same expression in another one would match",
        ),
        (
            "open: {within: f, condition: a() or b(), with: b( )}",
            f"13 ({EDITS}[0].open)",
            "adds an operand that the condition has already",
        ),
        (
            "replace: {within: f, expression: a() or b(), by: (a() or (b()))}",
            f"13 ({EDITS}[0].replace)",
            "replaces an expression by itself",
        ),
        (
            "text: {find: same, replace: same, unproved: A test.}",
            f"13 ({EDITS}[0].text)",
            "replaces a text by itself",
        ),
        (
            (
                "text: {find: 'b = 1', replace: 'b = 2', unproved: A test.}\n"
                "text: {find: 'a = 1', replace: 'a = 2; b = 1', unproved: A test.}"
            ),
            f"13 ({EDITS}[0].text)",
            f"{EDITS}[1].text puts the text to find there: applied, it is found once more",
        ),
        (
            (
                "text: {find: 'b = 1', replace: 'b = 2', unproved: A test.}\n"
                "insert: {after: x, code: 'b = 1'}"
            ),
            f"13 ({EDITS}[0].text)",
            f"{EDITS}[1].insert puts the text to find there: applied, it is found once more",
        ),
    ],
)
def test_edits_that_go_wrong(text: str, key: str, message: str, tmp_path: Path) -> None:
    assert [finding[:2] for finding in found(tmp_path, edits(text))] == [(key, message)]


@pytest.mark.parametrize(
    "text",
    [
        "open: {within: f, condition: is_sm100()}\nopen: {within: g, condition: is_sm100()}",
        "open: {within: f, condition: is_sm100()}\nopen: {within: f, condition: is_sm90()}",
        "open: {condition: is_sm100(), count: 3}",
        "open: {within: f, condition: a() or b(), with: c()}",
        'text: {find: "last\\n", replace: "last\\nnew\\n", unproved: A test.}',
        'text: {find: "first", replace: "new\\nfirst", unproved: A test.}',
        (
            "text: {find: 'a = 1', replace: 'a = 2', unproved: A test.}\n"
            "text: {find: 'b = 1', replace: 'b = 2', unproved: A test.}"
        ),
    ],
)
def test_edits_that_are_right(text: str, tmp_path: Path) -> None:
    assert found(tmp_path, edits(text)) == []


SET = "toykernels-sm89"


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    """The example's set in a folder of its own, with a pin; returns the pin."""
    folder = tmp_path / "sets" / SET
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLE, folder / "set.yaml")
    wheel = make_wheel(tmp_path, "toykernels", "1.2", TOY)
    (done,) = gatepatch.pin(SET, patches=[tmp_path / "sets"], sources=[wheel])
    assert done.outcome == "written"
    assert gatepatch.lint(SET, patches=[tmp_path / "sets"]) == ()
    return folder / "pins" / "toykernels-1.2.json"


def about_pins(pin: Path) -> list[tuple[str, str, str | None]]:
    folder = pin.parents[2]
    problems = gatepatch.lint(SET, patches=[folder])
    return [(Path(p.where or "").name, p.message, p.hint) for p in problems]


def test_a_pin_of_a_version_that_no_block_is_for(pinned: Path) -> None:
    pinned.write_text(pinned.read_text().replace('"version": "1.2"', '"version": "2.0"'))
    assert about_pins(pinned) == [
        (
            pinned.name,
            f"is a pin of {SET} for toykernels 2.0, which no block of this set is for",
            "remove it",
        )
    ]


def test_a_pin_under_another_name(pinned: Path) -> None:
    pinned.rename(pinned.with_name("toykernels-1.2.1.json"))
    assert about_pins(pinned) == [
        (
            "toykernels-1.2.1.json",
            "is the pin of toykernels 1.2, and its name says otherwise",
            "rename it to toykernels-1.2.json, or remove it",
        )
    ]


def test_a_pin_of_other_edits(pinned: Path) -> None:
    source = pinned.parents[1] / "set.yaml"
    source.write_text(source.read_text().replace("admit: [sm_89]", "admit: [sm_88, sm_89]"))
    assert about_pins(pinned) == [
        (
            pinned.name,
            "was made from other edits than the set has now, so it is not used",
            f"work it out again and review it: gatepatch pin {SET} --release toykernels==1.2",
        )
    ]


def test_what_is_no_pin(pinned: Path) -> None:
    pinned.write_text("{}")
    (pinned.parent / "notes.txt").write_text("x")
    assert about_pins(pinned) == [
        ("notes.txt", "is no pin", "remove it"),
        (pinned.name, "is no pin: 'schema'", None),
    ]


TWO = """\
import torch


def first():
    return torch.cuda.get_device_capability()[0] == 10


def second():
    return torch.cuda.get_device_capability()[0] == 10
"""
GATE_OF_TWO = "torch.cuda.get_device_capability()[0] == 10"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """An environment with the package of the sets here."""
    prefix = make_environment(tmp_path)
    files = {"flashinfer/__init__.py": "", "flashinfer/jit/comm.py": TWO}
    make_distribution(site_of(prefix), "flash-infer-python", "0.6.3", files)
    return prefix


def compared(tmp_path: Path, server: Path, text: str) -> list[tuple[str, str]]:
    # The gate sees majors only, so the whole family is named.
    whole = edits(text).replace("[sm_120]", "[sm_120, sm_121]")
    (tmp_path / "good.yaml").write_text(whole)
    problems = gatepatch.lint("good", patches=[tmp_path], prefix=server)
    source = f"{tmp_path / 'good.yaml'}:"
    return [((p.where or "").removeprefix(source), p.message) for p in problems]


def test_the_same_text_in_another_function(tmp_path: Path, server: Path) -> None:
    text = f"open: {{condition: {GATE_OF_TWO!r}, count: 2}}"
    assert compared(tmp_path, server, text) == [
        (
            f"13 ({EDITS}[0].open)",
            (
                "takes in the same text in several functions of flash-infer-python 0.6.3: "
                "first, second"
            ),
        )
    ]


def test_what_does_not_hold_for_what_is_installed(tmp_path: Path, server: Path) -> None:
    ((where, message),) = compared(
        tmp_path, server, f"open: {{within: third, condition: {GATE_OF_TWO!r}}}"
    )
    assert where == f"13 ({EDITS}[0].open)"
    assert message.startswith(
        f"does not hold for flash-infer-python 0.6.3: expected 1 of `{GATE_OF_TWO}` within third"
    )


def test_what_is_installed_and_edited_by_hand(tmp_path: Path, server: Path) -> None:
    (site_of(server) / "flashinfer/jit/comm.py").write_text("x = 1\n")
    ((where, message),) = compared(
        tmp_path, server, f"open: {{within: first, condition: {GATE_OF_TWO!r}}}"
    )
    assert where == "11 (targets[0].files[0].path)"
    assert message.startswith(
        "cannot be compared with flash-infer-python 0.6.3: the file is foreign"
    )


def test_what_is_right_for_what_is_installed_and_what_is_not_installed(
    tmp_path: Path, server: Path
) -> None:
    right = f"open: {{within: first, condition: {GATE_OF_TWO!r}}}"
    assert compared(tmp_path, server, right) == []
    assert compared(tmp_path, make_environment(tmp_path, "empty"), right) == []


def test_the_same_text_in_another_function_by_a_pin(tmp_path: Path, server: Path) -> None:
    folder = tmp_path / "sets" / "good"
    folder.mkdir(parents=True)
    text = edits(f"open: {{condition: {GATE_OF_TWO!r}, count: 2}}")
    (folder / "set.yaml").write_text(text.replace("[sm_120]", "[sm_120, sm_121]"))
    files = {"flashinfer/jit/comm.py": TWO}
    wheel = make_wheel(tmp_path, "flash-infer-python", "0.6.3", files)
    gatepatch.pin("good", patches=[tmp_path / "sets"], sources=[wheel])
    wanted = "takes in the same text in several functions of flash-infer-python 0.6.3: "
    for environment in (None, server):  # once, whoever finds it
        found = gatepatch.lint("good", patches=[tmp_path / "sets"], prefix=environment)
        assert [p.message for p in found] == [f"{wanted}first, second"]
        assert found[0].where == f"{folder / 'set.yaml'}:13 ({EDITS}[0].open)"
