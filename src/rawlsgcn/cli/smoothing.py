"""The command smooth: features of shards, smoothed once for all trainings on them."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from .._core.errors import RawlsError
from . import options as opt
from .base import command
from .options import parse_settings
from .outputs import check_outputs, people, write_json


@command("--shards shards --memory 8GB", "--shards shards --set steps=4 --set teleport=0.2")
def smooth(
    shards: Annotated[
        Path, typer.Option("--shards", help="A graph as shards, a folder that 'shard' wrote.")
    ],
    memory: opt.Memory = None,
    normalization: Annotated[
        str | None, typer.Option(help="doubly-stochastic (the default) or renormalized.")
    ] = None,
    set_: opt.Set = None,
    device: opt.Device = "auto",
    json_path: opt.Json = None,
) -> None:
    """Smooth the features of shards by personalized PageRank, for 'train --method smoothed-mlp'.

    The settings are those of smoothed-mlp (teleport, steps, normalization, normalize_features). The
    result is kept in the shards. Given again after a kill, the same command goes on; under torchrun
    the processes share the rows.
    """
    from .._core.distributed_context import distributed_context
    from .._core.machine import peak_memory_mb, peak_resident_bytes
    from .._core.memory import memory_limit, size_text
    from ..graphs.shards.shards import Shards
    from ..methods import find_method
    from ..reporting.progress import progress
    from ..training.smoothed.smooth_shards import smooth_shards
    from ..training.smoothed.smoothed_files import ON_DISK, SMOOTHING_SETTINGS, SmoothedForm

    check_outputs(json_path)
    limit = memory_limit(memory)
    changes = parse_settings(set_, normalization=normalization)
    settings = find_method("smoothed-mlp").configure(changes)
    useless = sorted(changes.keys() - {*SMOOTHING_SETTINGS, *ON_DISK})
    if useless:
        raise RawlsError(
            f"{useless[0]} does not change what smoothing gives, it is for 'train': leave it out; "
            f"the settings of smoothing are {', '.join(SMOOTHING_SETTINGS)}"
        )
    folder = Shards(shards)
    form = SmoothedForm.of(folder, settings)
    with distributed_context(device) as context:
        started = time.perf_counter()
        with progress("smoothing") as show_progress:
            result = smooth_shards(folder, form, context, memory=limit, progress=show_progress)
        if context.rank:
            return
        rows, exchange = result.rows, result.exchange
        words = f"{rows.num_features} features of {len(rows):,} nodes, smoothed in {rows.folder}"
        settings_of_form = asdict(form)
        del settings_of_form["dtype"]
        about = {
            "folder": str(rows.folder),
            "nodes": len(rows),
            "features": rows.num_features,
            **settings_of_form,
            "processes": context.world_size,
            "blocks": result.blocks,
            "arcs_read": result.arcs_read,
            "seconds": time.perf_counter() - started,
            "peak_bytes": peak_resident_bytes(),
        }
        if context.device.type == "cuda":
            about["device_peak_bytes"] = round(2**20 * peak_memory_mb(context.device))
        if exchange is None:
            words += " already"
        elif exchange.kind != "none":
            moved = 4 * exchange.rows_moved
            words += f"; {exchange.kind} of {size_text(moved)} for each step and feature"
            about |= {
                "exchange": exchange.kind,
                "bytes_per_step_and_column": moved,
                "halo_bytes_per_step_and_column": 4 * exchange.halo_rows,
                "all_gather_bytes_per_step_and_column": 4 * exchange.all_rows,
            }
        people(json_path).print(words, soft_wrap=True)
        write_json(json_path, about)
