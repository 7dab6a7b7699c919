"""Tf-idf of node features: rare features count more, and every node as much as another."""

from __future__ import annotations

import torch
from torch import Tensor

from .._core.errors import RawlsError
from .._core.sparse import csr_entries, csr_tensor
from .node_features import first_not_finite, has_negative_features


def inverse_document_frequency(x: Tensor) -> Tensor:
    r"""Compute the inverse document frequency of each feature.

    .. math:: \operatorname{idf}_j = \log(n / |\{i : x_{ij} > 0\}|),

    and 0 for a feature that no node has. Tf-idf is for sparse features: a threshold at zero says
    little where a feature is negative or where, of the nodes and features that are not all zero,
    more than half of the entries are positive. Then it is -1 for every feature, by which
    :func:`tf_idf` leaves features as they are; or 0 if these do not tell one node from another.

    Args:
        x: Features (n, d), dense or ``torch.sparse_csr``.

    Returns:
        A tensor (d,) in float32, on the device of ``x``.

    Raises:
        RawlsError: If ``x`` is not such a matrix, or a feature is NaN or infinite.
    """
    _require_matrix(x)
    bad = first_not_finite(x)
    if bad is not None:
        raise RawlsError(f"tf-idf needs finite features, but node {bad} has NaN or an infinity")
    as_they_are = torch.full((x.shape[1],), -1.0, device=x.device)
    if has_negative_features(x):
        return as_they_are
    if x.layout == torch.sparse_csr:
        row, column, value = csr_entries(x)
        positive = value > 0
        count = torch.bincount(column[positive], minlength=x.shape[1])
        nodes = len(torch.unique(row[positive]))
    else:
        value, positive = x, x > 0
        count, nodes = positive.sum(0), int(positive.any(1).sum())
    entries, most = int(count.sum()), nodes * int((count > 0).sum())
    if 2 * entries > most:
        rows = unit_rows(value[positive].view(nodes, -1)) if entries == most else None
        is_constant = rows is not None and bool(((rows - rows[0]).abs() <= 1e-6).all())
        return torch.zeros_like(as_they_are) if is_constant else as_they_are
    idf = torch.log(x.shape[0] / count.clamp(min=1).double())
    return torch.where(count > 0, idf, 0.0).float()


def tf_idf(x: Tensor, idf: Tensor | None = None) -> Tensor:
    r"""Compute 1[x > 0] · idf with rows of unit length.

    A row of zeros stays so. Where ``idf`` is negative, the rows of ``x`` itself are scaled to unit
    length.

    Args:
        x: Features (n, d), dense or ``torch.sparse_csr``.
        idf: Weight (d,) of each feature; by default that of ``x`` itself
            (:func:`inverse_document_frequency`). Pass that of the training graph for another graph.

    Returns:
        A matrix (n, d) in the layout, index type and floating-point type of ``x`` (float32 where
        ``x`` has integers), on its device.

    Raises:
        RawlsError: If ``x`` is not such a matrix, or ``idf`` has another number of features.

    Example:
        >>> import torch
        >>> from rawlsgcn.graphs.tf_idf import tf_idf
        >>> tf_idf(torch.tensor([[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 5.0]]))
        tensor([[1.0000, 0.0000, 0.0000],
                [0.3462, 0.9381, 0.0000],
                [0.0000, 0.0000, 1.0000]])
    """
    _require_matrix(x)
    if idf is not None and idf.shape != x.shape[1:]:
        raise RawlsError(
            f"idf has the shape {tuple(idf.shape)} for {x.shape[1]} features: pass one number for "
            "each feature"
        )
    dtype = x.dtype if x.dtype.is_floating_point else torch.float32
    idf = (inverse_document_frequency(x) if idf is None else idf).to(x.device, dtype)
    if bool((idf < 0).any()):
        return unit_rows(x)
    if x.layout == torch.sparse_csr:
        values = torch.where(x.values() > 0, idf[x.col_indices()], 0.0)
        return unit_rows(csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape))
    return unit_rows(torch.where(x > 0, idf, 0.0))


def unit_rows(x: Tensor) -> Tensor:
    """Divide each row by its length; rows of zeros stay so."""
    dtype = x.dtype if x.dtype.is_floating_point else torch.float32
    if x.layout != torch.sparse_csr:
        largest = x.to(dtype).abs().amax(1, keepdim=True) if x.shape[1] else x.new_ones(1, 1)
        scaled = x / torch.where(largest > 0, largest, 1.0)
        length = torch.linalg.vector_norm(scaled, dim=1, keepdim=True)
        return scaled / torch.where(length > 0, length, 1.0)
    values = x.values().to(dtype)
    row_start = x.crow_indices().long()
    counts = row_start.diff()
    # Divided by the largest first: the squares of very large or small numbers are not numbers.
    for reduce in ("max", "norm"):
        entries = values.abs() if reduce == "max" else values.square()
        operation = "max" if reduce == "max" else "sum"
        scale = torch.segment_reduce(entries, operation, offsets=row_start, initial=0)
        scale = scale if reduce == "max" else scale.sqrt()
        scale = torch.where(scale > 0, scale, 1.0)
        values = values / torch.repeat_interleave(scale, counts)
    return csr_tensor(x.crow_indices(), x.col_indices(), values, x.shape)


def _require_matrix(x: Tensor) -> None:
    if not isinstance(x, Tensor) or x.layout not in (torch.strided, torch.sparse_csr):
        kind = x.layout if isinstance(x, Tensor) else type(x).__name__
        raise RawlsError(f"tf-idf needs features in a dense or sparse CSR tensor, not {kind}")
    if x.is_complex():
        raise RawlsError("tf-idf needs features that are real numbers, not complex ones")
    if x.dim() != 2:
        raise RawlsError(f"tf-idf needs features of shape (n, d), not {tuple(x.shape)}")
