"""The language of ``#if``: its tokens and its syntax tree, with the bytes that each comes from.

::

    condition   = conditional
    conditional = binary [ "?" conditional ":" conditional ]
    binary      = unary { operator unary }      by precedence, all from the left:
                  "||"   "&&"   "|"   "^"   "&"   "==" "!="   "<" "<=" ">" ">="
                  "<<" ">>"   "+" "-"   "*" "/" "%"
    unary       = ( "!" | "~" | "+" | "-" ) unary | primary
    primary     = integer | character | "defined" name | "defined" "(" name ")"
                | name | name "(" balanced tokens ")" | "(" conditional ")"

with ``and or not bitand bitor xor compl not_eq`` for the operators that they stand for.
Source: ISO C++20, [lex] and [cpp.cond]; the judge in the tests is ``gcc -E``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

_CONTINUATION = re.compile(r"\\[ \t\f\v]*\r?\n")

_LEXICON = re.compile(
    r"""
      (?P<newline>\n)
    | (?P<space>[ \t\f\v\r\0]+ | //[^\n]* | /\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^ ()\\\t\v\f\n"]{0,16})\(.*?\)(?P=delimiter)"
               | (?:u8|[uUL])?"(?:\\[^\n]|[^"\\\n])*"?)
    | (?P<character>(?:u8|[uUL])?'(?:\\[^\n]|[^'\\\n])*'?)
    | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[0-9A-Za-z_.\x80-\xff])*)
    | (?P<name>[A-Za-z_$\x80-\xff][0-9A-Za-z_$\x80-\xff]*)
    | (?P<operator>&&|\|\||==|!=|<=|>=|<<|>>|%:|.)
    """,
    re.VERBOSE | re.DOTALL,
)

_WORDS = {
    "and": "&&", "or": "||", "not": "!", "not_eq": "!=",
    "bitand": "&", "bitor": "|", "xor": "^", "compl": "~",
}  # fmt: skip

_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="),
    ("<<", ">>"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_PRECEDENCE = {op: level for level, ops in enumerate(_LEVELS) for op in ops}

_INTEGER = re.compile(
    r"(?P<digits>0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)"
    r"(?P<suffix>[uU]?(?:ll?|LL?|[zZ])?|(?:ll?|LL?|[zZ])[uU])"
)
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "f": 12, "v": 11, "e": 27}
_CHARACTER = re.compile(r"(?:u8|[uUL])?'(?:\\(?:x([0-9a-fA-F]+)|([0-7]{1,3})|(.))|([^'\\]))'")

_MAX_DEPTH = 100


class ConditionError(ValueError):
    """A condition does not parse.

    Args:
        message: What was expected and what was found.
        offset: Where, in bytes from the start of the source.
    """

    def __init__(self, message: str, offset: int):
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Spliced:
    """Source with its line continuations taken out, one character a byte.

    Args:
        text: What is left.
        cuts: Where in ``text`` something was taken out, in order.
        removed: How many bytes had been taken out up to and including each cut.
    """

    text: str
    cuts: tuple[int, ...]
    removed: tuple[int, ...]

    def start(self, index: int) -> int:
        """The offset in the source of the character at an index of the text."""
        cut = bisect_right(self.cuts, index)
        return index + (self.removed[cut - 1] if cut else 0)

    def end(self, index: int) -> int:
        """The offset in the source just behind the character before an index of the text."""
        return self.start(index - 1) + 1 if index else 0


def splice_lines(source: bytes) -> Spliced:
    """Take the line continuations out."""
    # Latin-1 keeps one character a byte, whatever the file's encoding.
    text = source.decode("latin-1")
    parts, cuts, removed = [], [], []
    last = total = 0
    for match in _CONTINUATION.finditer(text):
        parts.append(text[last : match.start()])
        cuts.append(match.start() - total)
        total += match.end() - match.start()
        removed.append(total)
        last = match.end()
    return Spliced("".join([*parts, text[last:]]), tuple(cuts), tuple(removed))


@dataclass(frozen=True, slots=True)
class Token:
    """A preprocessing token: ``newline``, ``string``, ``character``, ``number``, ``name`` or ``operator``.

    Args:
        text: Its spelling, without continuations.
        start: Its first byte in the source.
        end: The byte behind its last.
        index: Where it stands in the spliced text.
    """

    kind: str
    text: str
    start: int
    end: int
    index: int


def tokens(source: Spliced, index: int = 0) -> Iterator[Token]:
    """Yield the tokens from an index of the text on, without comments and white space."""
    for match in _LEXICON.finditer(source.text, index):
        if (kind := match.lastgroup or "") != "space":
            start, end = match.span()
            # The group that holds a raw string's delimiter closes before the one around it.
            yield Token(kind, match[0], source.start(start), source.end(end), start)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a node stands in the source; two nodes are equal wherever they stand."""

    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Number(_Place):
    """An integer or a character."""

    value: int
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class Name(_Place):
    """An object-like macro, or a name that is none."""

    name: str


