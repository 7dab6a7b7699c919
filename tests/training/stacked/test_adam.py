"""Both are torch's Adam, one of them with a rate and a weight decay for every stretch."""

from __future__ import annotations

import pytest
import torch

from rawlsgcn.training.stacked.adam import FusedAdam, VectorAdam


def test_every_stretch_follows_torchs_adam() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 5, dtype=torch.float64, generator=generator)
    rates, decays = [0.1, 0.01, 0.003], [0.0, 5e-4, 0.1]
    theirs = [start[i].clone().requires_grad_() for i in range(3)]
    optimizer = torch.optim.Adam(
        [{"params": [p], "lr": rates[i], "weight_decay": decays[i]} for i, p in enumerate(theirs)]
    )
    ours, gradients = start.clone().view(-1), torch.zeros(15, dtype=torch.float64)
    per_element = [
        torch.tensor(v, dtype=torch.float64).repeat_interleave(5) for v in (rates, decays)
    ]
    adam = VectorAdam(ours, gradients, *per_element)
    for _ in range(25):
        step = torch.randn(3, 5, dtype=torch.float64, generator=generator)
        gradients.copy_(step.view(-1))
        adam.step()
        for i, parameter in enumerate(theirs):
            parameter.grad = step[i]
        optimizer.step()
        expected = torch.cat([parameter.detach() for parameter in theirs])
        torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("default", [torch.float32, torch.float64, torch.bfloat16])
def test_the_fused_one_counts_its_steps_whatever_torchs_default_is(default: torch.dtype) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        adam = FusedAdam(torch.zeros(2), torch.ones(2), 0.01, 0.0)
        for _ in range(300):
            adam.step()
    finally:
        torch.set_default_dtype(before)
    assert float(adam.steps) == 300


def test_the_fused_one_follows_torchs_adam() -> None:
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(40, dtype=torch.float64, generator=generator)
    theirs, gradients = ours.clone().requires_grad_(), torch.zeros_like(ours)
    optimizer = torch.optim.Adam([theirs], 0.02, weight_decay=5e-4)
    adam = FusedAdam(ours, gradients, 0.02, 5e-4)
    for _ in range(25):
        theirs.grad = gradients.copy_(torch.randn(40, dtype=torch.float64, generator=generator))
        adam.step()
        optimizer.step()
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-12)
