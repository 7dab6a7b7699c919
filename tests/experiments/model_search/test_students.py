"""Pseudo-labels: what a teacher is most sure of, in every class and quarter of degrees."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import rawlsgcn as rg
from rawlsgcn.experiments.model_search import students
from rawlsgcn.experiments.model_search.students import confident_nodes, pseudo_labeled
from rawlsgcn.graphs import check
from rawlsgcn.methods import Inputs


@given(
    seed=st.integers(0, 1000),
    nodes=st.integers(2, 80),
    classes=st.integers(1, 4),
    share=st.floats(0.05, 1),
    trained=st.integers(0, 10),
)
def test_the_most_confident_share_of_each_group_is_chosen(
    seed: int, nodes: int, classes: int, share: float, trained: int
) -> None:
    random = np.random.default_rng(seed)
    teacher = torch.from_numpy(random.dirichlet(np.ones(classes), nodes))
    degree = torch.from_numpy(random.integers(0, 12, nodes))
    train = torch.from_numpy(random.permutation(nodes)[: min(trained, nodes - 1)])
    labels = confident_nodes(teacher, degree, train, share, seed)
    confidence, predicted = teacher.max(-1)
    chosen = set(labels.tolist())
    assert not chosen & set(train.tolist())
    limits = np.percentile(degree.numpy(), [25, 50, 75])
    quarter = np.searchsorted(limits, degree.numpy(), side="left")
    for group in {(int(c), int(q)) for c, q in zip(predicted, quarter, strict=True)}:
        members = [
            node
            for node in range(nodes)
            if (int(predicted[node]), int(quarter[node])) == group and node not in train
        ]
        if not members:
            continue
        taken = [node for node in members if node in chosen]
        assert len(taken) == max(1, int(share * len(members)))
        left = [float(confidence[node]) for node in members if node not in chosen]
        assert not left or min(float(confidence[node]) for node in taken) >= max(left)


def test_too_many_are_drawn_and_the_seed_decides() -> None:
    nodes = 3 * students.MOST_ROWS
    teacher = torch.rand(nodes, 3).softmax(-1)
    degree = torch.randint(0, 9, (nodes,))
    none = torch.empty(0, dtype=torch.long)
    one, same, other = (confident_nodes(teacher, degree, none, 0.9, seed) for seed in (0, 0, 1))
    assert len(one) == students.MOST_ROWS
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_given_and_pseudo_labels_weigh_one_half_each() -> None:
    inputs = Inputs.of(check(rg.synthetic(150)))
    teacher = torch.zeros(150, 3).index_fill(1, torch.tensor(0), 0.1)
    teacher[140, 1] = teacher[149, 2] = 1
    made = pseudo_labeled(inputs, teacher, torch.tensor([140, 145, 149]))
    assert made.train_weight is not None
    count = len(inputs.train)
    torch.testing.assert_close(made.train_weight[:count].sum(), torch.tensor(0.5))
    torch.testing.assert_close(made.train_weight[count:].sum(), torch.tensor(0.5))
    assert made.y[made.train[count:]].tolist() == [1, 0, 2]
    assert torch.equal(made.y[inputs.train], inputs.y[inputs.train])
    assert made.shared is inputs.shared
    assert inputs.train_weight is None
