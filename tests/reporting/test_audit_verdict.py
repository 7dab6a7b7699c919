"""The words hold whichever way the numbers point."""

from __future__ import annotations

import html
import io
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.evaluation.audit.findings import Estimate, PairedBiasTest
from rawlsgcn.experiments.auditing.audit_result import Audit
from rawlsgcn.reporting.audit_verdict import verdict
from rawlsgcn.reporting.formatting import p_text
from rawlsgcn.reporting.next_steps import next_steps
from rawlsgcn.reporting.page import render
from rawlsgcn.reporting.tables import audit_table

NODES = 600


@pytest.fixture(scope="module")
def graph() -> Data:
    """A star for every tenth node: nodes of one neighbour, and hubs of nine and more."""
    hubs = torch.arange(0, NODES, 10)
    leaves = torch.tensor([node for node in range(NODES) if node % 10])
    spokes = torch.stack([leaves, leaves - leaves % 10])
    ring = torch.stack([hubs, (hubs + 10) % NODES])
    y = torch.arange(NODES) // 10 % 3
    return Data(edge_index=torch.cat([spokes, ring], 1), y=y, num_nodes=NODES)


def classes(graph: Data, wrong_leaves: float, wrong_hubs: float) -> np.ndarray:
    rng, y = np.random.default_rng(0), graph.y.numpy()
    hub = np.arange(NODES) % 10 == 0
    wrong = rng.random(NODES) < np.where(hub, wrong_hubs, wrong_leaves)
    return np.where(wrong, (y + 1) % 3, y)


def test_worse_off_better_off_and_alike(graph: Data) -> None:
    for leaves, hubs, said in (
        (0.6, 0.1, "Nodes with at most 1 neighbor, 90 % of all, are wrong"),
        (0.1, 0.7, "are wrong less often than the rest"),
        (0.3, 0.3, "may be chance"),
    ):
        words = verdict(rg.audit(graph, classes(graph, leaves, hubs), resamples=100))
        assert said in words.headline
    worse = verdict(rg.audit(graph, classes(graph, 0.6, 0.1), resamples=100)).headline
    assert "times as often as the rest; this is not chance" in worse


def test_two_models_are_told_apart(graph: Data) -> None:
    both = {"fair": classes(graph, 0.3, 0.3), "unfair": classes(graph, 0.6, 0.05)}
    words = verdict(rg.audit(graph, both, resamples=200))
    assert words.headline.startswith("With fair, nodes")
    assert any(line.startswith("fair has less bias than unfair") for line in words.sentences)


def test_one_degree_only(graph: Data) -> None:
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    alike = Data(edge_index=ring, y=graph.y, num_nodes=NODES)
    found = rg.audit(alike, classes(graph, 0.3, 0.3), resamples=100)
    assert "All evaluated nodes have the same degree (2)" in verdict(found).headline
    assert found.to_dict()["models"][0]["bias"] is None
    both = {"good": graph.y, "bad": classes(graph, 0.5, 0.5)}
    pair = verdict(rg.audit(alike, both, resamples=100)).sentences[2]
    assert "low-degree" not in pair
    assert pair.startswith("All nodes are in one group, so good and bad have no bias to compare")
    assert "; nodes are right" in pair


def test_a_fall_is_told_without_signs(graph: Data) -> None:
    for leaves, hubs, way in ((0.6, 0.1, "falls"), (0.1, 0.6, "rises")):
        found = rg.audit(graph, classes(graph, leaves, hubs), resamples=100)
        slope = found.models[0].slope
        assert slope is not None
        ends = sorted(abs(end) for end in (slope.loss.low, slope.loss.high))
        said = (
            f"Error {way} by {abs(slope.loss.value):.3f} with each doubling of 1 + degree "
            f"(95 % interval {ends[0]:.3f} to {ends[1]:.3f})."
        )
        assert said in verdict(found).sentences[0]


def test_p_values_are_never_zero() -> None:
    assert p_text(1 / 1001, 1000) == "p < 0.002"
    assert p_text(0.28, 1000) == "p = 0.28"
    assert p_text(1e-9) == "p < 0.001"


