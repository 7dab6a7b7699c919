"""Figures of results show the right dots and lines; the front is what no method beats in both."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PathCollection
from torch_geometric.data import Data

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.experiments.comparison import Comparison
from rawlsgcn.reporting import figures


def dots(axes):
    return next(c for c in axes.collections if isinstance(c, PathCollection)).get_offsets()


def line(axes):
    return next(drawn for drawn in axes.lines if drawn.get_label() == "_line")


def texts(figure):
    own = [text.get_text() for axes in figure.axes for text in [*axes.texts, axes.title]]
    return " ".join([*own, figure.get_suptitle(), *figure.get_supxlabel().split()])


@pytest.mark.parametrize(("place", "name"), [(0, "loss"), (1, "accuracy")])
def test_a_dot_for_every_degree_of_more_than_five_nodes_and_their_regression_line(
    make, place, name
):
    result = make()
    big = result.by_degree[result.by_degree["count"] > 5]
    assert 5 < len(big) < len(result.by_degree)
    axes = figures.by_degree(result).axes[place]
    np.testing.assert_allclose(dots(axes), np.column_stack([big.index, big[name]]))
    slope, intercept = np.polyfit(big.index, big[name], 1)
    x, y = line(axes).get_data()
    np.testing.assert_allclose(y, intercept + slope * np.asarray(x), rtol=1e-9)
    judged = np.mean([getattr(judgement, f"{name}_slope") for judgement in result.run_metrics])
    assert slope == pytest.approx(judged, rel=1e-9)


def test_side_by_side_has_a_column_a_method_on_shared_axes(three):
    figure = figures.side_by_side(three)
    assert len(figure.axes) == 6
    for row in (figure.axes[:3], figure.axes[3:]):
        assert len({axes.get_ylim() for axes in row}) == 1
    for result, axes in zip(three, figure.axes[:3], strict=True):
        big = result.by_degree[result.by_degree["count"] > 5]
        np.testing.assert_allclose(dots(axes)[:, 1], big["loss"])
        assert axes.get_title() == result.title
        (slope,) = axes.texts
        assert slope.get_text().startswith("slope")
        assert slope.xy[1] > 1, "above the dots, none of which it hides"


def test_dots_and_lines_of_every_column_are_inside_the_axes(three):
    """The first method's accuracies alone would cut off those of a worse one."""
    figure = figures.side_by_side([three[1], replace(three[0], logits=-three[0].logits)])
    figure.draw_without_rendering()
    for axes in figure.axes:
        bottom, top = axes.get_ylim()
        assert bottom <= dots(axes)[:, 1].min()
        assert dots(axes)[:, 1].max() <= top


def test_a_long_interval_is_cut_at_an_arrow_and_leaves_the_dots_their_room(make):
    result = make()
    frame = result.by_degree.copy()
    long = frame.index[(frame["count"] > 5) & frame["loss_high"].notna()][:2]
    frame.loc[long, "loss_high"] = [48.0, 1600.0]
    result.__dict__["by_degree"] = frame
    axes = figures.by_degree(result).axes[0]
    highest = dots(axes)[:, 1].max()
    assert axes.get_ylim()[1] == pytest.approx(2 * highest)
    (arrows,) = (drawn for drawn in axes.lines if drawn.get_label() == "_cut")
    assert arrows.get_xdata().tolist() == long.tolist()
    assert not any(each.get_label() == "_cut" for each in figures.by_degree(make()).axes[0].lines)


def test_degrees_equal_the_dense_row_sums_of_the_renormalized_laplacian(graph_of):
    graph = graph_of()
    A = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    A[graph.edge_index[0], graph.edge_index[1]] = 1
    scale = (A.sum(1) + 1).rsqrt()
    expected = (scale[:, None] * (A + torch.eye(len(A))) * scale).sum(1)
    axes = figures.degrees(graph).axes[0]
    nodes = axes.lines[0]
    np.testing.assert_allclose(nodes.get_xdata(), A.sum(1))
    np.testing.assert_allclose(nodes.get_ydata(), expected)
    assert any(np.allclose(drawn.get_ydata(), 1) for drawn in axes.lines if drawn is not nodes)


def test_weights_count_in_the_laplacian_but_not_as_neighbours():
    edges = torch.tensor([[0, 1], [1, 0]])
    graph = Data(edge_index=edges, edge_weight=torch.tensor([3.0, 3.0]), num_nodes=3, name="w")
    nodes = figures.degrees(graph).axes[0].lines[0]
    np.testing.assert_allclose(nodes.get_xdata(), [1, 1, 0])
    np.testing.assert_allclose(nodes.get_ydata(), [1, 1, 1])


