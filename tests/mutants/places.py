"""Finds a place in C++ source by the tokens that stand there, within the function or class that is named.

Comments and white space do not count, and neither does anything outside of the function: a place is lost only if the
very tokens that name it change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|[\w.]|\'\w)*'
    r"|\.\.\.|<<=|->\*|<=>|::|->|\+\+|--|<<|[-+*/%&|^!=<>]=|&&|\|\||##|."
)
_TYPES = {"struct", "class", "union", "namespace", "enum"}
_NOT_FUNCTIONS = {
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "alignas",
    "noexcept",
    "decltype",
    "requires",
    "sizeof",
    "return",
}
_OPEN, _CLOSE = {"(", "["}, {")", "]"}


class Lost(Exception):
    """A place that is not there, or not the only one."""


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Block:
    """What braces enclose, with its head: the tokens [first, last], the last one the closing brace."""

    names: tuple[str, ...]  # of the block and of those around it, the innermost last; "" where it has none
    first: int
    last: int


def tokens(text: str) -> list[Token]:
    """The tokens of C++ source, without comments."""
    parsed = []
    at = 0
    while at < len(text):
        if gap := _COMMENT.match(text, at):
            at = gap.end()
        elif token := _TOKEN.match(text, at):
            parsed.append(Token(token[0], at, token.end()))
            at = token.end()
    return parsed


def _name(head: list[str]) -> str:
    """The name of a block by the tokens before its brace: of a type, a namespace or a function; "" for anything else."""
    depth = 0
    name = ""
    for before, token in zip(["", *head], head, strict=False):
        if depth == 0 and token in _TYPES and before not in _TYPES:
            rest = [t for t in head[head.index(token) + 1 :] if t.isidentifier()]
            rest = [t for t in rest if t not in _TYPES | {"alignas", "final"}]
            return rest[0] if rest else ""
        if depth == 0 and token == "(" and before.isidentifier():
            if before in _NOT_FUNCTIONS - {"noexcept", "requires", "decltype", "alignas"}:
                return ""
            if before not in _NOT_FUNCTIONS:
                name = name or before
        depth += (token in _OPEN) - (token in _CLOSE)
    return name


def _without_templates(head: list[str]) -> list[str]:
    """A head without its `template <...>`."""
    while "template" in head:
        first = head.index("template")
        depth = 0
        for end in range(first + 1, len(head)):
            depth += (head[end] == "<") - (head[end] == ">")
            if depth == 0:
                break
        else:
            return head
        head = head[:first] + head[end + 1 :]
    return head


def blocks(source: list[Token]) -> list[Block]:
    """All blocks between braces."""
    inner = []
    around: list[tuple[str, int]] = []
    head = depth = 0
    for i, token in enumerate(source):
        if token.text == "{":
            words = [t.text for t in source[head:i]]
            around.append((_name(_without_templates(words)), head))
            head = i + 1
        elif token.text == "}":
            if around:
                name, first = around[-1]
                inner.append(Block((*(n for n, _ in around[:-1]), name), first, i))
                around.pop()
            head = i + 1
        elif token.text == ";" and depth == 0:
            head = i + 1
        depth += (token.text == "(") - (token.text == ")")
        if token.text in "{}":
            depth = 0
    return inner


def _is_named(block: Block, name: str) -> bool:
    """Whether it is `f`, or `A::f`: f somewhere within A."""
    wanted = name.split("::")
    return block.names[-1] == wanted[-1] and set(wanted[:-1]) <= set(block.names[:-1])


def _regions(source: list[Token], scope: str) -> Iterator[tuple[int, int]]:
    if scope:
        yield from ((b.first, b.last + 1) for b in blocks(source) if _is_named(b, scope))
    else:
        yield 0, len(source)


def runs(text: str, scope: str, run: str) -> list[tuple[int, int]]:
    """Where a run of tokens stands in the functions, types or namespaces of this name ("": anywhere): token indices."""
    source = tokens(text)
    wanted = [t.text for t in tokens(run)]
    places = set()
    for first, end in _regions(source, scope):
        words = [t.text for t in source[first:end]]
        for i in range(len(words) - len(wanted) + 1):
            if words[i : i + len(wanted)] == wanted:
                places.add((first + i, first + i + len(wanted)))
    return sorted(places)


def statement(source: list[Token], first: int, end: int) -> tuple[int, int]:
    """The statement around the tokens [first, end): with its condition, its loop, its block."""
    depth = 0
    while first > 0:
        token = source[first - 1].text
        if depth == 0 and token in (";", "{", "}"):
            break
        depth = max(0, depth + (token in _CLOSE) - (token in _OPEN))  # out of parentheses around it
        first -= 1
    depth = 0
    for i in range(first, len(source)):
        token = source[i].text
        depth += (token in _OPEN | {"{"}) - (token in _CLOSE | {"}"})
        if i + 1 >= end and depth == 0 and token in (";", "}"):
            return first, i + 1
    raise Lost("the statement does not end")
