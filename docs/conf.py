"""The site: ``python -m sphinx -W docs docs/_build``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from numpydoc.xref import DEFAULT_LINKS

import moestat

sys.path.insert(0, str(Path(__file__).parent))
from pages import (
    DOCS,
    MADE,
    topics,
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
from sheet import write_sheet

project = "moestat"
author = "The moestat developers"
release = version = moestat.__version__
extensions = [
    "mathml",
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
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
# Types lead to their pages, here or in other projects; other words are left as they are.
OTHERS = {
    "ndarray": "numpy.ndarray",
    "array_like": "numpy.typing.ArrayLike",
    "Generator": "numpy.random.Generator",
    "DataFrame": "pandas.DataFrame",
    "Series": "pandas.Series",
    "Axes": "matplotlib.axes.Axes",
    "Figure": "matplotlib.figure.Figure",
}
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    **{word: word for word in DEFAULT_LINKS},
    **OTHERS,
    **{
        thing.__name__: f"{thing.__module__}.{thing.__qualname__}"
        for things in topics().values()
        for thing in things.values()
        if isinstance(thing, type)
    },
}
# Where the network is, the inventories of the projects; elsewhere the names that OTHERS needs.
intersphinx_mapping = {
    name: (f"https://{address}/", (None, f"inventories/{name}.txt"))
    for name, address in {
        "matplotlib": "matplotlib.org/stable",
        "numpy": "numpy.org/doc/stable",
        "pandas": "pandas.pydata.org/docs",
    }.items()
}
intersphinx_timeout = 5
autodoc_typehints = "none"  # the sections of parameters have them in words
default_role = "code"
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"
html_theme = "pydata_sphinx_theme"
# Pages that are written by hand can be edited.
WRITTEN = [
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in DOCS.rglob("*.md")
    if not {"generated", "_build"} & set(path.parts)
]
EDITED = ["page-toc", "edit-this-page"]
html_title = f"moestat {version}"
SITE = os.environ.get("MOESTAT_SITE", "main")
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **dict.fromkeys(WRITTEN, EDITED)},
    "use_edit_page_button": True,
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "switcher": {
        "json_url": "https://moestat.github.io/moestat/switcher.json",
        "version_match": SITE.removeprefix("v") if SITE.startswith("v") else "dev",
    },
    "check_switcher": False,
    "github_url": "https://github.com/moestat/moestat",
}
html_context = {
    "github_user": "moestat",
    "github_repo": "moestat",
    "github_version": "main",
    "doc_path": "docs",
}
# Pages that stand alone have no section to navigate in.
ALONE = (
    "index",
    "start",
    "first_analysis",
    "changelog",
    "cheat_sheet",
    "generated/gallery",
    "generated/examples",
)
html_sidebars = {page: [] for page in ALONE}
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_js_files = ["pictures.js", "tables.js"]
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
write_sheet(MADE / "cheat_sheet.pdf", version)


def setup(app):
    """Leave out methods that scikit-learn adds: their texts refer to pages of its own site."""
    app.connect(
        "autodoc-skip-member",
        lambda app, what, name, thing, skip, options: (
            skip or (name.startswith("set_") and name.endswith("_request")) or None
        ),
    )
