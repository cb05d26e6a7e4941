"""Conditions on an architecture's number in C and C++ code: lexical, no parser of the language.

A comparison of a name such as ``sm`` or ``prop.major`` with a number is widened to the condition
around it, and that is read in the language of ``#if``, whose expressions are C's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gatepatch.arch import TABLE, Arch
from gatepatch.boolean import Bool, atom
from gatepatch.edits import line_of
from gatepatch.gates.preprocessor import ConditionError, parse
from gatepatch.gates.preprocessor_eval import Free, Known, Macro, Unknown, evaluate
from gatepatch.gates.preprocessor_tree import macros
from gatepatch.scanning import names
from gatepatch.scanning.c_text import Outline
from gatepatch.scanning.found import Found
from gatepatch.scanning.host_predicates import NAMED, OWN, inlined
from gatepatch.scanning.records import Effect, Guards, Kind
from gatepatch.scanning.words import Words
from gatepatch.verdict import Point, Verdict

_NAME = rb"(?:\w*[mM]ajor\w*|\w*MAJOR|(?:m|m_)?[sS][mM]_?|\w*[gG]et_?S[mM]|\w*[sS][mM]_?[vV]ersion\w*|\w*[sS]mVersion|\w*[cC]apability\w*|\w*_?[aA]rch|\w*sm_arch|SM_?ARCH|ARCH|cc|CC)"
_AFTER = rb"(?:\s*\([^();]*\))?(?:\s*[/%*]\s*\d+)?\s*(?:[=!<>]=|[<>](?![<>]))\s*\(?\s*\d"
COMPARED = re.compile(
    rb"\b"
    + _NAME
    + _AFTER
    + rb"|\bswitch\s*\(\s*(?:[\w.]|->|::)*"
    + _NAME
    + rb"\s*(?:\(\s*\)\s*)?\)|__CUDA_ARCH__\s*(?:[=!<>]=|[<>])"
    + rb"|\b\w+(?:\(\))?\s*[=!]=\s*(?:(?:\w+::)+k?[sS][mM]_?|kSM_?)\d{2,3}[af]?\b"
    + rb"|\b\w*[cC]apa(?:bil|c)ity\w*(?:\.|->)(?:first|second)\s*(?:[=!<>]=|[<>](?![<>]))\s*\d"
    + rb"|(?<=(?:CHECK|SSERT|XPECT)_)(?P<relation>EQ|NE|GE|GT|LE|LT)\s*\(\s*(?:[\w.]|->|::)*?\b"
    + _NAME
    + rb"\s*(?:\(\s*\)\s*)?,\s*\d"
    + rb"|(?:(?<=[(!])|(?<=(?:&&|\|\|) )|(?<=  ))(?=is)"
    + NAMED
    + rb"\s*\("
)
"""A comparison, or a switch, that may be of an architecture; or a predicate's call."""

_RELATIONS = {b"EQ": b"==", b"NE": b"!=", b"GE": b">=", b"GT": b">", b"LE": b"<=", b"LT": b"<"}
"""What macros that are given two values do with them."""

# One of these stands in whatever the pattern matches.
_WORDS = Words(
    (
        *(b"ajor", b"MAJOR", b"apability", b"sm_version", b"smVersion", b"SMVersion", b"SmVersion"),
        *(
            b" sm ",
            b"(sm ",
            b"!sm ",
            b"(sm)",
            b" sm)",
            b" SM ",
            b"(SM ",
            b"(SM)",
            b"SmVer",
            b"sm_ver",
        ),
        *(b"arch ", b"Arch ", b"ARCH", b"arch(", b"Arch(", b"arch)", b"Arch)", b"sm/", b"SMARCH"),
        *(b" cc ", b"(cc ", b" CC ", b"(CC ", b"sm=", b"sm>", b"sm<", b"arch=", b"arch>", b"arch<"),
        *(b"kSM ", b"_SM ", b"mSM ", b"m_sm ", b"::SM ", b" sm_ ", b"(sm_ ", b"!sm_ "),
        *(b"etSM", b"et_SM", b"CHECK_EQ", b"CHECK_NE", b"CHECK_G", b"CHECK_L"),
        *(b"ASSERT_EQ", b"ASSERT_NE", b"ASSERT_G", b"ASSERT_L", b"EXPECT_EQ", b"EXPECT_G"),
        *(b"rchCompat", b"rch_compat", b"SMCompat", b"SmCompat", b"sm_compat"),
        *(b"rchSupp", b"rch_supp", b"SMSupp", b"SmSupp", b"sm_supp"),
        *(b"::kSm", b"::kSM", b"::Sm", b"::SM", b"::sm", b" kSM_", b"apacity.", b"apacity->"),
    ),
)

