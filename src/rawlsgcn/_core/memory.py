"""The memory that a command may use: what the user says, or what this machine has left."""

from __future__ import annotations

import math
import os
import re
from functools import cache
from pathlib import Path

from .errors import RawlsError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}i": 2 ** (10 * power) for power, unit in enumerate("kmgt", start=1)}
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([kmgt]?i?)b?", re.IGNORECASE)
#: The share of the free memory that is used where no limit is given.
_SHARE = 0.8
#: Where Linux keeps the limit of a container and what it uses, in its two versions.
_CGROUP = Path("/sys/fs/cgroup")
_CGROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
_WHATEVER_IS_LEFT = 4 * 10**9
#: What is loaded when it is first used (torch's optimizers above all), and buffers of threads.
_LATER = 128 << 20


def memory_limit(text: str | None) -> int:
    """Return the bytes that this process may use, given as ``8GB``, ``512 MB`` or ``6GiB``.

    The default is what this process has and 80 % of the free memory, which the processes of
    torchrun on this machine share.
    """
    code_memory()  # counted before there are data
    if text is None:
        here = os.environ.get("LOCAL_WORLD_SIZE", "")
        processes = int(here) if here.isdecimal() and int(here) else 1
        return resident_memory() + int(_SHARE * free_memory() / processes)
    found = _SIZE.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    size = int(float(found[1]) * _UNITS[unit]) if found and unit in _UNITS else 0
    if size < 1:
        raise RawlsError(f"'{text}' is no amount of memory: give one such as 8GB or 512MB")
    return size


def free_memory() -> int:
    """Return the bytes that this process can still have, without swapping."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            sizes = dict(line.split(":", 1) for line in file)
        free = 1024 * int(sizes["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        free = physical_memory(unknown=2 * _WHATEVER_IS_LEFT) // 2
    for limit, used in _CGROUPS:
        try:
            left = int((_CGROUP / limit).read_text()) - int((_CGROUP / used).read_text())
        except (OSError, ValueError):  # no container, or "max"
            continue
        free = min(free, max(left, 0))
    return free


def resident_memory() -> int:
    """Return the bytes of memory that this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


@cache
def code_memory() -> int:
    """Return the bytes that Python, torch and what a command loads later take, without any data.

    They are counted once: what is needed is the same number whenever a command asks for it.
    """
    return resident_memory() + _LATER


def memory_left(needed: int, limit: int, what: str) -> int:
    """Return the bytes left of a limit when so many are used beside Python and torch.

    Raises:
        RawlsError: If there are too few "to ``what``"; it names how many would do.
    """
    left = limit - code_memory() - needed
    if left < 0:
        total = 10 * math.ceil((limit - left) / 10**7)
        raise RawlsError(
            f"{size_text(limit)} of memory are too little to {what}: at least {total:,} MB are "
            f"needed (--memory {total}MB)"
        )
    return left


def physical_memory(unknown: int = 2**40) -> int:
    """Return the bytes of this machine's memory; ``unknown`` where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return unknown


def size_text(size: float) -> str:
    """Write a number of bytes for people, such as ``1.9 GB``."""
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.3g} {name}"
    return f"{size:,.0f} bytes"
