"""What a scan writes beside its table: SARIF, and a page to filter and read."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import gatepatch
from gatepatch.cli import main
from gatepatch.errors import GatepatchError, UsageError
from gatepatch.scanning import sarif
from gatepatch.scanning.records import KINDS
from trees import make_distribution, make_environment, site_of

HOSTILE = '</script><img src=x onerror="document.title=1">'
SOURCES: dict[str, bytes | str] = {
    "toy/__init__.py": "",
    "toy/core.py": "def run(major):\n    if major not in (9, 10):\n        raise ValueError\n",
    "toy/twice.py": (
        "def run(major):\n    if major == 10:\n        a()\n    if major == 10:\n        b()\n"
    ),
    "toy/all.py": "def run(major):\n    return major >= 9\n",
    "toy/odd name.py": f"def run(major):\n    return major == 10 and x != '{HOSTILE}'\n",
    "toy/unknown.py": "def run(major):\n    return major == 10 and major == what()\n",
    "toy/kernel.cuh": "#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200\nint a;\n#endif\n",
    "toy/third_party/x.h": "#if __CUDA_ARCH__ == 900\n#endif\n",
}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    prefix = make_environment(tmp_path)
    make_distribution(site_of(prefix), "toy", "1.0", SOURCES)
    return prefix


def written(prefix: Path, **options: Any) -> dict[str, Any]:
    """The one run of a scan's SARIF."""
    path = prefix / "out.sarif"
    gatepatch.scan(["toy"], sm="120", prefix=prefix, sarif=path, **options)
    document = json.loads(path.read_bytes())
    assert (document["version"], len(document["runs"])) == ("2.1.0", 1)
    run = document["runs"][0]
    assert isinstance(run, dict)
    return run


def by_path(run: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for result in run["results"]:
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        found.setdefault(uri, []).append(result)
    return found


def test_sarif_has_a_rule_for_each_kind_and_every_result_names_its_own(prefix: Path) -> None:
    run = written(prefix, everything=True)
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("gatepatch", gatepatch.__version__)
    assert [rule["id"] for rule in driver["rules"]] == list(KINDS)
    assert run["results"]
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]


def test_sarif_places_are_relative_to_the_root_of_their_distribution(prefix: Path) -> None:
    run = written(prefix, everything=True)
    assert run["originalUriBaseIds"] == {"ROOT1": {"uri": site_of(prefix).as_uri() + "/"}}
    (kernel,) = by_path(run)["toy/kernel.cuh"]
    assert kernel["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "toy/kernel.cuh", "uriBaseId": "ROOT1"},
        "region": {"startLine": 1, "endLine": 1},
    }
    assert "toy/odd%20name.py" in by_path(run)


def test_sarif_levels_say_whether_a_gate_leaves_the_architecture_out(prefix: Path) -> None:
    found = by_path(written(prefix, everything=True))
    kinds = {path: (found[path][0]["kind"], found[path][0]["level"]) for path in found}
    assert kinds["toy/core.py"] == ("fail", "warning")
    assert kinds["toy/all.py"] == ("informational", "none")
    result = found["toy/core.py"][0]
    assert result["message"]["text"] == (
        "major not in (9, 10): leaves 12.0 out and admits 9.0 or 10.0 or 10.3. "
        "What it guards raises an error, or stops the compilation."
    )
    assert result["properties"]["verdict"]["12.0"] == "shuts"
    assert result["properties"]["leavesOut"] is True
    assert result["properties"]["guards"]["effect"] == "raises"


def test_a_condition_is_no_placeholder_and_no_link_in_a_message(prefix: Path) -> None:
    (site_of(prefix) / "toy" / "core.py").write_text(
        "def run(major, t):\n    return major == 10 and t[0](1) == f'{0}'\n"
    )
    (result,) = by_path(written(prefix))["toy/core.py"]
    assert result["message"]["text"].startswith("major == 10 and t[0] (1) == f'{{0}}': leaves")
    assert result["properties"]["condition"] == "major == 10 and t[0](1) == f'{0}'"


