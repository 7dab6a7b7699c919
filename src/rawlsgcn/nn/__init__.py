"""RawlsGCN-Grad for any torch_geometric model: layers whose weights learn by the fair gradient.

``FairGCNConv`` in place of ``GCNConv``, or ``make_fair(model)`` for an existing model. The equation
of each layer is in its docstring and in docs/fair-layers.md.
"""

from .appnp import FairAPPNP
from .fair_weights import fair_weights
from .gcn2_conv import FairGCN2Conv
from .gcn_conv import FairGCNConv
from .gin_conv import FairGINConv
from .graph_conv import FairGraphConv
from .make_fair import FAIR_LAYERS, make_fair
from .sage_conv import FairSAGEConv
from .sg_conv import FairSGConv
from .tag_conv import FairTAGConv

__all__ = [
    "FAIR_LAYERS",
    "FairAPPNP",
    "FairGCN2Conv",
    "FairGCNConv",
    "FairGINConv",
    "FairGraphConv",
    "FairSAGEConv",
    "FairSGConv",
    "FairTAGConv",
    "fair_weights",
    "make_fair",
]
