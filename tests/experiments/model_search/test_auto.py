"""``auto``: the same answer for the same seed, whatever happens in between."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import rawlsgcn as rg
from rawlsgcn.experiments.model_search import auto, pool, search
from rawlsgcn.experiments.model_search.search import Search
from tests.small_pool import small_pool


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with small_pool():
        yield


@pytest.fixture(scope="module")
def graph() -> Data:
    return rg.synthetic(240, seed=4)


@pytest.fixture
def result(graph: Data) -> rg.AutoResult:
    return rg.auto(graph)


def test_the_answer_is_a_result_like_any_other(
    result: rg.AutoResult, graph: Data, tmp_path: Path
) -> None:
    board = result.leaderboard
    assert board["validation_loss"].is_monotonic_increasing
    assert set(result.chosen) <= set(board["member"])
    assert len(board) == 7 + 4
    assert result.validation_loss <= board["validation_loss"].min()
    assert result.accuracy.mean > 50
    assert len(result.to_frame()) == 1
    assert result.to_dict()["leaderboard"][0]["member"] == board["member"][0]
    assert result.baseline is not None
    assert result.comparison().names[0] != result.comparison().names[1]
    result.save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    assert torch.equal(model.logits(graph), result.logits[0])
    assert torch.equal(model.predict(graph), result.probabilities())
    assert result.audit(resamples=100).models


def test_the_same_seed_gives_the_same_bits_and_leaves_the_random_state(
    result: rg.AutoResult, graph: Data
) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    again = rg.auto(graph)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(again.logits, result.logits)
    times = ["seconds"]
    same = again.leaderboard.drop(columns=times).equals(result.leaderboard.drop(columns=times))
    assert same
    assert not torch.equal(rg.auto(graph, seed=1).logits, result.logits)


def test_only_validation_nodes_decide(graph: Data, result: rg.AutoResult) -> None:
    """With other labels of the test nodes the answer has the same bits."""
    changed = graph.clone()
    test = changed.test_mask.nonzero().view(-1)
    changed.y[test] = changed.y[test][torch.randperm(len(test))]
    assert torch.equal(rg.auto(changed).logits, result.logits)


def test_transferable_models_leave_their_graph(graph: Data, tmp_path: Path) -> None:
    free = rg.auto(graph, transferable=True)
    assert not any("adjacency" in name for name in free.leaderboard["member"])
    free.save(tmp_path / "model")
    other = rg.synthetic(240, seed=9)
    assert rg.load_model(tmp_path / "model").predict(other).shape == (240, 6)


def test_a_member_that_cannot_leave_its_graph_is_refused(
    graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = tuple(each for each in search.POOL if not each.transferable)
    monkeypatch.setattr(search, "POOL", only)
    bound = rg.auto(graph)
    assert any("another graph" in sentence for sentence in bound.explanation)
    bound.save(tmp_path / "model")
    with pytest.raises(rg.RawlsError, match="only be used on that graph") as caught:
        rg.load_model(tmp_path / "model").predict(rg.synthetic(240, seed=9))
    assert "\n" not in str(caught.value)


def test_a_time_limit_keeps_what_there_is(graph: Data) -> None:
    quick = rg.auto(graph, time_limit=1e-9)
    assert len(quick.leaderboard) == 1
    assert any("time limit" in note for note in quick.notes)


@pytest.mark.parametrize("after", [0, 3, 9])
def test_an_interruption_keeps_the_best_so_far(
    graph: Data, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = pool.train_member, 0

    def train(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt
        return original(*arguments, **options)

    monkeypatch.setattr(search, "train_member", train)
    if after == 0:
        with pytest.raises(KeyboardInterrupt):
            rg.auto(graph)
        return
    kept = rg.auto(graph)
    assert len(kept.leaderboard) == after
    assert any("interrupted" in note for note in kept.notes)


def test_a_graph_without_features_is_learned_by_its_structure(graph: Data, tmp_path: Path) -> None:
    bare = Data(**{k: v for k, v in graph.to_dict().items() if k != "x"})
    found = rg.auto(bare)
    assert any("structure alone" in note for note in found.notes)
    assert found.accuracy.mean > 30  # of six classes
    found.save(tmp_path / "model")
    model = rg.load_model(tmp_path / "model")
    assert torch.equal(model.logits(bare), found.logits[0])
    other = rg.synthetic(240, seed=9)
    del other.x
    with pytest.raises(rg.RawlsError, match="only be used on that graph"):
        model.logits(other)
    with pytest.raises(rg.RawlsError, match="no model for another graph"):
        rg.auto(bare, transferable=True)


def test_isolated_nodes_and_a_class_with_one_training_node(graph: Data) -> None:
    hard = graph.clone()
    hard.edge_index = hard.edge_index[:, (hard.edge_index >= 12).all(0)]
    rare = (hard.train_mask & (hard.y == 0)).nonzero().view(-1)
    hard.train_mask[rare[1:]] = False
    found = rg.auto(hard)
    assert bool(found.logits.isfinite().all())


def test_three_classes_and_sixty_labels() -> None:
    whole = rg.synthetic(300, seed=2)
    few = Data(x=whole.x, edge_index=whole.edge_index, y=whole.y % 3)
    few.y[torch.randperm(300, generator=torch.Generator().manual_seed(0))[60:]] = -1
    found = rg.auto(few)
    assert found.logits.shape == (1, 300, 3)
    assert found.validation_accuracy.mean > 40


def test_a_gcn_that_diverges_ends_only_the_comparison(
    graph: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "tuned_gcn_settings", lambda: [pool.GCN.settings(lr=1e30)])
    found = rg.auto(graph, baseline=True)
    assert any("GCN to compare with: training diverged" in note for note in found.notes)
    assert found.baseline is not None  # that of the pool
    assert any("in the pool" in sentence for sentence in found.explanation)


def test_every_diverged_member_is_left_out_and_named(
    graph: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    wild = replace(search.POOL[0], changes={"lr": 1e30, "epochs": 5})
    monkeypatch.setattr(search, "POOL", (wild, *search.POOL[1:3]))
    monkeypatch.setattr(
        search, "grid", lambda each: [each.settings()] if each is wild else pool.grid(each)
    )
    found = rg.auto(graph)
    assert "GCN" not in set(found.leaderboard["member"])
    assert any("diverged" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": "one"}, "seed"),
        ({"seed": True}, "seed must be a whole number"),
        ({"time_limit": True}, "time_limit"),
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": float("nan")}, "time_limit"),
        ({"time_limit": "5"}, "time_limit"),
        ({"evaluate": "some"}, "choice of nodes"),
        ({"device": "moon"}, "device"),
    ],
)
def test_wrong_arguments_are_one_sentence(
    graph: Data, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(rg.RawlsError, match=message) as caught:
        rg.auto(graph, **options)
    assert "\n" not in str(caught.value)


def test_validation_nodes_are_needed(graph: Data) -> None:
    without = graph.clone()
    without.val_mask = torch.zeros_like(without.val_mask)
    with pytest.raises(rg.RawlsError, match="val_mask has no labeled node"):
        rg.auto(without)


def test_progress_never_goes_back(graph: Data) -> None:
    seen: list[int] = []
    rg.auto(graph, progress=lambda done, total, what=None: seen.append(done))
    assert seen == sorted(seen)


def test_ctrl_c_in_the_choice_is_answered(graph: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, calls = auto.answer, []

    def interrupted(search: Search) -> Any:
        calls.append(search)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return answer(search)

    monkeypatch.setattr(auto, "answer", interrupted)
    assert len(rg.auto(graph).leaderboard) == 7 + 4


def test_few_validation_nodes_are_noted(graph: Data) -> None:
    few = graph.clone()
    few.val_mask = torch.zeros_like(few.val_mask)
    few.val_mask[graph.val_mask.nonzero().view(-1)[:12]] = True
    notes = rg.auto(few, time_limit=0.01).notes
    assert [note for note in notes if note.startswith("everything is chosen by 12 validation")]
    assert not [note for note in rg.auto(graph, time_limit=0.01).notes if "too few" in note]


def test_of_models_without_a_loss_the_one_that_is_chosen_is_named(graph: Data) -> None:
    """Models that separate the validation nodes all have a loss of zero."""
    easy = graph.clone()
    easy.x = torch.eye(6)[easy.y] * 5
    found = rg.auto(easy)
    assert (found.leaderboard["validation_loss"] < 1e-3).sum() > 1
    assert found.leaderboard["member"][0] in found.chosen
    assert all(f"'{name}'" in found.explanation[0] for name in found.chosen)
    assert "before temperature scaling" in found.explanation[0]


def test_members_that_a_graph_does_not_allow_are_left_out(
    graph: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights of many magnitudes cannot be balanced; without faiss a large graph is not lifted."""
    wide = graph.clone()
    wide.edge_weight = torch.full((wide.num_edges,), 1e9)
    found = rg.auto(wide)
    assert set(found.leaderboard["member"]) >= {"GCN", "smoothed", "adjacency"}
    assert not any("balanced" in name for name in found.leaderboard["member"])
    notes = [note for note in found.notes if note.startswith("not trained ('balanced',")]
    assert len(notes) == 1
    assert "divide the edge weights" in notes[0]

    monkeypatch.setattr("rawlsgcn.graphs.lifting.lifted_graph.MAX_EXACT_NODES", 10)
    monkeypatch.setitem(sys.modules, "faiss", None)
    found = rg.auto(graph)
    assert "balanced" in set(found.leaderboard["member"])
    assert any("'lifted'" in note and "rawlsgcn[ann]" in note for note in found.notes)
    monkeypatch.setattr(search, "POOL", search.POOL[-1:])
    with pytest.raises(rg.RawlsError, match=r"rawlsgcn\[ann\]"):
        rg.auto(graph)