def test_titles_name_dataset_nodes_and_seeds_and_say_synthetic(make, graph_of):
    result = make(graph=graph_of("blocks", synthetic=True))
    said = texts(figures.by_degree(result))
    assert "GCN on blocks (synthetic)" in said
    assert "440 evaluated nodes" in said
    assert "3 seeds (0–2)" in said
    assert "synthetic" in texts(figures.degrees(result.graph))
    assert "synthetic" not in texts(figures.by_degree(make()))


def test_the_line_below_a_figure_is_not_cut_off(make, three):
    for figure in (figures.by_degree(make()), figures.side_by_side(three)):
        figure.draw_without_rendering()
        (below,) = [t for t in figure.texts if t.get_text() == figure.get_supxlabel()]
        left, _, right, _ = below.get_window_extent().extents
        assert 0 <= left < right <= figure.bbox.width


def test_no_degree_large_enough_is_said_instead_of_drawn(make, graph_of):
    graph = graph_of()
    graph.test_mask = torch.zeros_like(graph.test_mask)
    graph.test_mask[100:104] = True
    figure = figures.by_degree(make(graph=graph))
    assert "no degree has more than five nodes" in texts(figure)
    assert not any(len(axes.get_yticks()) for axes in figure.axes)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".PNG"])
def test_save_writes_the_format_of_the_suffix_the_same_every_time(make, tmp_path, suffix):
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix.lower()]
    result = make()
    written = []
    for name in ("a", "b"):
        path = figures.save(figures.by_degree(result), tmp_path / f"{name}{suffix}")
        written.append(path.read_bytes())
    assert written[0].startswith(begins)
    assert written[0] == written[1]


def test_a_dollar_sign_in_a_name_is_no_formula(make, graph_of, tmp_path):
    result = make(graph=graph_of(r"a$\frac{$b"), title=r"$\bad{$")
    figures.save(figures.side_by_side([result, result]), tmp_path / "a.png")


def test_unknown_suffix_is_one_sentence_and_writes_nothing(make, tmp_path):
    with pytest.raises(RawlsError, match=r"end its name in \.png, \.svg or \.pdf"):
        figures.save(figures.by_degree(make()), tmp_path / "figure.gif")
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_sentence_and_leaves_nothing(make, tmp_path, monkeypatch):
    figure = figures.by_degree(make())

    def full(path, **_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", full)
    with pytest.raises(RawlsError, match="No space left on device"):
        figures.save(figure, tmp_path / "figure.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_pyplot_is_never_loaded():
    code = "import sys, rawlsgcn.reporting.page; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_notebook_shows_every_figure_without_magic(make, three, make_audit) -> None:
    from rawlsgcn.reporting import audit_figures

    drawn = [
        figures.by_degree(make()),
        Comparison(three).accuracy_bias_plot(),
        audit_figures.curves(make_audit()),
    ]
    for figure in drawn:
        assert isinstance(figure, figures.Figure)
    assert drawn[0]._repr_png_().startswith(b"\x89PNG")


POINTS = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=1, max_size=12)


def test_front() -> None:
    points = [(0.3, 80.0), (0.1, 70.0), (0.2, 75.0), (0.25, 74.0), (0.1, 60.0)]
    assert figures.pareto_front(points) == [(0.1, 70.0), (0.2, 75.0), (0.3, 80.0)]


@given(POINTS)
def test_the_front_is_what_no_other_point_beats(points) -> None:
    def beaten(point):
        return any(
            other != point and other[0] <= point[0] and other[1] >= point[1] for other in points
        )

    assert set(figures.pareto_front(points)) == {point for point in points if not beaten(point)}


def test_dots_stand_at_the_results_figures(three) -> None:
    plain, calibrated = figures.accuracy_bias_plot(three).axes
    for axes, name in ((plain, "bias"), (calibrated, "calibrated_bias")):
        dots = [bars.lines[0].get_xydata()[0] for bars in axes.containers]
        for dot, result in zip(dots, three, strict=True):
            assert tuple(dot) == pytest.approx((getattr(result, name).mean, result.accuracy.mean))


def test_a_bias_that_is_not_defined_is_left_out(three, make) -> None:
    lost = make("rawlsgcn-grad", "Lost", graph=three[0].graph)
    lost.run_metrics = [
        replace(each, bias=math.nan, calibrated_bias=math.nan) for each in lost.run_metrics
    ]
    assert all(
        len(axes.containers) == 1 for axes in figures.accuracy_bias_plot([three[0], lost]).axes
    )
    assert all(not axes.containers for axes in figures.accuracy_bias_plot(lost).axes)
