"""How reports call parameters and their choices: by the labels in the description, which an older one does not have."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loam_lab.model import words
from loam_lab.model.description import Parameter

CHOICE = {"name": "structure", "type": "choice", "choices": ["list", "skip"], "default": "list"}


def test_labels_travel_with_the_description() -> None:
    labelled = Parameter.model_validate({**CHOICE, "labels": ["sorted list", "skip list"]})
    assert words.parameters({"structure": "skip", "shift": 5}, labelled.wording) == "skip list, shift\u00a0=\u00a05"


@pytest.mark.parametrize(
    ("label", "value", "shown"),
    [
        ("{}\u00a0B blocks", 16, "16\u00a0B blocks"),
        ("heap of {/100}× live data", 150, "heap of 1.5× live data"),
        ("2{^} records", 20, "2²⁰ records"),
        ("size {}", "small", "size small"),
        ("", 16, "size\u00a0=\u00a016"),
    ],
)
def test_a_label_holds_the_value_of_any_parameter(label: str, value: int | str, shown: str) -> None:
    size = Parameter.model_validate({"name": "size", "type": "integer", "default": 1, "unit": "1", "label": label})
    assert words.parameters({"size": value}, size.wording) == shown


def test_the_label_of_a_choice_goes_before_that_of_the_parameter() -> None:
    both = Parameter.model_validate({**CHOICE, "labels": ["sorted list", "skip list"], "label": "a {}"})
    assert words.parameter("structure", "list", both.wording) == "sorted list"


def test_a_description_without_labels_is_read() -> None:
    plain = Parameter.model_validate(CHOICE)
    assert plain.wording == {"structure": ""}
    assert words.parameter("structure", "skip", plain.wording) == "structure\u00a0=\u00a0skip"


def test_labels_that_do_not_fit_the_choices_are_refused() -> None:
    with pytest.raises(ValidationError, match="parameter structure: 2 choices and 1 labels"):
        Parameter.model_validate({**CHOICE, "labels": ["sorted list"]})
