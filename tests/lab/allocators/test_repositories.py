"""Allocators from a commit of a git repository: fetched, or taken from the folder that the user names, and checked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from interposing import BUMP

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.setup import debian, packages
from loam_lab.subjects.allocators import compilation, recipe, registry, repository
from loam_lab.subjects.allocators.recipe import Source


def git(home: Path, *words: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "HOME": str(home)}
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-C", str(home), *words]
    return subprocess.run(
        command, env={**os.environ, **own, **names}, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository "tiny" with two commits, the first of which is wanted; a .loam of our own."""
    monkeypatch.delenv("LOAM_NO_SETUP", raising=False)
    monkeypatch.delenv(repository.GIVEN, raising=False)
    monkeypatch.setattr(paths, "dot_loam", lambda: tmp_path / ".loam")
    monkeypatch.setattr(debian, "ensure", lambda *needs: None)
    home = tmp_path / "tiny"
    (home / "src").mkdir(parents=True)
    git(home, "init", "--quiet")
    git(home, "config", "uploadpack.allowAnySHA1InWant", "true")
    (home / "src/tiny.c").write_text(BUMP)
    (home / "link").symlink_to("src/tiny.c")
    git(home, "add", ".")
    git(home, "commit", "--quiet", "-m", "one")
    (home / "src/tiny.c").write_text(BUMP + "/* later */\n")
    git(home, "commit", "--quiet", "-am", "two")
    return home


def source(public: Path, **changed: str) -> Source:
    first = git(public, "rev-parse", "HEAD~1")
    export = public.parent / "export"
    if not export.exists():
        git(public, "worktree", "add", "--quiet", "--detach", str(export), first)
        (export / ".git").unlink()
    table = {
        "git": f"file://{public}", "commit": first, "sha256": repository.digest(export), "release": "1", "license": "MIT",
        "folder": "src", "files": ["tiny.c"], "object": "libtiny.so", **changed,
    }  # fmt: skip
    return recipe.parse(table)


