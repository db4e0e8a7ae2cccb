"""The site: ``python -m sphinx -W docs docs/_build``."""

from __future__ import annotations

import sys
from pathlib import Path

import moestat

sys.path.insert(0, str(Path(__file__).parent))
from pages import (
    write_alarms,
    write_api,
    write_examples,
    write_figures,
    write_gallery,
    write_home,
    write_likelihoods,
    write_losses,
    write_notebooks,
    write_parameters,
)

project = "moestat"
author = "The moestat developers"
release = version = moestat.__version__
extensions = [
    "mathml",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
bibtex_bibfiles = ["references.bib"]
exclude_patterns = [
    "_build",
    "guide/_alarms.md",
    "guide/_parameters.md",
    "jupyter_execute",
    "**.ipynb_checkpoints",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_output_stderr = "remove"
numpydoc_show_class_members = False
add_module_names = False  # the title of each page says where users find a name
numpydoc_xref_param_type = False
default_role = "code"
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "moestat"
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
# Pages that stand alone have no section to navigate in.
ALONE = ("index", "start", "changelog", "cheat_sheet", "generated/gallery", "generated/examples")
html_sidebars = {page: [] for page in ALONE}
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_js_files = ["pictures.js"]
# Pages that one command writes under figures/ are shown as they are; their links leave the site.
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]

write_gallery()
write_figures()
write_api()
write_losses()
write_likelihoods()
write_notebooks()
write_examples()
write_home()
write_parameters()
write_alarms()


def setup(app):
    """Leave out methods that scikit-learn adds: their texts refer to pages of its own site."""
    app.connect(
        "autodoc-skip-member",
        lambda app, what, name, thing, skip, options: (
            skip or (name.startswith("set_") and name.endswith("_request")) or None
        ),
    )