@pytest.fixture(scope="module")
def told() -> Audit:
    """An audit whose two models and whose pair can be given any figures."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, NODES, (2, 1500))
    y = np.arange(NODES) % 3
    graph = Data(edge_index=torch.from_numpy(ends), y=torch.from_numpy(y), num_nodes=NODES)
    logits = rng.normal(size=(2, NODES, 3))
    logits[:, np.arange(NODES), y] += 1.5
    return rg.audit(graph, {"A": logits[0], "B": logits[1]}, resamples=100)


def compared(audit: Audit, plain: PairedBiasTest, calibrated: PairedBiasTest | None) -> str:
    pair = replace(audit.comparisons[0], bias=plain, calibrated_bias=calibrated)
    words = verdict(replace(audit, comparisons=[pair])).sentences
    return next(line for line in words if line.startswith(("A ", "B ")) and "bias" in line[:40])


def biases(first: float, second: float, p: float) -> PairedBiasTest:
    lower, higher = (p / 2, 1 - p / 2) if first <= second else (1 - p / 2, p / 2)
    return PairedBiasTest(first, second, first / second, lower, higher, 1000, p)


@pytest.mark.parametrize("turned", [False, True])
def test_an_order_that_calibration_turns_round_is_told(told: Audit, turned: bool) -> None:
    """The very figures: 0.541 against 0.083 after calibration, p = 0.002, the other way round."""
    plain, after = biases(0.1, 0.3, 0.01), biases(0.541, 0.083, 0.002)
    if turned:
        plain, after = biases(0.3, 0.1, 0.01), biases(0.083, 0.541, 0.002)
    said = compared(told, plain, after)
    less, more = ("B", "A") if turned else ("A", "B")
    assert said.startswith(f"{less} has less bias than {more} (bias 0.100 against 0.300, p = 0.01)")
    assert (
        f"but once both are calibrated it is the other way round: {more} has less bias "
        "(0.083 against 0.541, p = 0.002)"
    ) in said
    assert "not clearly" not in said


def test_what_calibration_does_to_an_order(told: Audit) -> None:
    plain, unclear = biases(0.1, 0.3, 0.01), biases(0.1, 0.3, 0.4)
    for first, after, part in (
        (plain, biases(0.2, 0.4, 0.3), "not clearly once both are calibrated (0.200 against 0.400"),
        (plain, biases(0.4, 0.2, 0.3), "not clearly once both are calibrated (0.400 against 0.200"),
        (unclear, biases(0.1, 0.5, 0.01), "but it is once both are calibrated (0.100 against"),
        (unclear, biases(0.5, 0.1, 0.01), "but once both are calibrated B has less bias (0.100 ag"),
    ):
        assert part in compared(told, first, after)
    for first, after in ((plain, biases(0.1, 0.2, 0.01)), (unclear, biases(0.1, 0.2, 0.3))):
        assert "calibrated" not in compared(told, first, after)


def test_the_p_of_two_biases_is_two_sided(told: Audit) -> None:
    pair = told.comparisons[0]
    for test in (pair.bias, pair.calibrated_bias):
        assert test is not None
        assert test.p == min(1, 2 * min(test.p_lower, test.p_higher))


def words_of(audit: Audit, low_p: float, shuffled_p: float) -> tuple[str, str]:
    """Headline and sentences of a model whose two tests have these p."""
    model = audit.models[0]
    assert model.low is not None
    clear = Estimate(10.0, 5.0, 15.0) if low_p <= 0.05 else Estimate(1.0, -4.0, 6.0)
    error = Estimate(30.0, 25.0, 35.0)
    low = replace(model.low, p=low_p, difference=clear, error=error, ratio=Estimate(1.5))
    test = replace(model.permutation, p=shuffled_p, draws=1000)
    changed = replace(model, low=low, permutation=test)
    words = verdict(replace(audit, models=[changed], comparisons=[]))
    return words.headline, " ".join(words.sentences)


def test_the_two_tests_of_chance_are_reconciled(told: Audit) -> None:
    """Wherever the headline's test and the bias's differ, it says what each asks and decides."""
    headline, said = words_of(told, 1e-9, 0.6)
    assert "this is not chance" in headline
    assert "by this test it may be chance" in said
    different = "which is no contradiction, as they ask different questions"
    assert different in said
    assert "(Fisher's exact test, p < 0.001), and it decides the headline" in said
    assert f"the average losses of {told.models[0].net_variance.groups} degrees" in said
    headline, said = words_of(told, 0.5, 0.01)
    assert "may be chance" in headline
    assert "by this test it is more than chance" in said
    assert different in said
    for agreeing in ((1e-9, 0.01), (0.5, 0.6)):
        assert "contradiction" not in words_of(told, *agreeing)[1]


def test_the_tests_of_several_models_are_reconciled_once(told: Audit) -> None:
    models = [
        replace(model, permutation=replace(model.permutation, p=0.01, draws=100))
        for model in told.models
    ]
    said = verdict(replace(told, models=models)).sentences
    (both,) = [line for line in said if "no contradiction" in line]
    assert both.startswith("The two tests of chance disagree for A and B")


def test_a_graph_without_masks_is_told_of(graph: Data) -> None:
    predicted = classes(graph, 0.3, 0.1)
    found = rg.audit(graph, predicted, resamples=100)
    assert not found.training_nodes_excluded
    assert found.to_dict()["training_nodes_excluded"] is False
    for shown in (str(found), render(found), found._repr_html_()):
        shown = html.unescape(shown)
        assert "may include nodes that a model was trained on" in shown
        assert "--evaluate test" in shown
    masked = graph.clone()
    part = torch.arange(NODES) % 3
    masked.train_mask, masked.val_mask, masked.test_mask = part == 0, part == 1, part == 2
    found = rg.audit(masked, predicted, resamples=100)
    assert found.training_nodes_excluded
    assert "trained on" not in str(found)


def test_nothing_is_built_on_a_model_that_has_not_learned(graph: Data) -> None:
    """A constant answer beside a good model: no headline, no comparison, no next step with it."""
    constant, good = np.zeros(NODES), classes(graph, 0.4, 0.05)
    alone = rg.audit(graph, {"constant": constant}, resamples=100)
    words = verdict(alone)
    assert words.headline == (
        "constant is not clearly better than always predicting the most frequent class"
    )
    assert "constant is right on 33.3 % of 600 nodes; always predicting" in words.sentences[0]
    assert "bias" not in words.sentences[0]
    assert not any(step.code for step in next_steps(alone))
    both = rg.audit(graph, {"constant": constant, "good": good}, resamples=100)
    assert [model.learned for model in both.models] == [False, True]
    assert both.comparisons == []
    words = verdict(both)
    assert words.headline.startswith("With good, nodes with at most 1 neighbor")
    assert "No headline and no comparison uses it" in words.sentences[0]
    assert not any("than constant" in line for line in words.sentences)
    page = html.unescape(render(both))
    assert "not learned" in page
    assert "Not compared" not in page  # there is no other pair
    several = rg.audit(graph, {"one": constant, "two": constant + 1}, resamples=100)
    assert verdict(several).headline.startswith("No model is clearly better")


def test_a_model_that_fails_low_degrees_alone_has_learned(graph: Data) -> None:
    """Wrong on most leaves and right on hubs: worse than a constant answer, and the worst bias."""
    found = rg.audit(graph, classes(graph, 0.8, 0.0), resamples=100)
    assert found.models[0].accuracy.value < found.models[0].majority
    assert found.models[0].learned
    assert "this is not chance" in verdict(found).headline


RANDOM = np.random.default_rng(1).integers(0, NODES, (2, 1500))
RING = np.stack([np.arange(NODES), (np.arange(NODES) + 1) % NODES])
Y = np.arange(NODES) % 3
SEX = ("sex", np.array(["f", "m"] * (NODES // 2)))
SURE = 30.0 * np.eye(3)[Y]


def plain_words(audit: Audit) -> str:
    """All that is said on the terminal and on the page, without pictures and scripts."""
    page = re.sub(r"<(svg|style|script)[^>]*>.*?</\1>", "", render(audit), flags=re.S)
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(audit_table(audit))
    said = [str(audit), console.export_text(), html.unescape(re.sub(r"<[^>]+>", " ", page))]
    steps = [f"{step.words} {step.code}" for step in next_steps(audit)]
    return "\n".join([*said, *steps])


@pytest.mark.parametrize(
    ("edges", "y", "predictions", "by", "headline"),
    [
        (RANDOM, Y, SURE, "degree", "are wrong just as often as the rest (0.0 %)"),
        (RANDOM, Y, Y, "degree", "are wrong just as often as the rest (0.0 %)"),
        (RANDOM, Y, Y, SEX, "All groups by sex of 10 nodes or more are right equally often"),
        (RANDOM, Y, (Y + 1) % 3, "degree", "model 1 is not clearly better than always"),
        (RANDOM, Y, np.roll(SURE, 1, axis=1), SEX, "model 1 is not clearly better than always"),
        (
            RING,
            Y,
            SURE,
            "degree",
            "have the same degree (2); accuracy is 100.0 %",
        ),
        (RANDOM, 0 * Y, 0 * Y, "degree", "are wrong just as often as the rest (0.0 %)"),
        (RANDOM, 0 * Y, 5 + 0.0 * SURE[:, :1], SEX, "All groups by sex"),
        (RANDOM[:, :3] % 10, Y[:10], Y[:10], "degree", "no two groups of 10 nodes or more"),
        (RANDOM[:, :3] % 10, Y[:10], SURE[:10], ("sex", SEX[1][:10]), "no two groups of 10 nodes"),
        (RANDOM[:, :3] % 10, Y[:10], SURE[:10], "pagerank", "no two groups of 10 nodes"),
    ],
)
def test_no_sentence_is_wrong_at_the_edges(
    edges: np.ndarray, y: np.ndarray, predictions: Any, by: Any, headline: str
) -> None:
    """Perfect, all wrong, one class, one degree, two groups, ten nodes."""
    graph = Data(edge_index=torch.from_numpy(edges), y=torch.from_numpy(y), num_nodes=len(y))
    audit = rg.audit(graph, predictions, by=by, resamples=100, scores="auto")
    assert headline in verdict(audit).headline
    said = plain_words(audit)
    # Figures of rounding, signs of zero, figures that are not there, and shares of nobody.
    for wrong in ("e−16", "e−17", "−0.000", "–, not –", "nan", "None of", " 0 % of all"):
        assert wrong not in said.replace("\n", " "), wrong
    assert "this is not chance" not in said
    assert "worst 1, best" not in said
