"""Writing a patch set of scanned gates: what it opens, what it leaves out and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gatepatch
from gatepatch import api
from gatepatch.cli import main
from gatepatch.errors import RefusedError, UsageError
from gatepatch.spec import GateEdit
from trees import make_distribution, make_environment, site_of

BOUND = "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200"
ASKED = "torch.cuda.get_device_capability()[0]"
SOURCES: dict[str, bytes | str] = {
    "toy/__init__.py": "",
    "toy/kernel.cuh": f"#if {BOUND}\nint a;\n#endif\n"
    f"#if defined(FAST) && {BOUND}\nint b;\n#endif\n"
    f"#if ({BOUND})  // once more\nint c;\n#endif\n",
    "toy/named.cuh": "#ifdef ARCH_OK\n#endif\n#if __CUDA_ARCH__ >= 900 && \\\n"
    "    __CUDA_ARCH__ < 1100\n#endif\n",
    "toy/host.cu": "bool f(int sm) {\n  if (sm == 100) {\n    return true;\n  }\n  return false;\n}\n",
    "toy/run.py": "import torch\n\n\n"
    f"def fast(n):\n    if {ASKED} not in (9, 10):\n        raise OSError\n    return n\n\n\n"
    f"def slow(n):\n    return n > 1 and {ASKED} == 10\n\n\n"
    "def odd(major):\n    return major == 10\n",
    "toy/jit.py": "def gen():\n    return flags(supported_major_versions=[9, 10])\n\n\n"
    "TABLE_BY_ARCH = {(9, 0): 1, (10, 0): 2}\n",
    "toy/third_party/x.h": f"#if {BOUND}\n#endif\n",
}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "toy", "1.0", SOURCES)
    return prefix


def fill(source: Path) -> None:
    """Give the reasons, as an author does."""
    text = source.read_text()
    assert text.count("TODO: ") == 2
    source.write_text(text.replace("TODO: ", "Because: "))


def edits(name: str, folder: Path) -> dict[str, list[tuple[str | None, str | None, int | None]]]:
    """The set's edits by path: function, condition or keyword, count."""
    patch_set = gatepatch.show(name, patches=[folder])
    return {
        file.path: [
            (edit.within, edit.condition or edit.keyword, edit.count)
            for edit in file.edits
            if isinstance(edit, GateEdit)
        ]
        for target in patch_set.targets
        for file in target.files
    }


def test_the_set_opens_what_can_be_opened_and_says_the_rest(prefix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    chosen = api.scan_to_set(
        "mine", ["toy"], sm="120", like="100", admit=["121"], prefix=prefix, output=folder
    )
    assert edits("mine", folder) == {
        "toy/jit.py": [("gen", "supported_major_versions", 1)],
        "toy/kernel.cuh": [(None, BOUND, 3)],
        "toy/named.cuh": [(None, "__CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100", 1)],
        "toy/run.py": [
            ("fast", f"{ASKED} not in (9, 10)", 1),
            ("slow", f"n > 1 and {ASKED} == 10", 1),
        ],
    }
    left = {f"{one.gate.path}:{one.gate.line}": one.reason for one in chosen.left_out}
    assert set(left) == {"toy/host.cu:2", "toy/jit.py:5", "toy/named.cuh:1", "toy/run.py:15"}
    assert left["toy/host.cu:2"].startswith("only conditions of directives are opened")
    assert left["toy/jit.py:5"].startswith("a dictionary by architecture needs an entry")
    assert left["toy/named.cuh:1"].startswith("its verdict is not known: defined(ARCH_OK)")
    assert "major" in left["toy/run.py:15"]
    assert chosen.made.missing == ("summary", "why")


def test_it_is_refused_until_its_reasons_are_given_and_then_applied(
    prefix: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sets"
    chosen = api.scan_to_set(
        "mine", sm="120", like="100", admit=["121"], prefix=prefix, output=folder
    )
    with pytest.raises(RefusedError, match="is not finished"):
        gatepatch.plan("mine", patches=[folder], prefix=prefix)
    assert gatepatch.lint("mine", patches=[folder])
    fill(Path(chosen.made.source))
    assert gatepatch.lint("mine", patches=[folder], prefix=prefix) == ()
    gatepatch.apply("mine", patches=[folder], prefix=prefix, assume="120")
    after = gatepatch.scan(["toy"], sm="120", like="100", prefix=prefix)
    opened = {file.path for file in chosen.made.files}
    assert [f.path for f in after.findings if f.leaves_out and f.path in opened] == [
        "toy/jit.py",  # the table
        "toy/run.py",  # what is handed in as `major`
    ]
    gatepatch.revert(prefix=prefix)
    for path, text in SOURCES.items():
        assert (site_of(prefix) / path).read_text() == text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"within": ["slow"]}, {"toy/run.py": [("slow", f"n > 1 and {ASKED} == 10", 1)]}),
        ({"kinds": ["list"]}, {"toy/jit.py": [("gen", "supported_major_versions", 1)]}),
        ({"paths": ["toy/kernel.cuh"]}, {"toy/kernel.cuh": [(None, BOUND, 3)]}),
    ],
)
def test_the_query_chooses(
    prefix: Path,
    tmp_path: Path,
    query: dict[str, list[str]],
    expected: dict[str, list[tuple[str | None, str, int]]],
) -> None:
    folder = tmp_path / "sets"
    api.scan_to_set(
        "mine",
        sm="120",
        like="100",
        admit=["121"],
        prefix=prefix,
        output=folder,
        **query,  # type: ignore[arg-type]
    )
    assert edits("mine", folder) == expected


