"""Everything here holds with the compiled kernels and without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from rawlsgcn._core.kernels import kernels, without_kernels


@pytest.fixture(scope="module", autouse=True, params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How a step is made: by the compiled kernels, or by numpy and torch."""
    if request.param == "compiled" and kernels() is None:
        pytest.skip("the package was installed without a C compiler")
    with without_kernels() if request.param == "numpy" else nullcontext():
        assert (kernels() is None) == (request.param == "numpy")
        yield request.param
