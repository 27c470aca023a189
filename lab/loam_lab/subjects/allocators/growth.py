"""Run under an allocator, in a process of its own: where do 1 MiB of blocks come from, and does libc's cache answer?

Started by verify.py as `python growth.py`; prints one JSON object. Standard library only, nothing of the lab.
"""

from __future__ import annotations

import ctypes
import json

BLOCKS, BLOCK_BYTES = 16384, 64  # together 1 MiB
CACHED_BLOCKS, CACHED_BYTES = 7, 48  # glibc's thread cache keeps seven blocks per size; 48 bytes make a chunk of 64


class Mallinfo2(ctypes.Structure):
    """struct mallinfo2 of glibc: ten counts of bytes or blocks."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


def main() -> None:
    """Print {"libc_grew_bytes", "libc_arena_bytes", "libc_mapped_bytes", "fastbin_grew_bytes", "family"}."""
    process = ctypes.CDLL(None)  # what every undefined symbol of a program binds to
    for name in ("malloc", "calloc", "realloc", "aligned_alloc", "memalign"):
        getattr(process, name).restype = ctypes.c_void_p
    process.malloc.argtypes = [ctypes.c_size_t]
    process.calloc.argtypes = process.aligned_alloc.argtypes = process.memalign.argtypes = [ctypes.c_size_t] * 2
    process.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    process.free.argtypes = [ctypes.c_void_p]
    process.free.restype = None
    process.malloc_usable_size.argtypes = [ctypes.c_void_p]
    process.malloc_usable_size.restype = ctypes.c_size_t
    process.posix_memalign.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_size_t]
    libc_mallinfo2 = ctypes.CDLL("libc.so.6").mallinfo2  # libc's own, whoever was preloaded
    libc_mallinfo2.restype = Mallinfo2

    before = libc_mallinfo2()
    blocks = [process.malloc(BLOCK_BYTES) for _ in range(BLOCKS)]
    after = libc_mallinfo2()
    grew = (after.uordblks + after.hblkhd) - (before.uordblks + before.hblkhd)
    family = all(blocks) and process.malloc_usable_size(blocks[0]) >= BLOCK_BYTES
    for block in blocks:
        process.free(block)

    # Frees go to the thread cache while it has room, and to a fast bin otherwise.  What the interpreter left in that bin
    # is taken first: malloc would fill the cache from it.
    drained = [process.malloc(CACHED_BYTES) for _ in range(BLOCKS)]
    cached = [process.malloc(CACHED_BYTES) for _ in range(CACHED_BLOCKS)]
    fast_before = libc_mallinfo2().fsmblks
    for block in cached:
        process.free(block)
    fast_grew = libc_mallinfo2().fsmblks - fast_before
    for block in drained:
        process.free(block)

    slot = ctypes.c_void_p()
    family = family and process.posix_memalign(ctypes.byref(slot), 64, 100) == 0 and (slot.value or 1) % 64 == 0
    others = [slot.value, process.aligned_alloc(64, 128), process.memalign(256, 100)]
    others.append(process.realloc(process.calloc(10, 10), 5000))
    family = family and all(others) and others[1] % 64 == 0 and others[2] % 256 == 0
    for block in others:
        process.free(block)
    last = libc_mallinfo2()
    print(
        json.dumps(
            {
                "libc_grew_bytes": grew,
                "libc_arena_bytes": last.arena,
                "libc_mapped_bytes": last.hblkhd,
                "fastbin_grew_bytes": fast_grew,
                "family": bool(family),
            }
        )
    )


if __name__ == "__main__":
    main()
