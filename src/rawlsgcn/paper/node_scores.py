"""Each evaluated node's loss and correctness, small enough to be kept with a trial."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ..experiments.result import Result

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Nodes:
    """Of the evaluated nodes: the degrees, and by seed the losses and who was right.

    ``degree`` is (nodes,), the others are (seeds, nodes). ``calibrated`` are the losses after
    temperature scaling. Kept in half precision, which is enough to test differences.
    """

    degree: npt.NDArray[np.int32]
    loss: Floats
    calibrated: Floats
    right: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, result: Result) -> Nodes:
        from ..evaluation.degree_bias import node_scores

        chosen = result.mask & (result.graph.y >= 0)
        y = result.graph.y[chosen]
        loss, calibrated, right = [], [], []
        for logits, judgement in zip(result.logits[:, chosen], result.run_metrics, strict=True):
            losses, correct = node_scores(logits.double(), y)
            loss.append(losses.numpy())
            right.append(correct.numpy() > 0)
            scaled, _ = node_scores(logits.double() / judgement.temperature, y)
            calibrated.append(scaled.numpy())
        degree = result.degree[chosen].numpy().astype(np.int32)
        return cls(degree, np.stack(loss), np.stack(calibrated), np.stack(right))

    def pack(self) -> dict[str, Any]:
        """As JSON: sizes and compressed bytes."""
        parts = [
            self.degree.tobytes(),
            _half(self.loss),
            _half(self.calibrated),
            np.packbits(self.right).tobytes(),
        ]
        data = base64.b85encode(zlib.compress(b"".join(parts), 9)).decode("ascii")
        return {"seeds": self.loss.shape[0], "nodes": self.loss.shape[1], "data": data}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Nodes:
        seeds, nodes = int(packed["seeds"]), int(packed["nodes"])
        data = zlib.decompress(base64.b85decode(packed["data"]))
        shape, size = (seeds, nodes), 2 * seeds * nodes
        at = 4 * nodes
        loss, calibrated = (
            np.frombuffer(data[start : start + size], np.float16).astype(np.float64).reshape(shape)
            for start in (at, at + size)
        )
        bits = np.unpackbits(np.frombuffer(data[at + 2 * size :], np.uint8), count=seeds * nodes)
        degree = np.frombuffer(data[:at], np.int32)
        return cls(degree, loss, calibrated, bits.astype(bool).reshape(shape))


def _half(values: Floats) -> bytes:
    """Half precision, with what is too large for it (or no number) at its largest."""
    limit = float(np.finfo(np.float16).max)
    return (
        np.nan_to_num(values, nan=limit, posinf=limit).clip(0, limit).astype(np.float16).tobytes()
    )
