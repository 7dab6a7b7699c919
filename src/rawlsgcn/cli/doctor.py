"""The command for reports of problems: doctor."""

from __future__ import annotations

import os
import platform
import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distributions, requires
from pathlib import Path
from typing import Any

import typer

from .._core import __version__
from ..graphs.catalog import CATALOG
from ..graphs.catalog import data_root as root_folder
from . import options as opt
from .base import command
from .outputs import check_outputs, people, write_json

#: Packages without which nothing works, in the order of the report.
NEEDED = ("torch", "torch_geometric", "numpy", "scipy", "pandas")
#: Extras of this package for its developers, of which users need nothing.
_FOR_DEVELOPERS = {"all", "dev", "docs", "test"}


@command("", "--json doctor.json")
def doctor(data_root: opt.DataRoot = None, json_path: opt.Json = None) -> None:
    """Show versions, kernels, threads, GPU and data: what a report of a problem should say.

    The exit status is 1 if something that every command needs does not work.
    """
    check_outputs(json_path)
    report, problems = examine(data_root)
    console = people(json_path)
    width = max(map(len, report))
    for name, value in report.items():
        if isinstance(value, dict):
            value = "; ".join(f"{extra}: {state}" for extra, state in value.items()) or "–"
        elif isinstance(value, list):
            value = ", ".join(value) or "none on disk (they are downloaded when first used)"
        console.print(f"{name.replace('_', ' '):<{width}}  {value}", soft_wrap=True)
    for problem in problems:
        console.print(f"Problem: {problem}", style="red")
    if not problems:
        console.print("No problem was found.")
    write_json(json_path, {**report, "problems": problems})
    if problems:
        raise typer.Exit(1)


def examine(data_root: Path | None = None) -> tuple[dict[str, Any], list[str]]:
    """The report of this installation and machine, and what does not work, in sentences."""
    report: dict[str, Any] = {
        "rawlsgcn": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
    }
    problems = []
    for name in NEEDED:
        try:  # an installed package may be broken
            report[name] = str(import_module(name).__version__)
        except Exception as error:
            report[name] = "cannot be imported"
            problems.append(f"{name} cannot be imported: {_first_line(error)}")
    for section, look in {"kernels": _kernels, "threads": _threads, "gpu": _gpu}.items():
        try:
            report[section] = look()
        except Exception as error:  # without torch, or with a broken one, nobody knows
            report[section] = f"unknown ({_first_line(error)})"
    root = root_folder(data_root)
    report["data_root"] = _without_home(root) + ("" if root.is_dir() else " (no such folder)")
    report["datasets"] = [name for name, each in CATALOG.items() if each.on_disk(data_root)]
    report["extras"] = _extras()
    return report, problems


def _kernels() -> str:
    from .._core import kernels

    reason = kernels.missing_reason()
    if reason is None:
        return "compiled, in use"
    return f"not in use, numpy and torch compute the same, slower: {_without_home(reason)}"


def _threads() -> str:
    import torch

    names = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS")
    given = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    said = f" ({', '.join(given)})" if given else ""
    return f"{torch.get_num_threads()} of {os.cpu_count()} processors{said}"


def _gpu() -> str:
    import torch

    if torch.version.cuda is None:
        return "none: this build of torch is for the CPU only"
    if not torch.cuda.is_available():
        return f"none found (torch is built for CUDA {torch.version.cuda})"
    names = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    return f"{', '.join(names)} (CUDA {torch.version.cuda})"


def _extras() -> dict[str, str]:
    """Each optional extra of this package: "installed", or the packages that are missing."""
    try:
        lines = requires("rawlsgcn") or []
    except PackageNotFoundError:
        return {}
    missing: dict[str, list[str]] = {}
    for line in lines:
        found = re.match(r"([\w.-]+).*extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if found and found[2] not in _FOR_DEVELOPERS and found[1] != "rawlsgcn":
            packages = missing.setdefault(found[2], [])
            packages += [] if any(distributions(name=found[1])) else [found[1]]
    return {
        name: f"without {', '.join(packages)}" if packages else "installed"
        for name, packages in sorted(missing.items())
    }


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _without_home(path: str | Path) -> str:
    """A path without the name of the user, for a report that others read."""
    home = str(Path.home())
    return str(path).replace(home, "~") if home != os.sep else str(path)
