"""README, help text and Makefile say the same."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import pytest
import yaml

import gatepatch
from gatepatch import cli, commands
from gatepatch.loader import load

REPOSITORY = Path(__file__).parents[1]
README = (REPOSITORY / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The README's fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def table(header: str) -> list[list[str]]:
    """The rows of the README's table whose first column has this header."""
    _, _, rest = README.partition(f"\n| {header} |")
    rows = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


COMMAND_LINES = [
    line
    for block in blocks("sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("gatepatch ")
]


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    return {name: parser(name) for name in commands.SUMMARIES}


def parser(name: str) -> argparse.ArgumentParser:
    actions = cli._parser(name)._actions
    (added,) = (action for action in actions if isinstance(action, argparse._SubParsersAction))
    found = added.choices[name]
    assert isinstance(found, argparse.ArgumentParser)
    return found


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_command_lines_parse(line: str) -> None:
    words = shlex.split(line)[1:]
    cli.parse(words, words[0])


def test_there_is_a_line_for_each_command_that_a_person_types() -> None:
    typed = {line.split()[1] for line in COMMAND_LINES}
    assert {"show", "plan", "apply", "status", "revert", "recover", "cache", "lint"} <= typed


def test_command_table_is_the_help() -> None:
    told = {
        name.strip("`").split()[0]: (summary, set(re.findall(r"--[a-z-]+", options)))
        for name, summary, options in table("command")
    }
    helped = {}
    for command, summary in commands.SUMMARIES.items():
        known = {word for a in parsers()[command]._actions for word in a.option_strings}
        helped[command] = (summary, known - {"-h", "--help", "--json"})
    assert told == helped


def test_command_table_has_the_positional_arguments() -> None:
    for name, _, _ in table("command"):
        command, *told = name.strip("`").split()
        actions = parsers()[command]._actions
        positional = [action for action in actions if not action.option_strings]
        helped = [f"[{a.metavar}]" if a.nargs == "?" else a.metavar for a in positional]
        assert told == helped


def test_every_command_takes_json() -> None:
    for parser in parsers().values():
        assert "--json" in parser.format_help()


def test_exit_codes_are_those_of_the_help() -> None:
    told = {code: meaning for code, meaning in table("exit code") if "," not in code}
    helped = dict(re.findall(r"^  (\d) +(.+)$", cli.EXIT_CODES, re.MULTILINE))
    assert told == helped


def test_every_public_name_is_a_command() -> None:
    names = set(gatepatch.__all__) - {"GatepatchError", "__version__", "applied"}
    assert names == {"list_sets" if name == "list" else name for name in commands.SUMMARIES}


def test_yaml_is_a_set_and_that_of_the_example(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    (tmp_path / "set.yaml").write_text(text)
    told = load(tmp_path / "set.yaml")
    example = load(REPOSITORY / "examples" / "own-set" / "patches" / f"{told.name}.yaml")
    assert (told.targets, told.goal, told.why) == (example.targets, example.goal, example.why)


def test_python_blocks_use_public_names() -> None:
    for block in blocks("python"):
        compile(block, "README.md", "exec")
        assert set(re.findall(r"gatepatch\.(\w+)", block)) <= set(gatepatch.__all__)


def test_edit_table_is_the_vocabulary() -> None:
    """A key that the loader does not know is an error that names it."""
    told = {name: keys for name, _, keys in table("edit")}
    assert list(told) == ["`open`, `close`", "`replace`", "`import`", "`insert`", "`text`"]
    source = (REPOSITORY / "src" / "gatepatch" / "loader.py").read_text()
    for keys in told.values():
        for key in re.findall(r"`(\w+)`", keys):
            assert f'"{key}"' in source


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    named = {w for block in blocks("sh") for w in re.findall(r"^make (\w+)$", block, re.MULTILINE)}
    assert {"demo", "test"} <= named <= targets


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert "://" in link or (REPOSITORY / link).exists(), link


def test_first_commands_are_demo_and_test() -> None:
    assert blocks("sh")[0] == "make demo\nmake test\n"


def test_versions_agree() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    assert f'version = "{gatepatch.__version__}"' in text


def test_changelog_is_kept() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[(.+?)\]", text, re.MULTILINE)
    assert headings
    assert headings[0] in ("Unreleased", gatepatch.__version__)


def test_sets_of_the_repository_parse_as_yaml() -> None:
    for path in (*REPOSITORY.glob("patches/*/set.yaml"), *REPOSITORY.glob("examples/**/*.yaml")):
        assert yaml.safe_load(path.read_text())["schema"] == 1
