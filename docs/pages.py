"""Pages of the site that follow from the project: the gallery, regenerated tables, the API."""

from __future__ import annotations

import inspect
import shutil
import tomllib
from pathlib import Path

import moestat

__all__ = ["write_api", "write_figures", "write_gallery"]

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE = DOCS / "generated"


def _head(text: str) -> str:
    """The comment at the top of a spec, without the command that runs it."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("# ").rstrip())
    kept = [line for line in lines if not line.startswith("python -m")]
    return " ".join(" ".join(kept).split())


def write_gallery() -> None:
    """A card for every shipped experiment: its figure, what one sees, the command."""
    MADE.mkdir(exist_ok=True)
    pictures = MADE / "pictures"
    pictures.mkdir(exist_ok=True)
    cards = []
    for path in sorted((ROOT / "experiments").glob("*.toml")):
        text = path.read_text(encoding="utf-8")
        title = tomllib.loads(text)["title"]
        picture = ROOT / "figures" / f"{path.stem}.png"
        image = ""
        if picture.exists():
            shutil.copy(picture, pictures / picture.name)
            image = f":img-top: pictures/{picture.name}\n"
        cards.append(
            f":::{{grid-item-card}} {title}\n{image}\n{_head(text)}\n\n"
            f"```sh\npython -m moestat.sweep run {path.stem}\n```\n:::\n"
        )
    body = "\n".join(cards)
    (MADE / "gallery.md").write_text(
        "# Gallery\n\nEvery shipped experiment: its figure where one is kept, what the spec says of"
        " itself, and the command that runs it.\n\n"
        f"::::{{grid}} 1 1 2 2\n:gutter: 3\n\n{body}\n::::\n",
        encoding="utf-8",
    )


def write_figures() -> None:
    """The pages under figures/, with their pictures, as pages of the site."""
    folder = MADE / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for path in sorted((ROOT / "figures").iterdir()):
        if path.suffix in (".md", ".png"):
            shutil.copy(path, folder / path.name)
        if path.suffix == ".md":
            names.append(path.stem)
    listed = "\n".join(f"figures/{name}" for name in names)
    (MADE / "results.md").write_text(
        "# Results\n\nTables and pictures that one command each regenerates, as they are kept in"
        " the folder `figures`.\n\n```{toctree}\n:maxdepth: 1\n\n" + listed + "\n```\n",
        encoding="utf-8",
    )


def write_api() -> None:
    """One page for every public name, in the order of their kind."""
    folder = MADE / "api"
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for name in sorted(moestat.__all__):
        thing = getattr(moestat, name)
        kind = "autoclass" if inspect.isclass(thing) else "autofunction"
        options = "   :members:\n" if kind == "autoclass" else ""
        title = f"moestat.{name}"
        place = f"{thing.__module__}.{thing.__qualname__}"
        (folder / f"{name}.rst").write_text(
            f"{title}\n{'=' * len(title)}\n\n.. {kind}:: {place}\n{options}", encoding="utf-8"
        )
        first = (inspect.getdoc(thing) or "").splitlines()[0]
        entries.append(f"| [{title}](api/{name}.rst) | {first} |")
    listed = "\n".join(f"api/{name}" for name in sorted(moestat.__all__))
    (MADE / "api.md").write_text(
        "# API reference\n\n| name | what it is |\n|---|---|\n"
        + "\n".join(entries)
        + "\n\n```{toctree}\n:hidden:\n\n"
        + listed
        + "\n```\n",
        encoding="utf-8",
    )
