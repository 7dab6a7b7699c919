"""What each of the two processes of test_two_smoothing_processes.py does: smooth its rows.

The second process kills itself once, after the first block of columns of the first folder.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from rawlsgcn._core.distributed_context import distributed_context
from rawlsgcn.graphs.shards.arc_blocks import shards_of_process
from rawlsgcn.graphs.shards.shards import Shards
from rawlsgcn.training.smoothed.column_blocks import ColumnBlocks
from rawlsgcn.training.smoothed.smooth_shards import smooth_shards
from rawlsgcn.training.smoothed.smoothed_files import SmoothedForm

FORM = SmoothedForm("renormalized", 0.1, 10, True, "float64")


def main(folders: list[Path]) -> None:
    write = ColumnBlocks.write

    def write_and_die(self: Any, shard: int, first: int, *rest: Any) -> None:
        if first > 0:
            os.kill(os.getpid(), signal.SIGKILL)
        write(self, shard, first, *rest)

    with distributed_context("cpu") as context:
        if context.rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            ColumnBlocks.write = write_and_die
        for folder in folders:
            shards = Shards(folder)
            result = smooth_shards(shards, FORM, context, most_columns=16)
            own = shards_of_process(shards, context.rank, context.world_size)
            np.savez(
                folder.parent / f"{folder.name}-{context.rank}.npz",
                kind=result.exchange.kind,
                held=result.exchange.rows,
                rows=[shards.cuts[own[0]], shards.cuts[own[-1] + 1]],
                moved=result.exchange.rows_moved,
                every=result.exchange.all_rows,
                blocks=result.blocks,
            )


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
