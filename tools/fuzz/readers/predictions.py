"""Predictions of any model, as the audit reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rawlsgcn.evaluation.audit.node_scores import score_nodes
from rawlsgcn.evaluation.node_index import NodeIndex
from rawlsgcn.evaluation.prediction_formats import LabeledNodes
from rawlsgcn.evaluation.predictions import Predictions

from ..reader import Files, Reader
from . import graphs as tiny

_SCORES = np.array([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875], [1, 0], [0, 1], [0.25, 0.75]])
_WORDS = ["cat", "dog"]
_NODES = LabeledNodes(tiny.Y, tiny.MASKS["test_mask"], tiny.MASKS["val_mask"])


def _read(folder: Path) -> object:
    """p.* has the node's numbers, ids.* the ids 10, 20, …, names.* text, words.* named classes."""
    path = next(folder.iterdir())
    words = _WORDS if path.stem == "words" else None
    ids = {"ids": tiny.IDS, "names": tiny.NAMES}.get(path.stem)
    source = Predictions(path, NodeIndex(ids, tiny.NODES), class_names=words)
    return score_nodes(source, _NODES, "auto")


def _frames() -> dict[str, pd.DataFrame]:
    scores = pd.DataFrame(_SCORES, columns=["p_0", "p_1"])
    logits = pd.DataFrame(np.log(_SCORES + 0.01), columns=["logit_0", "logit_1"])

    def beside(ids: object, frame: pd.DataFrame) -> pd.DataFrame:
        return pd.concat([pd.DataFrame({"node": ids}), frame], axis=1)

    return {
        "p": beside(range(tiny.NODES), scores),
        "ids": beside(tiny.IDS, logits),
        "names": beside(tiny.NAMES, pd.DataFrame({"predicted": tiny.Y})),
        "words": beside(range(tiny.NODES), pd.DataFrame(_SCORES, columns=["prob_dog", "prob_cat"])),
    }


def _text_seeds(suffix: str, separator: str) -> list[Files]:
    return [
        {f"{name}{suffix}": frame.to_csv(sep=separator, index=False).encode()}
        for name, frame in _frames().items()
    ]


def _parquet_seeds() -> list[Files]:
    lists = pd.DataFrame({"node": range(tiny.NODES), "probabilities": _SCORES.tolist()})
    return [
        {"p.parquet": tiny.parquet(lists)},
        *({f"{name}.parquet": tiny.parquet(frame)} for name, frame in _frames().items()),
    ]


def _npz_seeds() -> list[Files]:
    return [
        {"p.npz": tiny.npz(probabilities=_SCORES)},
        {"p.npz": tiny.npz(predicted=tiny.Y, node=np.arange(tiny.NODES))},
        {"ids.npz": tiny.npz(logits=np.log(_SCORES + 0.01), node_ids=tiny.IDS)},
        {"names.npz": tiny.npz(scores=_SCORES, ids=np.array(tiny.NAMES))},
    ]


READERS = [
    Reader("predictions-csv", lambda: _text_seeds(".csv", ","), _read),
    Reader("predictions-tsv", lambda: _text_seeds(".tsv", "\t"), _read),
    Reader("predictions-parquet", _parquet_seeds, _read),
    Reader("predictions-npz", _npz_seeds, _read),
]
