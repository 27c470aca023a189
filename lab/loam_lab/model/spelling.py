"""Texts of one spelling. A message says in words what is allowed; the regular expression that checks it is never shown."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def _spelled(expression: str, what: str, allowed: str) -> AfterValidator:
    """what: kind of text, with its article; allowed: its characters, with an example"""
    compiled = re.compile(expression)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"{text!r} is not {what}: {allowed}")
        return text

    return AfterValidator(check)


# Of a study and of a group of it.
Name = Annotated[
    str, _spelled("[a-z0-9][a-z0-9-]*", "a name", "small letters, digits and dashes, no dash first, as in read-mostly")
]
# Of a paper's sentence.
ClaimId = Annotated[
    str, _spelled("[a-z0-9]+-[0-9]{2,}", "the id of a claim", "the paper, a dash and at least two digits, as in 000-08")
]
# That a paper prints no number, and what it has instead; "" where nobody has looked.
Unprinted = Annotated[
    str,
    _spelled("(none: .+)?", "what stands for numbers", '"none: " and what the paper has, as in "none: it draws bars"'),
]
