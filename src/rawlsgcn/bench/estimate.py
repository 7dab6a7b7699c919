"""What balancing and sampled training take at 10⁹ and 10¹¹ edges, from measured constants.

``python -m rawlsgcn.bench.estimate --results benchmarks --write docs/scale.md`` draws the tables of
docs/scale.md from the figures that ``rawlsgcn bench sampling`` kept. The bytes are those of the
arrays in the code; tests hold them against real ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ..cli.errors import OneSentence, guarded
from ..errors import RawlsError
from ..files import atomic_file

EDGES, PROCESSES = (10**9, 10**11), (1, 4, 16, 64, 256)
BEGIN, END = "<!-- scale: begin -->", "<!-- scale: end -->"
_SEEDS = 1024
_PAGE = 4096


@dataclass(frozen=True)
class Setting:
    """What is assumed: a graph, a network and a training set, none of them measured."""

    arcs_per_node: int = 20
    features: int = 64
    hidden: int = 64
    classes: int = 40
    training_share: float = 0.1
    gigabytes_per_second: float = 3.0  # of a 25 Gbit/s link


@dataclass(frozen=True)
class Measured:
    """What ``rawlsgcn bench sampling`` measured, in one process of two cores."""

    nanoseconds_per_arc_and_product: float
    products: int
    seconds_per_step: float
    nodes_per_step: float

    @classmethod
    def of(cls, folder: Path) -> Measured:
        """From the kept results of a benchmark folder."""
        try:
            runs = json.loads((folder / "results-cpu.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RawlsError(f"{folder} holds no results-cpu.json that can be read") from error
        for run in runs:
            for figure in run["figures"]:
                if "nanoseconds_per_arc_and_product" in figure:
                    return cls(
                        figure["nanoseconds_per_arc_and_product"],
                        figure["balance_products"],
                        figure["ours"]["median"],
                        figure["nodes_per_step"],
                    )
        raise RawlsError(f"{folder} has no figures of sampling: run 'rawlsgcn bench sampling'")


def index_bytes(nodes: float) -> int:
    """A node's number takes 4 bytes where 2³¹ nodes suffice."""
    return 4 if nodes < 2**31 else 8


def balancing_bytes(arcs: float, nodes: float, processes: int) -> float:
    """What one process of ``balance_shards`` holds.

    Its columns and row starts, these once more in 4 bytes for compiled products where that is
    enough; nine vectors of the descent and the piece it sends; and, in full, the vector to be
    multiplied and the place where it is gathered.
    """
    rows, own = nodes / processes, arcs / processes
    starts = rows * (12 if own < 2**31 else 8)
    return index_bytes(nodes) * own + starts + rows * 10 * 8 + 2 * 8 * nodes


def training_bytes(nodes: float, setting: Setting) -> float:
    """What one process of sampled training holds of the graph; arcs and features stay on disk.

    Row starts, labels, x, d̃^(-1/2): 8 bytes each; the sampler's places: 4; three masks: 1 each;
    the training nodes' numbers.
    """
    return nodes * (4 * 8 + 4 + 3 + 8 * setting.training_share)


def evaluation_bytes(nodes: float, setting: Setting) -> float:
    """Two matrices of hidden values, while all nodes are classified."""
    return 2 * 4 * nodes * max(setting.hidden, setting.classes)


@dataclass(frozen=True)
class Estimate:
    """One line of each table; sizes in GB, times in seconds."""

    balance_memory: float
    balance_traffic: float
    product_compute: float
    product_network: float
    balance_time: float
    train_memory: float
    evaluate_memory: float
    disk: float
    step_read: float
    step_traffic: float
    epoch_time: float


def estimate(edges: float, processes: int, measured: Measured, setting: Setting) -> Estimate:
    """``edges`` counts an edge in both directions, as the matrix does."""
    nodes = edges / setting.arcs_per_node
    giga = 1e9
    others = 8 * nodes * (processes - 1) / processes
    compute = measured.nanoseconds_per_arc_and_product * 1e-9 * edges / processes
    network = others / giga / setting.gigabytes_per_second
    weights = (setting.features + 1) * setting.hidden + (setting.hidden + 1) * setting.classes
    steps = setting.training_share * nodes / _SEEDS / processes
    sent = 2 * 4 * weights * (processes - 1) / processes / giga
    step = measured.seconds_per_step + sent / setting.gigabytes_per_second
    return Estimate(
        balance_memory=balancing_bytes(edges, nodes, processes) / giga,
        balance_traffic=others / giga,
        product_compute=compute,
        product_network=network,
        balance_time=measured.products * (compute + network),
        train_memory=training_bytes(nodes, setting) / giga,
        evaluate_memory=evaluation_bytes(nodes, setting) / giga,
        disk=(index_bytes(nodes) * edges + 4 * setting.features * nodes) / giga,
        # A row and a feature vector are two pages each at worst, and nothing is in the cache.
        step_read=4 * _PAGE * measured.nodes_per_step / giga,
        step_traffic=sent,
        epoch_time=steps * step,
    )


