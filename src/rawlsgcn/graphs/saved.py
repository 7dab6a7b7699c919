"""Graphs saved by torch: a torch_geometric ``Data``, or a plain dict of tensors, in a .pt file."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from ..errors import RawlsError


def read_saved(path: Path) -> Data:
    """What ``torch.save(data, path)`` wrote, without running any code that is in the file."""
    content = _load(path)
    if isinstance(content, tuple) and content:
        # torch_geometric's own processed files: (data, slices[, class]).
        content = content[0]
    if isinstance(content, dict):
        if not all(isinstance(key, str) for key in content):
            raise RawlsError(
                f"{path} holds a dict whose keys are not all names: call its tensors "
                "edge_index, x, y, as in a torch_geometric Data"
            )
        content = Data.from_dict(content)
    if not isinstance(content, Data):
        raise RawlsError(
            f"{path} holds a {type(content).__name__}: expected a torch_geometric Data "
            "or a dict of tensors"
        )
    if not isinstance(content.get("name"), str):
        content.name = path.stem
    return content


def _load(path: Path) -> Any:
    try:
        with torch.serialization.safe_globals(_new_types()), warnings.catch_warnings():
            # torch warns of sparse tensors and of old pickles; what matters is raised.
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise RawlsError(f"there is no file {path}") from error
    except pickle.UnpicklingError as error:
        raise RawlsError(
            f"{path} holds Python objects besides tensors, or is no torch file: save a "
            "torch_geometric Data (or a dict of tensors) with torch.save"
        ) from error
    except (
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        KeyError,
        AttributeError,
        TypeError,
    ) as error:
        raise RawlsError(f"{path} is not a torch file, or is damaged or cut short") from error


def _new_types() -> list[Any]:
    """Those of our types that torch does not allow yet.

    On leaving, torch forgets every type it was given, also those that torch_geometric had
    allowed for good.
    """
    allowed = torch.serialization.get_safe_globals()
    return [kind for kind in _plain_types() if kind not in allowed]


def _plain_types() -> list[Any]:
    """The classes inside a ``Data``, and those that a numpy array is rebuilt from."""
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import (
        BaseStorage,
        EdgeStorage,
        GlobalStorage,
        NodeStorage,
    )

    dtypes = {type(np.dtype(code)) for code in "?bBhHiIlLqQefdU"}
    return [
        Data,
        DataEdgeAttr,
        DataTensorAttr,
        BaseStorage,
        GlobalStorage,
        NodeStorage,
        EdgeStorage,
        np.ndarray,
        np.dtype,
        # numpy.core.multiarray._reconstruct, wherever this numpy keeps it.
        np.empty(0).__reduce__()[0],
        *dtypes,
    ]
