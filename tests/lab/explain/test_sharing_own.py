"""Programs that bring an allocator of their own: without --allocator they are explained as they are, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest
import sampler
from interposing import BUMP, compile_c, library

from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import linkage
from loam_lab.commands.explain.sharing import document, findings, provider, run
from loam_lab.subjects.allocators import registry

# Two threads must meet.
pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def _long_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watches wait long for their first trap: on a busy machine, too, the threads then meet."""
    monkeypatch.setenv("LOAM_SHARING_WINDOW_US", "100000")
    monkeypatch.setenv("LOAM_SHARING_PERIOD_US", "2000")
    sampler.built()


def explained(program: Path, allocator: str | None = None) -> dict[str, object]:
    performed = run.perform([str(program)], allocator)
    assert performed.ending == ""
    return document.of([str(program)], allocator, findings.see(performed.processes, program.parent), performed)


def kinds(result: dict[str, object]) -> set[str]:
    pairs = result["blocks"]
    assert isinstance(pairs, list)
    return {pair["cause"] for pair in pairs if pair["named"]}


def test_a_program_with_an_allocators_library_keeps_it(tmp_path: Path) -> None:
    """A library that the lab does not know: nothing is preloaded before it, and its blocks are seen."""
    file = library(tmp_path, "libbump.so", BUMP)
    program = compile_c(
        tmp_path, "linked", sampler.NEIGHBOURS, "-Wl,--no-as-needed", str(file), f"-Wl,-rpath,{tmp_path}"
    )
    result = explained(program)
    assert result["run"]["allocator"] == "libbump.so"  # type: ignore[index]
    sentence = result["words"][-1]  # type: ignore[index]
    assert sentence.startswith(
        f"The program brings an allocator of its own, {file}, and was watched with it, as it is;"
    )
    assert "other_block" in kinds(result)
    # The user's choice stays a choice: libc can serve it, too.
    with pytest.raises(LoamError, match="never started a second thread"):
        run.perform([str(program), "alone"], "glibc")


def test_a_program_with_a_malloc_of_its_own_is_watched(tmp_path: Path) -> None:
    """No allocator can be put into it; its blocks lie in its static array, and that is where the threads meet."""
    program = compile_c(tmp_path, "defines", BUMP + sampler.NEIGHBOURS, "-rdynamic")
    result = explained(program)
    assert result["run"]["allocator"] == provider.OWN  # type: ignore[index]
    assert result["words"][-1].startswith("The program has a malloc of its own and was watched as it is;")  # type: ignore[index]
    assert "static" in kinds(result) and "variable arena" in str(result["blocks"])
    with pytest.raises(LoamError, match="leave --allocator out to explain the program as it is"):
        run.perform([str(program)], "glibc")
    # The sampler was there: it is not the malloc that is in the way.
    with pytest.raises(LoamError, match="never started a second thread"):
        run.perform([str(program), "alone"], None)


def test_what_serves_a_program_is_named_as_the_lab_names_it() -> None:
    libc, jemalloc = registry.libc_path(), registry.load("jemalloc").path
    assert jemalloc is not None
    assert provider.of([("/bin/sh", libc), ("/bin/sort", libc)]) == provider.Provider("glibc", "")
    result = provider.of([("/bin/sh", libc), ("/usr/bin/redis-server", jemalloc)])
    assert result.allocator == "jemalloc" == linkage.name_of(Path(jemalloc))
    assert result.words.startswith(f"The program brings an allocator of its own, {jemalloc}, and was watched with it")
    assert provider.of([]) == provider.Provider()
