"""Programs by which papers compare allocators, sized by a parameter: cfrac, espresso, Lua's build, Ghostscript on many pages."""

from __future__ import annotations

import random

from loam_lab.subjects.programs.running import Program, Session, compiled

_SEED = 1
_WORDS = (
    "the",
    "page",
    "of",
    "a",
    "manual",
    "says",
    "which",
    "bits",
    "of",
    "a",
    "register",
    "mean",
    "what",
    "and",
    "when",
)


def _cfrac(session: Session) -> bytes:
    return session.output(compiled("cfrac"), str(session.amount), timeout_s=1800)


def pla(cubes: int) -> str:
    """A made-up function of 13 inputs and 8 outputs in the classic PLA format."""
    numbers = random.Random(_SEED)
    lines = (
        "".join(numbers.choice("01-") for _ in range(13)) + " " + "".join(numbers.choice("01") for _ in range(8))
        for _ in range(cubes)
    )
    return "\n".join([".i 13", ".o 8", *lines, ".e", ""])


def _espresso(session: Session) -> bytes:
    return session.output(compiled("espresso"), given=pla(session.amount).encode(), timeout_s=1800)


def interpreter(number: int) -> str:
    """One source file of a made-up interpreter: tables of names, a loop over instructions, and its helpers."""
    numbers = random.Random(number)
    names = ", ".join(f'"op_{number}_{n}"' for n in range(60))
    cases = "\n".join(
        f"      case {n}: top[{n % 7}] = help{n % 20}(top[{numbers.randrange(8)}], {numbers.randrange(1000)}); break;"
        for n in range(60)
    )
    helpers = "\n".join(
        f"static long help{n}(long a, long b) {{ for (int i = 0; i < {n + 2}; ++i) a = a * {n + 3} + (b ^ a >> {n % 5 + 1}); "
        "return a; }"
        for n in range(20)
    )
    return (
        f"static const char* const names[] = {{{names}}};\n{helpers}\n"
        f"long run{number}(const unsigned char* code, long* top) {{\n  for (;; ++code)\n    switch (*code) {{\n{cases}\n"
        f"      case 255: return names[code[1] % 60][1];\n      default: return top[0];\n    }}\n}}\n"
    )


def _lua_build(session: Session) -> bytes:
    """Assembly of the sources of a made-up interpreter, one compiler for each file, as make starts them."""
    return b"".join(
        session.output("gcc", "-O2", "-S", "-x", "c", "-o", "-", "-", given=interpreter(n).encode(), timeout_s=300)
        for n in range(session.amount)
    )


def pdf(pages: int) -> bytes:
    """A document of so many pages of text, each with some sixty lines."""
    numbers = random.Random(_SEED)
    bodies = [b"<< /Type /Catalog /Pages 2 0 R >>", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for _ in range(pages):
        lines = "".join(f"({' '.join(numbers.choices(_WORDS, k=12))}) Tj T*\n" for _ in range(60))
        stream = f"BT /F 9 Tf 11 TL 50 780 Td\n{lines}ET".encode()
        kids.append(f"{len(bodies) + 1} 0 R")
        bodies.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(bodies) + 2} 0 R "
            "/Resources << /Font << /F 3 0 R >> >> >>".encode()
        )
        bodies.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    bodies[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {pages} >>".encode()
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(bodies, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    made += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(bodies) + 1, table)
    start = made.rfind(b"xref\n0 ")
    made += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(bodies) + 1, start)
    return bytes(made)


def _gs_pages(session: Session) -> bytes:
    """What each page's ink bounds are, in dots of a screen.

    At the 4000 dots an inch of this device a page takes a hundred times as long, for the same blocks
    """
    document = session.folder / "manual.pdf"
    document.write_bytes(pdf(session.amount))
    return session.output(
        "gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=bbox", "-r72", document, stderr=True, timeout_s=600
    )


PROGRAMS = (
    Program("cfrac", ("libgmp-dev",), "the factors of a number with so many digits", _cfrac, 22, 34, ("true",)),
    Program("espresso", (), "a minimised cover", _espresso, 60, 600, ("true",)),
    Program("lua-build", ("gcc",), "assembly of an interpreter's sources", _lua_build, 2, 33, ("gcc", "--version")),
    Program("gs-pages", ("ghostscript",), "the bounds of each page's ink", _gs_pages, 20, 860, ("gs", "--version")),
)
