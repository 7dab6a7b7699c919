"""Compile the package's C code when the package is built or installed, if a compiler is there.

Without one (or where compiling fails) the package is pure Python and does the same by numpy and
torch, only slower. ``CC`` names another compiler; ``RAWLSGCN_PURE=1`` does without.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "rawlsgcn", "_core")
FLAGS = ("-O3", "-std=c11", "-fno-math-errno", "-fPIC", "-shared")
#: Threads where the compiler knows them; otherwise at least several numbers at once.
THREADS = ("-fopenmp", "-fopenmp-simd")


class CompileKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``_kernels-<digest of kernels.c>.so`` beside ``kernels.c``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        library, why = compiled(Path(self.root, FOLDER))
        if library is None:
            self.app.display_warning(f"rawlsgcn is built without compiled passes: {why}")
            return
        build_data["artifacts"].append(f"/{(FOLDER / library.name).as_posix()}")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"


def compiled(folder: Path) -> tuple[Path | None, str]:
    """The compiled kernels of this folder's source; or None, and why there are none."""
    if os.environ.get("RAWLSGCN_PURE") == "1":
        return None, "RAWLSGCN_PURE is 1"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    source = folder / "kernels.c"
    digest = hashlib.blake2b(source.read_bytes(), digest_size=6).hexdigest()
    library, unfinished = folder / f"_kernels-{digest}.so", folder / f"_kernels-{os.getpid()}.so"
    why = ""
    for threads in THREADS:
        command = [*compiler, *FLAGS, threads, "-o", str(unfinished), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=120)
        except (OSError, subprocess.SubprocessError) as error:
            why = f"{error} {getattr(error, 'stderr', None) or b''!r}"
            unfinished.unlink(missing_ok=True)
            continue
        unfinished.replace(library)
        for old in set(folder.glob("_kernels-*.so")) - {library}:
            old.unlink(missing_ok=True)
        return library, ""
    return None, why
