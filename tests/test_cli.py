"""The command line: exit codes, one JSON document whatever happens, and what goes to which stream."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import gatepatch
from gatepatch import cli, commands
from gatepatch.commands import elsewhere
from gatepatch.errors import PendingError, SignalError
from gatepatch.probing.device_probe import ProbeFailure
from gatepatch.results import Result
from lookalikes import COMM, FLASHINFER, contents, make_server
from releases import make_wheel
from trees import make_environment, site_of

SET = "sm120-allreduce"
BAD_SET = "schema: 1\nname: bad\nsumary: A key is misspelt.\n"


@pytest.fixture
def server(tmp_path: Path) -> Path:
    return make_server(tmp_path)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "bad.yaml").write_text(BAD_SET)
    return folder


Ran = tuple[int, str, str]
Main = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Main:
    """Run a command line here; return its exit code, stdout and stderr."""

    def main(*words: str | Path) -> Ran:
        code = cli.main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return main


def gatepatch_process(
    *words: str | Path, env: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gatepatch", *map(str, words)]
    return subprocess.run(
        command, text=True, capture_output=True, env={**os.environ, **(env or {})}, **options
    )


def document(text: str) -> dict[str, Any]:
    """The one JSON document that a text is."""
    value = json.loads(text)
    assert isinstance(value, dict)
    assert value["schema"] == 1
    return value


def test_the_whole_life_of_a_set_exits_0_and_ends_where_it_began(run: Main, server: Path) -> None:
    before = contents(server)
    where = ("--prefix", server)
    assert run("plan", SET, *where)[0] == 0
    assert contents(server) == before
    code, out, err = run("apply", SET, *where, "--assume", "sm_120")
    assert (code, out.splitlines()[0]) == (0, f"{SET}: applied")
    assert "error" not in err
    code, out, _ = run("apply", SET, *where, "--assume", "sm_120")
    assert (code, out.splitlines()[0]) == (0, f"{SET}: already-applied")
    code, out, _ = run("status", SET, *where, "--require")
    assert (code, out.splitlines()[0]) == (0, f"{SET}: applied")
    code, out, _ = run("revert", SET, *where)
    assert (code, out.splitlines()[0]) == (0, f"{SET}: reverted")
    assert contents(server) == before
    assert run("revert", *where)[0] == 0


def test_the_whole_life_in_json(run: Main, server: Path) -> None:
    where = ("--prefix", server, "--json")
    for words, outcome in (
        (("plan", SET), "would-apply"),
        (("apply", SET, "--assume", "sm_120"), "applied"),
        (("apply", SET, "--assume", "sm_120"), "already-applied"),
        (("status",), "applied"),
        (("status", SET, "--require"), "applied"),
        (("revert", SET), "reverted"),
        (("status", SET), "pristine"),
    ):
        code, out, _ = run(*words, *where)
        value = document(out)
        assert (code, value["command"], value["outcome"]) == (0, words[0], outcome)


def test_places_in_json_have_path_and_lines(run: Main, server: Path) -> None:
    (value,) = document(run("plan", SET, "--prefix", server, "--json")[1])["sets"]
    (comm,) = (file for file in value["files"] if file["path"] == COMM)
    assert [(place["line"], place["end_line"]) for place in comm["places"]] == [(2, 2)]
    assert {"pinned", "witness", "outcome", "root"} <= set(comm)


def test_status_require_exits_1_unless_applied(run: Main, server: Path) -> None:
    assert run("status", SET, "--prefix", server)[0] == 0
    code, out, _ = run("status", SET, "--prefix", server, "--require")
    assert (code, out.splitlines()[0]) == (1, f"{SET}: pristine")
    assert document(run("status", SET, "--prefix", server, "--require", "--json")[1])


def test_a_command_in_a_message_is_spelled_out_for_the_environment_at_hand(
    run: Main, server: Path, tmp_path: Path
) -> None:
    comm = site_of(server) / COMM
    comm.write_bytes(comm.read_bytes() + b"# by hand\n")
    sets = tmp_path / "own sets"
    sets.mkdir()
    where = ("--prefix", server, "--patches", sets)
    spelled = f"gatepatch apply --prefix {server} --patches '{sets}' {SET} --accept-current"
    assert spelled in run("apply", SET, *where, "--assume", "sm_120")[2]
    (problem,) = document(run("apply", SET, *where, "--assume", "sm_120", "--json")[1])["problems"]
    assert spelled in problem["hint"]


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_what_a_command_takes_of_where_to_look_is_known(name: str) -> None:
    texts = subprocess.run(
        [sys.executable, "-m", "gatepatch", name, "--help"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    taken = tuple(
        o for o in ("python", "prefix", "patches") if re.search(rf"^  --{o} ", texts, re.M)
    )
    assert elsewhere.TAKES[name] == taken


def test_recover_and_cache_have_nothing_to_say(run: Main, server: Path) -> None:
    assert run("recover", "--prefix", server) == (0, "nothing is pending\n", "")
    assert document(run("recover", "--prefix", server, "--json")[1])["recovered"] == []
    assert run("cache")[0] == 0
    assert document(run("cache", "--json")[1])["modules"] == []


def test_cache_lists_what_is_built_for_what_and_how_large(run: Main, tmp_path: Path) -> None:
    module = tmp_path / "jit" / "0.6.3" / "120f" / "cached_ops" / "trtllm_comm"
    module.mkdir(parents=True)
    (module / "trtllm_comm.so").write_bytes(b"x" * 1_500_000)
    where = ("--jit-root", str(tmp_path / "jit"))
    code, out, err = run("cache", *where)
    assert (code, err) == (0, "")
    assert out.startswith("trtllm_comm  120f  1.5 MB  ")
    (row,) = document(run("cache", "--json", *where)[1])["modules"]
    assert (row["name"], row["architectures"], row["size"]) == ("trtllm_comm", "120f", 1_500_000)


def test_list_show_and_lint(run: Main) -> None:
    code, out, err = run("list")
    assert (code, err) == (0, "")
    assert any(line.startswith(f"{SET} ") for line in out.splitlines())
    assert SET in [row["name"] for row in document(run("list", "--json")[1])["sets"]]
    code, out, err = run("show", SET)
    assert (code, err) == (0, "")
    assert "admits: SM 12.0" in out
    assert document(run("show", SET, "--json")[1])["set"]["name"] == SET
    assert run("lint") == (0, "nothing found\n", "")
    assert document(run("lint", "--json")[1])["problems"] == []


def test_findings_of_lint_are_results_and_exit_1(run: Main, bad: Path) -> None:
    code, out, err = run("lint", "bad", "--patches", bad)
    assert (code, err) == (1, "")
    assert f"{bad / 'bad.yaml'}:3: unknown key 'sumary'\n  did you mean 'summary'?" in out
    code, out, _ = run("lint", "bad", "--patches", bad, "--json")
    assert code == 1
    assert document(out)["problems"][0]["hint"] == "did you mean 'summary'?"


def test_new_writes_a_set_and_says_what_is_next(run: Main, server: Path, tmp_path: Path) -> None:
    file = site_of(server) / COMM
    file.write_text(file.read_text().replace("[9, 10]", "[9, 10, 12]"))
    wheel = make_wheel(tmp_path, "flashinfer-python", "0.6.3", FLASHINFER)
    sets = tmp_path / "sets"
    words = ("new", "mine", "--from-edits", "flashinfer-python", "--prefix", server)
    more = ("--wheel", wheel, "--output", sets)
    code, out, err = run(*words, *more)
    assert (code, out) == (
        0,
        (
            f"{sets / 'mine/set.yaml'}: admits sm_120, sm_121 like sm_100\n"
            f"  {COMM}  (flashinfer-python 0.6.3)\n"
            "    open, line 2\n"
            "planned on the release's bytes, it gives exactly the edited ones\n"
        ),
    )
    assert err == (
        "give the reasons, where it says TODO: summary, why\n"
        f"then check it: gatepatch lint mine --patches {sets}\n"
    )
    code, _, err = run(*words, *more)
    assert code == 2
    assert f"{sets / 'mine'}: is there already, and is not overwritten" in err
    code, out, _ = run("new", "other", *words[2:], *more, "--json")
    made = document(out)["made"]
    assert (made["archs"], made["like"], made["missing"]) == (
        ["12.0", "12.1"],
        "10.0",
        ["summary", "why"],
    )
    assert made["files"][0]["edits"] == [
        {
            "kind": "open",
            "where": "targets[0].files[0].edits[0].open",
            "lines": [2],
            "proved": True,
        }
    ]
    code, out, _ = run("lint", "mine", "--patches", sets, "--prefix", server)
    assert code == 1
    assert f"{sets / 'mine/set.yaml'}:5 (why): is to be filled in" not in out
    assert f"{sets / 'mine/set.yaml'}:6 (why): is to be filled in" in out


WRONG: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "the following arguments are required: COMMAND"),
    "command": (["aply"], "invalid choice: 'aply'"),
    "option": (["list", "--colour"], "unrecognized arguments: --colour"),
    "shortened": (["apply", SET, "--ass", "sm_120"], "unrecognized arguments: --ass sm_120"),
    "no-set": (["apply"], "the following arguments are required: SET"),
    "value": (["apply", SET, "--assume"], "argument --assume: expected one argument"),
    "words": (["probe", "--timeout", "soon"], "argument --timeout: 'soon' is no number of seconds"),
    "negative": (["probe", "--timeout", "-1"], "argument --timeout: "),
    "nan": (["probe", "--timeout", "nan"], "argument --timeout: 'nan' is no number of seconds"),
    "folder": (["list", "--patches", "/nowhere"], "no such folder of patch sets"),
    "prefix": (["plan", SET, "--prefix", "/nowhere"], "/nowhere"),
    "python": (["recover", "--python", "/nowhere"], "/nowhere"),
    "architecture": (["apply", SET, "--assume", "sm_x"], "--assume: "),
    "new": (["new", "mine"], "give one of --from-edits and --from-diff"),
    "like": (["new", "mine", "--from-diff", "x", "--like", "ten"], "--like: 'ten' is not an arch"),
    "unknown": (["new", "x", "--from-diff", "x", "--admit", "sm_60"], "proved for 6.0: known are"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_command_line_exits_2(case: str, run: Main) -> None:
    words, message = WRONG[case]
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    code, out, again = run(*words, "--json")
    assert code == 2
    if case != "value":
        assert again == err
    value = document(out)
    assert (value["outcome"], value["error"]) == ("refused", "usage")
    assert value["problems"][0]["message"]


def test_refusals_exit_1_and_change_nothing(run: Main, server: Path) -> None:
    before = contents(server)
    where = ("--prefix", server)
    for words, error in (
        (("apply", SET, *where, "--assume", "sm_90"), "probe"),
        (("apply", f"{SET}x", *where), "unknown-set"),
        (("apply", SET, *where, "--assume", "sm_120", "--require-pin"), "refused"),
        (("plan", SET, *where, "--require-pin"), "refused"),
        (("show", "none"), "unknown-set"),
        (("lint", "none"), "unknown-set"),
        (("pin", "none"), "unknown-set"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (1, ""), words
        assert err.startswith("error: "), words
        code, out, again = run(*words, "--json")
        value = document(out)
        assert (code, value["command"], value["error"]) == (1, words[0], error)
        assert again == err
        assert contents(server) == before


def test_a_set_that_cannot_be_read_exits_1(run: Main, bad: Path) -> None:
    for words in (("list",), ("show", "bad"), ("plan", "bad"), ("apply", "bad"), ("pin", "bad")):
        code, out, err = run(*words, "--patches", bad)
        assert (code, out) == (1, "")
        assert "bad.yaml:3: unknown key 'sumary'\n  did you mean 'summary'?" in err
        value = document(run(*words, "--patches", bad, "--json")[1])
        assert value["error"] == "spec"
        assert len(value["problems"]) == 4


def test_an_environment_without_the_packages_exits_1(run: Main, tmp_path: Path) -> None:
    prefix = make_environment(tmp_path)
    code, out, err = run("apply", SET, "--prefix", prefix, "--assume", "sm_120")
    assert (code, out) == (1, "")
    assert "sglang" in err
    assert not (site_of(prefix) / ".gatepatch").exists()


def test_a_probe_that_fails_exits_1(run: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = ProbeFailure(reason="no-driver", detail="none here")
    monkeypatch.setattr(gatepatch, "probe", lambda **options: failure)
    code, out, err = run("probe")
    assert (code, out, err) == (1, "", f"error: {failure.message}\n")
    assert document(run("probe", "--json")[1])["error"] == "probe"


@pytest.mark.parametrize(
    ("raised", "code", "error"),
    [
        (PendingError("a change is pending", hint="gatepatch recover"), 4, "pending"),
        (SignalError(2), 130, "interrupted"),
        (SignalError(15), 143, "interrupted"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_was_interrupted_has_codes_of_its_own(
    raised: BaseException, code: int, error: str, run: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> Result:
        raise raised

    monkeypatch.setattr(gatepatch, "apply", interrupted)
    assert run("apply", SET)[:2] == (code, "")
    ran, out, err = run("apply", SET, "--json")
    value = document(out)
    assert (ran, value["outcome"], value["error"]) == (code, "interrupted", error)
    assert err.startswith("error: ")


def test_status_of_a_pending_change_exits_4_with_one_document(
    run: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Result(command="status", outcome="interrupted", pending="3 of 4 files are written")
    monkeypatch.setattr(gatepatch, "status", lambda *args, **options: result)
    for words in (("status",), ("status", SET, "--require")):
        code, out, err = run(*words, "--json")
        assert (code, document(out)["pending"]) == (4, "3 of 4 files are written")
        assert "3 of 4 files are written" in err


def test_a_signal_after_the_end_is_said_and_exits_0(
    run: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Result(command="apply", outcome="applied", signal=15, warnings=("restart it",))
    monkeypatch.setattr(gatepatch, "apply", lambda *args, **options: result)
    code, out, err = run("apply", SET, "--json")
    assert (code, document(out)["signal"]) == (0, 15)
    assert err == "warning: restart it\nSIGTERM came after everything was done; it is done\n"


def test_help_has_every_exit_code_and_command() -> None:
    ran = gatepatch_process("--help")
    assert (ran.returncode, ran.stderr) == (0, "")
    codes = ran.stdout[ran.stdout.index("exit codes:") :]
    for code in (0, 1, 2, 3, 4, 130, 143):
        assert re.search(rf"\b{code}\b", codes)
    for command in commands.SUMMARIES:
        assert f"    {command} " in ran.stdout


@pytest.mark.parametrize("command", commands.SUMMARIES)
def test_every_command_has_help_and_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])
    captured = capsys.readouterr()
    assert (caught.value.code, captured.err) == (0, "")
    assert "--json" in captured.out
    assert commands.SUMMARIES[command] in captured.out


def test_version() -> None:
    ran = gatepatch_process("--version")
    assert (ran.returncode, ran.stdout) == (0, f"gatepatch {gatepatch.__version__}\n")


def test_processes_exit_with_the_codes_and_write_no_escapes(server: Path) -> None:
    for words, code in (
        (["status", SET, "--prefix", server, "--require"], 1),
        (["apply", SET, "--prefix", server, "--assume", "sm_90"], 1),
        (["frobnicate"], 2),
    ):
        ran = gatepatch_process(*words, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
        assert ran.returncode == code
        assert "\x1b" not in ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr


class Terminal:
    """A stream that says it is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


