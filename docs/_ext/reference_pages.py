"""Write the reference before each build: a page for every public name and every command.

What is public is what ``__all__`` of the package and of its rooms lists, so a new name has a page
without further work. An object that several rooms offer is described once, under the shortest name.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

FACES = (
    "rawlsgcn",
    "rawlsgcn.nn",
    "rawlsgcn.transforms",
    "rawlsgcn.metrics",
    "rawlsgcn.sampling",
    "rawlsgcn.methods",
    "rawlsgcn.graphs",
    "rawlsgcn.balancing",
    "rawlsgcn.training",
    "rawlsgcn.evaluation",
    "rawlsgcn.experiments",
    "rawlsgcn.reporting",
    "rawlsgcn.reporting.figures",
    "rawlsgcn.reporting.audit_figures",
    "rawlsgcn.paper",
)


def homes() -> dict[tuple[str, str], str]:
    """The name under which the reference describes each public name, by (face, name)."""
    first: dict[tuple[int, str], str] = {}
    found = {}
    for face in FACES:
        module = importlib.import_module(face)
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType):
                found[face, name] = value.__name__
            else:  # two constants may be the same object
                key = (id(value), name)
                found[face, name] = first.setdefault(key, f"{face}.{name}")
    return found


def comment_of(name: str) -> str:
    """The comment (``#:``) on a constant, wherever in the package it is defined."""
    for module in sorted(each for each in sys.modules if each.startswith("rawlsgcn.")):
        try:
            comments = ModuleAnalyzer.for_module(module).find_attr_docs()
        except PycodeError:  # a compiled library
            continue
        if ("", name) in comments:
            return " ".join(comments["", name]).strip()
    return ""


def _has_page(base: type) -> bool:
    """Whether a class is described elsewhere, so that what it passes on is not repeated."""
    public = {name for face in FACES for name in importlib.import_module(face).__all__}
    return base.__name__ in public or not base.__module__.startswith("rawlsgcn")


def object_page(full: str, value: Any) -> str:
    """The reStructuredText that describes one function, class or constant."""
    module, _, name = full.rpartition(".")
    head = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {module}\n\n"
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, Exception) else "autoclass"
        ends = ", ".join(base.__name__ for base in value.__mro__[1:] if _has_page(base))
        options = f"   :members:\n   :inherited-members: {ends}\n   :show-inheritance:\n"
        return head + f".. {kind}:: {full}\n{options}"
    if inspect.isroutine(value):
        return head + f".. autofunction:: {full}\n"
    each = [getattr(item, "__name__", repr(item)) for item in value]
    shown = ", ".join(each)
    return head + f".. py:data:: {name}\n\n   {comment_of(name)}\n\n   ``{shown}``\n"


def face_page(face: str, found: dict[tuple[str, str], str], children: list[str]) -> str:
    """The reStructuredText of a room: its docstring and a table of its names."""
    module = importlib.import_module(face)
    own = {name: found[face, name] for name in module.__all__}
    pages = [full for full in own.values() if full.startswith(f"{face}.") and full not in FACES]
    tables = [
        ("Functions", [n for n in own if inspect.isroutine(getattr(module, n))]),
        ("Classes", [n for n in own if inspect.isclass(getattr(module, n))]),
    ]
    text = f"{face}\n{'=' * len(face)}\n\n.. automodule:: {face}\n   :no-members:\n\n"
    for title, names in tables:
        if names:
            shown = (own[name].removeprefix(f"{face}.") for name in sorted(names))
            rows = "".join(f"   ~{each}\n" if "." in each else f"   {each}\n" for each in shown)
            text += f".. rubric:: {title}\n\n.. autosummary::\n   :nosignatures:\n\n{rows}\n"
    taken = {name for _, names in tables for name in names}
    rest = {name: full for name, full in own.items() if name not in taken}
    modules = [full for full in rest.values() if full in FACES]
    constants = [full for full in rest.values() if full not in FACES]
    for title, role, names in (("Modules", "mod", modules), ("Constants", "data", constants)):
        if names:
            text += f".. rubric:: {title}\n\n"
            text += "".join(f"* :py:{role}:`{full}`\n" for full in sorted(names)) + "\n"
    listed = "".join(f"   {full}\n" for full in sorted(pages) + children)
    return text + f".. toctree::\n   :hidden:\n\n{listed}"


def command_page() -> str:
    """The reStructuredText of every command and its options, as ``--help`` has them."""
    from typer.main import get_command

    from rawlsgcn.cli import app

    title = "The commands"
    text = f"{title}\n{'=' * len(title)}\n\n"
    for name, command in get_command(app).commands.items():
        text += f"rawlsgcn {name}\n{'-' * (len(name) + 9)}\n\n"
        text += (command.help or "").replace("\b\n", "").strip() + "\n\n"
        for each in command.params:
            spelled = ", ".join(each.opts) if each.param_type_name == "option" else each.name
            if spelled == "--help":
                continue
            note = getattr(each, "help", None) or ""
            if each.required:
                note += " Required."
            elif each.default not in (None, False, (), []):
                note += f" Default: {each.default}."
            note = note.strip().replace("*", r"\*").replace("`", r"\`")
            text += f"``{spelled}``\n   {note or 'No description.'}\n\n"
    return text


def write(app: Any) -> None:
    """Write all pages of the reference into ``reference/api``, in place of earlier ones."""
    folder = Path(app.srcdir) / "reference" / "api"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = homes()
    pages = {}
    for (face, name), full in found.items():
        value = getattr(importlib.import_module(face), name)
        if full == f"{face}.{name}" and not isinstance(value, ModuleType):
            pages[full] = object_page(full, value)
    for face in FACES:
        children = [other for other in FACES if other.rpartition(".")[0] == face != "rawlsgcn"]
        pages[face] = face_page(face, found, children)
    pages["commands"] = command_page()
    for name, text in pages.items():
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")


def link_pages(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let ``docs/graphs.md`` in a docstring link to that page."""
    lines[:] = [re.sub(r"`*docs/([\w-]+)\.md`*", r":doc:`/\1`", line) for line in lines]


def link_public_names(app: Any, env: Any, node: Any, text: Any) -> Any:
    """Find a public name that a docstring or a signature names without its full path."""
    if node.get("refdomain") != "py" or node.get("reftype") == "mod":
        return None
    objects = env.get_domain("py").objects
    target = node["reftarget"].lstrip(".")
    for count in (2, 1):  # Class.method, then the name alone
        ending = "." + ".".join(target.split(".")[-count:])
        found = sorted(
            (each for each in objects if each.endswith(ending) and not objects[each].aliased),
            key=lambda each: (each.count("."), each),
        )
        if found and (count == 2 or found[0].rpartition(".")[0] in FACES):
            entry = objects[found[0]]
            place = (app.builder, node["refdoc"], entry.docname, entry.node_id, text, found[0])
            return make_refnode(*place)
    return None


def setup(app: Any) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("missing-reference", link_public_names)
    app.connect("builder-inited", write, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
