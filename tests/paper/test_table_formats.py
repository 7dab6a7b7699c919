"""Markdown and LaTeX escape what they must."""

from __future__ import annotations

import re
from typing import Any

from rawlsgcn.paper.table_formats import Table, latex, markdown_rows
from rawlsgcn.paper.tables import tables


def test_markdown_and_latex_escape_what_they_must() -> None:
    table = Table("key", "50 % & more", ("graph", "a|b"), [("x_1 ± 2 †", "failed: {a|b}\\")])
    assert "a\\|b" in markdown_rows(table)
    tex = latex(table)
    assert r"50 \% \& more" in tex
    assert r"x\_1 $\pm$ 2 $\dagger$" in tex
    assert r"failed: \{a|b\}\textbackslash{}" in tex
    assert tex.count(r"\toprule") == tex.count(r"\bottomrule") == 1
    assert len(set(re.findall(r"[^\x00-\x7f]", tex))) == 0


def test_latex_of_the_results_is_plain_ascii(results: dict[str, Any]) -> None:
    for table in tables(results):
        assert not re.findall(r"[^\x00-\x7f]", latex(table))