@pytest.mark.parametrize(("no_color", "escapes"), [(None, True), ("", True), ("1", False)])
def test_no_color_is_heeded_on_a_terminal(
    no_color: str | None, escapes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if no_color is None:
        monkeypatch.delenv("NO_COLOR", raising=False)
    else:
        monkeypatch.setenv("NO_COLOR", no_color)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.main(["frobnicate"]) == 2
    assert ("\x1b" in terminal.text) is escapes


@pytest.mark.parametrize("words", [["list"], ["show", SET, "--json"], ["lint"]])
def test_a_reader_that_has_gone_is_no_failure(words: Sequence[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gatepatch", *words]
    try:
        ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_stream_that_cannot_hold_a_letter_gets_an_escape(tmp_path: Path) -> None:
    text = BAD_SET.replace("sumary: A key is misspelt.", "summary: Größe …\nwhy: Größe …")
    text += (
        "admit: [sm_120]\nlike: sm_100\ntargets:\n- distribution: a\n  versions: '>0'\n"
        "  files: [{path: a.py, edits: [{import: {from: a, name: b}}]}]\n"
    )
    (tmp_path / "bad.yaml").write_text(text)
    for words in (["show", "bad"], ["show", "bad", "--json"], ["apply", "bad", "--assume", "ß"]):
        ran = gatepatch_process(
            *words, "--patches", tmp_path, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        )
        assert "Traceback" not in ran.stderr
        assert ran.returncode == (2 if "apply" in words else 0)


def test_cache_check_finds_nothing_where_nothing_is_built(run: Main, server: Path) -> None:
    assert run("cache", "--check", "--prefix", str(server)) == (0, "nothing found\n", "")
    found = document(run("cache", "--check", "--prefix", str(server), "--json")[1])
    assert found["findings"] == []


def test_a_fault_of_its_own_is_a_json_document_too(
    run: Main, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(gatepatch, "list_sets", fail)
    code, out, err = run("list", "--json")
    problems = document(out)["problems"]
    assert (code, problems[0]["message"]) == (1, "RuntimeError: a bug")
    assert "Traceback" in err
