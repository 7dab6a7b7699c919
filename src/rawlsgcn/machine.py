"""The device a call uses, and a description of the machine for committed results."""

from __future__ import annotations

import os
import platform
from typing import Any

import torch

from .compiled import kernels


def machine(device: torch.device) -> dict[str, Any]:
    """What the figures were taken on."""
    processor = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if "model name" in line]
        processor = f"{names[0]}, {len(names)} cores" if names else processor
    except OSError:
        pass
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "processor": processor,
        "threads": torch.get_num_threads(),
        "waiting": os.environ.get("OMP_WAIT_POLICY"),
        "compiled": kernels() is not None,
        "gpu": gpu,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
