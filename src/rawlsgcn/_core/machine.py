"""The device a call uses, this machine in committed results and for workers, and its memory."""

from __future__ import annotations

import os
import platform
import socket
import sys
from pathlib import Path
from typing import Any

import torch

from .errors import RawlsError
from .kernels import kernels


def machine(device: torch.device) -> dict[str, Any]:
    """Describe the machine and the software, for committed results."""
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


def machine_id() -> str:
    """Name this machine, its current boot and its process namespace, in which process ids hold."""
    name = socket.gethostname()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{name} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return name


def process_runs(pid: int) -> bool:
    """Return whether there is such a process on this machine; a zombie has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it is another user's
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def pick_device(name: str | torch.device) -> torch.device:
    """Return the device called ``name``; ``auto`` is a GPU where there is one, else the CPU.

    Raises:
        RawlsError: If there is no such device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name) if isinstance(name, str | torch.device) else None
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise RawlsError(f"unknown device '{name}': use cpu, cuda or auto")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RawlsError(f"there is no GPU for --device {name} here: use --device cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise RawlsError(f"there is no GPU '{name}' here: the last is cuda:{count - 1}")
    return device


def peak_memory_mb(device: torch.device) -> float:
    """Return the peak memory: of the tensors on a GPU, of the whole process on the CPU."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device)) / 2**20
    return peak_resident_bytes() / 2**20


def peak_resident_bytes() -> int:
    """Return the peak of this process's resident memory, in bytes.

    ``getrusage`` alone is not enough on Linux: a program that another one starts inherits the
    peak of the starting process there.
    """
    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
