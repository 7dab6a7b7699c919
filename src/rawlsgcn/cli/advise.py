"""The command that looks at a graph before anything is trained: advise."""

from __future__ import annotations

import shlex
from pathlib import Path

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
        need_labels=labels is not None,
    )
    from ..advice import advise as look
    from ..reporting.table import bands_table

    advice = look(data)
    asked = advice.command(_options(dataset, graph, features, labels))
    console = people(json_path)
    say_notes(list(data.get("notes") or []), console)
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


def _options(
    dataset: str | None, graph: Path | None, features: Path | None, labels: Path | None
) -> str:
    given = {"--dataset": dataset, "--graph": graph, "--features": features, "--labels": labels}
    return shlex.join(
        word for name, value in given.items() if value is not None for word in (name, str(value))
    )
