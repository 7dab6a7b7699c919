"""The command line: parse, call, print. Nothing heavy is imported before a command runs."""

from __future__ import annotations

# Importing a module of commands registers them.
from . import audit as audit
from . import auto as auto
from . import compare as compare
from . import doctor as doctor
from . import graphs as graphs
from . import reproduce as reproduce
from . import sharding as sharding
from . import smoothing as smoothing
from . import train as train
from .base import app as app
from .base import show_in_order

show_in_order(
    "demo datasets train auto compare tune predict balance shard smooth audit reproduce doctor"
)