_BEFORE = re.compile(
    rb"(if\s+constexpr|if|while|static_assert|switch|\b[A-Z][A-Z0-9_]*(?:CHECK|ASSERT|ENFORCE|REQUIRE|EXPECT)[A-Z0-9_]*|assert)\s*$"
)
_POSTFIX = re.compile(
    rb"[A-Za-z_]\w*(?:\s*(?:\.|->|::)\s*[A-Za-z_]\w*|\s*\((?:[^()]|\([^()]*\))*\)|\s*\[[^\[\]]*\])*"
)
_TAG = re.compile(rb"is_\w+\s*<")
"""A template with arguments, such as ``is_major<0, Stride>``."""

_CHOICE = re.compile(rb"\b(?:enable_if|enable_if_t|conditional|conditional_t|bool_constant)\s*$")
"""A template whose first argument is a condition."""

_FOR_TARGET = re.compile(r"[A-Za-z]\w*_CUDA_ARCH|__CUDA_ARCH__")

_MEMBER = re.compile(rb"(?:(?:\w+::)+k?[sS][mM]_?|\bkSM_?)(\d{2,3})[af]?\b")
"""An enumeration's member, such as ``Target::kSm100a``, or a constant, such as ``kSM_100``."""

_PAIR = re.compile(r"\w*[cC]apa(?:bil|c)ity\w*_(first|second)")
"""A part of a capability."""

_ASKED = re.compile(r"(?i)is_?\w*(?:arch|sm)_?(?:compatible|supported)")
"""A predicate of what it is given."""

_CONFIGURED = re.compile(rb"(?:[cC]onfig|[mM]eta)\w*(?:\.|->)\w+$")
"""A member of a configuration, or of what describes a kernel: not the device either."""

_REFUSED = re.compile(
    # No two parts that may share white space: there is much of it where comments were.
    rb"(?:[^;{}]+;){1,3}\s*"
    rb"(?:return\s+\w*(?:NotSupported|Invalid|Error[A-Z]|ERROR_)\w*|throw\b[^;{}]*);\s*"
)
"""A block that says something, and then refuses."""

_OUTSIDE = (Arch(6, 0), Arch(10, 1), Arch(10, 7))
"""Architectures that conditions ask for, and that verdicts are not given for."""

_CASE = re.compile(rb"\bcase\s+(\d+)\s*:")
_REACH = 2000
_ENDS = b";{}"


def lines(source: bytes) -> list[tuple[int, int]]:
    """The lines of a C file that compare something that may be an architecture's number."""
    found: list[tuple[int, int]] = []
    for start, end in _WORDS.lines(source):
        if COMPARED.search(source, start, end):
            line = source[start:end].lstrip()
            # A directive is read as one; a macro's text is code.
            if not line.startswith(b"#") or line[1:].lstrip().startswith(b"define"):
                found.append((start, end))
    return found


