"""What tests share: the real graphs, where they are on disk, and small random graphs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the command line does
# The same tests with the same numbers whether there is a GPU or not; make test-cuda is for GPUs.
if os.environ.get("RAWLSGCN_TEST_CUDA") != "1":
    os.environ["CUDA_VISIBLE_DEVICES"] = ""

import hypothesis
import pytest
import torch

# Small tensors gain nothing from threads, and on a busy machine they lose a lot.
if "OMP_NUM_THREADS" not in os.environ:
    torch.set_num_threads(1)


# A property holds however slow or busy the machine is.
hypothesis.settings.register_profile(
    "any-machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of the paper's seven graphs; a test that needs them skips without it."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    root = Path(os.environ.get("RAWLSGCN_DATA", beside))
    if not (root / "Photo" / "raw").is_dir():
        pytest.skip(f"the real graphs are not on disk (looked in {root}; set RAWLSGCN_DATA)")
    return root


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()
