"""Dense products are right, whichever library makes them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rawlsgcn.training import dense
from rawlsgcn.training.dense import dense_product

SIZES = st.integers(1, 40)


@settings(max_examples=60, deadline=None)
@given(
    rows=SIZES,
    inner=SIZES,
    columns=SIZES,
    flipped=st.booleans(),
    biased=st.booleans(),
    into=st.booleans(),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_it_is_the_product_in_float64(
    rows: int,
    inner: int,
    columns: int,
    flipped: bool,
    biased: bool,
    into: bool,
    dtype: torch.dtype,
) -> None:
    generator = torch.Generator().manual_seed(rows * 1600 + inner * 40 + columns)
    left = torch.randn(inner, rows, generator=generator).to(dtype).t()
    left = left if flipped else left.contiguous()
    right = torch.randn(inner, columns, generator=generator).to(dtype)
    bias = torch.randn(columns, generator=generator).to(dtype) if biased else None
    out = torch.full((rows, columns), torch.nan, dtype=dtype) if into else None
    product = dense_product(left, right, bias, out)
    expected = left.double() @ right.double()
    if bias is not None:
        expected += bias.double()
    assert product.dtype == dtype
    assert out is None or product is out
    tolerance = 1e-4 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(product.double(), expected, rtol=tolerance, atol=tolerance)


def test_without_the_operator_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right, bias = torch.randn(30, 20), torch.randn(20, 10), torch.randn(10)
    usual = dense_product(left, right, bias)
    monkeypatch.setattr(dense, "_linear", lambda: None)
    torch.testing.assert_close(dense_product(left, right, bias), usual)


def test_nothing_inside_and_a_bias_that_repeats_one_number_are_right() -> None:
    assert torch.equal(dense_product(torch.ones(3, 0), torch.ones(0, 2)), torch.zeros(3, 2))
    spread = torch.tensor([5.0]).expand(4)
    product = dense_product(torch.ones(3, 2), torch.ones(2, 4), spread)
    assert torch.equal(product, torch.full((3, 4), 7.0))


@pytest.mark.parametrize("broken", [RuntimeError, AttributeError, TypeError])
def test_an_operator_that_fails_is_not_used(
    monkeypatch: pytest.MonkeyPatch, broken: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise broken("no")

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", fail, raising=False)
    assert dense._linear.__wrapped__() is None


def test_an_operator_that_is_wrong_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = lambda left, *_: left  # noqa: E731
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", wrong, raising=False)
    assert dense._linear.__wrapped__() is None


def test_a_torch_without_onednn_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert dense._linear.__wrapped__() is None
