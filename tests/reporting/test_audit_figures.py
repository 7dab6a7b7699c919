"""The pictures of an audit stand where its figures are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.reporting import audit_figures
from rawlsgcn.reporting.audit_figures import SCALES, group_positions, log_kind, log_ticks
from rawlsgcn.reporting.figures import save

TEXT = ("group", np.array(["a", "b$x$", "c"] * 200))


def test_a_groups_place_is_the_mean_of_its_nodes(three_models) -> None:
    model = three_models.models[0]
    values = np.array(three_models.nodes.value, dtype=float)
    owns = [values[(values >= group.low) & (values <= group.high)] for group in model.groups]
    means = [own.mean() for own in owns]
    assert group_positions(model, True, None) == pytest.approx(means)
    means = [np.expm1(np.log1p(own).mean()) for own in owns]
    assert group_positions(model, True, "one more") == pytest.approx(means)


def test_stretching_goes_both_ways() -> None:
    for forward, backward in SCALES.values():
        values = np.array([0.5, 1, 5, 1000])
        np.testing.assert_allclose(backward(forward(values)), values, atol=1e-9)


def test_counts_ranks_and_signed_values_have_their_axis(make_audit) -> None:
    assert log_kind(make_audit()) == "one more"
    assert log_kind(make_audit(column=("rank", np.linspace(1e-5, 1, 600)))) == "plain"
    assert log_kind(make_audit(column=("side", np.linspace(-1, 1, 600)))) is None
    assert log_kind(make_audit(column=TEXT)) is None


@pytest.mark.parametrize(("low", "high"), [(0, 3), (0, 997), (4, 7), (1, 10**7)])
def test_marks_of_the_axis_lie_inside_and_are_few(low, high) -> None:
    marks = log_ticks(low, high, "one more")
    assert all(low <= mark <= high for mark in marks)
    assert marks == sorted(set(marks))
    assert 1 <= len(marks) <= 12


def test_lines_pass_through_the_groups_means(three_models) -> None:
    loss, accuracy = audit_figures.curves(three_models).axes
    for axes, name in ((loss, "loss"), (accuracy, "accuracy")):
        lines = [line for line in axes.lines if line.get_label() == "_line"]
        for line, model in zip(lines, three_models.models, strict=True):
            sound = [getattr(g, name).value for g in model.groups if not g.too_small]
            np.testing.assert_allclose(line.get_ydata(), sound)
    assert len({str(line.get_linestyle()) + line.get_color() for line in loss.lines}) >= 3


def test_groups_too_small_have_no_line_and_no_say_in_the_scale(make_audit) -> None:
    audit = make_audit(bins="degree")
    model = audit.models[0]
    small = [group.loss.value for group in model.groups if group.too_small]
    axes = audit_figures.curves(audit).axes[0]
    line = next(line for line in axes.lines if line.get_label() == "_line")
    assert len(line.get_xdata()) == len(model.groups) - len(small)
    bottom, top = axes.get_ylim()
    drawn = next(line for line in axes.lines if line.get_label() == "_small").get_ydata()
    np.testing.assert_allclose(drawn, np.clip(small, min(drawn), max(drawn)))
    assert bottom <= min(drawn)
    assert max(drawn) <= top


@pytest.mark.parametrize("draw", ["curves", "chance", "calibration"])
def test_only_audits_have_these_figures(make, draw) -> None:
    with pytest.raises(RawlsError, match=r"not of Result: give result.audit\(\)"):
        getattr(audit_figures, draw)(make())


@pytest.mark.parametrize("column", [None, TEXT])
def test_a_long_interval_of_the_loss_is_cut_at_an_arrow(make_audit, column) -> None:
    audit = make_audit(column=column)
    (model,) = audit.models
    first, *others = model.groups
    long = replace(first, loss=replace(first.loss, high=48.0))
    audit = replace(audit, models=[replace(model, groups=[long, *others])])
    loss, accuracy = audit_figures.curves(audit).axes
    assert loss.get_ylim()[1] < 10
    (arrow,) = (line for line in loss.lines if line.get_label() == "_cut")
    assert len(arrow.get_xdata()) == 1
    assert arrow.get_ydata()[0] == loss.get_ylim()[1]
    assert not any(line.get_label() == "_cut" for line in accuracy.lines)


def test_chance_shows_the_bias_that_was_seen(three_models) -> None:
    for axes, model in zip(
        audit_figures.chance(three_models).axes, three_models.models, strict=True
    ):
        assert axes.lines[0].get_xdata()[0] == model.permutation.seen


@pytest.mark.parametrize("models", [1, 3])
def test_the_words_of_the_chance_picture_hide_no_bar(make_audit, models) -> None:
    audit = make_audit({f"m{place}": (0.2 + place, 0.9 - place / 3) for place in range(models)})
    figure = audit_figures.chance(audit)
    figure.draw_without_rendering()
    for axes, model in zip(figure.axes, audit.models, strict=True):
        (words,) = axes.texts
        box = axes.transData.inverted().transform(words.get_window_extent())
        assert box[:, 1].min() >= max(model.permutation.counts)


def test_without_probabilities_there_is_no_calibration(make_audit) -> None:
    assert audit_figures.calibration(make_audit(only_classes=True)) is None
    assert audit_figures.calibration(make_audit()) is not None


@pytest.mark.parametrize("draw", ["curves", "chance", "calibration"])
def test_text_groups_are_drawn_and_saved(make_audit, draw, tmp_path) -> None:
    figure = getattr(audit_figures, draw)(make_audit(column=TEXT))
    assert save(figure, tmp_path / "figure.svg").stat().st_size > 1000
