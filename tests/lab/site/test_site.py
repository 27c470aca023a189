"""The site is whole without the network and searches from a disk; man pages, completions and gallery say what there is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import synthetic_results
import typer.main

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.model import studies
from loam_lab.presenting.site import build, gallery, manual, reference, staging
from loam_lab.presenting.site.command_tree import commands
from loam_lab.setup import debian, environments

ROOT = typer.main.get_command(main.app)
LIMIT_S = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        environments.interpreter(*build.GENERATOR)
    except LoamError as problem:
        pytest.skip(problem.line())
    folder = tmp_path_factory.mktemp("site")
    began = time.monotonic()
    assert build.run(ROOT, folder) == 0
    assert time.monotonic() - began < LIMIT_S
    return folder


@pytest.mark.slow
def test_the_site_holds_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {file.relative_to(site).as_posix() for file in site.rglob("*.html")}
    for name in (paths.root() / "docs").rglob("*.md"):
        page = name.relative_to(paths.root() / "docs").with_suffix(".html").as_posix()
        assert page.replace("README.html", "map.html") in pages
    assert {"index.html", "contributing.html", "reference/commands.html"} <= pages
    for page in pages:
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"', (site / page).read_text())
        assert not loaded, (page, loaded)


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_works_on_pages_that_are_opened_from_a_disk(site: Path) -> None:
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("chromium or chromium-driver is not installed")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.binary_location = program
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        browser.get(f"{site.as_uri()}/performance/malloc.html")
        field = browser.find_element(By.CSS_SELECTOR, ".md-search__input")
        browser.execute_script("arguments[0].focus()", field)
        until, links = time.monotonic() + 60, []
        field.send_keys("privatization")
        while not links and time.monotonic() < until:
            links = browser.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
            time.sleep(0.2)
        assert links
    finally:
        browser.quit()


@pytest.mark.slow
def test_a_dead_link_ends_the_build(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "pages", lambda root: {"wrong.md": "# Wrong\n\n[nowhere](../no-such-page.md)\n"})
    with pytest.raises(LoamError, match="a page or a link is wrong"):
        build.run(ROOT, tmp_path / "out")


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(LoamError, match="holds something else than a site"):
        build.run(ROOT, tmp_path)


def test_navigation_follows_the_map(tmp_path: Path) -> None:
    parts = staging.stage(tmp_path, {"commands.md": "# Commands\n"})
    titles = [title for title, _ in parts]
    assert titles.index("Researcher") < titles.index("Service engineer") < titles.index("Reference")
    pages_of_map = [page for _, pages in parts for _, page in pages]
    assert len(pages_of_map) == len(set(pages_of_map))
    assert set(pages_of_map) == {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.md")}
    assert "](performance/malloc.md)" in (tmp_path / "index.md").read_text()
    assert "](index.md)" in (tmp_path / "map.md").read_text()


def test_the_reference_has_every_command_and_key() -> None:
    pages = reference.pages(ROOT)
    for command in commands(ROOT):
        assert f"## {command.words}\n" in pages["commands.md"]
    assert "`--engine E`" in pages["commands.md"]
    assert "agent" not in pages["commands.md"]
    assert "| `schema` | integer; required |" in pages["study-keys.md"]
    assert "| `target_width` |" in pages["study-keys.md"]
    assert "`kind`" in pages["records.md"]


def test_man_pages_are_whole_and_without_complaint(tmp_path: Path) -> None:
    files = manual.write_pages(ROOT, tmp_path)
    assert {file.name for file in files} >= {"loam.1", "loam-run.1", "loam-study-run.1"}
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for file in files:
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z", str(file)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), file


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_what_may_follow(shell: str, tmp_path: Path) -> None:
    files = manual.write_completions(tmp_path)
    assert f"_LOAM_COMPLETE=complete_{shell}" in (tmp_path / manual.COMPLETIONS[shell]).read_text()
    assert len(files) == 3
    asked = {
        "_LOAM_COMPLETE": f"complete_{shell}", "COMP_WORDS": "loam st", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "loam st",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    done = subprocess.run(
        [str(paths.root() / "loam")], env={**os.environ, **asked}, capture_output=True, text=True, check=False
    )
    assert "study" in done.stdout


def completion(shell: str, folder: Path) -> tuple[Path, dict[str, str]]:
    """The file that a shell reads, and an environment in which `loam` is found."""
    manual.write_completions(folder)
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/loam").unlink(missing_ok=True)
    (folder / "bin/loam").symlink_to(paths.root() / "loam")
    return folder / manual.COMPLETIONS[shell], {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}


def printed(environment: dict[str, str], *command: str) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bash_completes_a_line_with_the_file_that_is_installed(tmp_path: Path) -> None:
    file, environment = completion("bash", tmp_path)
    steps = f". {file}; complete -p loam; COMP_WORDS=(loam study l); COMP_CWORD=2; _loam_completion loam; "
    registered, words = printed(environment, "bash", "--norc", "-c", steps + 'echo "${COMPREPLY[@]}"').splitlines()
    assert "-F _loam_completion" in registered and registered.endswith(" loam")
    assert words == "list"


@pytest.mark.exhaustive
def test_zsh_and_fish_complete_a_line_with_the_files_that_are_installed(tmp_path: Path) -> None:
    debian.ensure("shells")
    for shell in ("zsh", "fish"):
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} could not be installed")
    file, environment = completion("fish", tmp_path)
    completions = printed(environment, "fish", "--no-config", "-c", f"source {file}; complete -C 'loam study l'")
    assert [line.split("\t")[0] for line in completions.splitlines()] == ["list"]
    # zsh loads the file as a function at the first completion. That first call must answer too.
    file, environment = completion("zsh", tmp_path)
    steps = (
        f"fpath=({file.parent} $fpath); autoload -Uz compinit; compinit -u -D; _arguments() {{ print -r -- $* }}; "
        "words=(loam study l); CURRENT=3; $_comps[loam]"
    )
    completions = printed(environment, "zsh", "-f", "-c", steps)
    assert '"list"' in completions and '"run"' not in completions


def test_the_gallery_tells_what_came_out_and_what_was_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "stm"
    claim = next(iter(studies.load(studies.registry()[name]).claims))
    older, newer = tmp_path / "results/stm-1", tmp_path / "results/stm-2"
    for folder, day, verdict in ((older, "01", "reproduced"), (newer, "02", "contradicted")):
        folder.mkdir(parents=True)
        entry = {
            "id": claim.id,
            "sentence": "<b>faster</b>",
            "verdict": verdict,
            "predicate": claim.words(),
            "reason": "because",
            "paper": [],
            "ours": [],
        }
        made = {**synthetic_results.tour(), "study": name, "claims": [entry], "created_utc": f"2026-11-{day}T00:00:00Z"}
        (folder / "result.json").write_text(json.dumps(made))
    (tmp_path / "results/latest").symlink_to("stm-1")
    (tmp_path / "results/broken").mkdir()
    (tmp_path / "results/broken/result.json").write_text("{")
    assert gallery.run(tmp_path / "results", tmp_path / "page", as_json=True) == 0
    document = json.loads(capsys.readouterr().out)
    by_name = {study["study"]: study for study in document["studies"]}
    others = len({one.id for one in studies.load(studies.registry()[name]).claims if not one.follows_from}) - 1
    assert by_name[name]["verdicts"] == {"contradicted": 1, "not measured": others}
    assert set(document["never_run"]) == set(studies.registry()) - {name}
    page = (tmp_path / "page/index.html").read_text()
    assert "&lt;b&gt;faster&lt;/b&gt;" in page
    assert "Never run here" in page
    assert "✗ contradicted" in page
    with pytest.raises(LoamError, match="is no folder"):
        gallery.run(tmp_path / "nowhere", None, as_json=False)


def test_a_claim_that_its_paper_contradicts_is_told_so_though_nothing_ran() -> None:
    by_id = {claim.id: gallery._unmeasured(claim) for claim in studies.load(studies.registry()["programs"]).claims}
    assert (by_id["004-09"].mark, by_id["004-09"].verdict) == ("≠", "self-contradicting")
    assert "26 % fewer" in by_id["004-09"].reason
    assert (by_id["004-12"].mark, by_id["004-12"].verdict, by_id["004-12"].reason) == ("–", "not measured", "")
