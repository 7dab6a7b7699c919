"""The documentation site: ``make docs`` builds it without a network, and warnings are errors."""

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from rawlsgcn import __version__ as release

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
# The kernels that run the tutorials inherit these.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ["PYTHONWARNINGS"] = "ignore"
os.environ["NO_COLOR"] = "1"
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# No profile of the person who builds the site changes it, and kernels report errors only.
profile = Path(tempfile.mkdtemp(prefix="rawlsgcn-docs-")) / "profile_default"
atexit.register(shutil.rmtree, profile.parent, ignore_errors=True)
profile.mkdir()
(profile / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 40\n")
(profile / "startup").mkdir()
shutil.copy(Path(__file__).parent / "_ext" / "kernel_startup.py", profile / "startup")
os.environ["IPYTHONDIR"] = str(profile.parent)

project = "rawlsgcn"
author = "the authors of rawlsgcn"
version = release
copyright = author
language = "en"
smartquotes = False  # an option is --out, not an en dash

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "reference_pages",
]
exclude_patterns = ["_build", "_ext"]
templates_path = ["_templates"]
highlight_language = "none"  # a block without a language is a command or a file
nitpicky = True
# Types in signatures are names of torch, numpy and pandas, or of classes that are not public;
# docstrings of rooms name modules that have no page.
nitpick_ignore_regex = [("py:(class|obj|data|attr|mod)", ".*")]

# Markdown
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Tutorials run on every build, from nothing.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_execution_show_tb = True
nb_merge_streams = True

# Reference
add_module_names = False
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# HTML
html_theme = "furo"
html_title = "rawlsgcn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_math_renderer = "mathml"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Pages of the repository that the site shows, and the page that shows each.
SHOWN_ELSEWHERE = {
    "../benchmarks/RESULTS.md": "measured/speed.md",
    "../results/auto/README.md": "measured/auto.md",
    "../results/scale/README.md": "measured/scale.md",
    "../results/two-lines.md": "measured/two-lines.md",
    "../results/paper/tables.md": "measured/paper-tables.md",
    "../results/significance/all-nodes/significance.md": "measured/significance-of-all-nodes.md",
}


def link_inside(app, docname, source):
    """Let links to such pages lead to the page of the site; on GitHub they lead to the file."""
    for path, page in SHOWN_ELSEWHERE.items():
        source[0] = re.sub(rf"\]\({re.escape(path)}([#)])", rf"](/{page}\1", source[0])


def link_inside_shown_page(app, path, docname, source):
    """Do the same in a page that is shown here."""
    link_inside(app, docname, source)


def setup(app):
    app.connect("source-read", link_inside)
    app.connect("include-read", link_inside_shown_page)