def test_classes_that_cannot_be_learned_or_judged_are_named(graph: Data) -> None:
    lacking = graph.clone()
    lacking.train_mask = lacking.train_mask & (lacking.y != 1)
    lacking.val_mask = lacking.val_mask & (lacking.y == 2)
    lacking.test_mask = lacking.test_mask & (lacking.y != 3)
    notes = rg.auto(lacking, time_limit=0.01).notes
    assert "classes without a training node cannot be predicted: 1." in notes
    assert (
        "classes without a validation node do not count in what is chosen: 0, 1, 3, 4, 5." in notes
    )
    assert "classes without a test node do not count in the metrics: 3." in notes
    named = [note for note in notes if "classes without" in note]
    fitted = rg.fit(lacking, "gcn", seeds=1, epochs=1).notes
    assert len(named) == 3
    assert [note for note in fitted if "classes without" in note] == named
    assert not any("classes without" in note for note in rg.auto(graph, time_limit=0.01).notes)


def test_a_search_that_has_not_learned_is_told_what_its_user_can_do(graph: Data) -> None:
    blank = graph.clone()
    blank.x = torch.zeros_like(blank.x)
    (note,) = [note for note in rg.auto(blank, time_limit=0.01).notes if "not learned" in note]
    assert "try other node features" in note
    assert "weight_decay" not in note
    assert "weight_decay" in str(rg.fit(blank, "gcn", seeds=1, epochs=5).failure)