def conditions(
    source: bytes, text: bytes, outline: Outline, spans: Sequence[tuple[int, int]]
) -> Iterator[Found]:
    """Yield the conditions on architectures outside of directives.

    Args:
        source: The file.
        text: The same, with comments, literals and directives blanked.
        outline: The file's definitions.
        spans: The lines that compare something.
    """
    last = 0
    for match in (m for start, end in spans for m in COMPARED.finditer(text, start, end)):
        if match.start() < last or _TAG.match(match[0]):
            continue
        if match["relation"]:
            last = match.end()
            if (found := _related(source, text, match, outline)) is not None:
                yield found
            continue
        inside = match.start()
        if match[0].startswith(b"switch"):
            inside = text.index(b"(", inside) + 1
        start, end, opener = _widened(text, inside)
        last = max(end, match.end())
        if opener == b"switch":
            found = _switch(source, text, start, end, outline)
        else:
            found = _condition(source, text, start, end, opener, outline)
        if found is not None:
            yield found


def _related(source: bytes, text: bytes, match: re.Match[bytes], outline: Outline) -> Found | None:
    """A macro that checks one value against another, such as ``CHECK_EQ(major, 10)``."""
    first = match.start()
    while first and re.match(rb"\w", text[first - 1 : first]):
        first -= 1
    start = text.index(b"(", match.start()) + 1
    middle = _closing(text, start)
    end = _closing(text, middle + 1)
    verdict, by_name, is_gate = _verdict(
        text[start:middle] + _RELATIONS[match["relation"]] + text[middle + 1 : end], text
    )
    if not is_gate:
        return None
    return Found(
        line=line_of(source, first),
        end_line=line_of(source, end),
        within=outline.within(first),
        language="cuda",
        kind="check",
        text=" ".join(source[first : end + 1].decode("utf-8", "backslashreplace").split()),
        rejects=False,
        verdict=verdict,
        guards=Guards(effect="raises", lines=1),
        by_name=by_name,
    )


def _widened(text: bytes, start: int) -> tuple[int, int, bytes]:
    """The expression around a comparison, and the word before the bracket that opens it."""
    left, depth = start, 0
    first = max(0, start - _REACH)
    begin = start
    while left > first:
        character = text[left - 1 : left]
        if character in b")]":
            depth += 1
        elif character in b"([":
            depth -= 1
            if depth < 0:
                opener = _BEFORE.search(text[max(0, left - 1 - 60) : left - 1])
                if opener:
                    return left, _closing(text, left), re.sub(rb"\s+", b" ", opener[1])
                if re.search(
                    rb"[\w>]\s*$", text[max(0, left - 1 - 20) : left - 1]
                ) and not re.search(
                    rb"\b(?:return|and|or|not)\s*$", text[max(0, left - 20) : left - 1]
                ):
                    break  # an argument of a call
                if (mark := _question(text, start)) is not None:
                    return left, mark, b"?"
                depth = 0
                begin = left - 1
        elif depth == 0 and character == b"<" and _CHOICE.search(text, max(0, left - 40), left - 1):
            return left, _until(text, left, template=True), b"template"
        elif (
            (depth == 0 and (character in _ENDS or character in b",?"))
            or (
                depth == 0
                and character == b":"
                and text[left - 2 : left - 1] != b":"
                and text[left : left + 1] != b":"
            )
            or (
                depth == 0
                and character == b"="
                and text[left - 2 : left - 1] not in (b"=", b"!", b"<", b">")
                and text[left : left + 1] != b"="
            )
        ):
            break
        left -= 1
        if depth == 0:
            begin = left
    begin = max(left, first)
    right = _until(text, begin)
    head = re.match(rb"\s*(?:return\b|else\b|if\b)?\s*", text[begin:right])
    return (
        begin + (head.end() if head else 0),
        right,
        b"?" if text[right : right + 1] == b"?" else b"",
    )


def _question(text: bytes, start: int) -> int | None:
    """Where the ``?`` of the condition at ``start`` stands; None if its bracket ends before."""
    end = _until(text, start)
    return end if text[end : end + 1] == b"?" else None


def _closing(text: bytes, start: int) -> int:
    """Where the bracket that was opened before ``start`` closes; a CHECK's message left out."""
    return _end(text, start, b"([{", b")]}", b",;")


