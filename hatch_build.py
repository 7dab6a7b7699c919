"""Compile the package's C code when the package is built or installed, if a compiler is there.

Without one (or where compiling fails) the package does the same by numpy and torch, only slower,
and ``rawlsgcn doctor`` says why. ``CC`` names another compiler; ``RAWLSGCN_PURE=1`` does without,
and makes a wheel for every platform.

The library is not linked with an OpenMP runtime: it uses the one that torch has loaded, which is
part of torch's own package. So a wheel needs no library of the system but libc, and balancing and
training share one pool of threads.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src", "rawlsgcn", "_core")
FLAGS = ("-O3", "-std=c11", "-fno-math-errno", "-fPIC")
#: Threads where the compiler knows them; otherwise at least several numbers at once.
THREADS = ("-fopenmp", "-fopenmp-simd")
#: What clang calls for threads, and torch's runtime (that of gcc) does not have.
FOREIGN_RUNTIME = b"__kmpc_"


class CompileKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Puts ``_kernels-<digest of kernels.c>.so`` beside ``kernels.c``, or why not as ``.txt``."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        made, why = compiled(Path(self.root, FOLDER))
        if why:
            self.app.display_warning(f"rawlsgcn is built without compiled kernels: {why}")
        build_data["artifacts"].append(f"/{(FOLDER / made.name).as_posix()}")
        if os.environ.get("RAWLSGCN_PURE") != "1":
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"


def platform_tag() -> str:
    """Return the platform part of the wheel's tag.

    A Python for both kinds of Macs compiles for the one that it runs on, unless ``ARCHFLAGS`` says
    otherwise.
    """
    name = sysconfig.get_platform()
    if sys.platform == "darwin" and name.endswith("universal2"):
        asked = os.environ.get("ARCHFLAGS", "").split()[1::2] or [platform.machine()]
        name = name if len(asked) > 1 else name.replace("universal2", asked[0])
    return name.replace("-", "_").replace(".", "_")


def compiled(folder: Path) -> tuple[Path, str]:
    """Return the compiled kernels of this folder's source, and an empty text.

    Where there are none: a file that says why, and what it says.
    """
    source = folder / "kernels.c"
    digest = hashlib.blake2b(source.read_bytes(), digest_size=6).hexdigest()
    library = folder / f"_kernels-{digest}.so"
    why = _compile(source, library)
    if why:
        reason = library.with_suffix(".txt")
        reason.write_text(f"{why}\n", encoding="utf-8")
        return reason, why
    for old in {*folder.glob("_kernels-*.so"), *folder.glob("_kernels-*.txt")} - {library}:
        old.unlink(missing_ok=True)
    return library, ""


def _compile(source: Path, library: Path) -> str:
    """Compile the kernels; return why that failed, an empty text if it did not."""
    if os.environ.get("RAWLSGCN_PURE") == "1":
        return "RAWLSGCN_PURE was 1 when the package was built"
    if os.name == "nt" and not os.environ.get("CC"):
        return "they are not compiled on Windows"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if sys.platform == "darwin":
        compiler += shlex.split(os.environ.get("ARCHFLAGS", ""))
    unfinished = library.with_name(f"_kernels-{os.getpid()}.so")
    object_file = unfinished.with_suffix(".o")
    why = ""
    for threads in THREADS:
        try:
            # Two steps: with -fopenmp the linker would add a runtime to what torch has loaded.
            _run([*compiler, *FLAGS, threads, "-c", "-o", str(object_file), str(source)])
            _run([*compiler, "-shared", "-o", str(unfinished), str(object_file)])
            if FOREIGN_RUNTIME not in unfinished.read_bytes():
                unfinished.replace(library)
                return ""
            why = "the compiler calls another OpenMP runtime than torch's"
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or b"").decode(errors="replace")
            why = " ".join(f"{error} {said}".split())[:500]
        finally:
            object_file.unlink(missing_ok=True)
            unfinished.unlink(missing_ok=True)
    return why


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=120)
