"""The kernels under sanitizers: nothing is found in them, and what is planted is found."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "tools").is_dir(), reason="not run from a clone"),
]


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    spec = importlib.util.spec_from_file_location("sanitize", ROOT / "tools" / "sanitize.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.require_sanitizers(tmp_path_factory.mktemp("empty"))
    except module.MissingError as error:
        pytest.skip(str(error))
    return module


def test_the_kernels_read_and_write_only_what_is_theirs(tool: ModuleType, tmp_path: Path) -> None:
    counts = tool.sanitize(30, 0, tmp_path)
    assert len(counts) == 2


@pytest.mark.parametrize(
    ("line", "planted", "found"),
    [
        ("if (!rise(rows, starts, entries))", "if (0)", "(AddressSanitizer|runtime error)"),
        ("at = at + LANES > width ? width - LANES : at;", "", "AddressSanitizer"),
        ("return !outside;", "return 1;", "lets a damaged matrix pass"),
        ("end = starts[last];", "end = starts[last] + 1;", "AddressSanitizer"),
    ],
)
def test_what_is_planted_is_found(
    tool: ModuleType, tmp_path: Path, line: str, planted: str, found: str
) -> None:
    text = tool.SOURCE.read_text()
    assert line in text, "kernels.c was changed: plant another mistake"
    (tmp_path / "kernels.c").write_text(text.replace(line, planted))
    with pytest.raises(RuntimeError, match=found):
        tool.sanitize(30, 0, tmp_path, tmp_path / "kernels.c")


def test_a_kernel_that_is_not_driven_is_told(tool: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "kernels.c").write_text(
        f"{tool.SOURCE.read_text()}\nvoid rawls_new(int64_t rows)\n{{\n    (void)rows;\n}}\n"
    )
    with pytest.raises(RuntimeError, match="never calls rawls_new"):
        tool.sanitize(3, 0, tmp_path, tmp_path / "kernels.c")