def test_one_commit_is_fetched_without_its_history_and_kept(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = source(public)
    home = repository.files(wanted)
    assert (home / "src/tiny.c").read_text() == BUMP and (home / "link").is_symlink() and not (home / ".git").exists()
    monkeypatch.setenv("LOAM_NO_SETUP", "1")
    assert repository.files(wanted) == home, "what is here needs no network"
    (home / "src/tiny.c").write_text("int x;")
    with pytest.raises(LoamError, match=r"tiny=.*SHA-256 of its files differs .*remove .* and build again"):
        repository.files(wanted)


def test_set_up_brings_what_a_download_needs_and_nothing_for_sources_that_are_here(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(debian, "ensure", lambda *needs: asked.extend(needs))
    wanted = source(public)
    for _ in range(2):
        repository.files(wanted)
    assert asked == ["clone"]
    assert {"git", "make"} <= {package.name for package in packages.PACKAGES if "clone" in package.needs}


def test_a_folder_that_the_user_names_serves_without_network(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = source(public, git="https://nowhere.invalid/someone/tiny.git")
    given = public.parent / "given"
    given.mkdir()
    monkeypatch.setenv(repository.GIVEN, str(given))
    monkeypatch.setenv("LOAM_NO_SETUP", "1")
    with pytest.raises(LoamError, match=r"tiny: its sources are missing.*LOAM_SOURCES=FOLDER"):
        repository.files(gone)
    (given / "tiny").symlink_to(public)
    with pytest.raises(LoamError, match=rf"SHA-256 of its files differs .*check out {gone.commit} in"):
        repository.files(gone)
    git(public, "checkout", "--quiet", gone.commit)
    home = repository.files(gone)
    assert (home / "src/tiny.c").read_text() == BUMP and not (home / ".git").exists()


def test_a_module_lies_in_its_folder_and_is_checked_alike(public: Path, tmp_path: Path) -> None:
    """Its files stand in a copy: what was fetched of the first repository stays what its digest says."""
    one = source(public)
    module = {"path": "src/deep", "git": one.git, "commit": one.commit, "sha256": one.sha256}
    table = {"git": one.git, "commit": one.commit, "sha256": one.sha256, "license": "MIT", "folder": "src",
             "files": ["tiny.c", "deep/src/tiny.c"], "object": "libtiny.so"}  # fmt: skip
    whole = recipe.parse({**table, "modules": [module]})
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tree = repository.whole(whole, scratch)
    assert (tree / "src/deep/src/tiny.c").read_text() == (tree / "src/tiny.c").read_text() == BUMP
    assert not (repository.files(whole) / "src/deep").exists()
    assert repository.whole(one, scratch) == repository.files(one), "without modules nothing is copied"
    file = tmp_path / "tiny.toml"
    assert recipe.digest(whole, file) != recipe.digest(recipe.parse(table), file)
    with pytest.raises(LoamError, match=r"SHA-256 of its files differs"):
        repository.whole(recipe.parse({**table, "modules": [{**module, "git": f"{one.git}/../tiny", "commit": one.commit,
                                                             "sha256": "0" * 64}]}), tmp_path / "other")  # fmt: skip
    for wrong, why in (
        ({**module, "path": "../out"}, "must be a folder inside"), ({**module, "commit": "1"}, "must be 40 digits"),
        ({"path": "x"}, "must be a table of path, git, commit, sha256"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=why):
            recipe.parse({**table, "modules": [wrong]})


def test_a_file_of_ours_beside_the_recipe_is_compiled_and_counts(public: Path, tmp_path: Path) -> None:
    table = {"git": f"file://{public}", "commit": source(public).commit, "sha256": source(public).sha256,
             "license": "MIT", "folder": "src", "files": ["{here}/own.c"], "object": "libtiny.so"}  # fmt: skip
    own, file = tmp_path / "own.c", tmp_path / "tiny.toml"
    own.write_text(BUMP)
    wanted = recipe.parse(table)
    before = recipe.digest(wanted, file)
    assert "own.c" in compilation.make("tiny", wanted, file)["commands"][0]
    own.write_text(BUMP + "\n")
    assert recipe.digest(wanted, file) != before, "another file is another recipe"


def test_what_cannot_be_had_or_differs_leaves_nothing(public: Path) -> None:
    with pytest.raises(
        LoamError, match=r"tiny: file:///nowhere/tiny cannot be had here: .*put the files of its commit"
    ):
        repository.files(source(public, git="file:///nowhere/tiny"))
    with pytest.raises(LoamError, match=r"SHA-256 of its files differs from the recipe's 0{64}.*do not build it"):
        repository.files(source(public, sha256="0" * 64))
    assert list((recipe.folder() / ".sources").iterdir()) == []


def test_its_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        tree = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, content in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(content)
        return repository.digest(tree)

    first = digest(**{"a/b": "1", "c": "2"})
    assert first == digest(**{"c": "2", "a/b": "1"})
    assert len({first, digest(**{"a/b": "2", "c": "1"}), digest(ab="1", c="2"), digest(**{"a/b": "1"})}) == 4


def test_it_is_built_and_says_from_what(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = source(public)
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("LOAM_ALLOCATOR_PATH", str(own))
    (own / "tiny.toml").write_text(
        f'soname = "libtiny.so"\n[source]\ngit = "{wanted.git}"\ncommit = "{wanted.commit}"\nsha256 = "{wanted.sha256}"\n'
        'release = "7.8"\nlicense = "MIT"\nfolder = "src"\nfiles = ["tiny.c"]\nobject = "libtiny.so"\n'
    )
    definition = registry.definitions()["tiny"]
    assert definition.recipe is not None
    assert main.run(["allocators", "build", "tiny"]) == 0
    assert f"tiny at {wanted.commit[:12]}, MIT" in capsys.readouterr().err
    loaded = registry.load("tiny")
    assert (loaded.version, loaded.soname) == ("7.8", "libtiny.so") and loaded.path is not None
    assert str(tmp_path).encode() not in Path(loaded.path).read_bytes(), "paths of this machine stay out of the object"
    built = compilation.make("tiny", definition.recipe, definition.source)
    assert (built["git"], built["commit"], built["git_sha256"]) == (wanted.git, wanted.commit, wanted.sha256)


def test_a_makefile_without_configure_builds_it_and_links_to_nowhere_do_no_harm(public: Path, tmp_path: Path) -> None:
    git(public, "checkout", "--quiet", "-b", "made", "HEAD~1")
    (public / "nowhere").symlink_to("gone")
    (public / "src/Makefile").write_text("$(OUT): tiny.c\n\t$(CC) -shared -fPIC -o $@ tiny.c\n")
    git(public, "add", ".")
    git(public, "commit", "--quiet", "-m", "three")
    export = tmp_path / "made"
    git(public, "worktree", "add", "--quiet", "--detach", str(export), "made")
    (export / ".git").unlink()
    table = {
        "git": f"file://{public}", "commit": git(public, "rev-parse", "made"), "sha256": repository.digest(export),
        "license": "MIT", "folder": "src", "make": ["libtiny.so", "OUT=libtiny.so"], "output": "libtiny.so",
        "object": "libtiny.so",
    }  # fmt: skip
    built = compilation.make("tiny", recipe.parse(table), tmp_path / "tiny.toml")
    assert built["commands"][-1].endswith("libtiny.so OUT=libtiny.so") and not built["commands"][0].startswith(
        "./configure"
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"commit": "abc"}, "commit must be 40 digits"), ({"sha256": ""}, "sha256 must be 64 digits"),
        ({"crate": "tiny-sys"}, "source needs one of: crate and version; git, commit and sha256; debian and path"),
        ({"git": ""}, "source needs one of"),
    ],
)  # fmt: skip
def test_a_recipe_that_pins_too_little_is_refused(public: Path, changed: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        source(public, **changed)


def test_what_was_built_before_repositories_is_current_still() -> None:
    table = {"debian": "libtiny1", "path": "usr/lib/libtiny.so", "object": "libtiny.so", "license": "MIT"}
    before = "46dfbefb4bff52302abbb68ad8c5c40ccfc5124f63a254c789fa8a649a58fe80"
    assert recipe.digest(recipe.parse(table), Path("tiny.toml")) == before
