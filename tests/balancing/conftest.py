"""Everything here holds with the compiled passes and without them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rawlsgcn.balancing import compiled, distributed, passes, products


@pytest.fixture(scope="module", autouse=True, params=["compiled", "numpy"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How a step is made: by the compiled passes, or by numpy and torch."""
    if request.param == "compiled" and compiled.kernels() is None:
        pytest.skip("the package was installed without a C compiler")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            for module in (distributed, passes, products):
                patch.setattr(module, "kernels", lambda: None)
        yield request.param