def tables(measured: Measured, setting: Setting) -> str:
    """The tables of docs/scale.md as Markdown."""
    lines = [
        f"Measured: {measured.nanoseconds_per_arc_and_product:.1f} ns for an arc and product, "
        f"{measured.products} products to 1e-6, {1000 * measured.seconds_per_step:.0f} ms for a "
        f"step of 1,024 seeds, which reads {measured.nodes_per_step:,.0f} nodes (fan-out 10, 10). "
        f"Assumed: {setting.arcs_per_node} arcs a node, {setting.features} features, "
        f"{setting.hidden} hidden, {setting.classes} classes, {setting.training_share:.0%} of the "
        f"nodes in training, {setting.gigabytes_per_second:g} GB/s between machines.",
    ]
    for edges in EDGES:
        rows = [(k, estimate(edges, k, measured, setting)) for k in PROCESSES]
        power = len(str(edges)) - 1
        lines += [
            "",
            f"**Balancing, 10^{power} arcs, {edges / setting.arcs_per_node:.0e} nodes**, for each "
            "of k processes",
            "",
            "| k | memory | received per product | computing a product | exchanging | to 1e-6 |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        lines += [
            f"| {k} | {_size(e.balance_memory)} | {_size(e.balance_traffic)} "
            f"| {_time(e.product_compute)} | {_time(e.product_network)} "
            f"| {_time(e.balance_time)} |"
            for k, e in rows
        ]
        first = rows[0][1]
        lines += [
            "",
            f"**Sampled training, 10^{power} arcs**: each process holds "
            f"{_size(first.train_memory)} of vectors (and {_size(first.evaluate_memory)} while it "
            f"classifies all nodes); {_size(first.disk)} on disk; a step, 1,024 seeds in each "
            f"process, reads at worst {_size(first.step_read)} of pages and exchanges "
            f"{_size(rows[-1][1].step_traffic)} of gradients",
            "",
            "| k | epoch |",
            "| --- | --- |",
        ]
        lines += [f"| {k} | {_time(e.epoch_time)} |" for k, e in rows]
    return "\n".join(lines)


def _size(gigabytes: float) -> str:
    for unit, scale in (("TB", 1e3), ("GB", 1.0), ("MB", 1e-3), ("kB", 1e-6)):
        if gigabytes >= scale:
            return f"{gigabytes / scale:.3g} {unit}"
    return "0"


def _time(seconds: float) -> str:
    for unit, least, scale in (("h", 7200, 3600), ("min", 120, 60), ("s", 1, 1)):
        if seconds >= least:
            return f"{seconds / scale:.3g} {unit}"
    return f"{1000 * seconds:.3g} ms" if seconds else "0"


def drawn(text: str, measured: Measured) -> str:
    """A page with its tables made anew between their marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise RawlsError(f"the page has no place for the tables: put {BEGIN} and {END} in it")
    return f"{before}{BEGIN}\n{tables(measured, Setting())}\n{END}{after}"


app = typer.Typer(cls=OneSentence, pretty_exceptions_enable=False, add_completion=False)


@app.command()
@guarded
def main(
    results: Annotated[Path, typer.Option(help="The folder of the benchmark's results.")],
    write: Annotated[
        Path | None, typer.Option(help="Draw the tables into this page (else print them).")
    ] = None,
) -> None:
    """The memory, traffic and time of balancing and training at scale."""
    measured = Measured.of(results)
    if write is None:
        typer.echo(tables(measured, Setting()))
        return
    try:
        page = drawn(write.read_text(encoding="utf-8"), measured)
    except OSError as error:
        raise RawlsError(f"cannot read {write}: {error.strerror}") from error
    with atomic_file(write) as temporary:
        temporary.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    app()