def _until(text: bytes, start: int, *, template: bool = False) -> int:
    """Where an expression ends that no bracket closes, or that a template's does."""
    end = _end(text, start, b"([", b")]", b",?;{}")
    if template and (closing := re.compile(rb">(?!=)").search(text, start, end)):
        return closing.start()
    return end


def _end(text: bytes, start: int, opening: bytes, closing: bytes, stops: bytes) -> int:
    """The first place, outside of brackets opened since ``start``, of what ends an expression."""
    depth = 0
    end = min(len(text), start + _REACH)
    for index in range(start, end):
        character = text[index]
        if character in opening:
            depth += 1
        elif character in closing:
            if depth == 0:
                return index
            depth -= 1
        elif depth == 0 and character in stops:
            return index
    return end


def _condition(
    source: bytes, text: bytes, start: int, end: int, opener: bytes, outline: Outline
) -> Found | None:
    written = source[start:end].replace(b"\\\n", b" \n").decode("utf-8", "backslashreplace")
    shown = " ".join(written.split())
    verdict, by_name, is_gate = _verdict(text[start:end], text)
    if not (is_gate or verdict.unknown) or not shown:
        return None
    kind, guards, rejects = _role(text, end, opener)
    return Found(
        line=line_of(source, start),
        end_line=line_of(source, max(start, end - 1)),
        within=outline.within(start),
        language="cuda",
        kind=kind,
        text=shown,
        rejects=rejects,
        verdict=verdict,
        guards=guards,
        by_name=by_name,
        unknown=verdict.unknown,
    )


def _role(text: bytes, end: int, opener: bytes) -> tuple[Kind, Guards, bool]:
    if opener in (b"if", b"while", b"if constexpr"):
        kind: Kind = "constexpr" if opener == b"if constexpr" else "branch"
        body = _body(text, end + 1)
        effect: Effect = "code"
        rejects = False
        if re.match(
            rb"\s*(?:throw\b|return\s*(?:;|(?:false|nullptr)\s*;|\w*(?:Error|ERROR|NotSupported|Invalid)\w*\s*[;(])|\w*(?:THROW|ERROR|FAIL)\w*\s*\()",
            body,
        ):
            effect, rejects = ("returns" if b"return" in body[:20] else "raises"), True
        elif _REFUSED.fullmatch(body):
            effect, rejects = ("raises" if b"throw" in body else "returns"), True
        elif re.match(rb"\s*return\b", body):
            effect = "returns"
        elif b"__trap" in body:
            effect = "trap"
        tail = re.match(rb"[\s}]*else\b(\s*if)?", text[end + 1 + len(body) : end + 60 + len(body)])
        otherwise = "" if not tail else "another test" if tail[1] else "other code"
        return (
            kind,
            Guards(effect=effect, lines=body.count(b"\n") + 1, otherwise=otherwise),
            rejects,
        )
    if opener == b"template":
        return "constexpr", Guards(effect="value", lines=0), False
    if opener == b"static_assert":
        return "constexpr", Guards(effect="raises", lines=1), False
    if opener == b"?":
        return "branch", Guards(effect="default", lines=1, otherwise="another value"), False
    if opener:
        return "check", Guards(effect="raises", lines=1), False
    return "value", Guards(effect="value", lines=0), False


def _body(text: bytes, start: int) -> bytes:
    """The statement, or the block without its braces, after a condition."""
    opening = re.match(rb"\s*\{", text[start : start + 200])
    if opening is None:
        stop = text.find(b";", start)
        return text[start : stop + 1 if stop >= 0 else start]
    depth = 0
    first = start + opening.end()
    for match in re.compile(rb"[{}]").finditer(text, first, first + 200_000):
        if match[0] == b"{":
            depth += 1
        elif depth == 0:
            return text[first : match.start()]
        else:
            depth -= 1
    return text[first : first + 2000]


