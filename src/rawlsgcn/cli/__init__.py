"""The command line: parse, call, print. Nothing heavy is imported before a command runs."""

from __future__ import annotations

# Importing a module of commands registers them, in the order that --help shows.
from . import training as training  # isort: skip
from . import auto as auto  # isort: skip
from . import graphs as graphs  # isort: skip
from . import sharding as sharding  # isort: skip
from . import shards as shards  # isort: skip
from . import smoothing as smoothing  # isort: skip
from . import audit as audit  # isort: skip
from . import reproduce as reproduce  # isort: skip
from . import doctor as doctor  # isort: skip
from .base import app as app
from .base import show_after

show_after("auto", "train")
