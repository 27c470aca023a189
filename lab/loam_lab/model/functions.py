"""Names of functions as people read them."""

from __future__ import annotations


def short(function: str) -> str:
    """A demangled name without its types: "bool a::List::insert<X>(X&, long)" -> "List::insert"."""
    depth, kept = 0, []
    for letter in function.replace("operator()", "lambda").replace("(anonymous namespace)::", ""):
        if letter in "<({[":
            depth += 1
        elif letter in ">)}]":
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(letter)
    words = [word for word in "".join(kept).split() if word not in ("const", "volatile")]
    parts = (words[-1] if words else function).split("::")
    return "::".join(parts[-2:])
