"""What gatepatch's reports share: one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --faint: #5c6670; --line: #d8dde2;
  --paper: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --faint: #9aa5b0; --line: #3a4249;
  --paper: #15191d; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } td.number { text-align: right; }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line); }
"""
"""The style sheet that every page begins with, dark and light."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, body: Iterable[str], *, style: str = "") -> str:
    """Put a page together; it may load nothing, not even by mistake.

    Args:
        title: As text.
        body: As HTML.
        style: A style sheet beside that of all pages.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def encode(text: str) -> bytes:
    """The bytes of a page; names of files may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace")
