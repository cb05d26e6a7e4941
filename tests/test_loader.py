"""Patch sets that cannot be read, with the exact words; and those that ship."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import gatepatch
from gatepatch import catalog
from gatepatch.document import MAX_BYTES
from gatepatch.errors import Problem, SpecError, UnknownSetError
from gatepatch.loader import load
from gatepatch.spec import GateEdit, PatchSet, Requirements

GOOD = """\
schema: 1
name: good
summary: Admit SM 12.0
why: It is refused.
admit: [sm_120]
like: sm_100
targets:
  - distribution: Flash_Infer.Python
    versions: ">=0.6,<0.7"
    files:
      - path: flashinfer/jit/comm.py
        edits:
          - open:
              within: gen
              keyword: supported_major_versions
"""
EDITS = "targets[0].files[0].edits"
EDIT = f"{EDITS}[0].open"


def read(tmp_path: Path, text: str | bytes) -> PatchSet:
    path = tmp_path / "good.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return load(path)


def problems(tmp_path: Path, text: str | bytes) -> Sequence[Problem]:
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text)
    return caught.value.problems


def only(tmp_path: Path, text: str | bytes) -> tuple[str, str, str | None]:
    """The one problem: where without the folder, message, hint."""
    (problem,) = problems(tmp_path, text)
    return (problem.where or "").removeprefix(f"{tmp_path}/"), problem.message, problem.hint


def test_a_good_set_is_read_as_written(tmp_path: Path) -> None:
    value = read(tmp_path, GOOD)
    (target,) = value.targets
    assert target.distribution == "flash-infer-python"
    assert target.files[0].edits == (
        GateEdit(where=EDIT, action="open", within="gen", keyword="supported_major_versions"),
    )
    assert (value.action, value.source) == ("open", str(tmp_path / "good.yaml"))


GATE = "keyword: supported_major_versions"

BAD = {
    "misspelt-key": (
        "summary: Admit",
        "sumary: Admit",
        [
            ("good.yaml:3", "unknown key 'sumary'", "did you mean 'summary'?"),
            ("good.yaml:1", "missing: summary", None),
        ],
    ),
    "misspelt-key-inside": (
        "within: gen",
        "witin: gen",
        [(f"good.yaml:14 ({EDIT})", "unknown key 'witin'", "did you mean 'within'?")],
    ),
    "twice": (
        "why: It is refused.",
        "why: It is refused.\nname: other",
        [("good.yaml:5", "the key 'name' is there twice, first on line 2", None)],
    ),
    "number-for-version": (
        '">=0.6,<0.7"',
        "0.6",
        [
            (
                "good.yaml:9 (targets[0].versions)",
                "expected a text, found a number, '0.6'",
                'quote it: "0.6"',
            )
        ],
    ),
    "no-version": (
        '">=0.6,<0.7"',
        '"0.6"',
        [
            (
                "good.yaml:9 (targets[0].versions)",
                "'0.6' is no version range",
                'write one such as ">=0.6,<0.6.17"',
            )
        ],
    ),
    "date": (
        "summary: Admit SM 12.0",
        "summary: 2026-01-01",
        [
            (
                "good.yaml:3 (summary)",
                "expected a text, found a date, '2026-01-01'",
                'quote it: "2026-01-01"',
            )
        ],
    ),
    "nothing": (
        "summary: Admit SM 12.0",
        "summary:",
        [("good.yaml:3 (summary)", "expected a text, found nothing", None)],
    ),
    "number-of-an-architecture": (
        "[sm_120]",
        "[120]",
        [
            (
                "good.yaml:5 (admit[0])",
                "expected a text, found a whole number, '120'",
                'quote it: "120"',
            )
        ],
    ),
    "anchor": (
        "summary: Admit",
        "summary: &it Admit",
        [("good.yaml:3", "anchors and aliases are not allowed", None)],
    ),
    "alias": (
        "summary: Admit SM 12.0",
        "summary: *it",
        [("good.yaml:3", "anchors and aliases are not allowed", None)],
    ),
    "condition-and-keyword": (
        GATE,
        GATE + "\n              condition: is_sm100()",
        [(f"good.yaml:14 ({EDIT})", "expected one of condition and keyword", None)],
    ),
    "neither": (
        GATE,
        "count: 1",
        [(f"good.yaml:14 ({EDIT})", "expected one of condition and keyword", None)],
    ),
    "python-condition": (
        GATE,
        "condition: is_sm100() or",
        [
            (
                f"good.yaml:15 ({EDIT}.condition)",
                "is no Python expression: invalid syntax: is_sm100() or",
                None,
            )
        ],
    ),
    "unbalanced-condition": (
        GATE,
        "condition: a) or (b",
        [
            (
                f"good.yaml:15 ({EDIT}.condition)",
                "is no Python expression: unbalanced parentheses: a) or (b",
                None,
            )
        ],
    ),
    "open-in-an-exclude-set": (
        "admit: [sm_120]\nlike: sm_100",
        "exclude: [sm_120]",
        [(f"good.yaml:13 ({EDIT})", "a set that lists exclude has close edits, not open", None)],
    ),
    "close-in-an-admit-set": (
        "- open:",
        "- close:",
        [
            (
                f"good.yaml:14 ({EDITS}[0].close)",
                "a set that lists admit has open edits, not close",
                None,
            )
        ],
    ),
    "admit-and-exclude": (
        "like: sm_100",
        "like: sm_100\nexclude: [sm_121]",
        [
            ("good.yaml:1", "expected one of admit and exclude, a list of architectures", None),
            (f"good.yaml:15 ({EDIT})", "a set that lists exclude has close edits, not open", None),
        ],
    ),
    "no-like": (
        "like: sm_100\n",
        "",
        [
            (
                "good.yaml:1",
                "missing: like, the architecture whose verdicts the admitted ones share",
                None,
            )
        ],
    ),
    "like-itself": (
        "like: sm_100",
        "like: sm_120",
        [("good.yaml:6 (like)", "sm_120 is among the architectures to admit", None)],
    ),
    "newer-schema": (
        "schema: 1",
        "schema: 2",
        [
            (
                "good.yaml:1 (schema)",
                "expected 1: a newer gatepatch wrote this",
                "upgrade gatepatch",
            )
        ],
    ),
    "empty-list": (
        "[sm_120]",
        "[]",
        [("good.yaml:5 (admit)", "the list is empty", None)],
    ),
    "count-of-none": (
        GATE,
        GATE + "\n              count: 0",
        [
            (
                f"good.yaml:16 ({EDIT}.count)",
                "expected a whole number above 0, found a whole number, '0'",
                None,
            )
        ],
    ),
    "name": (
        "name: good",
        "name: Not Good",
        [
            (
                "good.yaml:2 (name)",
                "'Not Good' is no name: use lower-case letters, digits and hyphens",
                None,
            )
        ],
    ),
    "other-kind-of-cache": (
        '">=0.6,<0.7"',
        '">=0.6,<0.7"\n    jit: {flashinfr: [a]}',
        [
            (
                "good.yaml:10 (targets[0].jit.flashinfr)",
                "unknown kind of JIT cache 'flashinfr'",
                "known: flashinfer",
            )
        ],
    ),
    "yaml": (
        "schema: 1",
        "schema: [1",
        [("good.yaml:2", "did not find expected ',' or ']'", None)],
    ),
    "two-edits-in-one": (
        "          - open:",
        "          - import: {from: a, name: b}\n            open:",
        [
            (
                f"good.yaml:13 ({EDITS}[0])",
                "expected exactly one of open, close, replace, import, insert, text",
                None,
            )
        ],
    ),
    "requires-nothing": (
        "like: sm_100",
        "like: sm_100\nrequires: {}",
        [
            (
                "good.yaml:7 (requires)",
                "the mapping is empty",
                "leave it out, or name what a device must be able to do",
            )
        ],
    ),
    "requires-what-is-unknown": (
        "like: sm_100",
        "like: sm_100\nrequires: {peer_access: all}",
        [("good.yaml:7 (requires)", "unknown key 'peer_access'", "did you mean 'peer-access'?")],
    ),
    "requires-wrongly": (
        "like: sm_100",
        "like: sm_100\nrequires: {pdl: order, cluster: 32, shared-memory: 99k, multicast: false}",
        [
            (
                "good.yaml:7 (requires.multicast)",
                "expected true",
                "leave it out where it does not matter",
            ),
            ("good.yaml:7 (requires.cluster)", "expected 2 to 16 blocks, found 32", None),
            (
                "good.yaml:7 (requires.pdl)",
                "expected ordered, found 'order'",
                "did you mean 'ordered'?",
            ),
            (
                "good.yaml:7 (requires.shared-memory)",
                "expected a whole number above 0, found a text, '99k'",
                None,
            ),
        ],
    ),
    "import-of-no-name": (
        "          - open:",
        "          - import: {from: a b, name: c}\n          - open:",
        [
            (
                f"good.yaml:13 ({EDITS}[0].import)",
                "is no import: from a b import c",
                None,
            )
        ],
    ),
}


def test_what_a_set_requires(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD).requires == Requirements()
    text = "{pdl: ordered, cluster: 8, shared-memory: 101376, multicast: true, peer-access: all}"
    value = read(tmp_path, GOOD.replace("like: sm_100", f"like: sm_100\nrequires: {text}"))
    assert value.requires == Requirements(
        pdl="ordered", cluster=8, shared_memory=101376, multicast=True, peer_access="all"
    )


@pytest.mark.parametrize("case", BAD)
def test_a_bad_set_is_told_where_and_why(case: str, tmp_path: Path) -> None:
    old, new, expected = BAD[case]
    assert old in GOOD
    found = [
        ((p.where or "").removeprefix(f"{tmp_path}/"), p.message, p.hint)
        for p in problems(tmp_path, GOOD.replace(old, new))
    ]
    assert found == expected


@pytest.mark.parametrize(
    "path", ["../x.py", "a/../x.py", "/etc/x.py", "a//x.py", "./x.py", "a\\x.py", "a/"]
)
def test_a_path_out_of_the_distribution(path: str, tmp_path: Path) -> None:
    first = problems(tmp_path, GOOD.replace("flashinfer/jit/comm.py", path))[0]
    assert first.where == f"{tmp_path}/good.yaml:11 (targets[0].files[0].path)"
    assert first.message == f"{path!r} is no path inside a distribution"
    assert first.hint
    assert "sglang/srt/server_args.py" in first.hint


@pytest.mark.parametrize("condition", ["__CUDA_ARCH__ >=", "(__CUDA_ARCH__ < 1200", "a b"])
def test_a_condition_that_is_no_preprocessor_condition(condition: str, tmp_path: Path) -> None:
    text = GOOD.replace("comm.py", "comm.cuh").replace(GATE, f'condition: "{condition}"')
    where, message, _ = only(tmp_path, text)
    assert where == f"good.yaml:15 ({EDIT}.condition)"
    assert message.startswith("is no preprocessor condition: ")


def test_a_gate_in_a_file_of_another_kind(tmp_path: Path) -> None:
    text = GOOD.replace("comm.py", "comm.txt").replace(GATE, "condition: a")
    assert only(tmp_path, text) == (
        f"good.yaml:15 ({EDIT}.condition)",
        "gates are found in Python, C and CUDA files, and flashinfer/jit/comm.txt is none",
        "use text",
    )


def test_a_keyword_in_a_header(tmp_path: Path) -> None:
    assert only(tmp_path, GOOD.replace("comm.py", "comm.cuh")) == (
        f"good.yaml:15 ({EDIT}.keyword)",
        "keyword is for Python files, and flashinfer/jit/comm.cuh is none",
        None,
    )


@pytest.mark.parametrize("code", [r'"a\0b"', '"x ="'])
def test_code_that_does_not_parse(code: str, tmp_path: Path) -> None:
    edit = f"- insert: {{after: x, code: {code}}}\n          - open:"
    where, message, _ = only(tmp_path, GOOD.replace("- open:", edit))
    assert where == f"good.yaml:13 ({EDITS}[0].insert.code)"
    assert message.startswith("does not parse: ")


def test_a_condition_with_a_nul(tmp_path: Path) -> None:
    where, message, _ = only(tmp_path, GOOD.replace(GATE, r'condition: "a\0b"'))
    assert where == f"good.yaml:15 ({EDIT}.condition)"
    assert message.startswith("is no Python expression: ")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only a comment\n"])
def test_an_empty_file(text: bytes, tmp_path: Path) -> None:
    assert only(tmp_path, text) == ("good.yaml", "is empty", None)


def test_an_oversized_file(tmp_path: Path) -> None:
    fill = b"#" * (MAX_BYTES - len(GOOD))
    assert read(tmp_path, GOOD.encode() + fill).name == "good"
    message = f"is larger than {MAX_BYTES} bytes"
    assert only(tmp_path, GOOD.encode() + fill + b"#") == ("good.yaml", message, None)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    text = GOOD.replace("refused", "r\xe9fused").encode("latin-1")
    assert only(tmp_path, text) == ("good.yaml", "is not UTF-8: invalid continuation byte", None)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"none\.yaml: cannot be read: No such file or directory"):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize("text", ["[" * 20_000, "- " * 20_000, "a: [" * 5_000])
def test_a_file_nested_without_end(text: str, tmp_path: Path) -> None:
    assert "nest" in only(tmp_path, text)[1]


@pytest.mark.parametrize("text", ["just words", "- a\n- b\n", "1"])
def test_a_document_that_is_no_mapping(text: str, tmp_path: Path) -> None:
    first = problems(tmp_path, text)[0]
    assert first.where == f"{tmp_path / 'good.yaml'}:1"
    assert first.message.startswith("expected a mapping, found ")


def test_tags_make_no_objects(tmp_path: Path) -> None:
    text = GOOD.replace("Admit SM 12.0", '!!python/object/apply:os.system ["exit 1"]')
    where, message, _ = only(tmp_path, text)
    assert where == "good.yaml:3 (summary)"
    assert message.startswith("expected a text, found ")


def test_all_errors_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    text = (
        GOOD.replace("[sm_120]", "[sm_120, sm_banana]")
        .replace('">=0.6,<0.7"', "0.6")
        .replace("comm.py", "../comm.py")
        .replace("within: gen", "within: 3")
    )
    lines = [str(p.where).removeprefix(f"{tmp_path}/") for p in problems(tmp_path, text)]
    assert sorted(lines) == sorted(
        [
            "good.yaml:5 (admit[1])",
            "good.yaml:9 (targets[0].versions)",
            "good.yaml:11 (targets[0].files[0].path)",
            f"good.yaml:14 ({EDIT}.within)",
        ]
    )


def test_a_set_that_names_itself_otherwise(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(GOOD)
    with pytest.raises(SpecError, match="names itself 'good', and its place says 'other'"):
        catalog.load("other", (tmp_path,))


def test_the_first_folder_wins_and_an_unknown_name_gets_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "set.yaml").write_text(GOOD)
    assert gatepatch.show("good", patches=[tmp_path]).name == "good"
    with pytest.raises(UnknownSetError, match="did you mean 'good'"):
        gatepatch.show("goood", patches=[tmp_path])


def test_the_sets_that_ship_load_and_lint_finds_nothing() -> None:
    sets = gatepatch.list_sets()
    assert {"sm120-allreduce", "sm120-allreduce-off"} <= {value.name for value in sets}
    assert gatepatch.lint() == ()
