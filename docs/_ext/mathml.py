"""Write formulas as MathML, which browsers draw without a script, a font or a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def mathml(node: Any, block: bool) -> str:
    """Return the MathML of a formula; one that cannot be converted is a warning of the build."""
    # docutils knows \bigl and \Bigl only, and sets the index of \hat A_i below it without braces.
    text = re.sub(r"\\([bB]ig)(?![a-zA-Z])", r"\\\1l", node.astext())
    text = re.sub(r"\\(?:hat|bar|tilde)\s*(?:\{[^{}]*\}|\w|\\[a-z]+)", r"{\g<0>}", text)
    try:
        markup = tex2mathml(text, as_block=block)
    except MathError as error:
        logger.warning("formula cannot be converted: %s", error, location=node)
        return f"<code>{node.astext()}</code>"
    return markup


def visit_inline(self: Any, node: Any) -> None:
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    # A formula that is wider than a small screen scrolls, also by keyboard.
    self.body.append('<div class="formula" tabindex="0" role="group" aria-label="Formula">')
    self.body.append(mathml(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
