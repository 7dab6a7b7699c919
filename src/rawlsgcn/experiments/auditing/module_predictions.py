"""The scores of a torch module for every node of a graph, however its ``forward`` is written."""

from __future__ import annotations

import inspect
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ..._core.errors import RawlsError

#: Parameters of ``forward`` that are attributes of a Data under the same name.
_ATTRIBUTES = ("x", "edge_index", "adj_t", "edge_weight", "edge_attr", "batch", "pos")
_OTHER_NAMES = {"adj": "adj_t", "features": "x", "feats": "x"}
#: Layers take either, and transforms replace one by the other.
_EITHER = {"edge_index": "adj_t", "adj_t": "edge_index"}
_WHOLE = ("data", "graph", "batch_data")
#: What layers take None for where the graph has no such values.
_MAY_BE_NONE = ("edge_weight", "edge_attr")


def module_scores(module: nn.Module, data: Data) -> Tensor:
    """Compute the scores of every node in evaluation mode, without gradients.

    ``forward`` may take the parts of the graph by torch_geometric's names (``x``, ``edge_index``,
    and if it has them ``edge_weight``, ``edge_attr``, ``batch``, ``pos``), or the whole graph as
    ``data``. The graph is copied to the module's device; the module is left in its own mode.

    Returns:
        The scores, (nodes, classes), on the CPU.
    """
    weight = next(chain(module.parameters(), module.buffers()), torch.empty(0))
    here = data.to(weight.device) if weight.device != torch.device("cpu") else data
    arguments = _arguments(module, here)
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            scores = module(**arguments)
    finally:
        for part, training in modes:
            part.training = training
    if not isinstance(scores, Tensor) or scores.dim() != 2 or len(scores) != data.num_nodes:
        shape = f"a tensor {tuple(scores.shape)}" if isinstance(scores, Tensor) else "no tensor"
        raise RawlsError(
            f"{type(module).__name__} must return a score of every class for each of the "
            f"{data.num_nodes} nodes, (nodes, classes), but returned {shape}: audit the scores "
            "themselves"
        )
    return scores.detach().float().cpu()


def _arguments(module: nn.Module, data: Data) -> dict[str, Any]:
    """What ``forward`` is called with."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        key = _OTHER_NAMES.get(name, name)
        value = data if name in _WHOLE else data.get(key) if key in _ATTRIBUTES else None
        if value is None and key in _EITHER:
            value = data.get(_EITHER[key])
        if name == "batch" and value is None and not found:
            value = data  # the whole graph, in a model written for a loader
        if value is not None:
            found[name] = value
        elif key in _MAY_BE_NONE and parameter.default is parameter.empty:
            found[name] = None
        elif parameter.default is parameter.empty:
            raise RawlsError(
                f"{type(module).__name__}.forward needs '{name}', which the graph does not have: "
                "call the model yourself and audit its scores, as rg.audit(graph, scores)"
            )
    return found