@dataclass(frozen=True, slots=True)
class Defined(_Place):
    """``defined(name)``."""

    name: str


@dataclass(frozen=True, slots=True)
class Call(_Place):
    """A function-like macro with its arguments' tokens, parentheses included."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unary(_Place):
    """``!``, ``~``, ``+`` or ``-``."""

    operator: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(_Place):
    """Any operator of two operands but ``&&`` and ``||``."""

    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Chain(_Place):
    """Operands joined by ``&&``, or by ``||``."""

    operator: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional(_Place):
    """``test ? then : other``."""

    test: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True)
class Group(_Place):
    """Parentheses."""

    inner: Expr


Expr: TypeAlias = "Number | Name | Defined | Call | Unary | Binary | Chain | Conditional | Group"


def parse(source: bytes | str) -> Expr:
    """Parse a condition that stands alone; offsets are those of its bytes, of its UTF-8 if text.

    Raises:
        ConditionError: It does not parse.
    """
    source = source.encode() if isinstance(source, str) else source
    return parse_tokens(tuple(tokens(splice_lines(source))), len(source))


def parse_tokens(found: Sequence[Token], end: int) -> Expr:
    """Parse a condition's tokens.

    Args:
        found: The tokens, without the newline.
        end: The offset behind the condition, for messages.

    Raises:
        ConditionError: They do not parse.
    """
    parser = _Parser([token for token in found if token.kind != "newline"], end)
    result = parser.conditional()
    if (rest := parser.peek()) is not None:
        raise ConditionError(f"expected an operator, found {rest.text!r}", rest.start)
    return result


class _Parser:
    def __init__(self, found: Sequence[Token], end: int):
        self.tokens = found
        self.position = 0
        self.end = end
        self.depth = 0

    def peek(self) -> Token | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def take(self) -> Token:
        token = self.peek()
        if token is None:
            raise ConditionError("the condition ends too early", self.end)
        self.position += 1
        return token

    def operator(self) -> str:
        token = self.peek()
        if token is None:
            return ""
        return _WORDS.get(token.text, token.text if token.kind == "operator" else "")

    def expect(self, operator: str) -> Token:
        token = self.take()
        if token.kind != "operator" or token.text != operator:
            raise ConditionError(f"expected {operator!r}, found {token.text!r}", token.start)
        return token

    def conditional(self) -> Expr:
        test = self.binary(0)
        if self.operator() != "?":
            return test
        self.take()
        then = self.nested()
        self.expect(":")
        other = self.nested()
        return Conditional(test, then, other, start=test.start, end=other.end)

    def nested(self) -> Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ConditionError(f"nested more than {_MAX_DEPTH} deep", self.tokens[0].start)
        result = self.conditional()
        self.depth -= 1
        return result

    def binary(self, level: int) -> Expr:
        left = self.unary()
        while _PRECEDENCE.get(op := self.operator(), -1) >= level:
            self.take()
            left = _join(op, left, self.binary(_PRECEDENCE[op] + 1))
        return left

    def unary(self) -> Expr:
        signs: list[tuple[str, int]] = []
        while (op := self.operator()) in ("!", "~", "+", "-"):
            signs.append((op, self.take().start))
        if len(signs) > _MAX_DEPTH:
            raise ConditionError(f"nested more than {_MAX_DEPTH} deep", signs[0][1])
        result = self.primary()
        for op, start in reversed(signs):
            result = Unary(op, result, start=start, end=result.end)
        return result

    def primary(self) -> Expr:
        token = self.take()
        match token.kind:
            case "number":
                return _number(token)
            case "character":
                return _character(token)
            case "name" if token.text == "defined":
                return self.defined(token)
            case "name" if token.text not in _WORDS:
                return self.call(token) if self.operator() == "(" else _name(token)
            case "operator" if token.text == "(":
                inner = self.nested()
                return Group(inner, start=token.start, end=self.expect(")").end)
        raise ConditionError(f"expected a value, found {token.text!r}", token.start)

    def defined(self, keyword: Token) -> Expr:
        bracketed = self.operator() == "("
        if bracketed:
            self.take()
        name = self.take()
        if name.kind != "name":
            raise ConditionError(f"expected a macro's name, found {name.text!r}", name.start)
        end = self.expect(")").end if bracketed else name.end
        return Defined(name.text, start=keyword.start, end=end)

    def call(self, name: Token) -> Expr:
        first = self.position
        depth = 0
        while True:
            token = self.take()
            depth += (token.text == "(") - (token.text == ")")
            if not depth:
                texts = tuple(t.text for t in self.tokens[first : self.position])
                return Call(name.text, texts, start=name.start, end=token.end)


def _join(operator: str, left: Expr, right: Expr) -> Expr:
    if operator not in ("&&", "||"):
        return Binary(operator, left, right, start=left.start, end=right.end)
    joined = isinstance(left, Chain) and left.operator == operator
    operands = left.operands if isinstance(left, Chain) and joined else (left,)
    return Chain(operator, (*operands, right), start=left.start, end=right.end)


def _name(token: Token) -> Expr:
    if token.text in ("true", "false"):
        return Number(int(token.text == "true"), start=token.start, end=token.end)
    return Name(token.text, start=token.start, end=token.end)


def _number(token: Token) -> Number:
    match = _INTEGER.fullmatch(token.text)
    if match is None:
        raise ConditionError(f"{token.text!r} is not an integer", token.start)
    digits = match["digits"].replace("'", "")
    octal = digits[0] == "0" and digits.isdigit()
    try:
        value = int(digits, 8 if octal else 0)
    except ValueError:
        raise ConditionError(f"{token.text!r} is not an integer", token.start) from None
    if value >= 1 << 64:
        raise ConditionError(f"{token.text!r} is too large", token.start)
    unsigned = "u" in match["suffix"].lower() or value >= 1 << 63
    return Number(value, unsigned, start=token.start, end=token.end)


def _character(token: Token) -> Number:
    match = _CHARACTER.fullmatch(token.text)
    if match is None:
        raise ConditionError(f"{token.text} is not a single character", token.start)
    hexadecimal, octal, escape, plain = match.groups()
    if hexadecimal or octal:
        value = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
    else:
        value = _ESCAPES.get(escape, ord(escape)) if escape else ord(plain)
    if value >= 0x80:
        # Its value depends on the prefix and on the target's char.
        raise ConditionError(f"{token.text} is not an ASCII character", token.start)
    return Number(value, start=token.start, end=token.end)


def strip(node: Expr) -> Expr:
    """Return the node inside its parentheses."""
    while isinstance(node, Group):
        node = node.inner
    return node


def operands(node: Expr) -> tuple[Expr, ...]:
    """Return the operands of a chain flattened through parentheses; a node that is none, alone."""
    chain = strip(node)
    if not isinstance(chain, Chain):
        return (node,)
    flat: list[Expr] = []
    for operand in chain.operands:
        inner = strip(operand)
        same = isinstance(inner, Chain) and inner.operator == chain.operator
        flat += operands(inner) if same else (operand,)
    return tuple(flat)


def children(node: Expr) -> tuple[Expr, ...]:
    """Return the nodes directly inside a node."""
    match node:
        case Number() | Name() | Defined() | Call():
            return ()
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Chain():
            return node.operands
        case Conditional():
            return (node.test, node.then, node.other)
        case Group():
            return (node.inner,)


def walk(node: Expr) -> Iterator[Expr]:
    """Yield a node and all nodes inside it."""
    yield node
    for child in children(node):
        yield from walk(child)


def macros(node: Expr) -> tuple[str, ...]:
    """Return the names of the macros in a node, each once, in order."""
    found: dict[str, None] = {}
    for inner in walk(node):
        if isinstance(inner, Name | Defined | Call):
            found[inner.name] = None
        if isinstance(inner, Call) and not inner.name.startswith("__has_"):
            found |= {text: None for text in inner.arguments if re.match(r"[A-Za-z_$]", text)}
    return tuple(found)


def shape(node: Expr) -> Expr:
    """Return a node that is equal for equal structure: parentheses gone, chains flattened."""
    node = strip(node)
    match node:
        case Number() | Name() | Defined() | Call():
            return node
        case Unary():
            return Unary(node.operator, shape(node.operand))
        case Binary():
            return Binary(node.operator, shape(node.left), shape(node.right))
        case Chain():
            return Chain(node.operator, tuple(map(shape, operands(node))))
        case Conditional():
            return Conditional(shape(node.test), shape(node.then), shape(node.other))
        case Group():
            raise AssertionError("a group was stripped")


def to_source(node: Expr) -> str:
    """Write a node in one way for all its spellings."""
    node = strip(node)
    match node:
        case Number():
            return f"{node.value}{'u' if node.unsigned else ''}"
        case Name():
            return node.name
        case Defined():
            return f"defined({node.name})"
        case Call():
            return node.name + "".join(", " if text == "," else text for text in node.arguments)
        case Unary():
            return node.operator + _part(node.operand)
        case Binary():
            return f"{_part(node.left)} {node.operator} {_part(node.right)}"
        case Chain():
            return f" {node.operator} ".join(map(_part, operands(node)))
        case Conditional():
            return f"{_part(node.test)} ? {_part(node.then)} : {_part(node.other)}"
        case Group():
            raise AssertionError("a group was stripped")


def _part(node: Expr) -> str:
    text = to_source(node)
    return f"({text})" if isinstance(strip(node), Binary | Chain | Conditional | Unary) else text
