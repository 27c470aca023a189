"""The runner of GCC's tests of libitm, with tests of our own: what it reads in them, and how it judges what they do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import dejagnu, itm_suite
from loam_lab.dev.selfcheck.dejagnu import Unreadable
from loam_lab.subjects import itm

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")

ADDS = "static long sum; int main(void) { __transaction_atomic { sum += %s; } return sum == 2 ? 0 : 3; }\n"
GOOD, BROKEN = ADDS % 2, ADDS % 3
ALL = "{ *-*-* }"


def suite(folder: Path, **tests: str) -> Path:
    for name, text in tests.items():
        (folder / f"{name}.c").write_text(text)
    return folder


def results(folder: Path, scratch: Path) -> dict[str, tuple[str, str]]:
    outcomes = itm_suite.outcomes(itm_suite.find(folder), itm_suite.variables_of(["gcc"]), scratch)
    return {each.test.removesuffix(".c"): (each.result, each.why) for each in outcomes}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a b", ["a", "b"]),
        ('"a b" c', ["a b", "c"]),
        ("run { target { ! { x y } } }", ["run", " target { ! { x y } } "]),
        ("", []),
    ],
)
def test_lists_of_tcl(text: str, words: list[str]) -> None:
    assert dejagnu.words(text) == words


@pytest.mark.parametrize("text", ["{ a", '"a'])
def test_what_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="not closed"):
        dejagnu.words(text)


@pytest.mark.parametrize(
    ("selector", "true"),
    [
        ("*-*-*", True),
        (" *-*-* ", True),
        ("x86_64-*-linux*", True),
        ("*-*-darwin*", False),
        ("*-*-darwin* *-*-linux*", True),
        ("! { *-*-darwin* powerpc-ibm-aix* }", True),
        (" ! *-*-linux*", False),
        ("{ x86_64-*-* } && { ! lp64 }", False),
        ("ia32 || lp64", True),
    ],
)
def test_selectors(selector: str, true: bool) -> None:
    assert dejagnu.holds(selector) is true


def test_an_unknown_capability_or_directive_is_no_guess() -> None:
    with pytest.raises(Unreadable, match="whether this target is vect_int"):
        dejagnu.holds("vect_int")
    with pytest.raises(Unreadable, match="dg-message is not understood"):
        dejagnu.read('/* { dg-message "x" } */')
    with pytest.raises(Unreadable, match="condition on options"):
        dejagnu.read(f'/* {{ dg-skip-if "" {ALL} {{ "-O0" }} {{ "" }} }} */')


def test_what_a_test_says_of_itself() -> None:
    wanted = dejagnu.read(
        '/* { dg-do run { xfail *-*-* } }\n { dg-options "-pthread -O1" }\n { dg-additional-options "-DX" } */\n'
        '// { dg-set-target-env-var ITM_DEFAULT_METHOD "ml_wt" }\n// { dg-timeout-factor 2 }\n'
    )
    assert (wanted.do, wanted.fails_to_run, wanted.options) == ("run", True, ("-pthread", "-O1"))
    assert (wanted.additional_options, wanted.timeout_factor) == (("-DX",), 2.0)
    assert wanted.environment == {"ITM_DEFAULT_METHOD": "ml_wt"}
    assert dejagnu.read("/* { dg-do run { target *-*-darwin* } } */").skipped == "is for *-*-darwin*"
    assert dejagnu.read("/* { dg-require-effective-target ia32 } */").skipped == "needs ia32"
    assert dejagnu.read("int main;").do == "run"


@needs_gcc
def test_each_is_judged_by_what_it_promises(tmp_path: Path) -> None:
    folder, scratch = tmp_path / "tests", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    suite(
        folder,
        good=GOOD,
        broken=BROKEN,
        expected=f'/* {{ dg-xfail-run-if "no" {ALL} }} */\n{BROKEN}',
        better=f'/* {{ dg-xfail-run-if "no" {ALL} }} */\n{GOOD}',
        skipped=f'/* {{ dg-skip-if "PR 1" {ALL} }} */\n{BROKEN}',
        compiled="/* { dg-do compile } */\nlong x;\nvoid f(void) { __transaction_atomic { ++x; } }\n",
        warned="#warning careful\n" + GOOD,
        wrong="/* { dg-do compile } */\nint main(void) { return nothing; }\n",
        defined='/* { dg-options "-O1 -DTWO=2" } */\n' + ADDS % "TWO",
        told='/* { dg-set-target-env-var WORD "yes" } */\n#include <stdlib.h>\nint main(void) { return getenv("WORD") == 0; }\n',
        crashed="int main(void) { __builtin_trap(); }\n",
        odd="/* { dg-bogus x } */\n" + GOOD,
    )
    outcomes = results(folder, scratch)
    assert {name: result for name, (result, _) in outcomes.items()} == {
        "good": "pass", "broken": "FAIL", "expected": "xfail", "better": "XPASS", "skipped": "unsupported",
        "compiled": "pass", "warned": "FAIL", "wrong": "FAIL", "defined": "pass", "told": "pass", "crashed": "FAIL",
        "odd": "UNRESOLVED",
    }  # fmt: skip
    assert outcomes["broken"][1] == "status 3"
    assert outcomes["crashed"][1].startswith("signal ")
    assert outcomes["skipped"][1] == "PR 1"
    assert outcomes["warned"][1].startswith("compiler: ")


@needs_gcc
def test_the_header_beside_the_folder_is_found(tmp_path: Path) -> None:
    folder, scratch = tmp_path / "libitm" / "testsuite", tmp_path / "scratch"
    folder.mkdir(parents=True)
    scratch.mkdir()
    (folder.parent / "libitm.h").write_text("#define TWO 2\n")
    suite(folder, good="#include <libitm.h>\n" + ADDS % "TWO")
    assert results(folder.parent, scratch)["good"] == ("pass", "")


@needs_gcc
def test_the_status_says_whether_all_kept_their_promise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite(tmp_path, good=GOOD, better=f'/* {{ dg-xfail-run-if "no" {ALL} }} */\n{GOOD}')
    assert itm_suite.main([str(tmp_path), "--itm", "gcc"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "gcc: 1 XPASS, 1 pass"
    suite(tmp_path, broken=BROKEN)
    assert itm_suite.main([str(tmp_path), "--itm", "gcc", "--only", "b*.c"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "gcc: 1 FAIL, 1 XPASS"


@needs_gcc
def test_ours_is_what_they_run_on(tmp_path: Path) -> None:
    try:
        itm.library()
    except LoamError as missing:
        pytest.skip(str(missing))
    text = (
        "#include <string.h>\nconst char* _ITM_libraryVersion(void);\n"
        'int main(void) { __transaction_atomic {} return strncmp(_ITM_libraryVersion(), "Loam", 4); }\n'
    )
    suite(tmp_path, ours=text)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    outcomes = itm_suite.outcomes(itm_suite.find(tmp_path), itm_suite.variables_of(["norec", "gcc"]), scratch)
    assert [(each.library, each.result) for each in outcomes] == [("norec", "pass"), ("gcc", "FAIL")]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoamError, match=r"there are no tests \(\*\.c, \*\.C\)"):
        itm_suite.find(tmp_path)
    with pytest.raises(LoamError, match="did you mean norec"):
        itm_suite.variables_of(["norce"])
