"""`loam pack`: one archive of a result that tells what was measured, proves that it is whole, and re-runs elsewhere.

The same result gives the same bytes: names are sorted, owners and modes fixed, and the time is that of the
measurement (or SOURCE_DATE_EPOCH).
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any

from loam_lab import __version__
from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.model.result import Result
from loam_lab.model.store.folder import read_result
from loam_lab.presenting.report import builder, html, view

SUMS = "SHA256SUMS"
_CHUNK = 1 << 20
# Archives of others are checked, too: a few gigabytes are a result, more is a bomb.
_CHECK_MAX_BYTES = 8 << 30
_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def pack(folder: Path, target: Path) -> dict[str, str]:
    """Write the archive of a result folder.

    folder: one that holds result.json; target: the archive; an existing file is replaced only by the same bytes
    returns: name in the archive -> SHA-256 in hex
    raises: LoamError for what cannot be read or written
    """
    result = read_result(folder)
    study = view.read(result, str(folder))
    top = "loam-" + re.sub("[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-.")
    with tempfile.TemporaryDirectory(prefix="loam-pack-") as made:
        files = dict(_kept(folder))
        files |= {name: path for name, path in _made(study.raw, folder, Path(made), files).items() if name not in files}
        (Path(made) / "README.md").write_text(readme(study, top, sorted([*files, "README.md", SUMS])), encoding="utf-8")
        files["README.md"] = Path(made) / "README.md"
        sums = {name: _digest(path) for name, path in sorted(files.items())}
        (Path(made) / SUMS).write_text(
            "".join(f"{digest}  {name}\n" for name, digest in sums.items()), encoding="utf-8"
        )
        files[SUMS] = Path(made) / SUMS
        draft = Path(made) / "archive.tar.gz"
        _write(draft, top, files, epoch(result))
        _place(draft, target)
    return sums


def epoch(result: Result) -> int:
    """The time of every file in the archive: SOURCE_DATE_EPOCH, else when the result was made, else 0.

    raises: LoamError if SOURCE_DATE_EPOCH is not a number of seconds
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None:
        if not given.isdigit():
            raise LoamError("SOURCE_DATE_EPOCH", given, "not a number of seconds", "unset it, or set it as in date +%s")
        return int(given)
    try:
        return int(datetime.datetime.fromisoformat(result.created_utc.replace("Z", "+00:00")).timestamp())
    except ValueError:
        return 0


