"""Read parts of mapped arrays by system calls, so that their pages are not part of this process.

A page of a mapped file that was touched counts as memory of the process until the system takes it
back. What is read into a buffer does not: it stays in the system's own cache.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import RawlsError


def read_rows(mapped: NDArray[Any], first: int, out: NDArray[Any]) -> NDArray[Any]:
    """Read rows of a mapped array from its file.

    Args:
        mapped: An array of ``np.load(..., mmap_mode="r")``, in C order.
        first: The first row.
        out: As many rows as are read, contiguous and of the same type.

    Returns:
        ``out``.

    Raises:
        RawlsError: If the file was cut short since it was mapped.
    """
    assert isinstance(mapped, np.memmap)
    if not out.size:
        return out
    path = Path(str(mapped.filename))
    with path.open("rb", buffering=0) as file:
        file.seek(mapped.offset + first * mapped.strides[0])
        left = out.data.cast("B")
        while left:
            count = file.readinto(left)
            if not count:
                raise RawlsError(f"{path} is cut short: write it again")
            left = left[count:]
    return out
