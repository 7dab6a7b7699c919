"""The Python of every page runs, and every command on a page has the options that it is given.

Tutorials run when the site is built (test_site.py); the other pages are fragments, which run here
in order, with the names that their text assumes. Pages with tests of their own are left to these:
test_adding_a_method.py, test_auto_page.py and test_own_code.py.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from small_pool import small_pool
from torch_geometric.nn import GCN
from torch_geometric.utils import degree
from typer.main import get_command

import rawlsgcn as rg
from rawlsgcn.balancing import propagation_matrix
from rawlsgcn.cli import app
from rawlsgcn.nn import FairSAGEConv

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TESTED_ELSEWHERE = {"adding-a-method.md", "auto.md", "how-it-works.md"}
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
ALL_PAGES = [*PAGES, *sorted((DOCS / "tutorials").glob("*.md"))]
#: Smaller than what the pages say, so that no dataset and little time is needed.
SMALLER = (
    (r'"(amazon-photo|citeseer|cora-ml)"', '"synthetic"'),
    (r"1_000_000|100_000", "2_000"),
    (r"4_000_000", "8_000"),
    (r'seeds=\(0, 1\), changes=\{"epochs": 20\}', 'seeds=(0,), changes={"epochs": 2}'),
)


def python_blocks(page: Path) -> list[str]:
    found = re.findall(r"^( *)```python\n(.*?)^ *```$", page.read_text("utf-8"), re.M | re.S)
    return [textwrap.dedent(block) for _, block in found]


def prepare(folder: Path) -> dict[str, Any]:
    """What the pages assume: a graph, a model, files of predictions, and parts of a batch."""
    graph = rg.synthetic(200)
    torch.manual_seed(0)
    classes, n = int(graph.y.max()) + 1, 200
    scores = torch.rand(n, classes)
    everyone = rg.synthetic()
    for name in ("gcn", "rawlsgcn-graph", "theirs"):
        size = n if name == "theirs" else everyone.num_nodes
        rows = [f"{i},{i % classes}" for i in range(size)]
        (folder / f"{name}.csv").write_text("\n".join(["node,predicted", *rows]))
    (folder / "friends.csv").write_text("source,target\nanna,ben\nben,carla\ncarla,dora\n")
    np.savez(folder / "words.npz", x=np.eye(4, dtype=np.float32))
    (folder / "towns.csv").write_text(
        "id,label,split\nanna,Rome,train\nben,Oslo,train\ncarla,Rome,val\ndora,Oslo,test\n"
    )
    ends = graph.edge_index[:, graph.edge_index[1] < 50]
    model = GCN(graph.num_features, 8, 2, classes, normalize=False)
    return {
        "graph": graph,
        "data": graph.clone(),
        "model": model,
        "probabilities": scores / scores.sum(1, keepdim=True),
        "loader": range(2),
        "logits": torch.rand(n, 7),
        "target": graph.y,
        "degree": degree(graph.edge_index[0], n),
        "sampled_edge_index": ends,
        "x": graph.x,
        "edge_index": graph.edge_index,
        "edge_weight": torch.ones(graph.num_edges),
        "fair_weight": torch.ones(graph.num_edges),
        "n": n,
        "h": torch.rand(n, 4),
        "targets": 50,
        "target_ids": torch.arange(50),
        "block": ends,
        "block_source": ends[0],
        "block_target": ends[1],
        "layer": FairSAGEConv(4, 3),
        "torch": torch,
        "np": np,
        "scipy": scipy,
        "y": np.array([0, 1, 0]),
        "rg": rg,
        "A_hat": propagation_matrix(graph.edge_index, None, n, "renormalized"),
        "H": torch.rand(n, 4),
        "G": torch.rand(n, 3),
        **{name: torch.rand(n, 3) for name in ("H0", "G1", "H1", "G2")},
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [each for each in PAGES if each.name not in TESTED_ELSEWHERE and python_blocks(each)],
    ids=lambda page: page.stem,
)
def test_the_python_of_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = prepare(tmp_path)
    for block in python_blocks(page):
        for large, small in SMALLER:
            block = re.sub(large, small, block)
        block = block.replace("csr_matrix(...)", "csr_matrix(np.eye(3))")
        with small_pool():
            exec(compile(block, str(page), "exec"), names)


def commands_of(page: Path) -> list[tuple[str, str]]:
    """(command, the rest of its line) for every command in a block or between backquotes."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    found = re.findall(r"^[!\w ./-]*\brawlsgcn +([a-z]+)(.*)$", text, re.M)
    quoted = re.findall(r"`rawlsgcn ([a-z]+)([^`]*)`", text)
    blocks = [(name, rest) for name, rest in found if rest.startswith("  ") or " --" in rest]
    return [*blocks, *quoted]


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.stem)
def test_commands_have_these_options(page: Path) -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    former = {"bench", "survive"}  # earlier names, which the pages call that
    for name, rest in commands_of(page):
        if name in former:
            continue
        assert name in commands, f"rawlsgcn {name}"
        known = {spelled for each in commands[name].params for spelled in each.opts}
        given = re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.split(r"\s{3,}|\|", rest.strip())[0])
        unknown = set(given) - known - {"--help"}
        assert not unknown, f"rawlsgcn {name}{rest}"


def test_the_readme_is_two_screens() -> None:
    text = (ROOT / "README.md").read_bytes()
    assert len(text.splitlines()) <= 120
    assert len(text) <= 8_000


def test_links_between_pages_lead_to_files_and_headings() -> None:
    """On a code host, where the pages are read as they are; the site checks its own."""
    broken = []
    for page in ALL_PAGES:
        text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if ":" in path:
                continue
            target = (page.parent / path).resolve() if path else page
            if "reference/api" in path or path.startswith("api/"):
                continue  # written by the build
            if not target.exists() or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.name}: {link}")
    assert not broken


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", each.lower()).strip().replace(" ", "-") for each in headings}
