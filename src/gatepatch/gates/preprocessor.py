"""The language of ``#if``: its grammar and its parser.

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
from collections.abc import Sequence

from gatepatch.gates.preprocessor_tokens import Token, splice_lines, tokens
from gatepatch.gates.preprocessor_tree import (
    Binary,
    Call,
    Chain,
    Conditional,
    Defined,
    Expr,
    Group,
    Name,
    Number,
    Unary,
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
