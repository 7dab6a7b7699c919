"""REDRESS (Dong et al., KDD 2021): nodes with similar features should have similar outputs.

A GCN with logits E learns from the task and from a ranking, ∂J/∂E + α ∂R/∂E. The ranking is among
the training nodes: every other one, j, has two similarities to node i,

    s_ij = 5 (cos(x_i, x_j) + 1)    of the input features,
    t_ij = 5 (cos(e_i, e_j) + 1)    of the logits,

and a row of zeros has cosine 0 with everything. The list of i is the k nodes with the largest
t_ij, in that order: the node of rank r = 0, 1, … counts 1 / log2(r + 2). With gains 2^s - 1, and
with the best order there is, that of s, as the ideal list,

    |ΔNDCG_jm| = |2^s_ij - 2^s_im| · |1 / log2(r_j + 2) - 1 / log2(r_m + 2)| / IDCG@k(i)

is how much NDCG@k changes when j and m change places. LambdaRank (Burges, 2010) pulls apart every
pair of the list that the features order, s_ij > s_im:

    ∂R/∂t_ij = -σ / (1 + exp(σ (t_ij - t_im))) · |ΔNDCG_jm| = -∂R/∂t_im,

summed over pairs and training nodes; the lists and |ΔNDCG| have no gradient. It is the gradient
of Σ |ΔNDCG_jm| log(1 + exp(-σ (t_ij - t_im))), which autograd takes on through the cosine, to the
logits of i and of the nodes in its list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor, nn

from ._ops.receptive_field import select_rows
from .base import Learner, Method
from .gcn import GCN, ConvolutionalLearner
from .inputs import Inputs
from .settings import Settings


@dataclass(frozen=True)
class RedressSettings(Settings):
    """``alpha`` weighs the ranking, ``k`` is the length of a list, ``sigma`` the logistic's slope.

    Weight decay 5e-6 is the published code's. With ``alpha`` 0 the method is a GCN with that decay.
    """

    weight_decay: float = 5e-6
    alpha: float = 1e-3
    sigma: float = 1.0
    k: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require(0 <= self.alpha < math.inf, "alpha", "zero or a positive number")
        self._require(0 < self.sigma < math.inf, "sigma", "a positive number")
        self._require(self.k >= 1, "k", "at least 1")


class Redress(Method):
    """A GCN with a ranking beside the loss; 200 epochs at 0.01, weight decay 5e-6."""

    name = "redress"
    title = "REDRESS"
    defaults: ClassVar[Settings] = RedressSettings(lr=0.01, epochs=200)
    grid: ClassVar[Mapping[str, Sequence[float]]] = {"alpha": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)}

    def learner(self, inputs: Inputs, settings: Settings, seed: int) -> Learner:
        assert isinstance(settings, RedressSettings)
        return RedressLearner(inputs, settings, seed)


class RedressLearner(ConvolutionalLearner):
    """A GCN's learner whose loss also ranks the training nodes."""

    settings: RedressSettings

    def __init__(self, inputs: Inputs, settings: RedressSettings, seed: int) -> None:
        super().__init__(GCN(), inputs, settings, seed)

    @cached_property
    def features(self) -> FeatureLists:
        """Made at the first epoch: a learner that only predicts does not need them."""
        return FeatureLists.of(select_rows(self.inputs.x, self.inputs.train), self.settings.k)

    def loss(self, logits: Tensor) -> Tensor:
        task, alpha = super().loss(logits), self.settings.alpha
        if not alpha:
            return task
        return task + alpha * ranking_loss(logits, self.features, self.settings.sigma)


@dataclass(frozen=True)
class FeatureLists:
    """The similarities s of the features of some nodes, and IDCG@k."""

    similarity: Tensor
    ideal: Tensor
    k: int

    @classmethod
    def of(cls, x: Tensor, k: int) -> FeatureLists:
        """Lists of ``k`` for each row of ``x``; shorter where there are fewer others."""
        k = min(k, x.shape[0] - 1)
        similarity = 5 * (feature_cosines(x) + 1)
        best = _without_self(similarity).topk(k).values
        return cls(similarity, (_gain(best) * _discount(best)).sum(1), k)


def ranking_loss(logits: Tensor, features: FeatureLists, sigma: float) -> Tensor:
    """R, whose gradient is LambdaRank's: a sum over nodes and over the pairs of their lists."""
    units = _units(logits)
    lists = output_lists(units.detach(), features.k)
    # embedding and not units[lists]: its backward adds in a fixed order, whatever the threads
    chosen = nn.functional.embedding(lists, units)
    t = 5 * (torch.einsum("ic,ijc->ij", units, chosen) + 1)
    return lambda_rank(t, features.similarity.gather(1, lists), features.ideal, sigma)


def output_lists(units: Tensor, k: int) -> Tensor:
    """For each node the ``k`` others with the most similar outputs, nearest first."""
    return _without_self(units @ units.t()).topk(k).indices


def lambda_rank(t: Tensor, s: Tensor, ideal: Tensor, sigma: float) -> Tensor:
    """Σ |ΔNDCG_jm| log(1 + exp(-σ (t_j - t_m))) over pairs with s_j > s_m; lists are rows."""
    gain, discount = _gain(s), _discount(s)
    swap = (_pairs(gain) * _pairs(discount)).abs() / torch.where(ideal > 0, ideal, 1)[:, None, None]
    swap = swap.masked_fill(_pairs(s) <= 0, 0)
    return (swap * nn.functional.softplus(-sigma * _pairs(t))).sum()


def feature_cosines(x: Tensor) -> Tensor:
    """cos(x_i, x_j) of all rows, dense, from dense or CSR features of the training nodes."""
    units = _units(x.to_dense() if x.layout == torch.sparse_csr else x)
    return units @ units.t()


def _units(rows: Tensor) -> Tensor:
    """The rows divided by their lengths; rows of zeros stay."""
    size = rows.norm(dim=1, keepdim=True)
    return rows / torch.where(size > 0, size, 1)


def _without_self(similarity: Tensor) -> Tensor:
    """A node is not in its own list."""
    return similarity.clone().fill_diagonal_(-torch.inf)


def _gain(s: Tensor) -> Tensor:
    return torch.exp2(s) - 1


def _discount(lists: Tensor) -> Tensor:
    ranks = torch.arange(lists.shape[1], device=lists.device, dtype=lists.dtype)
    return 1 / torch.log2(ranks + 2)


def _pairs(values: Tensor) -> Tensor:
    """[..., j, m] = value of j - value of m."""
    return values[..., :, None] - values[..., None, :]