def test_vendored_gates_are_chosen_with_all_only(prefix: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    api.scan_to_set(
        "mine",
        sm="120",
        like="100",
        prefix=prefix,
        output=folder,
        everything=True,
        kinds=["directive"],
    )
    assert "toy/third_party/x.h" in edits("mine", folder)


def test_a_gate_that_sees_majors_is_left_out_of_a_set_for_half_a_family(
    prefix: Path, tmp_path: Path
) -> None:
    chosen = api.scan_to_set(
        "mine", sm="120", prefix=prefix, output=tmp_path / "sets", paths=["toy/kernel.cuh"]
    )
    assert chosen.left_out == ()
    with pytest.raises(RefusedError) as caught:
        api.scan_to_set(
            "other", sm="120", like="100", prefix=prefix, output=tmp_path / "sets", within=["fast"]
        )
    first, second = caught.value.problems
    assert first.message == "no gate is left that could be opened for 12.0 like 10.0"
    assert second.where == "toy/run.py:5"
    assert "sees majors only, so it admits 12.1 too: name the whole family" in second.message
    assert not (tmp_path / "sets" / "other").exists()


def test_an_edit_that_would_open_more_than_was_chosen_is_left_out(
    prefix: Path, tmp_path: Path
) -> None:
    source = f"void a() {{\n#if {BOUND}\n#endif\n}}\nvoid b() {{\n#if {BOUND}\n#endif\n}}\n"
    make_distribution(site_of(prefix), "twin", "1.0", {"twin/k.cuh": source})
    with pytest.raises(RefusedError) as caught:
        api.scan_to_set(
            "mine", ["twin"], sm="120", prefix=prefix, output=tmp_path / "sets", within=["a"]
        )
    assert (
        "its edit would open line 6 too, which was not chosen" in caught.value.problems[1].message
    )


def test_edits_that_touch_each_other_become_one(prefix: Path, tmp_path: Path) -> None:
    predicates = "".join(
        f"def is_sm{major}0_supported():\n    return {ASKED} == {major}\n\n\n" for major in (10, 12)
    )
    source = f"""import torch


{predicates}def run(on):
    if is_sm100_supported():
        return 1
    if on and is_sm100_supported():
        return 2
    if not is_sm100_supported():
        raise OSError
"""
    make_distribution(site_of(prefix), "twin", "1.0", {"twin/k.py": source})
    folder = tmp_path / "sets"
    chosen = api.scan_to_set(
        "mine",
        ["twin"],
        sm="120",
        admit=["121"],
        like="100",
        prefix=prefix,
        output=folder,
        within=["run"],
    )
    assert edits("mine", folder) == {"twin/k.py": [("run", "is_sm100_supported()", 3)]}
    assert chosen.left_out == ()


def test_the_architecture_to_be_like_is_that_of_most_gates(prefix: Path, tmp_path: Path) -> None:
    source = "#if __CUDA_ARCH__ == 900\n#endif\n#if __CUDA_ARCH__ / 10 == 90\n#endif\n"
    make_distribution(site_of(prefix), "hop", "1.0", {"hop/k.cuh": source})
    folder = tmp_path / "sets"
    chosen = api.scan_to_set("mine", ["hop"], sm="120", prefix=prefix, output=folder)
    assert str(chosen.made.like) == "9.0"
    chosen = api.scan_to_set("more", ["toy"], sm="120", prefix=prefix, output=folder)
    assert str(chosen.made.like) == "10.0"


def test_what_is_there_is_not_overwritten(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match="is there already, and is not overwritten"):
        api.scan_to_set("mine", sm="120", prefix=prefix, output=tmp_path)
    with pytest.raises(UsageError, match="is no name"):
        api.scan_to_set("No Name", sm="120", prefix=prefix, output=tmp_path)
    with pytest.raises(UsageError, match=r"--like: 12\.1 is among the architectures to admit"):
        api.scan_to_set("new", sm="120", admit=["121"], like="121", prefix=prefix, output=tmp_path)


def test_a_file_that_someone_edited_is_left_out(prefix: Path, tmp_path: Path) -> None:
    path = site_of(prefix) / "toy" / "named.cuh"
    path.write_text(path.read_text() + "// mine\n")
    chosen = api.scan_to_set(
        "mine", sm="120", like="100", prefix=prefix, output=tmp_path, paths=["toy/*.cuh"]
    )
    assert set(edits("mine", tmp_path)) == {"toy/kernel.cuh"}
    left = next(one for one in chosen.left_out if one.gate.line == 3)
    assert left.reason.startswith("foreign: something other than gatepatch has edited it")


def test_the_command(prefix: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["scan", "toy", "--sm", "120", "--like", "100", "--admit", "121"]
    arguments += ["--prefix", str(prefix), "--output", str(tmp_path), "--path", "toy/jit.py"]
    assert main([*arguments, "--write-set", "mine"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"{tmp_path}/mine/set.yaml: admits sm_120, sm_121 like sm_100",
        "  toy/jit.py  (toy 1.0)",
        "    open, line 2",
    ]
    assert said.err.splitlines() == [
        (
            "left out: toy/jit.py:5: a dictionary by architecture needs an entry, and no engine "
            "makes one: use text"
        ),
        "give the reasons, where it says TODO: summary, why",
        f"then check it: gatepatch lint mine --patches {tmp_path}",
    ]
    assert main([*arguments, "--write-set", "other", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["chosen"]["made"]["archs"] == ["12.0", "12.1"]
    assert document["chosen"]["left_out"][0]["gate"]["line"] == 5
    assert main([*arguments, "--write-set", "mine"]) == 2
    assert main([*arguments, "--write-set", "third", "--against", str(prefix)]) == 2
    assert "give --write-set or --against, not both" in capsys.readouterr().err
    assert main([*arguments, "--write-set", "third", "--html", str(tmp_path / "x.html")]) == 2
    assert "--sarif and --html are for the list of gates" in capsys.readouterr().err
