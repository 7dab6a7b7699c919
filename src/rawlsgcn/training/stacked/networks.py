"""Many runs of one network trained at once: their weights stacked, one product for all.

The runs differ in seed, learning rate, weight decay and dropout masks. The first layer is one
wide product (rows, features) x (features, runs * width); later layers are batched. Forward and
backward are written out, because with the first product precomputed they are a handful of lines.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise

import torch
from torch import Tensor

from ..._core.sparse import SparseProduct
from ..._core.threads import one_product_thread
from ...methods._ops.fixed_matrix import FixedMatrix
from ...methods.base import Layer
from .dropout import Dropout

#: Multiplications up to which a dense first product uses one thread: it takes about a millisecond.
_SMALL_PRODUCT = 1 << 25


class Replicas:
    """The weights of several runs and one training step for all of them.

    All parameters lie in one vector, and so do their gradients: an optimizer step is one sweep.
    ``weights[0]`` is (features, runs * width), ``weights[l]`` (runs, width, width'), and
    ``biases[l]`` (runs, width').
    """

    def __init__(
        self,
        layers: list[Layer],
        labels: Tensor,
        states: list[list[Tensor]],
        dropout: Dropout,
        *,
        weight: Tensor | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        self.layers, self.dropout, self.runs = layers, dropout, len(states)
        self.products: dict[tuple[str, int], tuple[SparseProduct, Tensor]] = {}
        first = states[0][0]
        device, dtype = labels.device, first.dtype
        self.sizes = [first.shape[0], *[bias.shape[0] for bias in states[0][1::2]]]
        total = self.runs * sum(tensor.numel() for tensor in states[0])
        self.parameters = torch.empty(total, device=device, dtype=dtype)
        self.gradients = torch.zeros_like(self.parameters)
        self.weights, self.biases = self._views(self.parameters)
        self.weight_gradients, self.bias_gradients = self._views(self.gradients)
        for run, state in enumerate(states):
            views = self._of_run(run, self.weights, self.biases)
            for view, tensor in zip(views, state, strict=True):
                view.copy_(tensor)
        # The gradient of the mean cross entropy is (softmax - one-hot) / nodes.
        self.target = torch.zeros(len(labels), self.sizes[-1], device=device, dtype=dtype)
        self.target[torch.arange(len(labels), device=device), labels] = 1
        if label_smoothing:
            self.target.mul_(1 - label_smoothing).add_(label_smoothing / self.sizes[-1])
        self.weight = None if weight is None else weight.to(device, dtype)[None, :, None]

    def _views(self, flat: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        shapes: list[torch.Size] = []
        for index, (a, b) in enumerate(pairwise(self.sizes)):
            weight = (self.runs, a, b) if index else (a, self.runs * b)
            shapes += [torch.Size(weight), torch.Size((self.runs, b))]
        pieces = torch.split(flat, [shape.numel() for shape in shapes])
        views = [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]
        return views[::2], views[1::2]

    def _of_run(self, run: int, weights: list[Tensor], biases: list[Tensor]) -> list[Tensor]:
        """One run's part of the views, as weight, bias, weight, bias, …"""
        first = weights[0].view(self.sizes[0], self.runs, -1)[:, run]
        rest = [weight[run] for weight in weights[1:]]
        pairs = zip([first, *rest], [bias[run] for bias in biases], strict=True)
        return [tensor for pair in pairs for tensor in pair]

    def state(self, run: int) -> list[Tensor]:
        """A copy of one run's weights and biases, layer by layer."""
        return [view.clone() for view in self._of_run(run, self.weights, self.biases)]

    def spread(self, values: list[float]) -> Tensor:
        """A vector as long as the parameters, with every run's value at its own parameters."""
        flat = torch.empty_like(self.parameters)
        views = self._views(flat)
        for run, value in enumerate(values):
            for view in self._of_run(run, *views):
                view.fill_(value)
        return flat

    @torch.no_grad()
    def step(self) -> Tensor:
        """Forward and backward for all runs: fills ``gradients`` and returns the logits.

        They are valid until the next step, which may write to the same memory.
        """
        inputs, hidden = self._forward()
        logits = hidden[-1]
        grad = torch.softmax(logits, -1).sub_(self.target)
        grad = grad.div_(len(self.target)) if self.weight is None else grad.mul_(self.weight)
        for index in range(len(self.layers) - 1, 0, -1):
            self.bias_gradients[index].copy_(grad.sum(1))
            layer = self.layers[index]
            seen = inputs[index]
            if layer.fair and layer.gradient is not None:
                fair = self._product("seen", index, layer.gradient, hidden[index - 1])
                seen = self._batched(fair)
            with one_product_thread():
                torch.bmm(seen.transpose(1, 2), grad, out=self.weight_gradients[index])
                back = torch.bmm(grad, self.weights[index].transpose(1, 2))
            if self.dropout.p:
                back.mul_(self.dropout.scale)
            wide = self._wide(back)
            if layer.forward is not None:
                wide = self._product("back", index, layer.forward.T, wide)
            # hidden is zero exactly where ReLU or dropout made it zero.
            torch.ops.aten.threshold_backward(wide, hidden[index - 1], 0, grad_input=wide)
            grad = self._batched(wide) if index > 1 else wide
        if len(self.layers) == 1:
            grad = self._wide(grad)
        self.bias_gradients[0].copy_(grad.sum(0).view(self.runs, -1))
        self._first_gradient(grad)
        return logits

    def _forward(self) -> tuple[list[Tensor], list[Tensor]]:
        """Every layer's propagated input (runs, rows, d) and its output, ReLU and dropout done."""
        out = self._first_output()
        inputs, hidden = [out], []
        for index, layer in enumerate(self.layers[1:], start=1):
            out = self.dropout(out.relu_())
            hidden.append(out)
            if layer.forward is not None:
                out = self._product("input", index, layer.forward, out)
            inputs.append(self._batched(out))
            with one_product_thread():
                bias = self.biases[index][:, None]
                batched = torch.baddbmm(bias, inputs[index], self.weights[index])
            if index < len(self.layers) - 1:
                out = self._wide(batched)
        hidden.append(batched if len(self.layers) > 1 else self._batched(out))
        return inputs, hidden

    def _first_output(self) -> Tensor:
        forward, bias = self.layers[0].forward, self.biases[0].view(-1)
        assert forward is not None
        if forward.matrix.layout == torch.strided:
            with self._first_threads():
                return torch.addmm(bias, forward.matrix, self.weights[0])
        return self._product("input", 0, forward, self.weights[0]).add_(bias)

    def _first_gradient(self, grad: Tensor) -> None:
        gradient, out = self.layers[0].gradient, self.weight_gradients[0]
        assert gradient is not None
        transpose = gradient.T
        if transpose.matrix.layout == torch.strided:
            with self._first_threads():
                torch.mm(transpose.matrix, grad, out=out)
        else:
            self._product("gradient", 0, transpose, grad, out)

    def _first_threads(self) -> AbstractContextManager[None]:
        """One thread for a small product, which waits for the others on a busy machine."""
        first = self.layers[0].forward
        assert first is not None
        small = first.matrix.shape[0] * self.weights[0].numel() <= _SMALL_PRODUCT
        return one_product_thread() if small else nullcontext()

    def _product(
        self, kind: str, index: int, left: FixedMatrix, right: Tensor, out: Tensor | None = None
    ) -> Tensor:
        """left @ right in the same memory in every epoch: new memory takes longer to allocate."""
        if (kind, index) not in self.products:
            if out is None:
                out = right.new_zeros(left.matrix.shape[0], right.shape[1])
            self.products[kind, index] = SparseProduct(left.matrix), out
        product, out = self.products[kind, index]
        return product(right, out)

    def _batched(self, wide: Tensor) -> Tensor:
        """(rows, runs * d) as (runs, rows, d)."""
        return wide.view(wide.shape[0], self.runs, -1).transpose(0, 1)

    def _wide(self, batched: Tensor) -> Tensor:
        """(runs, rows, d) as (rows, runs * d), contiguous."""
        return batched.transpose(0, 1).reshape(batched.shape[1], -1)
