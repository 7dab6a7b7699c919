"""``python -m tools.fuzz --cases 100000 --readers npz,csv --jobs 2 --out findings``."""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:  # started as `python tools/fuzz`
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
