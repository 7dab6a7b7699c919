"""The command that looks at a graph before anything is trained: advise."""

from __future__ import annotations

import shlex
from pathlib import Path

from ..errors import RawlsError
from .base import check_outputs, command, people, read_graph, say_notes, write_json
from .options import DataRoot, Dataset, Features, Graph, Json, Labels


@command
def advise(
    dataset: Dataset = None,
    graph: Graph = None,
    features: Features = None,
    labels: Labels = None,
    data_root: DataRoot = None,
    json_path: Json = None,
) -> None:
    """Look at a graph and say which method to try first, and why; nothing is trained."""
    check_outputs(json_path, inputs=[graph, features, labels])
    data = read_graph(
        dataset,
        graph,
        features,
        labels,
        data_root=data_root,
        need_features=features is not None,
        need_labels=False,  # those who train nothing need no split
    )
    notes = list(data.get("notes") or [])
    if labels is not None and data.get("y") is None:
        left_out = next(note for note in notes if note.startswith("the labels are left out"))
        raise RawlsError(left_out.partition(": ")[2].rstrip("."))
    from ..advice import advise as look
    from ..reporting.table import bands_table

    advice = look(data)
    given: dict[str, str | Path | None] = {
        "--dataset": dataset,
        "--data-root": None if dataset is None else data_root,
        "--graph": graph,
        # Advice needs neither, but training does.
        "--features": "FILE" if data.get("x") is None else features,
        "--labels": "FILE" if data.get("y") is None else labels,
    }
    named = [(name, str(value)) for name, value in given.items() if value is not None]
    asked = advice.command(shlex.join(word for pair in named for word in pair))
    console = people(json_path)
    say_notes(notes, console)
    console.print(advice.headline, style="bold", markup=False, highlight=False)
    for reason in advice.reasons:
        console.print(f"• {reason}", markup=False, highlight=False)
    console.print()
    console.print(bands_table(advice.portrait))
    console.print()
    for caution in advice.cautions:
        console.print(f"! {caution}", style="yellow", markup=False, highlight=False)
    console.print(f"\nTry: {asked}", markup=False, highlight=False, soft_wrap=True)
    write_json(json_path, advice.to_dict() | {"command": asked})
