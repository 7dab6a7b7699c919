"""The part of Lightning that examples/lightning_module.py uses, for where it is not installed."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn


class LightningModule(nn.Module):
    """Collects what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.logged: dict[str, Tensor] = {}

    def log_dict(self, values: dict[str, Tensor]) -> None:
        self.logged.update(values)


class Trainer:
    """Lightning's loop: its order of hooks and modes, for one loader and one optimizer."""

    def __init__(self, max_epochs: int, check_val_every_n_epoch: int = 1, **_: Any) -> None:
        self.max_epochs, self.every = max_epochs, check_val_every_n_epoch
        self.callback_metrics: dict[str, Tensor] = {}

    def fit(self, module: Any, training: Any, validation: Any) -> None:
        optimizer = module.configure_optimizers()
        for epoch in range(1, self.max_epochs + 1):
            module.train()
            for batch in training:
                optimizer.zero_grad()
                module.training_step(batch).backward()
                optimizer.step()
            if epoch % self.every == 0:
                module.eval()
                with torch.no_grad():
                    for batch in validation:
                        module.validation_step(batch)
                    module.on_validation_epoch_end()
        self.callback_metrics = module.logged


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``import lightning`` give this, unless Lightning is installed."""
    try:
        import lightning  # noqa: F401
    except ImportError:
        module = ModuleType("lightning")
        vars(module).update(LightningModule=LightningModule, Trainer=Trainer)
        monkeypatch.setitem(sys.modules, "lightning", module)
