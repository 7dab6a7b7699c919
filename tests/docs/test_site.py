"""The site builds without a warning, has a page for every public name, and all can use it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="the extra 'docs' is not installed")
from sphinx.util.inventory import InventoryFile

pytestmark = pytest.mark.slow  # builds the whole site and needs a browser
ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
AXE = ROOT / ".cache/node_modules/axe-core/axe.min.js"
#: One page of every kind.
PAGES = (
    "index.html",
    "how-to.html",
    "metrics.html",
    "results.html",
    "tutorials/first-model.html",
    "tutorials/audit-of-a-scikit-learn-model.html",
    "reference/index.html",
    "reference/api/rawlsgcn.nn.FairGCNConv.html",
    "reference/api/rawlsgcn.fit.html",
    "reference/api/commands.html",
    "search.html?q=doubly+stochastic",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built from nothing; a warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto", "-E", "-b", "html"]
    done = subprocess.run(
        [sys.executable, *command, "-d", folder / "doctrees", DOCS, folder / "html"],
        capture_output=True,
        text=True,
        check=False,
        # Nothing may be fetched: an address that answers nobody.
        env={**os.environ, "HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "html"


def reference_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "reference_pages", DOCS / "_ext" / "reference_pages.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_a_page(site: Path) -> None:
    pages = reference_pages()
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    described = {
        name: entry.uri
        for kind, found in inventory.data.items()
        for name, entry in found.items()
        if kind.startswith("py:")
    }
    homes = pages.homes()
    assert len(homes) > 120
    for (face, name), full in homes.items():
        assert full in described, f"{face}.{name}"
        assert (site / described[full].partition("#")[0]).is_file()


def test_every_command_and_its_options_are_described(site: Path) -> None:
    from typer.main import get_command

    from rawlsgcn.cli import app

    text = (site / "reference/api/commands.html").read_text("utf-8")
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f'id="rawlsgcn-{name}"' in text
        for each in command.params:
            assert each.name == "help" or each.opts[0] in text


def test_every_page_is_in_the_navigation_and_needs_nothing_from_outside(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        for outside in ('src="http', 'rel="stylesheet" href="http', "cdn."):
            assert outside not in text, page.name
    for page in [*DOCS.glob("*.md"), *(DOCS / "tutorials").glob("*.md")]:
        assert (site / page.relative_to(DOCS).with_suffix(".html")).is_file()


@pytest.fixture
def visit(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Open a page of the site from the disk; in the end it must have asked for nothing outside."""
    contexts, told, asked = [], [], []

    def go(page: str, width: int = 1280, **context: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **context))
        opened = contexts[-1].new_page()
        opened.set_default_timeout(20_000)
        opened.on("pageerror", lambda error: told.append(str(error)))
        opened.on("request", lambda request: asked.append(request.url))
        path, _, query = page.partition("?")
        opened.goto((site / path).as_uri() + (f"?{query}" if query else ""))
        return opened

    yield go
    for context in contexts:
        context.close()
    # Excerpts of results are fetched, which a browser does not allow for a page on the disk.
    assert not [error for error in told if "Failed to fetch" not in error]
    assert not [url for url in asked if not url.startswith((site.as_uri(), "data:"))]


def test_search_finds_pages_and_names(visit: Callable[..., Any]) -> None:
    for words, expected in (
        ("doubly stochastic", "The doubly stochastic form"),
        ("make_fair", "rawlsgcn.nn.make_fair"),
        ("shards", "A graph too large for memory"),
    ):
        page = visit("search.html?q=" + words.replace(" ", "+"))
        page.wait_for_selector("#search-results li")
        page.wait_for_function(
            "text => [...document.querySelectorAll('#search-results li a')]"
            ".some(each => each.textContent.includes(text))",
            arg=expected,
        )


def test_tutorials_show_what_they_printed(site: Path) -> None:
    for page, words in (
        ("first-model", "low-degree accuracy"),
        ("audit-of-a-scikit-learn-model", "p = "),
        ("two-lines", "gradient"),
        ("the-paper-in-an-hour", "Table 3: effectiveness"),
        ("too-large-for-memory", "epoch 4: loss"),
    ):
        text = (site / f"tutorials/{page}.html").read_text("utf-8")
        assert 'class="cell_output' in text
        assert words in text
        assert "Traceback" not in text


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_wider_than_the_screen(visit: Callable[..., Any], page: str) -> None:
    opened = visit(page)
    for width in (1280, 768, 390, 360):
        opened.set_viewport_size({"width": width, "height": 800})
        assert opened.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(visit: Callable[..., Any], page: str, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not in .cache: npm install --prefix .cache axe-core")
    opened = visit(page, color_scheme=scheme)
    if "search" in page:
        opened.wait_for_selector("#search-results li")
    opened.evaluate(AXE.read_text(encoding="utf-8"))
    found = opened.evaluate("axe.run()")
    serious = [
        (each["id"], len(each["nodes"]), each["nodes"][0]["html"][:300])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert not serious, json.dumps(serious, indent=1)
    assert len(found["passes"]) > 15
