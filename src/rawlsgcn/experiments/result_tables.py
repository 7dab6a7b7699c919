"""The metrics of a result as tables: a row for each run, and plain values for JSON.

The argument of each function is a :class:`~.result.Result`, which imports this module.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .._core.serialization import jsonable

if TYPE_CHECKING:
    import pandas as pd


def runs_frame(result: Any) -> pd.DataFrame:
    """The metrics of each run, one row for each seed: see :meth:`Result.to_frame`."""
    import pandas as pd

    sound = [seed not in result.diverged for seed in result.seeds]
    return pd.DataFrame(
        {
            "seed": result.seeds,
            "accuracy": result.accuracy.runs,
            "low_degree_accuracy": result.low_degree_accuracy.runs,
            "high_degree_accuracy": result.high_degree_accuracy.runs,
            "validation_accuracy": result.validation_accuracy.runs,
            "training_accuracy": result.training_accuracy.runs,
            "bias": result.bias.runs,
            "calibrated_bias": result.calibrated_bias.runs,
            "temperature": result.spread("temperature").runs,
            "diverged": [not finite for finite in sound],
            "learned": [
                finite and seed not in result.not_learned
                for seed, finite in zip(result.seeds, sound, strict=True)
            ],
        }
    )


def plain_values(result: Any) -> dict[str, Any]:
    """The metrics and settings by name, as ``--json`` writes them: see :meth:`Result.to_dict`."""
    values = {
        "dataset": result.dataset,
        "synthetic": result.synthetic,
        "method": result.method,
        "normalization": result.normalization,
        "lr": result.settings["lr"],
        "epochs": result.settings["epochs"],
        "seeds": result.seeds,
        "device": result.device,
        "parameters": result.parameters,
        "accuracy": asdict(result.accuracy),
        "bias": asdict(result.bias),
        "validation_accuracy": asdict(result.validation_accuracy),
        "training_accuracy": asdict(result.training_accuracy),
        "diverged": result.diverged,
        "not_learned": result.not_learned,
        "calibrated_bias": asdict(result.calibrated_bias),
        "low_degree_accuracy": asdict(result.low_degree_accuracy),
        "high_degree_accuracy": asdict(result.high_degree_accuracy),
        "loss_slope": asdict(result.spread("loss_slope")),
        "accuracy_slope": asdict(result.spread("accuracy_slope")),
        "temperature": asdict(result.spread("temperature")),
        "seconds": result.seconds,
        "peak_memory_mb": result.peak_memory_mb,
        "settings": result.settings,
        "caution": result.caution,
        "notes": result.notes,
    }
    return {name: jsonable(value) for name, value in values.items()}
