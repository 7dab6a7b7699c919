"""Results with known properties, without training anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_pool import small_pool
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, to_undirected

import rawlsgcn as rg
from rawlsgcn.evaluation.run_metrics import evaluate_run
from rawlsgcn.experiments.auditing.audit_predictions import audit as rg_audit
from rawlsgcn.experiments.auditing.audit_result import Audit
from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.experiments.model_search.result import AutoResult
from rawlsgcn.experiments.result import Result

NODES, CLASSES = 600, 4


def invented_graph(name: str = "amazon-photo", synthetic: bool = False) -> Data:
    """A graph of uneven degrees, isolated nodes among them."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.rand(NODES, generator=generator).clamp(min=0.02) ** -1.0
    weight[:12] = 0
    ends = torch.multinomial(weight, 2 * 2500, replacement=True, generator=generator).view(2, -1)
    ends = ends[:, ends[0] != ends[1]]
    order = torch.randperm(NODES, generator=generator)
    masks = torch.zeros(3, NODES, dtype=torch.bool)
    for mask, nodes in zip(masks, order.split([60, 100, NODES - 160]), strict=True):
        mask[nodes] = True
    return Data(
        edge_index=coalesce(to_undirected(ends)),
        y=torch.randint(0, CLASSES, (NODES,), generator=generator),
        train_mask=masks[0],
        val_mask=masks[1],
        test_mask=masks[2],
        num_nodes=NODES,
        name=name,
        synthetic=synthetic,
    )


Make = Callable[..., Result]


@pytest.fixture(scope="session")
def make() -> Make:
    """Make a result whose nodes are right the surer the higher their degree, by ``by_degree``."""

    def result(
        method: str = "gcn",
        title: str = "GCN",
        *,
        base: float = 0.5,
        by_degree: float = 0.9,
        seeds: int = 3,
        graph: Data | None = None,
        **changes: Any,
    ) -> Result:
        graph = invented_graph() if graph is None else graph
        degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
        generator = torch.Generator().manual_seed(2)
        logits = torch.randn(seeds, graph.num_nodes, CLASSES, generator=generator)
        logits[:, torch.arange(graph.num_nodes), graph.y.clamp(min=0)] += (
            base + by_degree * torch.log1p(degree.float())
        )
        fields: dict[str, Any] = {
            "dataset": graph.name,
            "method": method,
            "title": title,
            "settings": {"lr": 0.01, "epochs": 200, "normalization": "renormalized"},
            "seeds": list(range(seeds)),
            "device": "cpu",
            "parameters": 48264,
            "seconds": {"prepare": 0.25, "train": 3.5, "evaluate": 0.25},
            "peak_memory_mb": 512.0,
            "run_metrics": [
                evaluate_run(run, graph.y, degree, graph.test_mask, graph.val_mask)
                for run in logits
            ],
            "graph": graph,
            "degree": degree,
            "mask": graph.test_mask,
            "logits": logits,
            "states": [{} for _ in range(seeds)],
            "synthetic": graph.synthetic,
            "notes": ["The directed graph was symmetrised."],
        }
        return Result(**(fields | changes))

    return result


@pytest.fixture(scope="session")
def graph_of() -> Callable[..., Data]:
    return invented_graph


@pytest.fixture(scope="session")
def three(make: Make) -> list[Result]:
    graph = invented_graph()
    return [
        make(graph=graph),
        make("rawlsgcn-graph", "RawlsGCN-Graph", base=2.4, by_degree=0.3, graph=graph),
        make("rawlsgcn-grad", "RawlsGCN-Grad", base=1.2, by_degree=0.8, graph=graph),
    ]


@pytest.fixture(scope="session")
def make_audit() -> Callable[..., Audit]:
    """Make an audit of models that are right the surer the higher the degree, by ``by_degree``.

    ``models`` maps a name to (base, by_degree); ``column`` is a name and a value for every node,
    ``settings`` are those of ``rg.audit``.
    """

    def audit(
        models: dict[str, tuple[float, float]] | None = None,
        *,
        column: tuple[str, Any] | None = None,
        graph: Data | None = None,
        only_classes: bool = False,
        notes: tuple[str, ...] = (),
        **settings: Any,
    ) -> Audit:
        graph = invented_graph() if graph is None else graph
        degree = torch.bincount(graph.edge_index[0], minlength=NODES)
        generator = torch.Generator().manual_seed(3)
        noise = torch.randn(NODES, CLASSES, generator=generator, dtype=torch.float64)
        predictions = {}
        for name, (base, by_degree) in (models or {"GCN": (0.2, 0.9)}).items():
            logits = noise.clone()
            logits[torch.arange(NODES), graph.y] += base + by_degree * torch.log1p(degree)
            predictions[name] = logits.argmax(1) if only_classes else logits
        made = rg_audit(
            graph,
            predictions,
            by="degree" if column is None else column,
            scores="classes" if only_classes else "logits",
            resamples=200,
            **settings,
        )
        return replace(made, notes=[*made.notes, *notes])

    return audit


def with_long_interval(audit: Audit) -> Audit:
    """The audit of one model whose first group has a loss of an interval up to 48."""
    (model,) = audit.models
    first, *others = model.groups
    first = replace(first, loss=replace(first.loss, high=48.0))
    return replace(audit, models=[replace(model, groups=[first, *others])])


@pytest.fixture(scope="session")
def three_models(make_audit: Callable[..., Audit]) -> Audit:
    return make_audit(
        {"GCN": (0.2, 0.9), "RawlsGCN-Graph": (2.2, 0.2), "RawlsGCN-Grad": (1.2, 0.6)},
        graph_options={"dataset": "invented"},
        command="rawlsgcn audit --dataset invented --predictions GCN.csv",
    )


@pytest.fixture(scope="session")
def auto() -> AutoResult:
    """What ``rg.auto`` finds on a small graph, with few settings."""
    with small_pool():
        return rg.auto(rg.synthetic(300))


@pytest.fixture(scope="session")
def files(
    three_models: Audit,
    make_audit: Callable[..., Audit],
    three: list[Result],
    auto: AutoResult,
    tmp_path_factory,
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    text = ("group", np.array(["a", "b</script>", "c"] * 200))
    audits = {
        "three": three_models,
        "one": make_audit(bins="degree"),
        "text": make_audit({"GCN": (0.2, 0.9), "other": (1, 0.5)}, column=text),
        "rare": make_audit(column=("name", np.array([f"v{min(i // 2, 250)}" for i in range(600)]))),
        "sample": make_audit(shown=50, only_classes=True),
        "bare": make_audit(shown=0),
        "long": with_long_interval(make_audit()),
        "trained": Comparison.of(three).audit(resamples=200),
        "auto": auto.audit(resamples=200),
    }
    return {name: audit.to_html(folder / f"{name}.html") for name, audit in audits.items()}


@pytest.fixture
def visit(browser: Any, files: dict[str, Path]) -> Iterator[Callable[..., Any]]:
    """Open a page; in the end it must have logged nothing and asked for nothing but itself."""
    contexts, told, asked = [], [], []

    def go(name: str = "three", width: int = 1280, **context: Any) -> Any:
        contexts.append(
            browser.new_context(
                viewport={"width": width, "height": 900}, bypass_csp=False, **context
            )
        )
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: told.append(dialog.message))
        page.goto(files[name].as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert not told
    outside = [
        url for url in asked if not url.startswith(("data:", *map(Path.as_uri, files.values())))
    ]
    assert not outside
