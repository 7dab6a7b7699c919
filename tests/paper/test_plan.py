"""The plan has every cell of the paper's tables, in the order of work."""

from __future__ import annotations

import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.methods import method_names
from rawlsgcn.paper.agreement import published
from rawlsgcn.paper.plan import BASELINES, MAIN, OWN, Cell, Plan

THERE = [name for name in (*MAIN, *BASELINES) if name in method_names()]


def test_every_published_cell_is_planned() -> None:
    names = {cell.name for cell in Plan().cells()}
    tables = published()
    for graph, methods in tables["effectiveness"].items():
        for method in methods:
            assert method not in THERE or f"rawlsgcn/paper/{graph}/{method}" in names
    for graph, methods in tables["ablation"].items():
        for method, forms in methods.items():
            for form in forms:
                end = "" if form == "doubly-stochastic" else f"/{form}"
                assert f"rawlsgcn/paper/{graph}/{method}{end}" in names
    for method, variants in tables["efficiency"].items():
        for variant in variants:
            end = f"/{variant}" if variant else ""
            assert method not in THERE or f"rawlsgcn/efficiency/amazon-photo/{method}{end}" in names


def test_counts() -> None:
    cells = Plan().cells()
    count = len(THERE)
    assert sum(cell.protocol == "paper" and not cell.variant for cell in cells) == 7 * count
    assert sum(cell.protocol == "paper" and bool(cell.variant) for cell in cells) == 6 * 2 * 3
    assert sum(cell.protocol == "fair" for cell in cells) == 7 * count
    assert sum(cell.protocol == "efficiency" for cell in cells) == count + 1


def test_order_of_work() -> None:
    """GCN and the two methods on every graph, then the baselines, then the ablation."""
    cells = [cell for cell in Plan().cells() if cell.protocol == "paper"]
    kinds = ["ablation" if c.variant else "main" if c.method in MAIN else "base" for c in cells]
    assert kinds == sorted(kinds, key=["main", "base", "ablation"].index)
    assert Plan().cells()[-1].protocol == "efficiency"


def test_grids_are_the_papers() -> None:
    cells = {cell.name: cell for cell in Plan().cells()}
    assert cells["rawlsgcn/paper/cora-ml/gcn"].combinations() == [{}]
    for method in OWN:
        cell = cells[f"rawlsgcn/paper/cora-ml/{method}"]
        assert len(cell.combinations()) == 7
        assert cell.fingerprint["settings"]["epochs"] == 100
    for method in MAIN:
        cell = cells[f"rawlsgcn/fair/cora-ml/{method}"]
        assert len(cell.combinations()) == 28
        assert cell.fingerprint["settings"]["epochs"] == 200
    for method, count in (("redress", 5), ("advfair", 7), ("dsgcn", 4), ("tail-gnn", 1)):
        cell = cells.get(f"rawlsgcn/paper/cora-ml/{method}")
        assert cell is None or len(cell.combinations()) == count


def test_a_quick_search_ends_with_all_seeds_at_what_was_found() -> None:
    cell = Cell("paper", "synthetic", "redress", grid={"alpha": (1.0, 2.0, 3.0)}, seeds=(0, 1))
    search = cell.points(True, {})
    assert [point.seeds for point in search] == [(0,)] * 3
    figures = {1.0: (50, 70), 2.0: (60, 10), 3.0: (60, 20)}
    done = {
        point.key: {
            "values": dict(point.values),
            "runs": {
                "validation_accuracy": [figures[point.values["alpha"]][0]],
                "accuracy": [figures[point.values["alpha"]][1]],
            },
        }
        for point in search
    }
    ends = cell.points(True, done)[3:]
    assert [point.values["alpha"] for point in ends] == [2.0, 1.0]  # among equals the first
    assert all(point.seeds == (0, 1) for point in ends)


def test_only_what_is_asked_for() -> None:
    plan = Plan(parts=("effectiveness",), datasets=("cora-ml", "chameleon"), methods=("gcn",))
    assert [cell.name for cell in plan.cells()] == ["rawlsgcn/paper/cora-ml/gcn"]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"parts": ("efectiveness",)}, "effectiveness"),
        ({"datasets": ("cora",)}, "cora-ml"),
        ({"methods": ("gnc",)}, "gcn"),
        ({"seeds": ()}, "seed"),
    ],
)
def test_wrong_names_are_told(wrong: dict[str, tuple[str, ...]], word: str) -> None:
    with pytest.raises(RawlsError, match=word):
        Plan(**wrong)  # type: ignore[arg-type]
