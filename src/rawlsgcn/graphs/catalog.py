"""The named graphs and the names of splits, as tables that need no torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from .._core.errors import RawlsError, unknown_name

SPLIT_SEED = 1684992425
"""The seed of the authors' published splits."""

SPLITS = ("paper", "stored", "random")
"""The values of ``split=`` and ``--split``."""
MASKS = ("train_mask", "val_mask", "test_mask")
"""The names of the masks, as torch_geometric has them."""
SYNTHETIC = "synthetic"


@dataclass(frozen=True)
class DatasetEntry:
    """A named graph, and where its raw files are under the root; another needs only an entry.

    Attributes:
        title: The name that people read; :func:`rawlsgcn.load` knows it in lower case.
        loader: The torch_geometric class that downloads the files; one of the READERS in
            :mod:`rawlsgcn.graphs.readers.published_files`. With None, the first of ``files`` is in
            one of the formats of :func:`rawlsgcn.read`, and is never downloaded.
        loader_name: The name by which that class knows the graph.
        folder: The folder of the raw files, relative to the root.
        files: The raw files, in the order of the class.
        split: The default split: 'paper', 'stored' or 'random'.
        labels: With ``loader`` None, what :func:`rawlsgcn.read` takes as ``labels``: one of
            ``files``, or the name of a node attribute.
        features: The same for the features.
    """

    title: str
    loader: str | None
    loader_name: str | None
    folder: str
    files: tuple[str, ...]
    split: str = "paper"
    labels: str | None = None
    features: str | None = None

    @property
    def name(self) -> str:
        """The name that :func:`rawlsgcn.load` knows."""
        return self.title.lower()

    def raw_dir(self, root: Path) -> Path:
        return root / self.folder

    def raw_paths(self, root: Path) -> list[Path]:
        return [self.raw_dir(root) / file for file in self.files]

    def on_disk(self, root: str | Path | None = None) -> bool:
        """Whether every raw file is there, so that loading needs no download."""
        return all(path.is_file() for path in self.raw_paths(data_root(root)))


_PLANETOID = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
_CITESEER = tuple(f"ind.citeseer.{part}" for part in _PLANETOID)
_COMPUTERS = "amazon_electronics_computers.npz"
_GEOM_GCN = (
    "out1_node_feature_label.txt",
    "out1_graph_edges.txt",
    *(f"chameleon_split_0.6_0.2_{i}.npz" for i in range(10)),
)
_ENTRIES = (
    DatasetEntry("Cora-ML", "CitationFull", "Cora_ML", "cora_ml/raw", ("cora_ml.npz",)),
    DatasetEntry("Citeseer", "Planetoid", "CiteSeer", "CiteSeer/raw", _CITESEER),
    DatasetEntry("Coauthor-CS", "Coauthor", "CS", "CS/raw", ("ms_academic_cs.npz",)),
    DatasetEntry(
        "Coauthor-Physics", "Coauthor", "Physics", "Physics/raw", ("ms_academic_phy.npz",)
    ),
    DatasetEntry("Amazon-Computers", "Amazon", "Computers", "Computers/raw", (_COMPUTERS,)),
    DatasetEntry("Amazon-Photo", "Amazon", "Photo", "Photo/raw", ("amazon_electronics_photo.npz",)),
    # The paper's Chameleon accuracies are multiples of 1/(5 x 456): they can only come from
    # the 456 test nodes of the stored split, not from the 20-per-class split of its text.
    DatasetEntry(
        "Chameleon", "WikipediaNetwork", "chameleon", "chameleon/geom_gcn/raw", _GEOM_GCN, "stored"
    ),
)
CATALOG: dict[str, DatasetEntry] = {entry.name: entry for entry in _ENTRIES}


def datasets() -> list[str]:
    """List the names that :func:`rawlsgcn.load` knows.

    Returns:
        The names of the catalog, and ``'synthetic'`` last.

    Example:
        >>> import rawlsgcn as rg
        >>> rg.datasets()[:2]
        ['cora-ml', 'citeseer']
    """
    return [*CATALOG, SYNTHETIC]


def data_root(root: str | Path | None = None) -> Path:
    """The folder of the raw files: the argument, else RAWLSGCN_DATA, else the user's cache."""
    if root is None:
        root = os.environ.get("RAWLSGCN_DATA") or Path("~", ".cache", "rawlsgcn", "data")
    return Path(root).expanduser()


def catalog_entry(name: str) -> DatasetEntry:
    """The entry called ``name``, in upper or lower case."""
    entry = CATALOG.get(str(name).lower())
    if entry is None:
        if Path(name).suffix or os.sep in str(name) or os.path.exists(name):
            raise file_for_graph(name)
        raise unknown_name("dataset", name, datasets())
    return entry


def file_for_graph(path: str | Path) -> RawlsError:
    """The error for a file in the place of a graph, which has to be read first."""
    shown = str(path)
    return RawlsError(
        f"{shown!r} is a file, not a graph or the name of a dataset: read it first, with "
        f"rg.read({shown!r}), which also takes features= and labels= (in a command: --graph)"
    )
