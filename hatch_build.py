"""Compile the passes of balancing when the package is built or installed, if a compiler is there.

Without one (or where compiling fails) the package is pure Python and does the same by numpy and
torch, only slower. ``CC`` names another compiler; ``RAWLSGCN_PURE=1`` does without.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "rawlsgcn", "balancing")
FLAGS = ("-O3", "-std=c11", "-fno-math-errno", "-fPIC", "-shared")
#: Threads where the compiler knows them; otherwise at least several numbers at once.
THREADS = ("-fopenmp", "-fopenmp-simd")


class CompileKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``_kernels-<digest of kernels.c>.so`` beside ``kernels.c``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        folder = Path(self.root, FOLDER)
        library = compiled(folder)
        if library is None:
            return
        build_data["artifacts"].append(f"/{(FOLDER / library.name).as_posix()}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"


def compiled(folder: Path) -> Path | None:
    """The compiled kernels of this folder's source, or None without a way to compile them."""
    for old in folder.glob("_kernels-*.so"):
        old.unlink()
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if compiler is None or os.environ.get("RAWLSGCN_PURE") == "1":
        return None
    source = folder / "kernels.c"
    digest = hashlib.blake2b(source.read_bytes(), digest_size=6).hexdigest()
    library, unfinished = folder / f"_kernels-{digest}.so", folder / f"_kernels-{os.getpid()}.tmp"
    for threads in THREADS:
        command = [compiler, *FLAGS, threads, "-o", str(unfinished), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
            unfinished.replace(library)
            return library
        except (OSError, subprocess.SubprocessError):
            unfinished.unlink(missing_ok=True)
    return None
