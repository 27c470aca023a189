"""How reports call the choices of a parameter: by the labels in the description, which an older one does not have."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from loam_lab.model import words
from loam_lab.model.description import Parameter

CHOICE = {"name": "structure", "type": "choice", "choices": ["list", "skip"], "default": "list"}


def test_labels_travel_with_the_description() -> None:
    labelled = Parameter.model_validate({**CHOICE, "labels": ["sorted list", "skip list"]})
    assert words.parameters({"structure": "skip", "shift": 5}, labelled.wording) == "skip list, shift\u00a0=\u00a05"
    size = Parameter.model_validate({"name": "size", "type": "integer", "default": 1, "unit": "1"})
    assert words.parameters({"size": 16}, size.wording) == "size\u00a016"
    assert words.parameters({"size": 16}) == "16\u00a0B blocks"


def test_a_description_without_labels_is_read() -> None:
    plain = Parameter.model_validate(CHOICE)
    assert plain.wording == {"structure": ""}
    assert words.parameter("structure", "skip", plain.wording) == "structure\u00a0=\u00a0skip"


def test_labels_that_do_not_fit_the_choices_are_refused() -> None:
    with pytest.raises(ValidationError, match="parameter structure: 2 choices and 1 labels"):
        Parameter.model_validate({**CHOICE, "labels": ["sorted list"]})
