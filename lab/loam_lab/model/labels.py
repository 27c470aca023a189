"""Short names of allocators: what a study calls "design:hoard:heaps=8" where people read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_BEFORE, _AFTER = r"(?<![\w:=.+-])", r"(?![\w:=+-]|\.\w)"


def worded(labels: Mapping[str, str]) -> Callable[[str], str]:
    """Puts labels in the place of names in a text; a name that is a part of a longer one stays.

    labels: by the name of an allocator
    """
    if not labels:
        return str
    names = "|".join(re.escape(name) for name in labels)
    pattern = re.compile(f"{_BEFORE}(?:{names}){_AFTER}")
    return lambda text: pattern.sub(lambda match: labels[match[0]], text)
