"""What cannot be balanced is refused at the door in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from rawlsgcn._core.errors import RawlsError
from rawlsgcn.balancing import balance
from rawlsgcn.balancing.matrix_input import read_matrix

PAIR = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("matrix", "weight", "nodes", "message"),
    [
        (PAIR, torch.tensor([1.0, -2.0]), None, r"row 1, column 0 is -2.0"),
        (PAIR, torch.tensor([float("nan"), 1.0]), None, r"row 0, column 1 is nan"),
        (PAIR, np.array([1.0, np.inf]), None, r"row 1, column 0 is inf"),
        (PAIR, torch.ones(3), None, r"shape \(3,\), but there are 2 edges"),
        (PAIR, [[1.0], [1.0, 2.0]], None, "different lengths"),
        (PAIR, ["a", "b"], None, "numbers of type"),
        (PAIR.bool(), None, None, "torch.bool"),
        (PAIR, None, 3.0, "num_nodes must be a whole number"),
        (PAIR, None, "3", "num_nodes must be a whole number"),
        (PAIR, None, -1, "num_nodes must be a whole number"),
        (PAIR * 2**40, None, None, "too large"),
        (PAIR, None, 2**40, "too large"),
        (PAIR, None, 1, "names node 1, but the 1 nodes"),
        (PAIR - 1, None, 2, "names node -1"),
        (PAIR.double(), None, None, "shape"),
        (torch.ones(3, 3, dtype=torch.long), None, None, "dense matrix"),
        (torch.empty(2, 0, dtype=torch.long), None, None, "empty"),
        (sp.csr_array((0, 0)), None, None, "empty"),
        (sp.csr_array(np.ones((2, 3))), None, None, "square"),
        (torch.ones(2, 3).to_sparse(), None, None, "square"),
        (torch.eye(2).to_sparse(1), None, None, "square"),
        (torch.ones(2, 2, 2).to_sparse(2), None, None, "square"),
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
    inside, _ = read_matrix(matrix, None, None)
    assert inside.column.data_ptr() == matrix.indices.ctypes.data
    assert inside.values is not None
    assert inside.values.data_ptr() == matrix.data.ctypes.data


def test_a_matrix_of_ones_has_no_values():
    inside, _ = read_matrix(sp.csr_array(np.ones((3, 3))), None, None)
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


UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
SMALL = [torch.bool, torch.uint8, torch.int8, torch.int32, *UNSIGNED]


@pytest.mark.parametrize("dtype", [*SMALL, torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2]])
def test_weights_of_any_type_mean_their_numbers(dtype, order):
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([1, 1, 1, 1] if dtype == torch.bool else [3, 3, 100, 100])
    expected = balance(index, weight.double(), num_nodes=4).scale
    given = index[:, order], weight[order].to(dtype)
    assert torch.equal(balance(*given, num_nodes=4).scale, expected)
    arrays = [piece.numpy() for piece in given if piece.dtype != torch.bfloat16]
    if len(arrays) == 2:
        assert torch.equal(balance(*arrays, num_nodes=4).scale, expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, *UNSIGNED])
def test_edge_indices_of_any_integer_type_are_read(dtype):
    index = torch.tensor([[2, 0, 1, 1], [1, 1, 0, 2]])
    expected = balance(index).scale
    assert torch.equal(balance(index.to(dtype)).scale, expected)
    assert torch.equal(balance(index.to(dtype).numpy()).scale, expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.uint32, np.uint64, np.int64])
def test_repeated_entries_of_small_integers_add_up_and_do_not_wrap(dtype):
    row, column = np.array([0, 0, 1, 1, 0, 1]), np.array([1, 1, 0, 0, 0, 1])
    values = np.array([100, 100, 100, 100, 5, 7], dtype=dtype)
    expected = balance(sp.csr_array(np.array([[5.0, 200], [200, 7]]))).scale
    scipy_coo = sp.coo_array((values, (row, column)), shape=(2, 2))
    repeated = sp.csr_array((values[[4, 0, 1, 2, 3, 5]], [0, 1, 1, 0, 0, 1], [0, 3, 6]))
    for matrix in (scipy_coo, repeated, sp.csr_array(np.array([[5, 200], [200, 7]], np.uint8))):
        torch.testing.assert_close(balance(matrix).scale, expected)
    edges = balance(np.stack([row, column]), values, self_loops=False)
    torch.testing.assert_close(edges.scale, expected)
    if dtype in (np.uint8, np.int8, np.int64):  # the others torch cannot keep in sparse tensors
        coo = torch.sparse_coo_tensor(np.stack([row, column]), torch.from_numpy(values), (2, 2))
        torch.testing.assert_close(balance(coo).scale, expected)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64, np.bool_])
def test_scipy_values_of_any_type_are_read(dtype):
    whole = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    expected = balance(sp.csr_array(whole.astype(float))).scale
    assert torch.equal(balance(sp.csr_array(whole.astype(dtype))).scale, expected)


def raw(indices, starts=(0, 1, 2, 3), cls=sp.csr_array):
    matrix = cls((3, 3))
    matrix.data = np.ones(len(indices))
    matrix.indices, matrix.indptr = np.array(indices, np.int32), np.array(starts, np.int32)
    matrix.has_canonical_format = True
    return matrix


@pytest.mark.parametrize("column", [[0, 1, 3], [0, 1, -1], [0, 1, 2**31 - 1]])
def test_a_matrix_that_leads_outside_itself_is_refused(column):
    starts, values = torch.tensor([0, 1, 2, 3]), torch.ones(3)
    shape, unchecked = (3, 3), {"check_invariants": False}
    index = torch.tensor(column)
    for damaged in (
        raw(column),
        raw(column, cls=sp.csc_array),
        torch.sparse_csr_tensor(starts, index, values, shape, **unchecked),
        torch.sparse_csc_tensor(starts, index, values, shape, **unchecked),
        torch.sparse_coo_tensor(torch.stack([index, index]), values, shape, **unchecked),
    ):
        with pytest.raises(RawlsError, match="damaged: it names rows or columns outside 0 to 2"):
            balance(damaged)


@pytest.mark.parametrize("starts", [[0, 2, 1, 3], [1, 1, 2, 3], [0, 1, 2, 4], [0, 1, 2, -1]])
def test_starts_of_rows_that_do_not_rise_are_refused(starts):
    with pytest.raises(RawlsError, match="do not rise from 0"):
        balance(raw([0, 1, 2], starts))


def test_what_scipy_has_in_reserve_is_left_out():
    assert balance(raw([0, 1, 2, 9, -5])).converged


@pytest.mark.parametrize("starts", [[], [0, 3], [0, 1, 2, 3, 3, 3]])
@pytest.mark.parametrize("cls", [sp.csr_array, sp.csc_array])
def test_starts_of_another_number_of_rows_are_refused(starts, cls):
    for self_loops in (None, True):
        with pytest.raises(RawlsError, match="damaged"):
            balance(raw([0, 1, 2], starts, cls), self_loops=self_loops)


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_a_torch_matrix_whose_parts_differ_in_length_is_refused(layout, index):
    def matrix(starts, values):
        places = torch.tensor([0, 1, 2], dtype=index)
        begins = torch.tensor(starts, dtype=index)
        return torch.sparse_compressed_tensor(
            begins, places, values, (3, 3), layout=layout, check_invariants=False
        )

    assert balance(matrix([0, 1, 2, 3], torch.ones(3))).converged
    for starts, values in (
        ([0, 1, 2, 3], torch.full((2,), 2.0)),
        ([0, 1, 2, 3], torch.ones(2)),
        ([0, 1, 2, 3], torch.full((3,), 2.0)[:2]),
        ([0, 1, 2, 3], torch.ones(4)),
        ([0, 3], torch.ones(3)),
        ([0, 1, 2, 3, 3], torch.ones(3)),
    ):
        with pytest.raises(RawlsError, match="damaged"):
            balance(matrix(starts, values))


def test_places_of_unsigned_types_are_read():
    matrix = raw([0, 1, 2])
    expected = balance(matrix).scale
    for dtype in (np.uint16, np.uint32):
        matrix.indices = matrix.indices.astype(dtype)
        assert torch.equal(balance(matrix).scale, expected)
