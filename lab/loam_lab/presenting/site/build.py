"""`loam site`: the documentation as pages that open offline, with a search.

The generator comes from requirements-docs.lock into an environment of its own, when the site is first built.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.presenting.site import reference, staging
from loam_lab.setup import environments

GENERATOR = ("docs", "the generator of the site")
TIMEOUT_S = 300
SEARCH, THEIR_SEARCH = "search.js", "https://unpkg.com/iframe-worker/shim"
_CONFIG = """\
site_name: Loam
site_description: Measures what a memory allocator does to concurrent programs, explains it, and fixes it.
docs_dir: {source}
site_dir: {site}
strict: true
theme:
  name: material
  font: false
  features: [navigation.sections, navigation.top, navigation.footer, toc.follow, content.code.copy, search.suggest]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: teal
      toggle: {{icon: material/weather-night, name: Dark}}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: teal
      toggle: {{icon: material/weather-sunny, name: Light}}
plugins: [search, offline]
validation:
  nav: {{omitted_files: warn, not_found: warn, absolute_links: warn}}
  links: {{not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}}
markdown_extensions:
  - tables
  - attr_list
  - pymdownx.superfences
  - pymdownx.highlight
  - toc:
      permalink: true
      slugify: !!python/object/apply:pymdownx.slugs.slugify {{kwds: {{case: lower}}}}
nav: {nav}
"""


def run(root: Any, out: Path | None, *, as_json: bool = False) -> int:
    """Build the site; root: of the command line; out: its folder, build/site where None.

    raises: LoamError if the generator cannot be installed, or a page or a link is wrong
    """
    began = time.monotonic()
    site = (out or paths.root() / "build/site").absolute()
    if site.exists() and not (site / "index.html").is_file() and any(site.iterdir()):
        raise LoamError("--out", site, "holds something else than a site", "choose a new or empty folder")
    try:  # before the generator is installed, whose own words would be a traceback
        site.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise LoamError("--out", site, f"cannot be written: {problem.strerror}", "choose another folder") from None
    work = paths.root() / "build/site-source"
    parts = staging.stage(work / "pages", reference.pages(root))
    nav = [{title: pages} if title else pages for title, pages in _pages(parts)]
    flat = [entry for part in nav for entry in (part if isinstance(part, list) else [part])]
    config = work / "mkdocs.yml"
    config.write_text(_CONFIG.format(source=json.dumps(str(work / "pages")), site=json.dumps(str(site)),
                                     nav=json.dumps(flat, ensure_ascii=False)))  # fmt: skip
    program = environments.interpreter(*GENERATOR)
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [str(program), "-m", "mkdocs", "build", "--config-file", str(config)]
    done = subprocess.run(
        command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    complaints = [line for line in done.stdout.splitlines() if line.startswith(("WARNING", "ERROR")) or done.returncode]
    if complaints:
        console.note("\n".join(complaints))
    if done.returncode != 0:
        raise LoamError("site", None, "a page or a link is wrong, see above", "correct the page", exit_code=1)
    _offline(site)
    took_s = time.monotonic() - began
    pages = len(list(site.rglob("*.html")))
    if as_json:
        console.print_json({"schema": 1, "site": str(site), "pages": pages, "elapsed_s": round(took_s, 2)})
    else:
        mib = staging.size(site) / 2**20
        summary = f"{pages} pages, {mib:.1f} MiB, in {took_s:.0f} s; open {site / 'index.html'}"
        console.out().print(summary, soft_wrap=True, markup=False)
    return 0


def _pages(parts: list[tuple[str, list[tuple[str, str]]]]) -> list[tuple[str, list[dict[str, str]]]]:
    return [(title, [{name: page} for name, page in pages]) for title, pages in parts]


def _offline(site: Path) -> None:
    """Give pages that are opened from a disk a search without the network: the theme would load a script for it."""
    shutil.copyfile(Path(__file__).parent / "assets" / SEARCH, site / "assets/javascripts" / SEARCH)
    for page in site.rglob("*.html"):
        text = page.read_text()
        near = os.path.relpath(site / "assets/javascripts" / SEARCH, page.parent)
        page.write_text(text.replace(THEIR_SEARCH, near))
