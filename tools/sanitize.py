"""Run the compiled kernels under the address and undefined-behavior sanitizers.

    python tools/sanitize.py --rounds 2000 --seed 0

Compiles ``kernels.c`` with ``sanitize.c``, which feeds it random, extreme and damaged matrices with
1, 2 and 4 threads and compares the results with plain loops; once for each of the code paths that
a processor may take. ``CC`` names another compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parent
SOURCE = TOOLS.parent / "src" / "rawlsgcn" / "_core" / "kernels.c"
FLAGS = ("-O1", "-g", "-std=c11", "-fno-math-errno", "-fopenmp", "-fno-omit-frame-pointer")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
#: The code paths: a processor that gathers well, and another.
PATHS = {"gathering": ("-DGATHERS_WELL=1",), "loading": ("-DGATHERS_WELL=0",)}


class MissingError(Exception):
    """There is no compiler here, or none with the sanitizers."""


def compiler() -> list[str]:
    return shlex.split(os.environ.get("CC") or "cc")


def require_sanitizers(folder: Path) -> None:
    """Refuse a machine without a compiler, OpenMP and the sanitizers' libraries."""
    empty = folder / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    command = [*compiler(), *FLAGS, *SANITIZERS, str(empty), "-o", str(folder / "empty")]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        subprocess.run([str(folder / "empty")], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()
        raise MissingError(f"no compiler with sanitizers: {error} {said[-300:]}") from error


def kernels(source: Path) -> set[str]:
    """The functions that kernels.c gives to the package."""
    return set(re.findall(r"^[a-z]\w*[ *]+(rawls_\w+)\(", source.read_text(), re.MULTILINE))


def sanitize(
    rounds: int, seed: int, folder: Path, source: Path = SOURCE
) -> dict[str, dict[str, int]]:
    """The calls of each kernel on each code path; an exception where anything is found."""
    require_sanitizers(folder)
    counts = {}
    for number, (name, answers) in enumerate(PATHS.items()):
        program = folder / f"sanitize-{number}"
        files = [f"-I{source.parent}", str(TOOLS / "sanitize.c"), "-lm", "-o", str(program)]
        flags = [*FLAGS, *SANITIZERS, "-Wall", "-Wextra", *answers]
        built = subprocess.run([*compiler(), *flags, *files], capture_output=True, text=True)
        if built.returncode:
            raise RuntimeError(f"{name}: it does not compile\n{built.stderr}")
        ran = subprocess.run(
            [str(program), str(seed), str(rounds)],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "ASAN_OPTIONS": "detect_leaks=0",
                "UBSAN_OPTIONS": "print_stacktrace=1",
            },
        )
        if ran.returncode:
            raise RuntimeError(f"{name}: exit status {ran.returncode}\n{ran.stderr[-4000:]}")
        found = {word: int(count) for word, count in map(str.split, ran.stdout.splitlines())}
        never = sorted(each for each in {*kernels(source), "refused"} if not found.get(each))
        if never:
            raise RuntimeError(f"{name}: sanitize.c never calls {', '.join(never)}: add it there")
        if name == "gathering" and not found["avx512"]:
            name = "gathering (not run: this processor has no AVX-512)"
        counts[name] = found
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            counts = sanitize(asked.rounds, asked.seed, Path(folder))
        except (MissingError, RuntimeError) as error:
            sys.exit(str(error))
    words = sorted({word for found in counts.values() for word in found} - {"avx512"})
    for name, found in counts.items():
        print(f"{name}: " + ", ".join(f"{word} {found[word]:,}" for word in words))
    print("nothing found")


if __name__ == "__main__":
    main()