def _kept(folder: Path) -> Iterator[tuple[str, Path]]:
    """Regular files of the result by their name in the archive; hidden ones (locks, drafts) and links are not of it."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in name.parts)
        if path.is_file() and not path.is_symlink() and not hidden and path.name not in ("README.md", SUMS):
            yield name.as_posix(), path


def _made(result: Result, folder: Path, made: Path, files: Mapping[str, Path]) -> dict[str, Path]:
    """What the folder itself does not hold: allocators, the study as measured, a report where there is none."""
    written = {"allocators.json": made / "allocators.json"}
    listed = {"schema": 1, "allocators": [one.as_json() for one in result.allocators]}
    written["allocators.json"].write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    study = _study(folder / "campaign.json")
    if study:
        written["study.toml"] = made / "study.toml"
        written["study.toml"].write_text(study, encoding="utf-8")
    if "report.html" not in files:
        written["report.html"] = builder.build(result, made / "report", formats=("html",))["html"]
    return written


def _study(manifest: Path) -> str:
    """The study as the campaign recorded it, as TOML; "" where there is no manifest or it says nothing of one."""
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as problem:
        raise LoamError(
            str(manifest), None, f"cannot be read: {problem}", "restore the file, then pack again"
        ) from None
    given = (content.get("plan") or {}).get("study") or content.get("study")
    if not isinstance(given, Mapping):
        return ""
    import tomli_w

    return tomli_w.dumps(_without_none(given))


def _without_none(value: Any) -> Any:
    """The same value as TOML can say it: keys without a value are left out."""
    if isinstance(value, Mapping):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value


def readme(study: view.Study, top: str, names: list[str]) -> str:
    """What is in the archive and how to repeat it elsewhere, as Markdown."""
    raw = study.raw
    revision = raw.build.revision
    checkout = revision.rstrip("+")
    again = [f"git checkout {checkout}"] if checkout else []
    again += ["./loam setup", *html.commands(study)]
    changed = "\nThe checkout had uncommitted changes; the revision alone does not describe what was measured.\n"
    lines = [
        f"# {raw.title or raw.study or 'A result of Loam'}",
        f"Measured {html.date(raw.created_utc or 'at an unknown time')} with Loam {__version__}"
        + (f", revision {checkout}." if checkout else "."),
        "- `report.html`: the answer, figures and all numbers; open it in any browser, offline\n"
        "- `result.json`: the estimates; `journal/`: every run as recorded; `campaign.json`: plan, machine, versions\n"
        "- `allocators.json`: versions, files, build-ids and SHA-256 of what was measured\n"
        f"- `{SUMS}`: check with `sha256sum -c {SUMS}` here, or with `./loam pack --check ARCHIVE`",
        "## Repeat it elsewhere",
        "In a checkout of Loam:\n\n```sh\n" + "\n".join(again) + "\n```" + (changed if revision.endswith("+") else ""),
        "The allocators come from the distribution or are built by `./loam setup`; compare their checksums with"
        " `allocators.json` before you compare figures. Then compare the new result with this one:\n\n"
        f"```sh\n./loam compare {top} results/latest\n```",
        "## Files",
        "\n".join(f"- {name}" for name in names),
    ]
    return "\n\n".join(lines) + "\n"


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return _stream_digest(stream)


def _stream_digest(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _write(draft: Path, top: str, files: Mapping[str, Path], when: int) -> None:
    with (
        draft.open("wb") as raw,
        # No name and no time of its own: both would differ between two packs.
        gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=raw, mtime=when) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, path in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, when, 0o644
            with path.open("rb") as stream:
                archive.addfile(entry, stream)


def _place(draft: Path, target: Path) -> None:
    if target.exists() and (not target.is_file() or _digest(target) != _digest(draft)):
        raise LoamError("--out", target, "exists and holds something else", "name another file, or remove it")
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(draft, beside)
        beside.replace(target)
    except OSError as problem:
        raise LoamError(
            str(target), None, f"cannot be written: {problem.strerror}", "name another file with --out"
        ) from None
    finally:
        beside.unlink(missing_ok=True)


def check(file: Path) -> int:
    """The number of files in an archive, after all of them matched their checksums.

    raises: LoamError if it is no such archive, a file differs, is missing, is too many, or leaves the archive's folder
    """
    sums: dict[str, str] = {}
    digests: dict[str, str] = {}
    total = 0
    try:
        with tarfile.open(file, "r:gz") as archive:
            for entry in archive:
                name = _inside(file, entry)
                total += entry.size
                if total > _CHECK_MAX_BYTES:
                    raise LoamError(str(file), None, "unpacks to more than 8 GiB", "unpack and check it by hand")
                stream = archive.extractfile(entry)
                if stream is None or name in digests:
                    raise LoamError(str(file), None, f"holds {name} twice or not as a file", "get the archive again")
                if name == SUMS:
                    sums = _sums(file, stream)
                    continue
                digests[name] = _stream_digest(stream)
    except FileNotFoundError:
        raise LoamError(str(file), None, "there is no such file", "name an archive that ./loam pack wrote") from None
    except (tarfile.TarError, OSError, EOFError, ValueError) as problem:
        raise LoamError(str(file), None, f"is not a whole archive: {problem}", "get the archive again") from None
    if not sums:
        raise LoamError(str(file), None, f"holds no {SUMS}", "name an archive that ./loam pack wrote")
    for name in sorted(sums.keys() | digests.keys()):
        if name not in digests:
            raise LoamError(str(file), None, f"{name} is missing", "get the archive again")
        if sums.get(name) != digests[name]:
            what = "differs from its checksum" if name in sums else f"is not in {SUMS}"
            raise LoamError(str(file), None, f"{name} {what}", "get the archive again, or ask its author")
    return len(digests)


def _inside(file: Path, entry: tarfile.TarInfo) -> str:
    """The name of an entry below the archive's one folder."""
    parts = PurePosixPath(entry.name).parts
    if not entry.isfile() or entry.name.startswith("/") or ".." in parts or len(parts) < 2:
        raise LoamError(
            str(file), None, f"holds {entry.name!r}, which no result has", "name an archive that ./loam pack wrote"
        )
    return "/".join(parts[1:])


def _sums(file: Path, stream: IO[bytes]) -> dict[str, str]:
    by_name = {}
    for number, line in enumerate(stream.read(16 * _CHUNK).decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise LoamError(f"{file}: {SUMS}:{number}", line[:80], "not a checksum and a name", "get the archive again")
        by_name[match[2]] = match[1]
    return by_name


def run(result: Path | None, out: Path | None, archive: Path | None, *, as_json: bool) -> int:
    """Pack a result (None: results/latest of the current folder), or check an archive.

    raises: LoamError
    """
    if archive is not None:
        if result is not None or out is not None:
            raise LoamError("--check", archive, "takes no result and no --out", "check and pack one after the other")
        count = check(archive)
        if as_json:
            console.print_json({"schema": 1, "archive": str(archive), "files": count, "whole": True})
        else:
            console.out().print(f"{archive}: {count} files, all match their checksums", soft_wrap=True, markup=False)
        return 0
    folder = result if result is not None else paths.latest_result()
    if folder.is_file():
        folder = folder.parent
    target = out if out is not None else Path(f"{folder.resolve().name}.tar.gz")
    sums = pack(folder, target)
    if as_json:
        console.print_json({"schema": 1, "archive": str(target), "sha256": _digest(target), "files": sums})
    else:
        size = target.stat().st_size / 1024
        summary = f"{target}: {len(sums)} files, {size:,.0f} KiB, SHA-256 {_digest(target)}"
        console.out().print(summary, soft_wrap=True, markup=False)
    return 0