def _switch(source: bytes, text: bytes, start: int, end: int, outline: Outline) -> Found | None:
    subject = text[start:end].strip()
    name = _last_name(subject)
    body = _body(text, end + 1)
    cases = [int(match[1]) for match in _CASE.finditer(body)]
    if not cases or not (names.is_major(name) or names.is_number(name)):
        return None
    table: dict[Point, Bool] = {arch: names.value(name, arch, cases) in cases for arch in TABLE}
    return Found(
        line=line_of(source, start),
        end_line=line_of(source, start),
        within=outline.within(start),
        language="cuda",
        kind="switch",
        text=f"switch ({subject.decode('latin-1')}): {', '.join(map(str, cases))}",
        rejects=False,
        verdict=Verdict(table),
        guards=Guards(
            effect="code",
            lines=body.count(b"\n") + 1,
            otherwise="other code" if b"default" in body else "",
        ),
        by_name=True,
    )


def _verdict(text: bytes, file: bytes) -> tuple[Verdict, bool, bool]:
    """The verdict of a condition of a file, and two answers.

    Whether it has a name that was read as the architecture's, and whether it hangs on that.
    """
    meanings: dict[str, bytes] = {}

    def named(match: re.Match[bytes]) -> bytes:
        spelling = re.sub(rb"\s+", b"", match[0])
        if spelling in (b"true", b"false", b"and", b"or", b"not", b"defined"):
            return match[0]
        name = re.sub(rb"\W+", b"_", spelling).decode("latin-1").rstrip("_")
        if spelling.endswith(b"__"):  # a template's arguments are blank: each may be another
            name += f"_{len(meanings)}"
        meanings.setdefault(name, spelling)
        return name.encode("latin-1")

    # A text that stands beside a condition, as in assert(a && "why"), is blank here, and true.
    text = inlined(_MEMBER.sub(rb"\1", re.sub(rb"&&\s*\Z", b"", text)), file)
    flat = _POSTFIX.sub(named, text)
    try:
        expression = parse(b" ".join(flat.split()))
    except ConditionError as error:
        reason = f"it is not read as a condition: {error}"
        return Verdict(dict.fromkeys(TABLE, atom("the condition", unknown=reason))), True, True
    divided = re.search(rb"[/%]\s*(100?)\b", text)
    beside = [int(number) for number in re.findall(rb"(?<![\w.])\d+", text)]
    seen = False

    def lookup(name: str, arch: Arch) -> Macro:
        nonlocal seen
        spelling = meanings.get(name, name.encode("latin-1"))
        last = re.sub(r"^m_?(?=[sS][mM])", "", _last_name(spelling))  # a member's prefix
        if part := _PAIR.fullmatch(name):
            seen = True
            return Known(arch.major if part[1] == "first" else arch.minor)
        if _CONFIGURED.search(spelling) and names.is_number(last):
            return Unknown("it is what a record was made for that is picked at run time")
        if _ASKED.fullmatch(last):
            return Unknown(f"what {last} says of an architecture is not followed")
        if OWN.fullmatch(last):
            return Unknown(f"{last} is what the code was built for, and its value is not known")
        if _FOR_TARGET.fullmatch(last):
            seen = True
            return Known(arch.cuda_arch)
        if divided and names.is_number(last):
            seen = True
            return Known(arch.sm if divided[1] == b"10" else arch.cuda_arch)
        found = names.value(last, arch, [n for n in beside if n] or beside)
        if isinstance(found, int):
            seen = True
            return Known(found)
        return Free()

    def worth(arch: Arch) -> Bool:
        return evaluate(expression, lambda name: lookup(name, arch))

    table: dict[Point, Bool] = {arch: worth(arch) for arch in TABLE}
    values = set(table.values())
    if seen and len(values) == 1:
        values.update(map(worth, _OUTSIDE))
    return Verdict(table), seen and bool(macros(expression)), len(values) > 1


def _last_name(spelling: bytes) -> str:
    """The last name of ``prop->major`` or ``getSMVersion()``."""
    text = re.sub(rb"\s+|\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\]", b"", spelling)
    parts = re.split(rb"\.|->|::", text)
    return parts[-1].decode("latin-1")
