"""A mistake in a TOML file is reported with its line and with the key that was probably meant."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from loam_lab.base import toml_errors
from loam_lab.base.errors import LoamError

TEXT = '''# a comment with = and [brackets]
schema = 1
title = """first
[not.a.table]
a = 2"""
"quoted key" = 'x # y'
levels = [ 1, # one
  [2, 3],
  { deep = "}" } ]

[settings.deep]
blocks = 3 # [x]
a.b = { c = 1, d = [4,
  5] }

[[groups]]
name = "one"
[[groups.claims]]
id = 1
[[groups.claims]]
id = 2
[[groups]] # second
name = "two"
[groups.parameters]
shift = 5
[[groups.claims]]
id = 3
'''

LINES: dict[toml_errors.Where, int] = {
    (): 1, ("schema",): 2, ("title",): 3, ("quoted key",): 6, ("levels",): 7, ("levels", 0): 7, ("levels", 1): 8,
    ("levels", 1, 0): 8, ("levels", 1, 1): 8, ("levels", 2): 9, ("levels", 2, "deep"): 9, ("settings",): 11,
    ("settings", "deep"): 11, ("settings", "deep", "blocks"): 12, ("settings", "deep", "a"): 13,
    ("settings", "deep", "a", "b"): 13, ("settings", "deep", "a", "b", "c"): 13, ("settings", "deep", "a", "b", "d"): 13,
    ("settings", "deep", "a", "b", "d", 0): 13, ("settings", "deep", "a", "b", "d", 1): 14, ("groups",): 16,
    ("groups", 0): 16, ("groups", 0, "name"): 17, ("groups", 0, "claims"): 18, ("groups", 0, "claims", 0): 18,
    ("groups", 0, "claims", 0, "id"): 19, ("groups", 0, "claims", 1): 20, ("groups", 0, "claims", 1, "id"): 21,
    ("groups", 1): 22, ("groups", 1, "name"): 23, ("groups", 1, "parameters"): 24, ("groups", 1, "parameters", "shift"): 25,
    ("groups", 1, "claims"): 26, ("groups", 1, "claims", 0): 26, ("groups", 1, "claims", 0, "id"): 27,
}  # fmt: skip


def paths_of(value: Any, where: toml_errors.Where = ()) -> set[toml_errors.Where]:
    """Every path of a value that tomllib read."""
    below: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = list(enumerate(value))
    return {where}.union(*(paths_of(part, (*where, name)) for name, part in below))


def test_every_path_has_its_line() -> None:
    assert toml_errors.positions(TEXT) == LINES


def test_the_paths_are_those_that_tomllib_reads() -> None:
    assert set(toml_errors.positions(TEXT)) == paths_of(tomllib.loads(TEXT))


@pytest.mark.parametrize("file", sorted(Path(__file__).parents[3].glob("*/*.toml")), ids=lambda file: file.name)
def test_our_own_files_are_read_whole(file: Path) -> None:
    assert set(toml_errors.positions(file.read_text())) == paths_of(tomllib.loads(file.read_text()))


VALUES = st.recursive(
    st.integers() | st.booleans() | st.text("ab=#'\"\\\n[]{}, ü", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab-. #'\"=[", max_size=4), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text("abc.#= ]", min_size=1, max_size=4), VALUES, max_size=4))
def test_any_file_that_can_be_written_is_read_whole(content: dict[str, Any]) -> None:
    import tomli_w

    text = tomli_w.dumps(content)
    assert set(toml_errors.positions(text)) == paths_of(tomllib.loads(text))


class Group(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    blocks: int = Field(default=1, ge=1)
    parameters: dict[str, int] = {}


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: int = Field(alias="schema")
    groups: tuple[Group, ...] = ()
    only: Group | None = None


def refused(text: str) -> str:
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(tomllib.loads(text))
    return str(
        toml_errors.located(
            caught.value, subject="study", file=Path("x.toml"), text=text, model=Whole, hint="see an example"
        )
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("schema = 1\n\nshema = 2", "study=x.toml:3: shema: unknown key (did you mean schema?)"),
        ("shema = 2", "study=x.toml:1: shema: unknown key; and 1 more mistake (did you mean schema?)"),
        (
            'schema = 1\n[[groups]]\nname = "a"\n[[groups]]\nname = "b"\nblcks = 3',
            "study=x.toml:6: groups[1].blcks: unknown key (did you mean blocks?)",
        ),
        ("schema = 1\n[only]\nname = 'a'\nxyzzy = 1", "keys here: blocks, name, parameters"),
        ("schema = 1\n[[groups]]\nblocks = 2", "study=x.toml:2: groups[0].name: this key is missing (see an example)"),
        (
            "schema = 1\n[[groups]]\nname = 'a'\nblocks = 0",
            "study=x.toml:4: groups[0].blocks: Input should be greater than or equal to 1, not 0 (see an example)",
        ),
        ("schema = 1\n[only]\nname = 'a'\nparameters = {\tk = 'z' }", "x.toml:4: only.parameters.k: Input should be"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_nearest_key(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = 1\nb = '\xff'", ":2: is not TOML: not text in UTF-8 (save it as UTF-8)"),
        (b"a = 1\nb = = 2", ":2:5: is not TOML: invalid value"),
        (None, ": cannot be read: No such file or directory (see loam study list)"),
    ],
)
def test_a_broken_file_is_named_with_line_and_column(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "x.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(LoamError) as caught:
        toml_errors.read(file, subject="study", listing="loam study list")
    assert f"study={file}{message}" in str(caught.value)
