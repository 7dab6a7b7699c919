"""Write predictions to files that ``audit`` reads: all at once, or a block of nodes at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor

from .._core.argument_checks import node_id_array
from .._core.atomic_files import atomic_file
from .._core.errors import RawlsError, missing_extra
from ..graphs.readers.table_formats import SEPARATORS

Array = npt.NDArray[Any]
WriteBlock = Callable[[Array, Array, Array | None], None]
"""Writes the next rows: node ids, probabilities (rows, classes), and the split or None."""
WRITTEN = (*SEPARATORS, ".parquet", ".npz")


def check_path(path: str | Path) -> None:
    """Raise an error for a path whose suffix is not that of a format that can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITTEN:
        raise RawlsError(f"cannot write {path}: end its name in one of {', '.join(WRITTEN)}")
    if suffix == ".parquet" and find_spec("pyarrow") is None:
        raise missing_extra("writing .parquet", "parquet")


def write_predictions(
    probabilities: Tensor,
    node_ids: Sequence[Any] | None,
    path: str | Path,
    *,
    class_names: Sequence[str] | None = None,
    split: Sequence[str] | None = None,
) -> None:
    """Write node, predicted, p_0 … p_(C-1) and split, in the format that the suffix names.

    Without ``node_ids`` these are 0 to n - 1; ``split`` is "train", "val", "test" or "" for each
    node, without which there is no such column. See :func:`prediction_writer`.
    """
    values = probabilities.numpy()
    nodes = node_id_array(node_ids, len(values))
    words = None if split is None else np.array(list(split), dtype=str)
    with prediction_writer(path, len(values), class_names) as write:
        write(nodes, values, words)


@contextmanager
def prediction_writer(
    path: str | Path, rows: int, class_names: Sequence[str] | None = None
) -> Iterator[WriteBlock]:
    """Open a file of predictions to be written block by block; it appears whole or not at all.

    Args:
        path: A .csv, .tsv, .parquet or .npz file. One that is there is replaced.
        rows: The rows of all blocks.
        class_names: The names of the classes in their order, which are written instead of numbers.

    Yields:
        The function that writes the next block.

    Raises:
        RawlsError: If the suffix is another one, or the file cannot be written.
    """
    check_path(path)
    writers = {".npz": _npz_writer, ".parquet": _parquet_writer}
    writer = writers.get(Path(path).suffix.lower(), _text_writer)
    names = None if class_names is None else np.array(list(class_names))
    with atomic_file(path) as temporary, writer(temporary, rows, names) as write:
        yield write


def _predicted(values: Array, names: Array | None) -> Array:
    predicted: Array = values.argmax(1)
    return predicted if names is None else names[predicted]


def _frame(nodes: Array, values: Array, split: Array | None, names: Array | None) -> pd.DataFrame:
    titles = range(values.shape[1]) if names is None else names
    columns = {f"p_{name}": values[:, place] for place, name in enumerate(titles)}
    about = {} if split is None else {"split": split}
    predicted = _predicted(values, names)
    return pd.DataFrame({"node": nodes, "predicted": predicted, **columns, **about})


@contextmanager
def _text_writer(path: Path, rows: int, names: Array | None) -> Iterator[WriteBlock]:
    separator = SEPARATORS[path.suffix.lower()]
    with path.open("w", encoding="utf-8", newline="") as file:

        def write(nodes: Array, values: Array, split: Array | None) -> None:
            frame, first = _frame(nodes, values, split, names), file.tell() == 0
            # So many digits give every number of the type back exactly.
            digits = "%.17g" if values.dtype == np.float64 else "%.9g"
            frame.to_csv(file, index=False, sep=separator, float_format=digits, header=first)

        yield write


@contextmanager
def _parquet_writer(path: Path, rows: int, names: Array | None) -> Iterator[WriteBlock]:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    with ExitStack() as stack:
        writers: list[Any] = []

        def write(nodes: Array, values: Array, split: Array | None) -> None:
            table = pa.Table.from_pandas(_frame(nodes, values, split, names), preserve_index=False)
            if not writers:
                writers.append(stack.enter_context(ParquetWriter(path, table.schema)))
            writers[0].write_table(table)

        yield write


@contextmanager
def _npz_writer(path: Path, rows: int, names: Array | None) -> Iterator[WriteBlock]:
    """The probabilities are written at once, the other arrays at the end: one entry at a time."""
    kept: dict[str, list[Array]] = {"node": [], "predicted": [], "split": []}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
        with archive.open("probabilities.npy", "w", force_zip64=True) as entry:

            def write(nodes: Array, values: Array, split: Array | None) -> None:
                if not kept["node"]:
                    shape = (rows, values.shape[1])
                    about = {"descr": values.dtype.str, "fortran_order": False, "shape": shape}
                    np.lib.format.write_array_header_1_0(entry, about)
                entry.write(np.ascontiguousarray(values).data)
                kept["node"].append(nodes)
                kept["predicted"].append(_predicted(values, names))
                if split is not None:
                    kept["split"].append(split)

            yield write
        for name, pieces in kept.items():
            if pieces:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.concatenate(pieces), allow_pickle=False)
