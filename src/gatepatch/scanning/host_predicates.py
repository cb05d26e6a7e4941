"""Predicates of a C file that tell whether a device runs what a record was built for, put in place of their calls."""

from __future__ import annotations

import re

from gatepatch.scanning import names

NAMED = rb"is_?\w*(?:[aA]rch|[sS]m|SM)_?(?:[cC]ompatible|[sS]upported)"
"""The name of a predicate of what it is given."""

OWN = re.compile(r"k(?:Min|Max)\w*Capability|k?Target|kernel_?[sS][mM]\w*")
"""What a kernel was built for, which is not the device."""

_CALL = re.compile(rb"(?<![\w.:>])(" + NAMED + rb")\s*(\((?:[^()]|\([^()]*\))*\))")
_PARAMETER = re.compile(rb"[\w:&*<>\s]*?\b(\w+)\s*")
_NUMBER = re.compile(rb"(?<![\w.])\d+")
_MEMBER = rb"\s*(?:[=!<>]=|[<>])\s*)(?:(?:\w+::)+k?[sS][mM]_?|\bkSM_?)(\d{2,3})[af]?\b"
_CALLED = re.compile(rb"(?!(?:if|switch|return|constexpr)\b)\b\w+\s*\(")
_LABEL = re.compile(rb"\b(?:case\s+((?:[^:;{}]|::)+)|default\s*):(?!:)")
_LONG, _TESTS = 2000, 10


def inlined(text: bytes, file: bytes) -> bytes:
    """A condition with what such a predicate returns in place of its call.

    A call stands as it is where more than one function is meant, or the function does more than
    compare what it is given.

    Args:
        text: The condition.
        file: The file, without comments, literals and directives.
    """
    if any(int(number) >= 300 for number in _NUMBER.findall(text)):
        return text  # in one condition, all of an architecture's numbers are of one unit
    return _CALL.sub(lambda match: _returned(match[1], match[2][1:-1], file) or match[0], text)


def _returned(name: bytes, arguments: bytes, file: bytes) -> bytes | None:
    heads = re.compile(
        rb"\bbool\s+" + name + rb"\s*\(([^(){};]*)\)\s*(?:const\s*)?(?:noexcept\s*)?\{"
    )
    found = [*heads.finditer(file)]
    if len(found) != 1:
        return None
    body = file[found[0].end() : found[0].end() + _LONG]
    end = _closing(body, 0)
    if end < 0 or _CALLED.search(body, 0, end) or body.count(b"if", 0, end) > _TESTS:
        return None
    given = _given(found[0][1], arguments)
    written = _expression(body[:end])
    if given is None or written is None:
        return None
    (device,) = filter(_is_device, given)
    for parameter in given.keys() - {device}:
        # By a name that says nothing: it is what the record is for, and not the device.
        plain = b"made_for_" + re.sub(rb"\W+", b"_", given[parameter].strip())
        same = rb"\b(?:%b\s*==\s*%b|%b\s*==\s*%b)\b" % (device, parameter, parameter, device)
        written = re.sub(same, plain + b"_alone", written)
        written = re.sub(rb"\b" + parameter + rb"\b", plain, written)
    written = re.sub(rb"(\b" + device + _MEMBER, rb"\1\2", written)
    numbers = [int(number) for number in _NUMBER.findall(written)]
    is_told = bool(numbers) and all(50 <= number < 300 for number in numbers)
    return written if is_told else None


def _is_device(parameter: bytes) -> bool:
    name = parameter.decode("latin-1")
    return names.is_number(name) and not OWN.fullmatch(name)


def _given(parameters: bytes, arguments: bytes) -> dict[bytes, bytes] | None:
    """What each parameter is given; None unless one of them is the device, and is given it."""
    heads = [_PARAMETER.fullmatch(one) for one in parameters.split(b",")]
    values = re.split(rb",(?![^()\[\]]*[)\]])", arguments)
    if len(heads) != len(values):
        return None
    given = {head[1]: value for head, value in zip(heads, values, strict=True) if head}
    device = [value.strip() for parameter, value in given.items() if _is_device(parameter)]
    is_asked = len(device) == 1 and re.fullmatch(rb"[A-Za-z_]\w*(?:\(\))?", device[0])
    return given if is_asked and len(given) == len(heads) else None


def _expression(body: bytes) -> bytes | None:
    """What statements return, as one expression; None where they do something else."""
    body = re.sub(rb"\A\s*(?:using\b[^;{}]*;\s*)*", b"", body)
    if found := re.match(rb"return\b([^;{}?]+);", body):
        return b"(" + found[1].strip() + b")"
    if body.startswith(b"{"):
        inner, rest = _statement(body)
        return _expression(inner[1:-1] + rest)
    if not (found := re.match(rb"(if|switch)\s*(?:constexpr\s*)?\(", body)):
        return None
    end = _closing(body, found.end())
    tested = body[found.end() : end]
    inner, rest = _statement(body[end + 1 :])
    if found[1] == b"switch":
        return _switched(tested, inner, rest)
    other, after = b"", rest
    if otherwise := re.match(rb"\s*else\b", rest):
        other, after = _statement(rest[otherwise.end() :])
    then, instead = _expression(inner + after), _expression(other + after)
    if then is None or instead is None:
        return None
    return b"((%b) ? %b : %b)" % (tested, then, instead)


def _switched(tested: bytes, block: bytes, rest: bytes) -> bytes | None:
    """What a ``switch`` returns, of which each case does, or goes on to the next."""
    labels = [*_LABEL.finditer(block)]
    if not labels or re.search(rb"\bbreak\b", block):
        return None
    cases: list[tuple[bytes, bytes | None]] = []
    result = _expression(rest)
    for label in labels:
        worth = _expression(_LABEL.sub(b"", block[label.end() : -1]) + rest)
        if label[1]:
            cases.append((label[1], worth))
        else:
            result = worth
    for case, worth in reversed(cases):
        if worth is None or result is None:
            return None
        result = b"((%b == %b) ? %b : %b)" % (tested, case, worth, result)
    return result


def _statement(text: bytes) -> tuple[bytes, bytes]:
    """The first of some statements, and the others."""
    text = text.lstrip()
    if text.startswith(b"{"):
        end = _closing(text, 1) + 1
    elif found := re.match(rb"if\s*(?:constexpr\s*)?\(", text):
        start = _closing(text, found.end()) + 1
        end = len(text) - len(_statement(text[start:])[1])
        if otherwise := re.match(rb"\s*else\b", text[end:]):
            end = len(text) - len(_statement(text[end + otherwise.end() :])[1])
    else:
        end = text.find(b";") + 1
    return text[:end], text[end:]


def _closing(text: bytes, start: int) -> int:
    """Where the bracket that was opened before ``start`` closes; -1 if it does not."""
    depth = 0
    for index in range(start, len(text)):
        if text[index] in b"({":
            depth += 1
        elif text[index] in b")}":
            if depth == 0:
                return index
            depth -= 1
    return -1
