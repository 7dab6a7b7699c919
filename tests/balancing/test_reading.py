"""What cannot be balanced is refused at the door in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from rawlsgcn.balancing import balance
from rawlsgcn.balancing.reading import read
from rawlsgcn.errors import RawlsError

PAIR = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("matrix", "weight", "nodes", "message"),
    [
        (PAIR, torch.tensor([1.0, -2.0]), None, r"row 1, column 0 is -2.0"),
        (PAIR, torch.tensor([float("nan"), 1.0]), None, r"row 0, column 1 is nan"),
        (PAIR, np.array([1.0, np.inf]), None, r"row 1, column 0 is inf"),
        (PAIR, torch.ones(3), None, r"shape \(3,\), but there are 2 edges"),
        (PAIR, None, 1, "names node 1, but the 1 nodes"),
        (PAIR - 1, None, 2, "names node -1"),
        (PAIR.double(), None, None, "shape"),
        (torch.ones(3, 3, dtype=torch.long), None, None, "dense matrix"),
        (torch.empty(2, 0, dtype=torch.long), None, None, "empty"),
        (sp.csr_array((0, 0)), None, None, "empty"),
        (sp.csr_array(np.ones((2, 3))), None, None, "square"),
        (torch.ones(2, 3).to_sparse(), None, None, "square"),
        (sp.csr_array(-np.eye(2)), None, None, "row 0, column 0 is -1.0"),
        (sp.csr_array(np.eye(2) * 1j), None, None, "complex"),
        (sp.csr_array(np.eye(2)), np.ones(2), None, "edge_weight and num_nodes"),
        ("a string", None, None, "cannot balance a str"),
    ],
)
def test_refusals(matrix, weight, nodes, message):
    with pytest.raises(RawlsError, match=message) as caught:
        balance(matrix, weight, num_nodes=nodes)
    assert "\n" not in str(caught.value)


def test_a_scipy_matrix_with_32_bit_indices_is_not_copied():
    matrix = sp.csr_array(np.array([[2.0, 1], [1, 3]]))
    assert matrix.indices.dtype == np.int32
    inside, _ = read(matrix, None, None)
    assert inside.column.data_ptr() == matrix.indices.ctypes.data
    assert inside.values is not None
    assert inside.values.data_ptr() == matrix.data.ctypes.data


def test_a_matrix_of_ones_has_no_values():
    inside, _ = read(sp.csr_array(np.ones((3, 3))), None, None)
    assert inside.values is None


def test_reading_leaves_the_input_alone():
    matrix = sp.csr_array(
        (np.array([1.0, 0, 2, 1]), np.array([1, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 2)
    )
    before = matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()
    balance(matrix)
    for one, other in zip(before, (matrix.data, matrix.indices, matrix.indptr), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_torch_csr_tensor_out_of_order_is_put_in_order():
    tensor = torch.sparse_csr_tensor(
        torch.tensor([0, 3, 5]),
        torch.tensor([1, 0, 1, 1, 0]),
        torch.tensor([1.5, 1.0, 0.5, 4.0, 2.0]),
        (2, 2),
        check_invariants=False,
    )
    expected = balance(sp.csr_array(np.array([[1.0, 2], [2, 4]])))
    torch.testing.assert_close(balance(tensor).scale, expected.scale)


def test_a_read_only_edge_index_is_read():
    index = np.array([[0, 1], [1, 0]])
    index.flags.writeable = False
    assert balance(index).converged


@pytest.mark.filterwarnings("ignore:Sparse BSR")
def test_a_layout_of_blocks_is_refused():
    with pytest.raises(RawlsError, match="to_sparse_csr"):
        balance(torch.eye(2).to_sparse_bsr((1, 1)))
