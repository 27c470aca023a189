"""Student's distribution against scipy's, near 0 and far out, and its two functions against each other."""

from __future__ import annotations

import math

import pytest
from scipy import special

from loam_lab.judging.statistics import student

FREEDOMS = (0.5, 1.0, 1.7, 2.0, 3.0, 7.3, 29.0, 199.5, 5000.0, 1e6)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("value", (0.0, 1e-9, 0.03, 0.7, 1.0, 2.5, 9.0, 60.0, 1e5))
def test_the_probability_is_scipys_on_both_sides(freedom: float, value: float) -> None:
    for signed in (-value, value):
        wanted = float(special.stdtr(freedom, signed))
        assert student.cumulative(signed, freedom) == pytest.approx(wanted, rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("probability", (1e-8, 0.0005, 0.025, 0.3, 0.5, 0.6, 0.975, 0.9995))
def test_the_quantile_is_scipys(freedom: float, probability: float) -> None:
    wanted = float(special.stdtrit(freedom, probability))
    assert student.quantile(probability, freedom) == pytest.approx(wanted, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("freedom", FREEDOMS)
def test_the_quantile_is_the_inverse_of_the_probability(freedom: float) -> None:
    for probability in (1e-6, 0.025, 0.4, 0.5, 0.975):
        again = student.cumulative(student.quantile(probability, freedom), freedom)
        assert again == pytest.approx(probability, rel=1e-9)


def test_the_ends() -> None:
    assert student.cumulative(-math.inf, 3.0) == 0.0 and student.cumulative(math.inf, 3.0) == 1.0
    assert student.quantile(0.2, 4.0) == -student.quantile(0.8, 4.0)
    for probability in (0.0, 1.0, -0.1, 1.5):
        with pytest.raises(ValueError, match="is not between 0 and 1"):
            student.quantile(probability, 4.0)
