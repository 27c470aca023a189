"""Run under an allocator, in a process of its own: what does the allocator itself say its settings are?

Started by settings_proof.py as `python settings_query.py QUESTION...`; prints one line of JSON text or null per question.
Standard library only, nothing of the lab. A question is "mallctl:NAME:TYPE" (jemalloc), "extension:NAME" (gperftools) or
"json:NAME" (Loam's: a boolean as 0 or 1).
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

_TYPES: dict[str, Any] = {
    "unsigned": ctypes.c_uint,
    "size": ctypes.c_size_t,
    "ssize": ctypes.c_ssize_t,
    "bool": ctypes.c_bool,
    "text": ctypes.c_char_p,
}


def answer(question: str) -> str | None:
    """The allocator's answer as text; None where it has none."""
    process = ctypes.CDLL(None)
    kind, _, rest = question.partition(":")
    if kind == "mallctl":
        name, _, shape = rest.partition(":")
        value = _TYPES[shape]()
        size = ctypes.c_size_t(ctypes.sizeof(value))
        if process.mallctl(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
            return None
        if isinstance(value.value, bytes):
            return value.value.decode()
        return str(value.value).lower()
    if kind == "extension":
        number = ctypes.c_size_t()
        known = process.MallocExtension_GetNumericProperty(rest.encode(), ctypes.byref(number))
        return str(number.value) if known else None
    if kind == "json":
        text = ctypes.create_string_buffer(4096)
        process.loam_malloc_json(text, ctypes.c_size_t(len(text)))
        value = json.loads(text.value).get(rest)
        return None if value is None else str(int(value))
    return None


if __name__ == "__main__":
    for asked in sys.argv[1:]:
        print(json.dumps(answer(asked)))
