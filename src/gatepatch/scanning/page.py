"""A scan's result as one HTML page that a person can filter and read.

The gates stand in the page as JSON; ``page.js`` draws those that are wanted, some at a time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from gatepatch import webpage
from gatepatch.arch import TABLE
from gatepatch.scanning.records import ANSWERS, EFFECTS, KINDS, Answer, Finding, ScanResult

_SYMBOLS: Mapping[Answer, str] = {
    "admits": "\N{CHECK MARK}",
    "shuts": "\N{MULTIPLICATION SIGN}",
    "depends": "~",
    "unknown": "?",
}
_ARCHS = tuple(map(str, TABLE))
_FIELDS = (
    *("distribution", "path", "line", "within", "kind", "text", "rejects", "verdict", "words"),
    *("out", "effect", "lines", "calls", "otherwise", "compiled", "unknown", "tree"),
)


def render(result: ScanResult) -> str:
    """The page."""
    like = " or ".join(result.like)
    title = f"Gates by architecture: what leaves {result.sm} out"
    out = sum(finding.leaves_out for finding in result.findings)
    lead = (
        f"{out:,} of the {len(result.findings):,} gates on this page leave {result.sm} out and "
        f"admit {like}. A gate that leaves an architecture out may be right as it stands: what it "
        "guards says whether there is anything to open."
    )
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(lead)}</p>",
        *_distributions(result),
        *_aside(result),
        *_filter(result),
        *_legend(result),
        _head(result),
        '<main id="gates"></main>',
        '<p id="none" hidden>No gate is left by this filter.</p>',
        '<button id="more" type="button" hidden></button>',
        "<noscript>The gates are drawn by a script in this page, and scripts are off.</noscript>",
        f'<script type="application/json" id="data">{_json(_data(result))}</script>',
        f"<script>{_resource('page.js')}</script>",
    ]
    return webpage.page(title, body, style=_resource("page.css"))


def _resource(name: str) -> str:
    return resources.files("gatepatch.scanning").joinpath(name).read_text("utf-8")


def _json(value: object) -> str:
    """JSON that may stand in a script element: it cannot end it, nor begin a comment."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII, so U+2028 is an escape already
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _data(result: ScanResult) -> dict[str, Any]:
    return {
        "sm": result.sm,
        "archs": _ARCHS,
        "answers": {name[0]: [name, _SYMBOLS[name], ANSWERS[name]] for name in ANSWERS},
        "effects": EFFECTS,
        "kinds": KINDS,
        "fields": _FIELDS,
        "rows": [_row(finding) for finding in result.findings],
    }


def _row(finding: Finding) -> list[Any]:
    """A gate's fields, in the order of their names."""
    guards = finding.guards
    told = {
        "out": finding.leaves_out,
        "verdict": "".join(finding.verdict[arch][0] for arch in _ARCHS),
        "words": dict(finding.words),
        "effect": guards.effect,
        "lines": guards.lines,
        "calls": guards.calls,
        "otherwise": guards.otherwise,
    }
    return [told[name] if name in told else getattr(finding, name) for name in _FIELDS]


def _distributions(result: ScanResult) -> Iterator[str]:
    on_page = Counter(finding.distribution for finding in result.findings)
    head = "".join(
        f"<th>{escape(name)}"
        for name in (
            *("distribution", "version", "files", "gates", f"leave {result.sm} out"),
            *("cannot be told", "on this page"),
        )
    )
    rows = "".join(
        f"<tr><td>{escape(d.distribution)}<td>{escape(d.version)}"
        + "".join(
            f'<td class="number">{number:,}'
            for number in (d.files, d.gates, d.leaves_out, d.unknown, on_page[d.distribution])
        )
        for d in result.distributions
    )
    yield f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>'
    if any(on_page[d.distribution] < d.gates for d in result.distributions):
        yield (
            '<p class="lead">The counts are of all gates. This page has those that were asked for: '
            "<code>gatepatch scan --all --html FILE</code> writes every one.</p>"
        )


def _aside(result: ScanResult) -> Iterator[str]:
    """What is not on the page: trees that were only counted, and files that were not read."""
    folded = [
        f"{tree.distribution}: {tree.path}: {tree.tree}, {tree.gates:,} gates in {tree.files:,} "
        f"files, {tree.leaves_out:,} leave {result.sm} out"
        for tree in result.folded
    ]
    problems = [str(problem) for problem in result.problems]
    for title, texts in (("Trees only counted", folded), ("Files not read", problems)):
        if texts:
            items = "".join(f"<li>{escape(text)}</li>" for text in texts)
            yield f"<details><summary>{title} ({len(texts):,})</summary><ul>{items}</ul></details>"


def _filter(result: ScanResult) -> Iterator[str]:
    found = result.findings
    out = sum(finding.leaves_out for finding in found)
    unknown = sum(bool(finding.unknown) for finding in found)
    shows = [("all", "all", len(found)), ("out", f"leave {result.sm} out", out)]
    shows.append(("unknown", "cannot be told", unknown))
    yield '<form id="filter" role="search" aria-label="Filter">'
    yield (
        '<label class="grow">text<input id="text" type="search" data-plain="" autocomplete="off" '
        'placeholder="path, function, condition, call"></label>'
    )
    yield _select("show", "show", shows, plain="out" if out else "all")
    yield _choice("distribution", (f.distribution for f in found), {})
    yield _choice("kind", (f.kind for f in found), {}, title=KINDS)
    yield _choice("effect", (f.guards.effect for f in found), EFFECTS, label="what it guards")
    yield _choice("tree", (f.tree for f in found), {})
    yield '<button type="reset">clear</button></form>'


def _choice(
    name: str,
    values: Iterable[str],
    words: Mapping[Any, str],
    *,
    title: Mapping[Any, str] | None = None,
    label: str = "",
) -> str:
    """A list of the values that there are, with their counts."""
    counts = Counter(values)
    rows = [(v, _short(words.get(v, v)), counts[v]) for v in sorted(counts)]
    return _select(
        name, label or name, [("", "any", counts.total()), *rows], plain="", title=title or {}
    )


def _short(text: str) -> str:
    return text.partition(":")[0].partition(" (")[0]


def _select(
    name: str,
    label: str,
    rows: Sequence[tuple[str, str, int]],
    *,
    plain: str,
    title: Mapping[Any, str] | None = None,
) -> str:
    options = "".join(
        f'<option value="{escape(value)}" data-words="{escape(text)}" title="{escape((title or {}).get(value, text))}"'
        f"{' selected' * (value == plain)}>{escape(text)} ({count:,})</option>"
        for value, text, count in rows
    )
    return (
        f'<label{" hidden" * (len(rows) == 2)}>{escape(label)}<select id="{name}" data-plain="{escape(plain)}">{options}'
        "</select></label>"
    )


def _legend(result: ScanResult) -> Iterator[str]:
    cells = "".join(
        f'<span><span class="cell {name}">{_SYMBOLS[name]}</span>{name}: {escape(text)}</span>'
        for name, text in ANSWERS.items()
    )
    yield f'<div class="legend">{cells}<span>framed: {escape(result.sm)}, asked for</span></div>'


def _head(result: ScanResult) -> str:
    names = "".join(
        f'<span class="asked">{name}</span>' if name == result.sm else f"<span>{name}</span>"
        for name in _ARCHS
    )
    return (
        '<div class="row head"><span id="count" aria-live="polite"></span>'
        f'<div class="matrix" aria-hidden="true">{names}</div></div>'
    )