def test_fingerprints_survive_a_move_of_lines_and_tell_equal_gates_apart(prefix: Path) -> None:
    def prints(run: Mapping[str, Any]) -> list[str]:
        return [r["partialFingerprints"]["primaryLocationLineHash"] for r in run["results"]]

    before = written(prefix)
    path = site_of(prefix) / "toy" / "twice.py"
    path.write_text("import os\n\n\n" + path.read_text())
    after = written(prefix)
    assert before != after
    assert prints(before) == prints(after)
    assert len(set(prints(before))) == len(before["results"])


def test_sarif_leaves_out_what_a_code_host_would_not_show_and_says_so(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = written(prefix, everything=True)
    monkeypatch.setattr(sarif, "LIMIT", 2)
    result = gatepatch.scan(
        ["toy"], sm="120", prefix=prefix, everything=True, sarif=prefix / "few.sarif"
    )
    (told,) = result.written
    assert (told.gates, told.left_out) == (2, len(every["results"]) - 2)
    run = json.loads((prefix / "few.sarif").read_bytes())["runs"][0]
    assert [r["level"] for r in run["results"]] == ["warning", "warning"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"].startswith(f"{told.left_out} of {len(every['results'])} gates")
    # The same gate is known by the same name, whatever else is written.
    few = {r["partialFingerprints"]["gatepatchGate/v1"] for r in run["results"]}
    assert few < {r["partialFingerprints"]["gatepatchGate/v1"] for r in every["results"]}


def test_sarif_says_what_is_folded_and_what_could_not_be_read(prefix: Path) -> None:
    (site_of(prefix) / "toy" / "core.py").write_text("if major == 9\n")
    notes = written(prefix)["invocations"][0]["toolExecutionNotifications"]
    texts = [note["message"]["text"] for note in notes]
    folded = "toy: toy/third_party: vendored, 1 gates, 1 leave 12.0 out; --all writes them too"
    assert texts[0] == folded
    assert "toy: toy/core.py" in texts[1]


class _Page(HTMLParser):
    """What stands in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within == "script":
            self.scripts.append(data)


def page(prefix: Path, **options: Any) -> str:
    path = prefix / "out.html"
    gatepatch.scan(["toy"], sm="120", prefix=prefix, html=path, **options)
    return path.read_text("utf-8")


def test_the_page_holds_every_gate_with_its_verdicts(prefix: Path) -> None:
    result = gatepatch.scan(["toy"], sm="120", prefix=prefix, everything=True)
    data = json.loads(_Page(page(prefix, everything=True)).scripts[0])
    rows = [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]
    assert [(r["path"], r["line"], r["text"], r["out"]) for r in rows] == [
        (f.path, f.line, f.text, f.leaves_out) for f in result.findings
    ]
    for row, finding in zip(rows, result.findings, strict=True):
        told = {
            a: data["answers"][c][0] for a, c in zip(data["archs"], row["verdict"], strict=True)
        }
        assert told == finding.verdict


def test_the_page_needs_nothing_else_and_runs_nothing_that_it_reads(prefix: Path) -> None:
    text = page(prefix)
    found = _Page(text)
    tags = [tag for tag, _ in found.tags]
    assert not {"img", "link", "iframe"} & set(tags)
    assert tags.count("script") == 2
    assert not [name for _, attributes in found.tags for name in attributes if name == "src"]
    assert "://" not in text.replace(str(prefix), "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
    policy = next(a["content"] for _, a in found.tags if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none';")


def test_the_page_offers_the_kinds_that_there_are(prefix: Path) -> None:
    found = _Page(page(prefix, everything=True))
    values = [a["value"] for tag, a in found.tags if tag == "option"]
    assert {"all", "out", "unknown", "membership", "directive", "vendored", "raises"} <= set(values)
    assert "switch" not in values


def test_the_command_writes_both_and_still_prints(
    prefix: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = prefix / "a.sarif", prefix / "a.html"
    words = ["scan", "toy", "--sm", "120", "--prefix", str(prefix), "--json"]
    assert main([*words, "--sarif", str(one), "--html", str(other)]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)["scan"]
    gates = len(document["findings"])
    assert document["written"] == [
        {"file": str(one), "format": "sarif", "gates": gates, "left_out": 0},
        {"file": str(other), "format": "html", "gates": gates, "left_out": 0},
    ]
    assert printed.err.splitlines() == [
        f"sarif written: {one} ({gates} gates)",
        f"html written: {other} ({gates} gates)",
    ]


def test_what_cannot_be_written_is_refused_before_the_scan(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("gatepatch.scanning.scan.scan", never)
    nowhere = prefix / "nowhere" / "x.html"
    with pytest.raises(UsageError) as refused:
        gatepatch.scan(["toy"], sm="120", prefix=prefix, html=nowhere)
    (problem,) = refused.value.problems
    assert (problem.where, problem.message, problem.hint) == (
        "--html",
        f"{nowhere}: there is no folder {nowhere.parent}",
        f"mkdir -p {nowhere.parent}",
    )
    with pytest.raises(UsageError, match=f"{prefix} is a folder, not a file"):
        gatepatch.scan(["toy"], sm="120", prefix=prefix, sarif=prefix)
    os.mkfifo(prefix / "pipe")
    with pytest.raises(UsageError, match="pipe is a device or a pipe, not a file"):
        gatepatch.scan(["toy"], sm="120", prefix=prefix, sarif=prefix / "pipe")
    (prefix / "link").symlink_to("x")
    with pytest.raises(UsageError, match="--sarif and --html name one file"):
        gatepatch.scan(["toy"], sm="120", prefix=prefix, sarif=prefix / "x", html=prefix / "link")
    with pytest.raises(UsageError, match="--sarif and --html name one file"):
        gatepatch.scan(["toy"], sm="120", prefix=prefix, sarif=prefix / "x", html=prefix / "x")


def test_a_link_stays_and_the_file_behind_it_is_written(prefix: Path) -> None:
    (prefix / "link.html").symlink_to("behind.html")
    gatepatch.scan(["toy"], sm="120", prefix=prefix, html=prefix / "link.html")
    assert (prefix / "link.html").is_symlink()
    assert (prefix / "behind.html").read_text().startswith("<!doctype html>")


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = prefix / "x.html"
    path.write_text("before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gatepatch.files.os.fsync", full)
    with pytest.raises(GatepatchError) as refused:
        gatepatch.scan(["toy"], sm="120", prefix=prefix, html=path, cached=False)
    (problem,) = refused.value.problems
    assert problem.where == str(path)
    assert problem.message == "cannot be written: No space left on device"
    assert path.read_text() == "before"
    assert sorted(p.name for p in prefix.glob("*x.html*")) == ["x.html"]


_DRIVER = """
<script>
(async () => {
  const told = [];
  const say = (name) => told.push(name + ": " + document.getElementById("count").textContent + ", "
    + document.querySelectorAll(".gate").length + " drawn");
  const choose = async (id, value) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((done) => setTimeout(done, 300));
    say(id + " " + value);
  };
  say("first");
  await choose("show", "all");
  await choose("kind", "directive");
  await choose("kind", "");
  await choose("text", "onerror run");
  const out = document.createElement("pre");
  out.id = "told";
  out.textContent = [...told, "hash " + location.hash, "title " + document.title].join("\\n");
  document.body.append(out);
})();
</script>
"""


@pytest.mark.slow
def test_a_browser_filters_the_page(prefix: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser, "this test needs Chromium"
    many = "".join(f"#if __CUDA_ARCH__ == 900 && A{n}\nint a{n};\n#endif\n" for n in range(3000))
    (site_of(prefix) / "toy" / "kernel.cuh").write_text(many)
    text = page(prefix, everything=True)
    driven = tmp_path / "driven.html"
    driven.write_text(text.replace("</body>", _DRIVER + "</body>"), "utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=20000"]
    ran = subprocess.run(
        [*command, driven.as_uri()], capture_output=True, text=True, check=True, timeout=300
    )
    match = re.search(r'<pre id="told">(.*?)</pre>', ran.stdout, re.DOTALL)
    assert match is not None
    counts = len(gatepatch.scan(["toy"], sm="120", prefix=prefix, everything=True).findings)
    told = match[1].replace("&amp;", "&").splitlines()
    assert told[0].endswith(f"of {counts:,} gates, 60 drawn")
    assert told[1:] == [
        f"show all: {counts:,} of {counts:,} gates, 60 drawn",
        f"kind directive: 3,001 of {counts:,} gates, 60 drawn",
        f"kind : {counts:,} of {counts:,} gates, 60 drawn",
        f"text onerror run: 1 of {counts:,} gates, 1 drawn",
        "hash #text=onerror+run&show=all",
        "title Gates by architecture: what leaves 12.0 out",
    ]
